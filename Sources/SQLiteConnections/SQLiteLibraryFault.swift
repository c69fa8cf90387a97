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
  /// The handle was made by another copy.
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
