import CBuckiaSQLite

/// An error that SQLite reported, with the words it used and the place it happened.
///
/// Codes are SQLite's own extended result codes: <https://sqlite.org/rescode.html>.
public struct SQLiteError: Error, Sendable, CustomStringConvertible {
  /// The extended result code, such as 2067 for a UNIQUE violation.
  public let code: Int32
  /// SQLite's message.
  public let message: String
  /// The database file, when known.
  public let path: String?
  /// The statement that failed, when there was one.
  public let sql: String?

  /// Makes an error.
  public init(code: Int32, message: String, path: String? = nil, sql: String? = nil) {
    self.code = code
    self.message = message
    self.path = path
    self.sql = sql
  }

  init(handle: OpaquePointer?, code: Int32, path: String?, sql: String? = nil) {
    let extended = handle.map { sqlite3_extended_errcode($0) } ?? code
    // The session calls return codes that the connection knows nothing of; its words belong to something else then.
    let isOwn = extended & 0xff == code & 0xff
    let text = (isOwn ? handle.flatMap { sqlite3_errmsg($0) } : nil) ?? sqlite3_errstr(code)
    self.init(
      code: isOwn ? extended : code, message: text.map { String(cString: $0) } ?? "unknown error", path: path, sql: sql)
  }

  /// The primary result code: the low byte.
  public var primaryCode: Int32 { code & 0xff }

  /// Whether another connection holds a lock; trying again later can help.
  public var isBusy: Bool { primaryCode == SQLITE_BUSY || primaryCode == SQLITE_LOCKED }
  /// Whether the volume is full.
  public var isFullDisk: Bool { primaryCode == SQLITE_FULL }
  /// Whether the database or its folder cannot be written.
  public var isReadOnly: Bool { primaryCode == SQLITE_READONLY }
  /// Whether the file cannot be opened.
  public var isCannotOpen: Bool { primaryCode == SQLITE_CANTOPEN }
  /// Whether the file is no SQLite database (or is encrypted by something else).
  public var isNotADatabase: Bool { primaryCode == SQLITE_NOTADB }
  /// Whether the file is damaged.
  public var isCorrupt: Bool { primaryCode == SQLITE_CORRUPT }
  /// Whether a constraint refused a row.
  public var isConstraint: Bool { primaryCode == SQLITE_CONSTRAINT }
  /// Whether the two schemas do not fit (session calls).
  public var isSchemaMismatch: Bool { primaryCode == SQLITE_SCHEMA }
  /// Whether the callback asked to stop (session calls).
  public var isAborted: Bool { primaryCode == SQLITE_ABORT }
  /// Whether a value does not suit its column: a datatype mismatch.
  public var isMismatch: Bool { primaryCode == SQLITE_MISMATCH }
  /// Whether a value or row is larger than SQLite can hold.
  public var isTooBig: Bool { primaryCode == SQLITE_TOOBIG }
  /// Whether a hot journal needs a writer to roll it back first.
  public var needsRecovery: Bool { code == SQLITE_READONLY | (3 << 8) || code == SQLITE_READONLY | (2 << 8) }

  /// What happened, to which file, and what to do about it.
  public var description: String {
    let place = path.map { "\($0): " } ?? ""
    if isBusy { return "\(place)the database is locked by another program; try again when it is done" }
    if isNotADatabase { return "\(place)this is no SQLite database (or it is encrypted)" }
    if isCorrupt {
      return "\(place)the database is damaged (\(message)); restore a backup, or see `sqlite3 FILE .recover`"
    }
    if isFullDisk { return "\(place)the disk is full; free some space and try again" }
    if needsRecovery {
      return "\(place)an interrupted transaction must be rolled back first; open the database once with write access"
    }
    if isReadOnly {
      return "\(place)the database cannot be written (\(message)); check the permissions of the file and its folder"
    }
    if isCannotOpen {
      return "\(place)the database cannot be opened (\(message)); check that it exists and may be read"
    }
    let source = sql.map { " (in: \($0.count > 200 ? $0.prefix(200) + "…" : $0[...]))" } ?? ""
    return "\(place)\(message)\(source)"
  }
}
