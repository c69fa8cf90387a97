import Foundation
import TestSupport

/// A program that people use with SQLite, if it is installed and can load extensions.
struct HostProgram {
  /// The path of the program.
  let path: String?
  /// Why tests that need the program do not run.
  let requirement: String

  var isThere: Bool { path != nil }

  /// The shell.
  static let shell = HostProgram(
    find("sqlite3") {
      try ProgramRun($0, [":memory:", "PRAGMA compile_options"]).text.contains("OMIT_LOAD_EXTENSION") == false
    },
    "the sqlite3 shell is not installed (make test installs it)")

  /// Python, with the SQLite of the system.
  static let python = HostProgram(
    find("python3") {
      try ProgramRun($0, ["-c", "import sqlite3; print(hasattr(sqlite3.Connection, 'enable_load_extension'))"]).text
        == "True\n"
    }, "there is no Python whose sqlite3 loads extensions: it was built without --enable-loadable-sqlite-extensions")

  /// Python, with another SQLite: the one of the package apsw.
  static let apsw = HostProgram(
    [prepared("apsw/bin/python")].first { FileManager.default.isExecutableFile(atPath: $0) },
    "Python's package apsw is not there (Tests/Servers/prepare installs it)")

  /// Node 22.13 or newer, which has SQLite.
  static let node = HostProgram(
    find("node") { try ProgramRun($0, ["-e", "require('node:sqlite')"]).text.isEmpty },
    "there is no Node.js with node:sqlite, which comes with version 22.13")

  /// PHP.
  static let php = HostProgram(
    find("php") {
      try ProgramRun($0, ["-r", "echo method_exists('SQLite3', 'loadExtension') ? 'yes' : 'no';"]).text == "yes"
    },
    "there is no PHP with SQLite (Debian: php-cli, php-sqlite3)")

  private init(_ path: String?, _ requirement: String) {
    self.path = path
    self.requirement = requirement
  }

  /// A shared library of another version of SQLite than the system's, without the session extension.
  static let otherSQLite = HostProgram(
    ["python3.9", "python3.10", "python3.11", "python3.12", "python3.13", "python3.14"].map {
      prepared("apsw/lib/\($0)/site-packages/apsw/sqlite_extra_binaries/libsqlite3_tool.so")
    }.first { FileManager.default.isReadableFile(atPath: $0) }, apsw.requirement)

  private static func prepared(_ path: String) -> String {
    URL(fileURLWithPath: #filePath).appendingPathComponent("../../../../.build/servers/\(path)").standardizedFileURL
      .path
  }

  /// The first suitable program with a name, on the search path or in the system's folders.
  private static func find(_ name: String, _ suits: (String) throws -> Bool) -> String? {
    let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map(String.init)
    return (folders + ["/usr/bin", "/opt/homebrew/bin"]).map { "\($0)/\(name)" }.first { path in
      guard FileManager.default.isExecutableFile(atPath: path) else { return false }
      do { return try suits(path) } catch { return false }
    }
  }
}
