import SQLiteConnections
import SQLiteSchemas

/// The table `buckia_untold`: rows that a recipient of a share has brought since its last diff, and that its shadow does not have.
///
/// The next diff says what has become of them: others may not have them, and if they are gone here, the recipient has to learn it.
/// Of rows that only their content identifies, it is noted how many the recipient has.
package enum UntoldRows {
  static let definition = """
    CREATE TABLE main.buckia_untold(
      share INTEGER NOT NULL,
      table_name TEXT NOT NULL COLLATE NOCASE,
      key BLOB NOT NULL,
      rows INTEGER,
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
      cached: "INSERT OR IGNORE INTO main.buckia_untold VALUES (?1, ?2, ?3, NULL)", share, table.text, key)
  }

  /// Notes how many rows with a content a recipient has.
  ///
  /// - Parameter content: The values, in the format of changesets.
  /// - Throws: `SQLiteError`.
  package static func note(
    _ rows: Int64, with content: [UInt8], of table: TableName, for share: Int64,
    on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(
      cached: "INSERT OR REPLACE INTO main.buckia_untold VALUES (?1, ?2, ?3, ?4)", share, table.text, content, rows)
  }

  /// How many rows with each content of a table a recipient has, where that is noted for a share.
  ///
  /// - Throws: `SQLiteError`.
  package static func contents(
    of table: TableName, for share: Int64, on connection: borrowing SQLiteConnection
  ) throws -> [[UInt8]: Int64] {
    let query = try connection.prepare(
      "SELECT key, rows FROM main.buckia_untold WHERE share = ?1 AND table_name = ?2 AND rows IS NOT NULL")
    try query.bind(share, at: 0)
    try query.bind(table.text, at: 1)
    var found: [[UInt8]: Int64] = [:]
    while try query.step() { found[query.blob(at: 0)] = query.integer(at: 1) }
    return found
  }

  /// Puts the contents that are noted of a table into other columns.
  static func changeContents(
    of table: TableName, _ changed: ([UInt8]) throws -> [UInt8], on connection: borrowing SQLiteConnection
  ) throws {
    let query = try connection.prepare(
      "SELECT share, key, rows FROM main.buckia_untold WHERE table_name = ?1 AND rows IS NOT NULL")
    try query.bind(table.text, at: 0)
    var found: [(share: Int64, content: [UInt8], rows: Int64)] = []
    while try query.step() { found.append((query.integer(at: 0), query.blob(at: 1), query.integer(at: 2))) }
    try connection.run(cached: "DELETE FROM main.buckia_untold WHERE table_name = ?1 AND rows IS NOT NULL", table.text)
    for row in found { try note(row.rows, with: changed(row.content), of: table, for: row.share, on: connection) }
  }

  /// The tables with rows that are noted for a share, and the keys of those that have one.
  ///
  /// - Throws: `SQLiteError`.
  package static func all(
    for share: Int64, on connection: borrowing SQLiteConnection
  ) throws -> [TableName: [[UInt8]]] {
    let query = try connection.prepare("SELECT table_name, key, rows FROM main.buckia_untold WHERE share = ?1")
    try query.bind(share, at: 0)
    var found: [TableName: [[UInt8]]] = [:]
    while try query.step() {
      found[TableName(query.text(at: 0) ?? ""), default: []] += query.isNull(at: 2) ? [query.blob(at: 1)] : []
    }
    return found
  }

  /// Forgets the rows that are noted for a share: its diff has told of them.
  ///
  /// - Throws: `SQLiteError`.
  package static func clear(for share: Int64, on connection: borrowing SQLiteConnection) throws {
    try connection.run(cached: "DELETE FROM main.buckia_untold WHERE share = ?1", share)
  }
}

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
