import SQLiteConnections
import SQLiteSchemas

/// The table `buckia_tombstone`: deleted rows of tables without a clock that shares have told of, or that streams have told of here, with a
/// hash of what they were.
///
/// Somebody who has not heard of the deletion may still pass the row on: as long as it is what it was, it stays deleted.
package enum Tombstones {
  static let definition = """
    CREATE TABLE main.buckia_tombstone(
      table_name TEXT NOT NULL COLLATE NOCASE,
      key BLOB NOT NULL,
      hash INTEGER NOT NULL,
      PRIMARY KEY (table_name, key)
    ) WITHOUT ROWID;
    """

  /// Notes a deleted row.
  ///
  /// - Parameters:
  ///   - key: The values of its key, in the format of changesets.
  ///   - hash: The hash of the row, as streams have it.
  /// - Throws: `SQLiteError`.
  package static func note(
    _ key: [UInt8], of table: TableName, _ hash: UInt64, on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(
      cached: "INSERT OR REPLACE INTO main.buckia_tombstone VALUES (?1, ?2, ?3)", table.text, key,
      Int64(bitPattern: hash))
  }

  /// True if deleted rows of a table are known.
  ///
  /// - Throws: `SQLiteError`.
  package static func exist(of table: TableName, on connection: borrowing SQLiteConnection) throws -> Bool {
    let query = try connection.cached("SELECT 1 FROM main.buckia_tombstone WHERE table_name = ?1 LIMIT 1")
    defer { query.statement.reset() }
    try query.statement.bind(table.text, at: 0)
    return try query.statement.step()
  }

  /// The hash of a deleted row; nil where none is known by the key.
  ///
  /// - Throws: `SQLiteError`.
  package static func hash(
    of key: [UInt8], in table: TableName, on connection: borrowing SQLiteConnection
  ) throws -> UInt64? {
    let query = try connection.cached("SELECT hash FROM main.buckia_tombstone WHERE table_name = ?1 AND key = ?2")
    defer { query.statement.reset() }
    try query.statement.bind(table.text, at: 0)
    try query.statement.bind(key, at: 1)
    return try query.statement.step() ? UInt64(bitPattern: query.statement.integer(at: 0)) : nil
  }

  /// Forgets a row that is here again.
  ///
  /// - Throws: `SQLiteError`.
  package static func remove(
    _ key: [UInt8], of table: TableName, on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(
      cached: "DELETE FROM main.buckia_tombstone WHERE table_name = ?1 AND key = ?2", table.text, key)
  }
}
