import SQLiteConnections

/// What SQLite calls when it loads the extension into a connection.
///
/// It only calls the functions that the host passes here. The extension therefore works in every copy of SQLite from
/// 3.37 on, also in one without the session extension. See <https://sqlite.org/loadext.html>.
///
/// - Parameters:
///   - handle: The connection, a `sqlite3 *`.
///   - message: Receives an error message, which the host frees.
///   - routines: The host's functions, a `const sqlite3_api_routines *`.
/// - Returns: `SQLITE_OK_LOAD_PERMANENTLY`, or `SQLITE_ERROR`.
@_cdecl("sqlite3_buckia_init")
public func loadBuckiaExtension(
  _ handle: OpaquePointer?, _ message: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?,
  _ routines: UnsafeRawPointer?
) -> Int32 {
  SQLiteExtension.load(into: handle, routines, message) { connection in
    guard let handle else { return }
    let host = HostConnection(handle)
    try connection.addDiffFunctions()
    try connection.addApplyFunction(on: host)
    try connection.addChangesFunctions()
    try connection.addVerifyFunction()
    try connection.addLedgerTables(on: host)
    try connection.addKSUIDFunctions()
  }
}
