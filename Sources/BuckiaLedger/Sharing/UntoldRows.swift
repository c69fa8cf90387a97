import SQLiteConnections
import SQLiteSchemas

/// The table `buckia_untold`: rows that a recipient of a share has brought since its last diff, and that its shadow does not have.
///
/// The next diff says what has become of them: others may not have them, and if they are gone here, the recipient has to learn it.
package enum UntoldRows {
  static let definition = """
    CREATE TABLE main.buckia_untold(
      share INTEGER NOT NULL,
      table_name TEXT NOT NULL COLLATE NOCASE,
      key BLOB NOT NULL,
      PRIMARY KEY (share, table_name, key)
    ) WITHOUT ROWID;
    """

  /// Notes a row for a share.
  ///
  /// - Parameter key: The values of its key, in the format of changesets.
  /// - Throws: `SQLiteError`.
  package static func note(
    _ key: [UInt8], of table: TableName, for share: Int64, on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(
      cached: "INSERT OR IGNORE INTO main.buckia_untold VALUES (?1, ?2, ?3)", share, table.text, key)
  }

  /// The keys of the rows of each table that are noted for a share.
  ///
  /// - Throws: `SQLiteError`.
  package static func all(
    for share: Int64, on connection: borrowing SQLiteConnection
  ) throws -> [TableName: [[UInt8]]] {
    let query = try connection.prepare("SELECT table_name, key FROM main.buckia_untold WHERE share = ?1")
    try query.bind(share, at: 0)
    var found: [TableName: [[UInt8]]] = [:]
    while try query.step() { found[TableName(query.text(at: 0) ?? ""), default: []].append(query.blob(at: 1)) }
    return found
  }

  /// Forgets the rows that are noted for a share: its diff has told of them.
  ///
  /// - Throws: `SQLiteError`.
  package static func clear(for share: Int64, on connection: borrowing SQLiteConnection) throws {
    try connection.run(cached: "DELETE FROM main.buckia_untold WHERE share = ?1", share)
  }
}
