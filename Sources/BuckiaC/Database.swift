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
  ///
  /// - Parameter watch: Can stop calls that tell no progress.
  func with<Result>(_ watch: CallWatch? = nil, _ body: (DatabaseManager) throws -> Result) throws -> Result {
    func watched(_ manager: DatabaseManager) throws -> Result {
      var manager = manager
      if let watch { manager.poll = { try watch.poll() } }
      return try body(manager)
    }
    switch source {
    case .path(let path):
      var manager = DatabaseManager(path, home: home)
      if let busyTimeout { manager.busyTimeout = busyTimeout }
      return try watched(manager)
    case .handle(let handle, of: let copy):
      return try DatabaseManager.borrowing(handle, of: copy, home: home, watched)
    }
  }
}
