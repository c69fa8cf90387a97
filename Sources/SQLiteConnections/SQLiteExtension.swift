import CBuckiaSQLite

/// The entry point of a loadable extension. See <https://sqlite.org/loadext.html>.
package enum SQLiteExtension {
  /// Adds the extension to a connection of the host.
  ///
  /// ```swift
  /// @_cdecl("sqlite3_example_init")
  /// public func start(
  ///   _ handle: OpaquePointer?, _ message: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?, _ routines: UnsafeRawPointer?
  /// ) -> Int32 {
  ///   SQLiteExtension.load(into: handle, routines, message) { connection in … }
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - handle: The connection that loads the extension.
  ///   - routines: The host's functions.
  ///   - message: Receives an error message, which the host frees.
  ///   - body: Adds functions and modules to the connection.
  /// - Returns: `SQLITE_OK_LOAD_PERMANENTLY`, because Swift's runtime cannot be unloaded, or an error code.
  package static func load(
    into handle: OpaquePointer?, _ routines: UnsafeRawPointer?,
    _ message: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?,
    _ body: (borrowing SQLiteConnection) throws -> Void
  ) -> Int32 {
    // A host that was compiled without extensions passes no table. Without it an error message cannot be allocated.
    guard let handle, let routines else { return SQLITE_MISUSE }
    do {
      try SQLiteConnection.borrowing(handle, of: SQLiteLibrary(host: routines), body)
      return SQLITE_OK | 1 << 8
    } catch {
      // Of an old copy only the first entries of the table may be used; this is one of them.
      let table = SQLiteRoutines(table: routines.assumingMemoryBound(to: sqlite3_api_routines.self))
      message?.pointee = table.copy(of: SQLiteFunctionFailure(error).message)
      return SQLITE_ERROR
    }
  }
}
