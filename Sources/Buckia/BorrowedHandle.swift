import BuckiaBytes
import SQLiteConnections

/// A connection that an app has lent for the length of one closure, on the thread that runs it.
///
/// `@unchecked Sendable`: a use on any other thread, or after the closure, is refused before it touches anything.
final class BorrowedHandle: @unchecked Sendable {
  private let pointer: OpaquePointer
  private let library: SQLiteLibrary?
  private let thread = pthread_self()
  /// Read and written by the lending thread alone.
  private var isLent = true

  init(_ pointer: OpaquePointer, of library: SQLiteLibrary?) {
    self.pointer = pointer
    self.library = library
  }

  /// Says that the closure has ended.
  func end() { isLent = false }

  /// Works on the connection.
  ///
  /// - Throws: `BuckiaError` with `misuse` on another thread and after the end; `SQLiteError` for a handle of another copy
  ///   of SQLite; whatever `body` throws.
  func with<Result>(_ body: (borrowing SQLiteConnection) throws -> Result) throws -> Result {
    guard pthread_equal(thread, pthread_self()) != 0, isLent else {
      throw BuckiaError(
        .misuse, "a borrowed database can only be used inside the closure that it was lent to, on the same thread")
    }
    return try SQLiteConnection.borrowing(pointer, of: library, body)
  }
}

/// A copy of SQLite in this process other than the one that Buckia links, such as SQLCipher's or a custom build of GRDB.
///
/// A connection can only be used through the copy that opened it. Hand that copy over to borrow its connections:
///
/// ```swift
/// let copy = try SQLiteCopy { dlsym(handle, $0) }
/// try DatabaseManager.borrowing(connection, of: copy) { database in … }
/// ```
///
/// The copy must stay loaded.
public struct SQLiteCopy: Sendable, Equatable {
  let library: SQLiteLibrary

  /// Takes a copy by its `sqlite3_api_routines`, which SQLite passes to loadable extensions and to entry points registered
  /// with [`sqlite3_auto_extension`](https://sqlite.org/c3ref/auto_extension.html).
  ///
  /// - Throws: `BuckiaError` when the copy is older than SQLite 3.37, or lacks a function that is needed.
  public init(routines: UnsafeRawPointer) throws {
    library = try BuckiaError.wrapping { try SQLiteLibrary(routines: routines) }
  }

  /// Takes a copy by the names of its functions.
  ///
  /// - Parameter resolve: Gives the address of a function, such as `sqlite3_step`; nil where there is none.
  /// - Throws: As ``init(routines:)``.
  public init(resolving resolve: @escaping (_ symbol: String) -> UnsafeMutableRawPointer?) throws {
    library = try BuckiaError.wrapping { try SQLiteLibrary(resolving: resolve) }
  }
}
