import BuckiaBytes
import CBuckiaSQLite

/// An error that SQLite reported, with its message, the database and, for programs, the statement.
///
/// Codes are SQLite's own extended result codes: <https://sqlite.org/rescode.html>.
package struct SQLiteError: Error, Sendable, CustomStringConvertible {
  /// The extended result code, such as 2067 for a UNIQUE violation.
  package let code: Int32
  /// SQLite's message.
  package let message: String
  /// The database file, if known.
  package let path: String?
  /// The statement that failed, when there was one: for programs, since people have not written it.
  package let sql: String?
  /// The fault of the copy of SQLite or of the handle, if that is the reason.
  package let fault: SQLiteLibraryFault?

  /// Creates an error.
  package init(
    code: Int32, message: String, path: String? = nil, sql: String? = nil, fault: SQLiteLibraryFault? = nil
  ) {
    self.fault = fault
    self.code = code
    self.message = message
    self.path = path
    self.sql = sql
  }

  /// Creates the error for an unusable copy of SQLite or handle.
  init(fault: SQLiteLibraryFault) {
    self.init(code: SQLITE_MISUSE, message: fault.description, fault: fault)
  }

  /// The primary result code: the low byte.
  package var primaryCode: Int32 { code & 0xff }

  /// True if another connection holds a lock: a later attempt can succeed.
  package var isBusy: Bool { primaryCode == SQLITE_BUSY || primaryCode == SQLITE_LOCKED }
  /// True if the volume is full.
  package var isFullDisk: Bool { primaryCode == SQLITE_FULL }
  /// True if the database or its folder cannot be written.
  package var isReadOnly: Bool { primaryCode == SQLITE_READONLY }
  /// True if the file cannot be opened.
  package var isCannotOpen: Bool { primaryCode == SQLITE_CANTOPEN }
  /// True if the file is not an SQLite database (or is encrypted).
  package var isNotADatabase: Bool { primaryCode == SQLITE_NOTADB }
  /// True if the file is damaged.
  package var isCorrupt: Bool { primaryCode == SQLITE_CORRUPT }
  /// True if a constraint refused a row.
  package var isConstraint: Bool { primaryCode == SQLITE_CONSTRAINT }
  /// True if the two schemas do not match (session functions).
  package var isSchemaMismatch: Bool { primaryCode == SQLITE_SCHEMA }
  /// True if a callback asked to stop (session functions).
  package var isAborted: Bool { primaryCode == SQLITE_ABORT }
  /// True if the app, or one of its callbacks, has stopped the statement.
  package var isInterrupted: Bool { primaryCode == SQLITE_INTERRUPT }
  /// True if a value does not have the type that its column requires.
  package var isMismatch: Bool { primaryCode == SQLITE_MISMATCH }
  /// True if a value or row is larger than SQLite can hold.
  package var isTooBig: Bool { primaryCode == SQLITE_TOOBIG }
  /// True if a connection that can write must roll back a hot journal first.
  package var needsRecovery: Bool { code == SQLITE_READONLY | (3 << 8) || code == SQLITE_READONLY | (2 << 8) }

  /// The error, the file and the remedy.
  package var description: String {
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
    if isCannotOpen, code != SQLITE_CANTOPEN | (2 << 8), let path, access(path, R_OK) == 0 {
      return
        "\(place)the database is in WAL mode, and the index of its write-ahead log (-shm) cannot be made beside it; where "
        + "nothing can be written, copy it, with its -wal if there is one, to another folder and use it there"
    }
    if isCannotOpen {
      return "\(place)the database cannot be opened (\(message)); check that it exists and may be read"
    }
    if Self.missingCollation(in: message) != nil {
      return "\(place)\(message); it is the app's own: name a built-in one that sorts alike (--collation NAME=nocase), "
        + "or load the extension that has it (--load FILE)"
    }
    if Self.missingFunction(in: message) != nil {
      return "\(place)\(message); if it is the app's own, load the extension that has it (--load FILE)"
    }
    return "\(place)\(message)"
  }

  /// The same error about another file: the original of a copy in the making, whose name says nothing to a person.
  package func naming(_ path: String) -> SQLiteError {
    SQLiteError(code: code, message: message, path: path, sql: sql, fault: fault)
  }

  /// The name of the missing function in SQLite's message.
  static func missingFunction(in message: String) -> String? {
    for start in ["no such function: ", "unknown function: "] where message.hasPrefix(start) {
      return String(message.dropFirst(start.count).prefix { $0 != "(" && $0 != " " })
    }
    return nil
  }

  /// The name of the missing collating sequence in SQLite's message.
  static func missingCollation(in message: String) -> String? {
    let start = "no such collation sequence: "
    return message.hasPrefix(start) ? String(message.dropFirst(start.count)) : nil
  }
}

/// Why a copy of SQLite, or a handle of it, cannot be used.
package enum SQLiteLibraryFault: Equatable, Sendable, CustomStringConvertible {
  /// This build links no SQLite, and no copy was handed over.
  case notLinked
  /// The copy is older than 3.37.0.
  case tooOld(version: String)
  /// The copy lacks a function, such as `sqlite3session_create`.
  case missing(function: String)
  /// More copies than a process can use.
  case tooMany
  /// Another copy of SQLite has loaded Buckia as an extension into this process before.
  case otherHost
  /// The handle belongs to another copy.
  case foreignHandle

  package var description: String {
    switch self {
    case .notLinked: "this build links no SQLite; hand over the copy that the app uses first"
    case .tooOld(let version): "this copy of SQLite is version \(version); 3.37.0 or newer is needed"
    case .missing(let function) where function.hasPrefix("sqlite3_"):
      "this copy of SQLite was compiled without \(function), which is needed"
    case .missing(let function):
      "this copy of SQLite has no session extension (\(function) is missing); compile it with SQLITE_ENABLE_SESSION and "
        + "SQLITE_ENABLE_PREUPDATE_HOOK, and hand its functions over"
    case .tooMany: "there are more copies of SQLite in this process than can be used"
    case .otherHost:
      "another copy of SQLite in this process has loaded this extension before; two copies cannot share it, because they would "
        + "drop each other's locks on files that both have open"
    case .foreignHandle:
      "this connection belongs to another copy of SQLite in the same process; hand that copy over with the connection, or "
        + "link both to one copy"
    }
  }
}
