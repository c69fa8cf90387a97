import SQLiteSchemas
import SQLiteConnections

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

extension RowSelection {
  /// Gives the selected rows of a table, as they travel.
  ///
  /// - Parameters:
  ///   - table: The table.
  ///   - columns: The columns of the results, each of which travels.
  ///   - body: Gets each row.
  /// - Throws: `ReplicationError` with `invalidSelection`; `SQLiteError`; what `body` throws.
  package func forEachRow(
    of table: TableDefinition, _ columns: [String], on connection: borrowing SQLiteConnection,
    _ body: (borrowing SQLiteStatement) throws -> Void
  ) throws {
    let chosen = try applied(to: table)
    let literals = try rewrittenLiterals(in: chosen)
    let results = columns.map { name in
      chosen.column(named: name).flatMap { literals[$0] } ?? SQLText.identifier(name)
    }
    let condition = conditionSQL.map { " WHERE \($0)" } ?? ""
    let query = try connection.prepare(
      "SELECT \(results.joined(separator: ", ")) FROM main.\(SQLText.identifier(table.name))\(condition)")
    try bindParameters(to: query)
    while try query.step() { try body(query) }
  }
}
