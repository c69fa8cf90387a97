import BuckiaBytes
import SQLiteConnections
import SQLiteSchemas

/// The table `buckia_sent_column`: which diff of a share has sent a value last, in tables without a clock.
///
/// A row without an entry was sent with the share's last snapshot, whose own entry has an empty table and key. An entry
/// is deleted when all recipients have applied its diff.
package enum SentColumns {
  static let definition = """
    CREATE TABLE main.buckia_sent_column(
      share INTEGER NOT NULL,
      table_name TEXT NOT NULL COLLATE NOCASE,
      key BLOB NOT NULL,
      column_name TEXT NOT NULL COLLATE NOCASE,
      sequence INTEGER NOT NULL,
      PRIMARY KEY (share, table_name, key, column_name)
    ) WITHOUT ROWID;
    """

  /// In the place of a column: all columns that have no entry of their own.
  package static let allColumns = ""

  /// Records that a snapshot has sent all rows of a share.
  ///
  /// - Throws: `SQLiteError`.
  package static func noteSnapshot(
    _ sequence: Int64, of share: Int64, on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(cached: "DELETE FROM main.buckia_sent_column WHERE share = ?1", share)
    try note([allColumns], ofRow: [], in: TableName(""), by: sequence, of: share, on: connection)
  }

  /// Records that a diff has sent columns of a row.
  ///
  /// - Parameter key: The values of its key, in the format of changesets.
  /// - Throws: `SQLiteError`.
  package static func note(
    _ columns: [String], ofRow key: [UInt8], in table: TableName, by sequence: Int64, of share: Int64,
    on connection: borrowing SQLiteConnection
  ) throws {
    for column in columns {
      try connection.run(
        cached: "INSERT OR REPLACE INTO main.buckia_sent_column VALUES (?1, ?2, ?3, ?4, ?5)", share, table.text, key,
        column, sequence)
    }
  }

  /// Deletes the entries of a row that a diff deletes or inserts.
  ///
  /// - Throws: `SQLiteError`.
  package static func remove(
    _ key: [UInt8], of table: TableName, in share: Int64, on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(
      cached: "DELETE FROM main.buckia_sent_column WHERE share = ?1 AND table_name = ?2 AND key = ?3", share,
      table.text,
      key)
  }

  /// Deletes the entries of diffs that all recipients of a share have applied.
  ///
  /// - Throws: `SQLiteError`.
  package static func forget(
    through sequence: Int64, of share: Int64, on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(
      cached: "DELETE FROM main.buckia_sent_column WHERE share = ?1 AND sequence <= ?2 AND table_name <> ''", share,
      sequence)
  }

  /// True if a diff after the last snapshot of a share has sent a row for the first time, which not all recipients have applied.
  ///
  /// - Throws: `SQLiteError`.
  package static func hasInserted(
    _ key: [UInt8], into table: TableName, on connection: borrowing SQLiteConnection
  ) throws -> Bool {
    try connection.hasRow(
      cached: "SELECT 1 FROM main.buckia_sent_column WHERE table_name = ?1 AND key = ?2 AND column_name = '' LIMIT 1",
      table.text, key)
  }

  /// The numbers of the diffs that have sent a row last, by columns in lower case.
  ///
  /// - Throws: `SQLiteError`.
  package static func sequences(
    ofRow key: [UInt8], in table: TableName, of share: Int64, on connection: borrowing SQLiteConnection
  ) throws -> [String: Int64] {
    var found: [String: Int64] = [:]
    try connection.forEachRow(
      ofCached: """
        SELECT column_name, max(sequence) FROM main.buckia_sent_column
        WHERE share = ?1 AND table_name IN ('', ?2) AND key IN (x'', ?3) GROUP BY column_name
        """, binding: [share, table.text, key]
    ) { found[ASCIIName.folded($0.text(at: 0) ?? "")] = $0.integer(at: 1) }
    return found
  }
}
