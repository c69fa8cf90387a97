import SQLiteConnections
import SQLiteSchemas

/// The table `buckia_rename`: columns that a sender has renamed. Columns of that sender's later diffs are found by them, too.
///
/// Renames of unsigned diffs are not kept: without a verified sender, a rename could redirect the values of others.
package enum KnownRenames {
  static let definition = """
    CREATE TABLE main.buckia_rename(
      sender TEXT NOT NULL,
      table_name TEXT NOT NULL,
      old_name TEXT NOT NULL,
      new_name TEXT NOT NULL,
      recorded_at INTEGER NOT NULL,
      PRIMARY KEY (sender, table_name, old_name, new_name)
    ) WITHOUT ROWID;
    """

  /// The most renames of a sender: the newest are kept.
  package static let limit = 1_000

  /// The renames that a sender has declared; none without a ledger.
  ///
  /// - Parameter sender: The verified key in hex, or empty for unsigned diffs, of which none are kept.
  package static func all(of sender: String, on connection: borrowing SQLiteConnection) throws -> [ColumnRename] {
    guard !sender.isEmpty, try Ledger.exists(on: connection) else { return [] }
    let query = "SELECT table_name, old_name, new_name FROM main.buckia_rename WHERE sender = ?1"
    return try connection.rows(of: query, sender) { row in
      ColumnRename(table: TableName(row.text(at: 0) ?? ""), from: row.text(at: 1) ?? "", to: row.text(at: 2) ?? "")
    }
  }

  /// Keeps renames that a sender has declared, and no more of that sender's than ``limit``.
  ///
  /// - Parameters:
  ///   - renames: The renames, all of columns that this database has.
  ///   - sender: The verified key in hex; nothing is kept when it is empty.
  ///   - time: When, in milliseconds since 1970.
  ///   - connection: The database, with a transaction open.
  package static func add(
    _ renames: [ColumnRename], of sender: String, at time: Int64, on connection: borrowing SQLiteConnection
  ) throws {
    guard !sender.isEmpty, !renames.isEmpty else { return }
    for rename in renames {
      try connection.run(
        cached: "INSERT OR REPLACE INTO main.buckia_rename VALUES (?1, ?2, ?3, ?4, ?5)", sender, rename.table.text,
        rename.oldName, rename.newName, time)
    }
    try connection.run(
      cached: """
        DELETE FROM main.buckia_rename WHERE sender = ?1 AND (table_name, old_name, new_name) IN (
          SELECT table_name, old_name, new_name FROM main.buckia_rename WHERE sender = ?1
          ORDER BY recorded_at DESC, table_name, old_name, new_name LIMIT -1 OFFSET ?2)
        """, sender, Int64(limit))
  }
}
