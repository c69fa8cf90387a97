import CBuckiaSQLite

/// One copy of the SQLite library in this process, reached through the table of its functions.
///
/// A process can contain several copies: the system's, one inside an app's database framework (SQLCipher, a custom build of
/// GRDB), and the one of a program that loads Buckia as an extension. Each connection belongs to the copy that opened it,
/// and no other copy may touch it. Two copies must not have the same file open either, because closing it in one drops the
/// POSIX locks of the other
/// (<https://sqlite.org/howtocorrupt.html#multiple_copies_of_sqlite_linked_into_the_same_application>). So an app that
/// has its own copy hands it over, and Buckia works with that:
///
/// ```swift
/// // From an extension's entry point, or an entry point registered with sqlite3_auto_extension.
/// let library = try SQLiteLibrary(routines: api)
/// // From a library that was loaded with dlopen.
/// let library = try SQLiteLibrary { dlsym(loaded, $0) }
/// try SQLiteConnection.borrowing(handle, of: library) { connection in … }
/// ```
///
/// The library must stay loaded. Handing the same copy over again is cheap and gives an equal value.
package struct SQLiteLibrary: Equatable, Sendable {
  /// Its place in the list of libraries that the process uses.
  let number: Int32

  private init(number: Int32) { self.number = number }

  /// The library as the context of a C callback: a number in place of an address, which needs no lifetime.
  var context: UnsafeMutableRawPointer? { UnsafeMutableRawPointer(bitPattern: Int(number)) }

  /// The library of a callback's context.
  init(context: UnsafeMutableRawPointer?) { number = Int32(Int(bitPattern: context)) }

  /// The linked library; in a build that links none, the first that was handed over.
  ///
  /// - Throws: `SQLiteError` with the fault `notLinked` when there is none.
  package static var standard: SQLiteLibrary {
    get throws(SQLiteError) {
      guard buckia_has_library(0) else { throw SQLiteError(fault: .notLinked) }
      return SQLiteLibrary(number: 0)
    }
  }

  /// Uses a copy of SQLite by its `sqlite3_api_routines`, which every copy passes to its extensions.
  ///
  /// SQLite passes it to loadable extensions and to entry points registered with
  /// [`sqlite3_auto_extension`](https://sqlite.org/c3ref/auto_extension.html). A copy compiled with
  /// `SQLITE_OMIT_LOAD_EXTENSION` passes null instead: hand that one over by the names of its functions.
  ///
  /// - Parameters:
  ///   - routines: The table.
  ///   - sessions: Finds functions of the session extension (`sqlite3session_create`), which the table lacks. Without it,
  ///     everything but sessions and `sqlite3changeset_*` works.
  /// - Throws: `SQLiteError` with a fault: `tooOld`, `missing`, `tooMany`.
  package init(
    routines: UnsafeRawPointer, sessions: ((_ symbol: String) -> UnsafeMutableRawPointer?)? = nil
  ) throws(SQLiteError) {
    try self.init(table: routines.assumingMemoryBound(to: sqlite3_api_routines.self), resolver: sessions)
  }

  /// Uses a copy of SQLite by the names of its functions, with those of the session extension.
  ///
  /// - Parameter resolve: Finds the address of a function, such as `sqlite3_step`; nil if there is none.
  /// - Throws: `SQLiteError` with a fault: `tooOld`, `missing`, `tooMany`.
  package init(resolving resolve: @escaping (_ symbol: String) -> UnsafeMutableRawPointer?) throws(SQLiteError) {
    try self.init(table: nil, resolver: resolve)
  }

  private typealias Resolver = CallbackBox<(String) -> UnsafeMutableRawPointer?>

  private init(
    table: UnsafePointer<sqlite3_api_routines>?, resolver: ((String) -> UnsafeMutableRawPointer?)?
  ) throws(SQLiteError) {
    var detail: UnsafePointer<CChar>?
    let box = Resolver(resolver ?? { _ in nil })
    let number = withExtendedLifetime(box) {
      buckia_add_library(
        table,
        { context, symbol in
          // Sound: the context is the box that is kept alive around the call.
          guard let context else { return nil }
          return Unmanaged<Resolver>.fromOpaque(context).takeUnretainedValue().value(String(cString: symbol))
        }, Unmanaged.passUnretained(box).toOpaque(), &detail)
    }
    guard number >= 0 else { throw Self.error(number, detail) }
    self.number = number
  }

  /// The error for a negative result of the table's functions.
  private static func error(_ code: Int32, _ detail: UnsafePointer<CChar>?) -> SQLiteError {
    let text = detail.map { String(cString: $0) } ?? ""
    return switch code {
    case BUCKIA_TOO_OLD: SQLiteError(fault: .tooOld(version: text))
    case BUCKIA_INCOMPLETE: SQLiteError(fault: .missing(function: text))
    case BUCKIA_TOO_MANY: SQLiteError(fault: .tooMany)
    case BUCKIA_OTHER_HOST: SQLiteError(fault: .otherHost)
    default: SQLiteError(code: SQLITE_NOMEM, message: "out of memory")
    }
  }

  /// The version, such as `3.40.1`.
  package var version: String { String(cString: routines.libversion()) }

  /// The functions that every copy has.
  var routines: SQLiteRoutines { buckia_routines(number) }

  /// The functions of the session extension.
  ///
  /// - Throws: `SQLiteError` with the fault `missing` when this copy has no session extension.
  var sessions: SQLiteSessionRoutines {
    get throws(SQLiteError) {
      let sessions = buckia_session_routines_of(number)
      if let missing = buckia_missing_session_routine(sessions) {
        throw SQLiteError(fault: .missing(function: String(cString: missing)))
      }
      return sessions
    }
  }

  /// Throws for a handle of another copy of SQLite.
  ///
  /// No function of SQLite may be called with such a handle, not even to find out its copy. Reading its first word is
  /// safe: in all versions until now a `sqlite3` begins with the VFS it was opened with, and each copy has VFS objects
  /// of its own. A VFS must therefore stay registered while connections use it.
  ///
  /// - Throws: `SQLiteError` with the fault `foreignHandle`.
  func requireOwn(_ handle: OpaquePointer) throws(SQLiteError) {
    if hasOwnFileSystem(handle) { return }
    var probe: OpaquePointer?
    let code = routines.open_v2(":memory:", &probe, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX)
    defer { routines.close_v2(probe) }
    guard code == SQLITE_OK, let probe else { throw SQLiteError(code: code, message: "SQLite cannot open a database") }
    if hasOwnFileSystem(probe) { throw SQLiteError(fault: .foreignHandle) }
  }

  /// True if a handle begins with a VFS of this copy.
  private func hasOwnFileSystem(_ handle: OpaquePointer) -> Bool {
    // Sound: a handle is the address of a structure that is larger than a pointer. What is read is only compared.
    let first = UnsafeRawPointer(handle).load(as: UnsafeRawPointer?.self)
    var known = routines.vfs_find(nil)
    while let vfs = known {
      if UnsafeRawPointer(vfs) == first { return true }
      known = vfs.pointee.pNext
    }
    return false
  }

  /// Takes the copy of the program that has loaded this code as an extension: it becomes ``standard``, also where another is linked,
  /// so that all databases are opened with it.
  ///
  /// - Parameter routines: The table that SQLite passes to the entry point.
  /// - Throws: `SQLiteError` with a fault: `tooOld`, `missing`, `otherHost`.
  package init(host routines: UnsafeRawPointer) throws(SQLiteError) {
    var detail: UnsafePointer<CChar>?
    let code = buckia_add_host(routines.assumingMemoryBound(to: sqlite3_api_routines.self), &detail)
    guard code == 0 else { throw Self.error(code, detail) }
    try self.init(routines: routines)
  }
}

/// Keeps something alive at an address that C hands back to a callback.
final class CallbackBox<Value> {
  var value: Value

  init(_ value: Value) { self.value = value }
}

extension SQLiteRoutines {
  /// A copy of a message in SQLite's memory, for SQLite to free; nil if there is none left.
  func copy(of message: String) -> UnsafeMutablePointer<CChar>? {
    let bytes = Array(message.utf8.prefix { $0 != 0 }) + [0]
    guard let memory = malloc(Int32(clamping: bytes.count)) else { return nil }
    // Sound: the memory has room for exactly these bytes.
    memory.copyMemory(from: bytes, byteCount: bytes.count)
    return memory.assumingMemoryBound(to: CChar.self)
  }
}
