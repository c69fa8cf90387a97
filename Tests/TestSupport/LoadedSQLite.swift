import Foundation

/// A copy of SQLite that this process has loaded, called as an app would call it, by the names of its functions.
package struct LoadedSQLite: Sendable {
  /// The error for a copy that cannot be loaded or called.
  package struct Failure: Error, CustomStringConvertible { package let description: String }

  // Sound: the result of dlopen may be used from any thread.
  nonisolated(unsafe) private let library: UnsafeMutableRawPointer

  /// The copy that the tests are linked with.
  package static let linked = Result { try LoadedSQLite(opening: nil, RTLD_NOW) }

  /// A second copy.
  package static let second = Result { try LoadedSQLite.copy() }

  /// A third copy, for tests that pass it without the session extension.
  package static let withoutSessions = Result { try LoadedSQLite.copy() }

  /// Why no further copy can be loaded here; nil if it can.
  package static var obstacle: String? {
    #if canImport(Glibc)
      nil
    #else
      "another copy of SQLite needs RTLD_DEEPBIND and a library that is a file, as on Linux with glibc"
    #endif
  }

  private init(opening path: String?, _ flags: Int32) throws {
    guard let library = dlopen(path, flags) else {
      throw Failure(description: dlerror().map { String(cString: $0) } ?? "the library cannot be loaded")
    }
    self.library = library
  }

  /// Loads another copy, from a copy of the linked library's file: the same file is never loaded twice.
  package static func copy() throws -> LoadedSQLite {
    #if canImport(Glibc)
      let folder = try TemporaryFolder()
      // Copies the bytes, because the path is usually a symbolic link, which would be copied as such.
      let path = try folder.write(fileBytes(linked.get().path()), to: "another-sqlite.so")
      // With RTLD_DEEPBIND the copy calls its own functions; without it, those of the linked library. The file may be
      // deleted once it is loaded.
      return try withExtendedLifetime(folder) { try LoadedSQLite(opening: path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) }
    #else
      throw Failure(description: obstacle ?? "")
    #endif
  }

  /// The file from which the copy was loaded.
  private func path() throws -> String {
    // Swift's Glibc does not declare dladdr. It fills a structure of four pointers, with the file's path first.
    typealias Find = @convention(c) (UnsafeRawPointer, UnsafeMutablePointer<UnsafePointer<CChar>?>) -> Int32
    let find = try function("dladdr", as: Find.self)
    var place = [UnsafePointer<CChar>?](repeating: nil, count: 4)
    guard find(try function("sqlite3_libversion", as: UnsafeRawPointer.self), &place) != 0, let path = place[0] else {
      throw Failure(description: "the file of the linked SQLite is unknown")
    }
    return String(cString: path)
  }

  /// The address of a function; nil if there is none.
  package func address(of name: String) -> UnsafeMutableRawPointer? { dlsym(library, name) }

  /// A function as a C function of the given type, which must be right.
  package func function<Function>(_ name: String, as type: Function.Type) throws -> Function {
    guard let address = address(of: name) else { throw Failure(description: "there is no \(name)") }
    return unsafeBitCast(address, to: type)
  }

  /// Opens a database, passes its `sqlite3 *` to `body`, and closes it.
  package func withHandle<Value>(to path: String, _ body: (OpaquePointer) throws -> Value) throws -> Value {
    typealias Open = @convention(c) (UnsafePointer<CChar>, UnsafeMutablePointer<OpaquePointer?>) -> Int32
    typealias Close = @convention(c) (OpaquePointer?) -> Int32
    let close = try function("sqlite3_close_v2", as: Close.self)
    var handle: OpaquePointer?
    let code = try function("sqlite3_open", as: Open.self)(path, &handle)
    defer { _ = close(handle) }
    guard code == 0, let handle else { throw Failure(description: "\(path) cannot be opened: \(code)") }
    return try body(handle)
  }

  /// Runs SQL on a handle of this copy.
  package func execute(_ sql: String, on handle: OpaquePointer) throws {
    typealias Execute =
      @convention(c) (OpaquePointer, UnsafePointer<CChar>, UnsafeRawPointer?, UnsafeRawPointer?, UnsafeRawPointer?) ->
      Int32
    let code = try function("sqlite3_exec", as: Execute.self)(handle, sql, nil, nil, nil)
    guard code == 0 else { throw Failure(description: "\(sql): \(code)") }
  }

  /// Loads an extension into a connection.
  package func loadExtension(_ path: String, into handle: OpaquePointer) throws {
    typealias Enable = @convention(c) (OpaquePointer, Int32) -> Int32
    typealias Load =
      @convention(c) (
        OpaquePointer, UnsafePointer<CChar>, UnsafePointer<CChar>, UnsafeMutablePointer<UnsafePointer<CChar>?>
      ) -> Int32
    var message: UnsafePointer<CChar>?
    var code = try function("sqlite3_enable_load_extension", as: Enable.self)(handle, 1)
    if code == 0 {
      code = try function("sqlite3_load_extension", as: Load.self)(handle, path, "sqlite3_extension_init", &message)
    }
    guard code == 0 else { throw Failure(description: message.map { String(cString: $0) } ?? "\(code)") }
  }

  /// The table of the copy's functions, as SQLite passes it to entry points registered with `sqlite3_auto_extension`.
  package func routines() throws -> UnsafeRawPointer {
    typealias Entry = @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?, UnsafeRawPointer?) -> Int32
    typealias Register = @convention(c) (Entry) -> Int32
    let code = try function("sqlite3_auto_extension", as: Register.self)({ _, _, routines in
      // Other threads may be opening connections, too: each has its own place.
      Thread.current.threadDictionary[LoadedSQLite.routinesKey] = routines
      return 0
    })
    guard code == 0 else { throw Failure(description: "no entry point can be registered: \(code)") }
    try withHandle(to: ":memory:") { _ in }
    guard let routines = Thread.current.threadDictionary[Self.routinesKey] as? UnsafeRawPointer else {
      throw Failure(description: "SQLite passes no table")
    }
    return routines
  }

  private static let routinesKey = "buckia.routines"
}
