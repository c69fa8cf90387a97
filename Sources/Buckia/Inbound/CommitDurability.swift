import SQLiteConnections

/// Makes sure that what is committed is on disk, since files are removed on the strength of it.
///
/// With a rollback journal a commit is the removal of that journal. Only `PRAGMA synchronous = EXTRA` also waits until the
/// folder has lost it; after a power cut it could be back otherwise, and undo what a file did that is gone. In WAL mode it waits
/// for the WAL at each commit, as FULL does. See <https://sqlite.org/pragma.html#pragma_synchronous>.
enum CommitDurability {
  private static let extra: Int64 = 3

  /// Raises the setting of a connection while `body` runs, unless a transaction is open: then nothing is removed either.
  ///
  /// - Throws: `SQLiteError`; whatever `body` throws. The setting is as before.
  static func raised<Result>(
    on connection: borrowing SQLiteConnection, _ body: () throws -> Result
  ) throws -> Result {
    guard !connection.isInTransaction, let found = try connection.integer("PRAGMA main.synchronous"), found < extra
    else { return try body() }
    try connection.execute("PRAGMA main.synchronous = \(extra)")
    return try cleaningUp(after: body) {
      // A transaction that is still open is the app's, and SQLite does not change the setting inside one.
      if !connection.isInTransaction { try connection.execute("PRAGMA main.synchronous = \(found)") }
    }
  }
}
