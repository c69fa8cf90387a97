import Buckia
import CBuckia

/// What `buckia_database` points to.
final class Database {
  private enum Source {
    case path(String)
    case handle(OpaquePointer, of: SQLiteCopy?)
  }

  private let source: Source
  /// The person's own files.
  var home = BuckiaHome.standard
  /// The maximum wait for another program's lock, in milliseconds; nil for the default.
  var busyTimeout: Int32?

  /// Uses a file.
  init(_ path: String) { source = .path(path) }

  /// Uses a connection of the program.
  ///
  /// - Throws: `BuckiaError` when another copy of SQLite has made it.
  init(_ handle: OpaquePointer, of copy: SQLiteCopy?) throws {
    source = .handle(handle, of: copy)
    try with { _ in }
  }

  /// Works on the database. A connection of the program is borrowed for as long as that takes.
  func with<Result>(_ body: (DatabaseManager) throws -> Result) throws -> Result {
    switch source {
    case .path(let path):
      var manager = DatabaseManager(path, home: home)
      if let busyTimeout { manager.busyTimeout = busyTimeout }
      return try body(manager)
    case .handle(let handle, of: let copy):
      return try DatabaseManager.borrowing(handle, of: copy, home: home, body)
    }
  }
}
