import BuckiaSchemaPlans
import SQLiteConnections
import SQLiteSchemas

extension RowSelection {
  /// Copies the selected rows of a table, as they travel, into another table of the database.
  ///
  /// - Parameters:
  ///   - table: The table.
  ///   - target: The other one, which has the columns that travel and no rows.
  /// - Throws: `ReplicationError` with `invalidSelection`; `SQLiteError`.
  package func copyRows(
    of table: TableDefinition, into target: TableName, on connection: borrowing SQLiteConnection
  ) throws {
    let chosen = try applied(to: table)
    let literals = try rewrittenLiterals(in: chosen)
    let names = chosen.columns.map { SQLText.identifier($0.name) }
    let results = names.indices.map { literals[$0] ?? names[$0] }
    let condition = conditionSQL.map { " WHERE \($0)" } ?? ""
    let copy = try connection.prepare(
      """
      INSERT INTO main.\(target.quoted)(\(names.joined(separator: ", "))) SELECT \(results.joined(separator: ", ")) \
      FROM main.\(SQLText.identifier(table.name))\(condition)
      """)
    try bindParameters(to: copy)
    try copy.run()
  }
}
