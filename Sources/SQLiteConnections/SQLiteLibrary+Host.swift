import CBuckiaSQLite

extension SQLiteLibrary {
  /// Takes the copy of the program that has loaded this code as an extension: it becomes ``standard``, also where another is linked,
  /// so that all databases are opened with it.
  ///
  /// - Parameter routines: The table that SQLite passes to the entry point.
  /// - Throws: `SQLiteError` with a fault: `tooOld`, `missing`, `otherHost`.
  package init(host routines: UnsafeRawPointer) throws(SQLiteError) {
    var detail: UnsafePointer<CChar>?
    let code = buckia_add_host(routines.assumingMemoryBound(to: sqlite3_api_routines.self), &detail)
    let text = detail.map { String(cString: $0) } ?? ""
    switch code {
    case 0: try self.init(routines: routines)
    case BUCKIA_TOO_OLD: throw SQLiteError(fault: .tooOld(version: text))
    case BUCKIA_INCOMPLETE: throw SQLiteError(fault: .missing(function: text))
    case BUCKIA_OTHER_HOST: throw SQLiteError(fault: .otherHost)
    default: throw SQLiteError(code: SQLITE_NOMEM, message: "out of memory")
    }
  }
}
