import CBuckiaSQLite

/// An open transaction, or a savepoint inside a transaction of the app. It ends exactly once: committed or rolled back.
///
/// One that goes out of scope without `commit` is rolled back: an error leaves nothing unfinished.
///
/// ```swift
/// let transaction = try SQLiteTransaction(on: connection)
/// try connection.execute("DELETE FROM notes")
/// try transaction.commit()
/// ```
package struct SQLiteTransaction: ~Copyable {
  /// When the transaction takes its locks. See <https://sqlite.org/lang_transaction.html>.
  package enum Kind: String, Sendable {
    /// On the first read or write.
    case deferred = "DEFERRED"
    /// Takes the write lock at once: the transaction cannot fail with "busy" later.
    case immediate = "IMMEDIATE"
  }

  // Sound: the connection outlives the transaction. A type that is discarded cannot hold a counted reference.
  private unowned(unsafe) let handle: SQLiteHandle

  /// True if this is a savepoint inside a transaction that belongs to the app.
  package let isNested: Bool

  /// Begins a transaction, or a savepoint when a transaction is already open.
  ///
  /// The connection must outlive the transaction.
  ///
  /// - Throws: `SQLiteError`, busy when the lock cannot be taken in time.
  package init(_ kind: Kind = .immediate, on connection: borrowing SQLiteConnection) throws(SQLiteError) {
    handle = connection.handle
    isNested = connection.isInTransaction
    try connection.execute(isNested ? "SAVEPOINT buckia" : "BEGIN \(kind.rawValue)")
  }

  /// Commits the changes; those of a savepoint become part of the outer transaction.
  ///
  /// - Throws: `SQLiteError`; everything has been rolled back then.
  package consuming func commit() throws(SQLiteError) {
    let code = handle.routines.exec(handle.pointer, isNested ? "RELEASE buckia" : "COMMIT")
    if code != SQLITE_OK {
      let error = handle.error(code, sql: "COMMIT")
      undo()
      discard self
      throw error
    }
    discard self
  }

  /// Rolls everything back and begins again.
  ///
  /// - Throws: `SQLiteError`, busy when another connection wrote in between; no transaction is open then.
  package func restart() throws(SQLiteError) {
    let sql = isNested ? "ROLLBACK TO buckia" : "ROLLBACK; BEGIN IMMEDIATE"
    let code = handle.routines.exec(handle.pointer, sql)
    if code != SQLITE_OK { throw handle.error(code, sql: sql) }
  }

  /// Rolls everything back.
  package consuming func rollback() {
    undo()
    discard self
  }

  deinit { undo() }

  private func undo() {
    // SQLite may have rolled back by itself (full disk, I/O error). Then there is nothing left to do.
    guard handle.routines.get_autocommit(handle.pointer) == 0 else { return }
    handle.routines.exec(handle.pointer, isNested ? "ROLLBACK TO buckia; RELEASE buckia" : "ROLLBACK")
  }
}

/// Runs `body` and then `cleanUp`, also when `body` fails.
///
/// - Throws: The first error: what `body` throws, or else what `cleanUp` throws.
package func cleaningUp<Value>(after body: () throws -> Value, by cleanUp: () throws -> Void) throws -> Value {
  let value: Value
  do { value = try body() } catch { throw cleaningUp(after: error, by: cleanUp) }
  try cleanUp()
  return value
}

/// Runs `cleanUp` after an error.
///
/// - Returns: The original error, also if `cleanUp` fails because of it.
package func cleaningUp(after error: any Error, by cleanUp: () throws -> Void) -> any Error {
  _ = Result(catching: cleanUp)
  return error
}
