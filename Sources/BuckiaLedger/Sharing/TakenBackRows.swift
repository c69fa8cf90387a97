import SQLiteConnections
import SQLiteSchemas

/// The table `buckia_taken_back`: rows that went here because somebody else does not share them any more, or because a diff was taken back.
/// Nobody has deleted them, so those they were shared with in turn are not told that they were deleted.
package enum TakenBackRows {
  static let definition = """
    CREATE TABLE main.buckia_taken_back(
      share INTEGER NOT NULL,
      table_name TEXT NOT NULL COLLATE NOCASE,
      key BLOB NOT NULL,
      PRIMARY KEY (share, table_name, key)
    ) WITHOUT ROWID;
    """

  /// Stands for shares that are not made yet.
  package static let laterShares: Int64 = 0

  /// In the place of the number of a share: rows that their senders have withdrawn. They may come back.
  package static let withdrawn: Int64 = -1

  /// Notes a row for a share whose receivers have it.
  ///
  /// - Parameter key: The values of its key, in the format of changesets.
  /// - Throws: `SQLiteError`.
  package static func note(
    _ key: [UInt8], of table: TableName, for share: Int64, on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(
      cached: "INSERT OR IGNORE INTO main.buckia_taken_back VALUES (?1, ?2, ?3)", share, table.text, key)
  }

  /// Forgets a row that is here again.
  ///
  /// - Throws: `SQLiteError`.
  package static func remove(
    _ key: [UInt8], of table: TableName, for share: Int64, on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(
      cached: "DELETE FROM main.buckia_taken_back WHERE share = ?1 AND table_name = ?2 AND key = ?3", share, table.text,
      key)
  }

  /// Whether a row is noted for a share.
  ///
  /// - Throws: `SQLiteError`.
  package static func contains(
    _ key: [UInt8], of table: TableName, for share: Int64, on connection: borrowing SQLiteConnection
  ) throws -> Bool {
    let query = try connection.cached(
      "SELECT 1 FROM main.buckia_taken_back WHERE share = ?1 AND table_name = ?2 AND key = ?3")
    defer { query.statement.reset() }
    try query.statement.bind(share, at: 0)
    try query.statement.bind(table.text, at: 1)
    try query.statement.bind(key, at: 2)
    return try query.statement.step()
  }

  /// Forgets the rows that were noted for a share: its receivers have been told.
  ///
  /// - Throws: `SQLiteError`.
  package static func clear(for share: Int64, on connection: borrowing SQLiteConnection) throws {
    try connection.run(cached: "DELETE FROM main.buckia_taken_back WHERE share = ?1", share)
  }
}
