import SQLiteConnections
import SQLiteSchemas

extension TableStatements {
  /// Whether SQLite computes anything from the values of a table's rows while it writes them: for an index on an expression
  /// or over some rows only, a generated column, a CHECK constraint, or a trigger.
  ///
  /// - Parameters:
  ///   - table: The table.
  ///   - known: The statement that it was created with, where that has been read.
  /// - Throws: `SQLiteError` when the schema cannot be read.
  static func hasExpressions(
    over table: TableDefinition, createdBy known: String?, on connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> Bool {
    guard table.module == nil else { return false }
    if !table.generated.isEmpty { return true }
    let query = """
      SELECT 1 FROM pragma_index_list(?1, 'main') AS list
      WHERE list.partial OR EXISTS (SELECT 1 FROM pragma_index_xinfo(list.name, 'main') WHERE cid = -2)
      UNION ALL SELECT 1 FROM main.sqlite_schema WHERE type = 'trigger' AND tbl_name = ?1 COLLATE NOCASE
      UNION ALL SELECT 1 FROM temp.sqlite_schema WHERE type = 'trigger' AND tbl_name = ?1 COLLATE NOCASE
      """
    if try connection.integer(query, binding: [table.name]) != nil { return true }
    let creation = "SELECT sql FROM main.sqlite_schema WHERE type = 'table' AND name = ?1 COLLATE NOCASE"
    let sql = if let known { known } else { try connection.text(creation, binding: [table.name]) ?? "" }
    return !CheckConstraints.expressions(in: sql).isEmpty
  }
}
