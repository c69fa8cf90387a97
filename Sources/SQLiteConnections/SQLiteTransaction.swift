import CBuckiaSQLite

/// An open transaction, or a savepoint inside the application's own. It ends exactly once: committed, or rolled back.
///
/// One that goes out of scope without `commit` is rolled back, so an error on the way can leave nothing half done.
///
/// ```swift
/// let transaction = try SQLiteTransaction(on: connection)
/// try connection.execute("DELETE FROM notes")
/// try transaction.commit()
/// ```
public struct SQLiteTransaction: ~Copyable {
  /// When the transaction takes its locks. See <https://sqlite.org/lang_transaction.html>.
  public enum Kind: String, Sendable {
    /// With the first read or write.
    case deferred = "DEFERRED"
    /// The write lock at once, so that it cannot fail with "busy" half way.
    case immediate = "IMMEDIATE"
  }

  private let handle: OpaquePointer

  /// Whether this is a savepoint inside a transaction that belongs to the application.
  public let isNested: Bool

  /// Begins a transaction; inside one that is already open, a savepoint.
  ///
  /// The connection must outlive the transaction.
  ///
  /// - Throws: `SQLiteError`, busy when the lock cannot be had in time.
  public init(_ kind: Kind = .immediate, on connection: borrowing SQLiteConnection) throws(SQLiteError) {
    handle = connection.handle
    isNested = connection.isInTransaction
    try connection.execute(isNested ? "SAVEPOINT buckia" : "BEGIN \(kind.rawValue)")
  }

  /// Makes the changes last (a savepoint: part of the outer transaction).
  ///
  /// - Throws: `SQLiteError`; everything has been rolled back then.
  public consuming func commit() throws(SQLiteError) {
    let code = sqlite3_exec(handle, isNested ? "RELEASE buckia" : "COMMIT", nil, nil, nil)
    if code != SQLITE_OK {
      let path = sqlite3_db_filename(handle, "main").map { String(cString: $0) }
      let error = SQLiteError(handle: handle, code: code, path: path, sql: "COMMIT")
      undo()
      discard self
      throw error
    }
    discard self
  }

  /// Takes everything back.
  public consuming func rollback() {
    undo()
    discard self
  }

  deinit { undo() }

  private func undo() {
    // SQLite may have rolled back by itself already (full disk, I/O error): then there is nothing left to do.
    guard sqlite3_get_autocommit(handle) == 0 else { return }
    sqlite3_exec(handle, isNested ? "ROLLBACK TO buckia; RELEASE buckia" : "ROLLBACK", nil, nil, nil)
  }
}
