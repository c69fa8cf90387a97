import CBuckiaSQLite

/// What a program adds to each connection that it opens: the functions and collating sequences of the app that made the
/// database, without which SQLite can neither read nor write what uses them.
///
/// Connections that an app lends have their own.
package struct ConnectionExtensions: Sendable {
  /// The paths of loadable extensions.
  package var files: [String] = []
  /// Built-in collating sequences that stand in for an app's own, by the names of the latter.
  ///
  /// They have to put the values that are there into the same order: in an index that was written in another one, SQLite misses rows. An
  /// integrity check finds such indexes.
  package var collations: [String: BuiltInCollation] = [:]

  /// Nothing is added.
  package init() {}

  /// What connections get that are opened from now on. A program sets it when it starts, before anything else runs.
  nonisolated(unsafe) package static var ofProcess = ConnectionExtensions()

  /// Adds all of it to a connection that was just opened.
  func install(on handle: SQLiteHandle) throws(SQLiteError) {
    for (name, collation) in collations {
      try handle.check(collation.register(name, on: handle.pointer, handle.routines))
    }
    guard !files.isEmpty else { return }
    // A build of SQLite can lack it, such as that of Apple's systems.
    guard let load = handle.routines.table.pointee.load_extension else {
      throw SQLiteError(code: SQLITE_ERROR, message: "this copy of SQLite loads no extensions", path: handle.path)
    }
    var isEnabled: Int32 = 0
    let option = SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION
    try handle.check(handle.routines.db_config(handle.pointer, option, 1, &isEnabled))
    defer { _ = handle.routines.db_config(handle.pointer, option, 0, &isEnabled) }
    for file in files {
      var message: UnsafeMutablePointer<CChar>?
      defer { handle.routines.free(message) }
      let code = load(handle.pointer, file, nil, &message)
      guard code == SQLITE_OK else {
        let reason = message.map { String(cString: $0) } ?? "unknown error"
        throw SQLiteError(code: code, message: "the extension cannot be loaded: \(reason)", path: file)
      }
    }
  }
}
