import SQLiteConnections
import SQLiteSchemas

extension TableStatements {
  /// What the statements that write to a table say about conflicts: `OR ABORT ` where the table itself says otherwise,
  /// which would lose rows without a word, and nothing elsewhere, where it is the same.
  ///
  /// It is not said without need because it would override what triggers say that the statement fires, such as the
  /// INSERT OR REPLACE of spatial indexes (<https://sqlite.org/lang_createtrigger.html>).
  ///
  /// - Parameters:
  ///   - table: The table.
  ///   - known: The statement that it was created with, where that has been read. `sqlite_schema` has no index, and a
  ///     database may have ten thousand tables.
  /// - Throws: `SQLiteError` when the schema cannot be read.
  static func conflictClause(
    of table: TableName, createdBy known: String? = nil, on connection: borrowing SQLiteConnection
  ) throws -> String {
    let query = "SELECT sql FROM main.sqlite_schema WHERE type = 'table' AND name = ?1 COLLATE NOCASE"
    guard let sql = try known ?? connection.text(query, binding: [table.text]) else { return "OR ABORT " }
    return ConflictClauses.occur(in: sql) ? "OR ABORT " : ""
  }
}
