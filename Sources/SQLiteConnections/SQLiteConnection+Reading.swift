import BuckiaBytes

extension SQLiteConnection {
  /// Opens a file that is only to be read, and makes sure that it is a database.
  ///
  /// A database in WAL mode needs its index file even for reading, which cannot be made in a folder that is read-only.
  /// When no WAL is there, nothing can be in it, and the file itself is read as it stands.
  ///
  /// - Parameters:
  ///   - path: The database file.
  ///   - busyTimeout: How long to wait for another connection's lock, in milliseconds.
  /// - Throws: `SQLiteError` when it cannot be opened, is no database, is locked or must be recovered first.
  package static func reading(_ path: String, busyTimeout: Int32 = 10_000) throws(SQLiteError) -> SQLiteConnection {
    do throws(SQLiteError) {
      return try reading(path, as: .readOnly, busyTimeout: busyTimeout)
    } catch {
      let hasLog = access("\(path)-wal", F_OK) == 0 || access("\(path)-journal", F_OK) == 0
      guard error.isCannotOpen || error.isReadOnly, access(path, R_OK) == 0, !hasLog else { throw error }
      return try reading(path, as: .immutable, busyTimeout: busyTimeout)
    }
  }

  private static func reading(
    _ path: String, as access: Access, busyTimeout: Int32
  ) throws(SQLiteError) -> SQLiteConnection {
    let connection = try SQLiteConnection(opening: path, as: access, busyTimeout: busyTimeout)
    _ = try connection.integer("SELECT count(*) FROM sqlite_schema")
    try connection.distrustSchema()
    return connection
  }
}
