import Foundation
import TestSupport
import Testing

/// SQLiteConnections as a loadable extension, which has only the functions that its host passes to it.
@Suite(.disabled(if: Toolchain.obstacle != nil, "\(Toolchain.obstacle ?? "")"))
struct LoadableExtensionTests {
  /// The extension's entry point. Its host has a table `t`, from which it creates a table `extension`.
  private static let entryPoint = """
    @_cdecl("sqlite3_extension_init")
    public func start(_ handle: OpaquePointer, _ message: UnsafeMutableRawPointer?, _ routines: UnsafeRawPointer) -> Int32 {
      do {
        let host = try SQLiteLibrary(routines: routines)
        try SQLiteConnection.borrowing(handle, of: host) { connection in
          try connection.execute("CREATE TABLE extension(a)")
          let insert = try connection.prepare("INSERT INTO extension VALUES (?1)")
          try connection.forEachRow(of: "SELECT a FROM t") { row in
            try insert.bind(column: 0, of: row, at: 0)
            try insert.run()
          }
        }
        // Where nothing is linked, databases are opened with the host's copy as well.
        guard try SQLiteConnection(opening: ":memory:", as: .create).library == host else { return 1 }
        // SQLITE_OK_LOAD_PERMANENTLY: Swift's runtime cannot unload code.
        return 256
      } catch {
        return 1
      }
    }
    """

  @Test("Built without a linked SQLite, the module needs none of its symbols, and works in its host")
  func extending()
    throws
  {
    let folder = try TemporaryFolder()
    let library = try Self.build(in: folder)
    let undefined = try Toolchain.run("nm", ["-D", "--undefined-only", library])
    #expect(!undefined.contains("sqlite3"), "\(undefined)")
    #expect(undefined.contains("calloc"))

    let host = try LoadedSQLite.second.get()
    let path = folder.file("database")
    try host.withHandle(to: path) { handle in
      try host.execute("CREATE TABLE t(a); INSERT INTO t VALUES ('one'), (x'02')", on: handle)
      try host.loadExtension(library, into: handle)
    }
    #expect(try TestDatabases.rows("SELECT a FROM extension", on: path) == ["'111.110.101'", "x[2]"])
  }

  @Test("Built with a linked SQLite, the C module needs its symbols", arguments: [false, true])
  func symbols(isLinked: Bool) throws {
    let folder = try TemporaryFolder()
    let undefined = try Toolchain.run("nm", ["--undefined-only", try Self.compileC(in: folder, isLinked: isLinked)])
    #expect(undefined.contains("sqlite3_step") == isLinked)
    #expect(undefined.contains("sqlite3session_create") == isLinked)
  }

  private static let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .appendingPathComponent("../../Sources").standardizedFileURL.path

  private static func compileC(in folder: TemporaryFolder, isLinked: Bool) throws -> String {
    let object = folder.file("library.o")
    _ = try Toolchain.run(
      "clang",
      ["-c", "-fPIC", "-I", "\(sources)/CBuckiaSQLite/include", "\(sources)/CBuckiaSQLite/library.c", "-o", object]
        + (isLinked ? ["-DBUCKIA_LINKS_SQLITE"] : []))
    return object
  }

  private static func files(of module: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: "\(sources)/\(module)").sorted().map {
      "\(sources)/\(module)/\($0)"
    }
  }

  /// Compiles the module as a shared library, as a package does, but with no library to link.
  private static func build(in folder: TemporaryFolder) throws -> String {
    let map = """
      module CBuckiaSQLite { umbrella header "\(sources)/CBuckiaSQLite/include/CBuckiaSQLite.h" export * }
      """
    let library = folder.file("extension.so")
    let bytes = folder.file("bytes.o")
    let common = ["-package-name", "buckia", "-swift-version", "6", "-parse-as-library"]
    // Under other names, because the tests themselves contain modules of these names.
    _ = try Toolchain.run(
      "swiftc",
      common + [
        "-module-name", "ExtensionBytes", "-emit-module", "-emit-module-path",
        folder.file("ExtensionBytes.swiftmodule"),
        "-whole-module-optimization", "-c", "-o", bytes,
      ] + files(of: "BuckiaBytes"))
    _ = try Toolchain.run(
      "swiftc",
      common + [
        "-module-name", "SQLiteExtension", "-module-alias", "BuckiaBytes=ExtensionBytes", "-I", folder.path,
        "-Xcc", "-fmodule-map-file=\(folder.write(Array(map.utf8), to: "module.modulemap"))", "-emit-library",
        "-Xlinker", "--no-undefined", "-o", library, folder.write(Array(entryPoint.utf8), to: "EntryPoint.swift"),
        compileC(in: folder, isLinked: false), bytes,
      ] + files(of: "SQLiteConnections"))
    return library
  }
}

/// The compilers that came with Swift.
private enum Toolchain {
  struct Failure: Error, CustomStringConvertible { let description: String }

  /// Why the tests cannot run here; nil if they can.
  static var obstacle: String? {
    let missing = ["swiftc", "clang", "nm"].filter { ProgramRun.path(of: $0) == nil }
    return LoadedSQLite.obstacle ?? (missing.isEmpty ? nil : "not on the PATH: \(missing.joined(separator: ", "))")
  }

  /// Runs a tool, and returns its output.
  static func run(_ tool: String, _ arguments: [String]) throws -> String {
    guard let path = ProgramRun.path(of: tool) else { throw Failure(description: "\(tool) is not on the PATH") }
    let run = try ProgramRun(path, arguments)
    guard run.hasSucceeded else { throw Failure(description: "\(tool): \(run.text)") }
    return run.text
  }
}
