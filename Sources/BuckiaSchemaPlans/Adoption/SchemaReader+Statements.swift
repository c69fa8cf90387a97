import SQLiteConnections
import SQLiteSchemas

extension SchemaReader {
  /// The statements that made the database, by kind and then in the order in which they were made: without those of SQLite, of
  /// Buckia, of what a module keeps inside, and of indexes that constraints have.
  ///
  /// - Throws: `SQLiteError` when the schema cannot be read.
  package func statements() throws -> [SchemaStatement] {
    var found: [SchemaStatement] = []
    let query = """
      SELECT type, name, tbl_name, sql FROM main.sqlite_schema
      WHERE sql IS NOT NULL AND tbl_name NOT LIKE 'buckia\\_%' ESCAPE '\\' ORDER BY rowid
      """
    try connection.forEachRow(of: query) { row in
      guard let kind = SchemaStatement.Kind(rawValue: row.text(at: 0) ?? "") else { return }
      for column in 1..<4 where !row.isWellFormedText(at: column) { return }
      let statement = SchemaStatement(
        kind, name: row.text(at: 1) ?? "", table: row.text(at: 2) ?? "", sql: row.text(at: 3) ?? "")
      if statement.name.refusal != nil || statement.table.refusal != nil { return }
      if case .shadow? = entry(named: statement.table)?.kind { return }
      found.append(statement)
    }
    return AuthorSchema.order.flatMap { kind in found.filter { $0.kind == kind } }
  }

  /// What the rows of a table come to; nil where it has none of its own.
  ///
  /// - Throws: `SQLiteError` when the table cannot be read.
  package func content(of entry: SchemaEntry) throws -> AuthorSchema.TableContent? {
    guard entry.kind.hasOwnRows else { return nil }
    let table = try definition(of: entry)
    let columns = table.columns.map { SQLText.identifier($0.name) }.joined(separator: ", ")
    var rows: Int64 = 0
    var sum: UInt64 = 0
    try connection.forEachRow(of: "SELECT \(columns) FROM main.\(entry.name.quoted)") { row in
      var hash = RowHash()
      for column in table.columns.indices { hash.add(column: column, of: row) }
      rows += 1
      sum &+= hash.value
    }
    return AuthorSchema.TableContent(rows: rows, hash: sum)
  }
}
