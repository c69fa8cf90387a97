import CBuckiaSQLite

extension SQLiteConnection {
  /// Copies a consistent state of the database into a new file, also while others have it open.
  ///
  /// This is [SQLite's backup](https://sqlite.org/c3ref/backup_finish.html), which reads through the connection. A copy of
  /// the files could miss what is in the write-ahead log, and reading them by path would drop this process's locks on them.
  ///
  /// - Parameter path: The new file.
  /// - Throws: `SQLiteError` when either file cannot be read or written, or this one is locked; the new file is unusable then.
  package func copy(to path: String) throws(SQLiteError) {
    try copy(to: SQLiteConnection(opening: path, as: .create, with: library))
  }

  /// Copies a consistent state of the database over that of another connection, such as one in memory.
  ///
  /// - Parameter target: A connection of the same copy of SQLite, on which nothing is open.
  /// - Throws: `SQLiteError` when either database cannot be read or written, or this one is locked; the target is unusable then.
  package func copy(to target: borrowing SQLiteConnection) throws(SQLiteError) {
    guard target.library == library else { throw SQLiteError(fault: .foreignHandle) }
    let routines = handle.routines
    guard let backup = routines.backup_init(target.handle.pointer, "main", handle.pointer, "main") else {
      throw target.handle.error(SQLITE_ERROR)
    }
    let code = routines.backup_step(backup, -1)
    let finished = routines.backup_finish(backup)
    guard code == SQLITE_DONE else { throw target.handle.error(code) }
    try target.handle.check(finished)
  }
}
