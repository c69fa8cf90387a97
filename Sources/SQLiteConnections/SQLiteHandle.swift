import CBuckiaSQLite

/// A `sqlite3 *` with the copy of SQLite it belongs to: what a connection shares with its statements, sessions and
/// transactions. It does not own the connection.
final class SQLiteHandle {
  let pointer: OpaquePointer
  let library: SQLiteLibrary
  let routines: SQLiteRoutines
  /// The file's path as it was given, for messages.
  let path: String
  /// Whether the connection belongs to the app, with whatever the app has installed on it.
  let isBorrowed: Bool
  /// A Boolean value that indicates whether a collating sequence of ours was added.
  var hasByteCollation = false

  init(_ pointer: OpaquePointer, of library: SQLiteLibrary, path: String, isBorrowed: Bool = false) {
    self.pointer = pointer
    self.library = library
    self.path = path
    self.isBorrowed = isBorrowed
    routines = library.routines
  }

  /// The error that a call has just returned, with SQLite's message.
  func error(_ code: Int32, sql: String? = nil) -> SQLiteError {
    let extended = routines.extended_errcode(pointer)
    // The session functions return codes that the connection knows nothing of; its message is about another call then.
    let isOwn = extended & 0xff == code & 0xff
    let message = (isOwn ? routines.errmsg(pointer) : nil) ?? routines.errstr(code)
    return SQLiteError(
      code: isOwn ? extended : code, message: message.map { String(cString: $0) } ?? "unknown error", path: path,
      sql: sql)
  }

  /// Throws the error of a call that did not return `SQLITE_OK`.
  func check(_ code: Int32, sql: String? = nil) throws(SQLiteError) {
    if code != SQLITE_OK { throw error(code, sql: sql) }
  }
}
