import CBuckiaSQLite

/// A session of SQLite's session extension: it records what changes, or compares two attached databases.
///
/// See <https://sqlite.org/sessionintro.html>. The connection must outlive the session.
public struct SQLiteSession: ~Copyable {
  private let session: OpaquePointer
  private let path: String
  private let handle: OpaquePointer

  /// Begins a session on a database of a connection.
  ///
  /// - Parameters:
  ///   - connection: The connection whose changes are recorded.
  ///   - schema: `main`, or the name of an attached database.
  /// - Throws: `SQLiteError`.
  public init(on connection: borrowing SQLiteConnection, schema: String = "main") throws(SQLiteError) {
    var created: OpaquePointer?
    let code = sqlite3session_create(connection.handle, schema, &created)
    guard code == SQLITE_OK, let created else { throw connection.lastError(code) }
    session = created
    path = connection.path
    handle = connection.handle
  }

  deinit { sqlite3session_delete(session) }

  /// Records a table, or all of them for nil.
  public func attach(_ table: String? = nil) throws(SQLiteError) {
    let code = sqlite3session_attach(session, table)
    guard code == SQLITE_OK else { throw SQLiteError(handle: handle, code: code, path: path) }
  }

  /// Records what would turn the table of another attached database into the session's own.
  ///
  /// - Throws: `SQLiteError` with `isSchemaMismatch` when the two tables differ in columns or key.
  public func recordDifference(from schema: String, table: String) throws(SQLiteError) {
    var message: UnsafeMutablePointer<CChar>?
    let code = sqlite3session_diff(session, schema, table, &message)
    defer { sqlite3_free(message) }
    guard code == SQLITE_OK else {
      throw SQLiteError(
        code: code, message: message.map { String(cString: $0) } ?? String(cString: sqlite3_errstr(code)), path: path)
    }
  }

  /// Everything recorded so far, as a changeset.
  public func changeset() throws(SQLiteError) -> [UInt8] {
    try bytes { sqlite3session_changeset_strm(session, $0, $1) }
  }

  /// Everything recorded so far, as a patchset.
  public func patchset() throws(SQLiteError) -> [UInt8] {
    try bytes { sqlite3session_patchset_strm(session, $0, $1) }
  }

  private final class Output { var bytes: [UInt8] = [] }

  private func bytes(
    _ produce: (@convention(c) (UnsafeMutableRawPointer?, UnsafeRawPointer?, Int32) -> Int32, UnsafeMutableRawPointer)
      -> Int32
  ) throws(SQLiteError) -> [UInt8] {
    let output = Output()
    let code = produce(
      { context, data, count in
        // Sound: the context is the box retained by the caller for the whole call.
        guard let context else { return SQLITE_MISUSE }
        let output = Unmanaged<Output>.fromOpaque(context).takeUnretainedValue()
        output.bytes.append(contentsOf: UnsafeRawBufferPointer(start: data, count: Int(count)))
        return SQLITE_OK
      }, Unmanaged.passUnretained(output).toOpaque())
    guard code == SQLITE_OK else { throw SQLiteError(handle: handle, code: code, path: path) }
    return output.bytes
  }
}
