import SQLiteConnections
import SQLiteSchemas

/// The table `buckia_decided`: rows that a person has changed by resolving a conflict, and when.
///
/// If both sides of a conflict take what is incoming, their decisions cross: the one that was shared later counts at both.
package enum DecidedRows {
  static let definition = """
    CREATE TABLE main.buckia_decided(
      table_name TEXT NOT NULL COLLATE NOCASE,
      key BLOB NOT NULL,
      decided_at INTEGER NOT NULL,
      PRIMARY KEY (table_name, key)
    ) WITHOUT ROWID;
    """

  /// Notes a row.
  ///
  /// - Parameters:
  ///   - key: The values of its key, in the format of changesets.
  ///   - time: Milliseconds since 1970.
  /// - Throws: `SQLiteError`.
  package static func note(
    _ key: [UInt8], of table: TableName, at time: Int64, on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(
      cached: "INSERT OR REPLACE INTO main.buckia_decided VALUES (?1, ?2, ?3)", table.text, key, time)
  }

  /// True if there are any.
  ///
  /// - Throws: `SQLiteError`.
  package static func exist(on connection: borrowing SQLiteConnection) throws -> Bool {
    try connection.cachedInteger("SELECT 1 FROM main.buckia_decided LIMIT 1") != nil
  }

  /// When a row was decided, in milliseconds since 1970; nil where it never was.
  ///
  /// - Throws: `SQLiteError`.
  package static func time(
    of key: [UInt8], in table: TableName, on connection: borrowing SQLiteConnection
  ) throws -> Int64? {
    let query = try connection.cached("SELECT decided_at FROM main.buckia_decided WHERE table_name = ?1 AND key = ?2")
    defer { query.statement.reset() }
    try query.statement.bind(table.text, at: 0)
    try query.statement.bind(key, at: 1)
    return try query.statement.step() ? query.statement.integer(at: 0) : nil
  }
}
