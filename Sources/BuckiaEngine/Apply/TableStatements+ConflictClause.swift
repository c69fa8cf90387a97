import SQLiteConnections
import SQLiteSchemas

extension TableStatements {
  /// What the statements that write to a table say about conflicts: `OR ABORT ` where the table itself says otherwise,
  /// which would lose rows without a word, and nothing elsewhere, where it is the same.
  ///
  /// It is not said without need because it would override what triggers say that the statement fires, such as the
  /// INSERT OR REPLACE of spatial indexes (<https://sqlite.org/lang_createtrigger.html>).
  ///
  /// - Throws: `SQLiteError` when the schema cannot be read.
  static func conflictClause(of table: TableName, on connection: borrowing SQLiteConnection) throws -> String {
    let query = "SELECT sql FROM main.sqlite_schema WHERE type = 'table' AND name = ?1 COLLATE NOCASE"
    guard let sql = try connection.text(query, binding: [table.text]) else { return "OR ABORT " }
    return ConflictClauses.stand(in: sql) ? "OR ABORT " : ""
  }
}
