import CBuckiaSQLite

/// A session of SQLite's session extension: it records changes, or compares two attached databases.
///
/// See <https://sqlite.org/sessionintro.html>. The connection must outlive the session. A copy of SQLite can lack the
/// extension; then there are no sessions, while everything else works.
package struct SQLiteSession: ~Copyable {
  private let session: OpaquePointer
  private let routines: SQLiteSessionRoutines
  private let handle: SQLiteHandle

  /// Begins a session on a database of a connection.
  ///
  /// - Parameters:
  ///   - connection: The connection whose changes are recorded.
  ///   - schema: `main`, or the name of an attached database.
  /// - Throws: `SQLiteError`, with the fault `missing` when this copy of SQLite has no session extension.
  package init(on connection: borrowing SQLiteConnection, schema: String = "main") throws(SQLiteError) {
    let routines = try connection.library.sessions
    var created: OpaquePointer?
    let code = routines.session_create(connection.handle.pointer, schema, &created)
    guard code == SQLITE_OK, let created else { throw connection.handle.error(code) }
    session = created
    self.routines = routines
    handle = connection.handle
  }

  deinit { routines.session_delete(session) }

  /// Records the changes of a table; for nil, those of all tables.
  package func attach(_ table: String? = nil) throws(SQLiteError) {
    try handle.check(routines.session_attach(session, table))
  }

  /// Records the changes that turn the table of another attached database into the session's own.
  ///
  /// - Throws: `SQLiteError` with `isSchemaMismatch` when the two tables differ in columns or key.
  package func recordDifference(from schema: String, table: String) throws(SQLiteError) {
    var message: UnsafeMutablePointer<CChar>?
    let code = routines.session_diff(session, schema, table, &message)
    defer { handle.routines.free(message) }
    guard code != SQLITE_OK else { return }
    guard let message else { throw handle.error(code) }
    throw SQLiteError(code: code, message: String(cString: message), path: handle.path)
  }

  /// Everything recorded so far, as a changeset.
  package func changeset() throws(SQLiteError) -> [UInt8] {
    try bytes { routines.session_changeset_strm(session, $0, $1) }
  }

  /// Everything recorded so far, as a patchset.
  package func patchset() throws(SQLiteError) -> [UInt8] {
    try bytes { routines.session_patchset_strm(session, $0, $1) }
  }

  private func bytes(
    _ produce: (@convention(c) (UnsafeMutableRawPointer?, UnsafeRawPointer?, Int32) -> Int32, UnsafeMutableRawPointer)
      -> Int32
  ) throws(SQLiteError) -> [UInt8] {
    let output = CallbackBox<[UInt8]>([])
    let code = withExtendedLifetime(output) {
      produce(
        { context, data, count in
          // Sound: the context is the box that is kept alive around the call.
          guard let context else { return SQLITE_MISUSE }
          let output = Unmanaged<CallbackBox<[UInt8]>>.fromOpaque(context).takeUnretainedValue()
          output.value.append(contentsOf: UnsafeRawBufferPointer(start: data, count: Int(count)))
          return SQLITE_OK
        }, Unmanaged.passUnretained(output).toOpaque())
    }
    try handle.check(code)
    return output.value
  }
}
