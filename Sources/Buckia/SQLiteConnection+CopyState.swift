import SQLiteConnections

extension SQLiteConnection {
  /// Copies one state of the database into an empty file, by sharing its blocks where the file system can do that.
  ///
  /// - Parameter path: The empty file.
  /// - Throws: `SQLiteError` when the database is locked, or either file cannot be read or written.
  func copyState(to path: String) throws {
    // In a read transaction nobody writes to the file, unless there is a log beside it.
    let transaction = isInTransaction ? nil : try SQLiteTransaction(.deferred, on: self)
    _ = try integer("SELECT count(*) FROM main.sqlite_schema")
    let hasLog = try text("PRAGMA main.journal_mode") == "wal"
    if hasLog || self.path.isEmpty || !FileClone.make(of: self.path, to: path) { try copy(to: path) }
    transaction?.rollback()
  }
}
