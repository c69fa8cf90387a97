import SQLiteConnections
import SQLiteSchemas

/// The table `buckia_untold`: rows that a recipient of a share has brought since its last diff, and that its shadow does not have.
///
/// The next diff sends their present state: other recipients may not have them, and if they were deleted here, the
/// sender has to learn it. For rows that only their content identifies, the number of the recipient's rows is recorded.
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

  /// Records a row for a share.
  ///
  /// - Parameter key: The values of its key, in the format of changesets.
  /// - Throws: `SQLiteError`.
  package static func note(
    _ key: [UInt8], of table: TableName, for share: Int64, on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(
      cached: "INSERT OR IGNORE INTO main.buckia_untold VALUES (?1, ?2, ?3, NULL)", share, table.text, key)
  }

  /// Records the number of a recipient's rows with a content.
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

  /// The recorded numbers of recipients' rows with each content of a table, for a share.
  ///
  /// - Throws: `SQLiteError`.
  package static func contents(
    of table: TableName, for share: Int64, on connection: borrowing SQLiteConnection
  ) throws -> [[UInt8]: Int64] {
    var found: [[UInt8]: Int64] = [:]
    try connection.forEachRow(
      of: "SELECT key, rows FROM main.buckia_untold WHERE share = ?1 AND table_name = ?2 AND rows IS NOT NULL",
      binding: [share, table.text]
    ) { row in
      found[row.blob(at: 0)] = row.integer(at: 1)
    }
    return found
  }

  /// Puts the contents that are noted of a table into other columns.
  static func changeContents(
    of table: TableName, _ changed: ([UInt8]) throws -> [UInt8], on connection: borrowing SQLiteConnection
  ) throws {
    let found = try connection.rows(
      of: "SELECT share, key, rows FROM main.buckia_untold WHERE table_name = ?1 AND rows IS NOT NULL", table.text
    ) { row in
      (row.integer(at: 0), row.blob(at: 1), row.integer(at: 2))
    }
    try connection.run(cached: "DELETE FROM main.buckia_untold WHERE table_name = ?1 AND rows IS NOT NULL", table.text)
    for (share, content, rows) in found {
      try note(rows, with: changed(content), of: table, for: share, on: connection)
    }
  }

  /// The tables with recorded rows for a share, and the keys of rows with a key.
  ///
  /// - Throws: `SQLiteError`.
  package static func all(
    for share: Int64, on connection: borrowing SQLiteConnection
  ) throws -> [TableName: [[UInt8]]] {
    var found: [TableName: [[UInt8]]] = [:]
    try connection.forEachRow(
      of: "SELECT table_name, key, rows FROM main.buckia_untold WHERE share = ?1", binding: [share]
    ) { row in
      found[TableName(row.text(at: 0) ?? ""), default: []] += row.isNull(at: 2) ? [row.blob(at: 1)] : []
    }
    return found
  }

  /// Deletes the recorded rows of a share, whose diff has sent them.
  ///
  /// - Throws: `SQLiteError`.
  package static func clear(for share: Int64, on connection: borrowing SQLiteConnection) throws {
    try connection.run(cached: "DELETE FROM main.buckia_untold WHERE share = ?1", share)
  }
}

/// The table `buckia_taken_back`: rows that a withdrawal or an undo has removed here. They were not deleted, and the
/// recipients get a withdrawal instead of a deletion.
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

  /// Records a row for a share whose recipients have it.
  ///
  /// - Parameter key: The values of its key, in the format of changesets.
  /// - Throws: `SQLiteError`.
  package static func note(
    _ key: [UInt8], of table: TableName, for share: Int64, on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(
      cached: "INSERT OR IGNORE INTO main.buckia_taken_back VALUES (?1, ?2, ?3)", share, table.text, key)
  }

  /// Deletes the record of a row that exists again.
  ///
  /// - Throws: `SQLiteError`.
  package static func remove(
    _ key: [UInt8], of table: TableName, for share: Int64, on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(
      cached: "DELETE FROM main.buckia_taken_back WHERE share = ?1 AND table_name = ?2 AND key = ?3", share, table.text,
      key)
  }

  /// True if a row is noted for a share.
  ///
  /// - Throws: `SQLiteError`.
  package static func contains(
    _ key: [UInt8], of table: TableName, for share: Int64, on connection: borrowing SQLiteConnection
  ) throws -> Bool {
    try connection.hasRow(
      cached: "SELECT 1 FROM main.buckia_taken_back WHERE share = ?1 AND table_name = ?2 AND key = ?3", share,
      table.text, key)
  }

  /// Deletes the recorded rows of a share, after they were sent.
  ///
  /// - Throws: `SQLiteError`.
  package static func clear(for share: Int64, on connection: borrowing SQLiteConnection) throws {
    try connection.run(cached: "DELETE FROM main.buckia_taken_back WHERE share = ?1", share)
  }
}
