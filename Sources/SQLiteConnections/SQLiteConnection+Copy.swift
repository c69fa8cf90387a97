import CBuckiaSQLite

extension SQLiteConnection {
  /// Copies the database page by page into a new file, as it is at one moment, whoever else has it open.
  ///
  /// This is [SQLite's backup](https://sqlite.org/c3ref/backup_finish.html), which reads through the connection: a copy
  /// of the files could miss what is in the log, and reading them by path would drop this process's locks on them.
  ///
  /// - Parameter path: The new file.
  /// - Throws: `SQLiteError` when either cannot be read or written, or this one is locked; the new file is of no use then.
  public func copy(to path: String) throws(SQLiteError) {
    let target = try SQLiteConnection(opening: path, as: .create)
    guard let backup = sqlite3_backup_init(target.handle, "main", handle, "main") else {
      throw target.lastError(SQLITE_ERROR)
    }
    let code = sqlite3_backup_step(backup, -1)
    let finished = sqlite3_backup_finish(backup)
    guard code == SQLITE_DONE else { throw target.lastError(code) }
    guard finished == SQLITE_OK else { throw target.lastError(finished) }
  }
}
