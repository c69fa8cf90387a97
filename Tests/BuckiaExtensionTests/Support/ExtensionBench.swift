import Buckia
import Foundation
import TestSupport
import Testing

/// A folder with databases, in which programs load the extension.
struct ExtensionBench {
  let folder: TemporaryFolder

  /// The extension under its usual name, from which SQLite derives the name of the entry point.
  var library: String { folder.file("buckia.\(Self.suffix)") }

  #if canImport(Darwin)
    private static let suffix = "dylib"
    /// The system's SQLite.
    static let systemSQLite = "/usr/lib/libsqlite3.dylib"
  #else
    private static let suffix = "so"
    /// The system's SQLite.
    static let systemSQLite = "libsqlite3.so.0"
  #endif

  init() throws {
    folder = try TemporaryFolder()
    try FileManager.default.createSymbolicLink(
      atPath: library, withDestinationPath: BuiltProduct.path(of: "libBuckiaExtension.\(Self.suffix)"))
  }

  // MARK: Databases

  /// Creates or changes a database without the extension.
  @discardableResult
  func make(_ database: String, _ sql: String) throws -> String {
    try TestDatabases.run(sql, on: folder.file(database))
  }

  /// Rows of a database, read without the extension.
  func rows(_ sql: String, in database: String) throws -> [String] {
    try TestDatabases.rows(sql, on: folder.file(database))
  }

  /// Gives two people the same notes; the other one changes theirs, and the file with the changes is in `inbound`.
  func exchange(_ schema: String = ExtensionBench.notes, theirs edits: String) throws {
    try make("base.sqlite", schema)
    _ = try folder.copy("base.sqlite", to: "mine.sqlite")
    try send(edits)
  }

  /// Changes a copy of the common state, and puts the changes into `inbound`.
  func send(_ edits: String) throws {
    let name = "theirs-\(UUID().uuidString).sqlite"
    _ = try folder.copy("base.sqlite", to: name)
    try make(name, edits)
    try DatabaseManager(folder.file(name), home: BuckiaHome(path: folder.file(".home"))).createDatabaseDiff(
      since: folder.file("base.sqlite"), output: .folder(folder.file("inbound")))
  }

  static let notes = """
    CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT, body BLOB);
    INSERT INTO notes VALUES (1, 'Ship', NULL), (2, 'Radio', x'00ff');
    """

  // MARK: Programs

  /// Runs lines of SQL in the C program with the extension loaded, and returns its output lines: rows, and errors.
  ///
  /// - Parameters:
  ///   - lines: The SQL, each line executed separately.
  ///   - database: The database of the connection.
  ///   - sqlite: The SQLite that the program uses.
  func sql(
    _ lines: [String], on database: String = "mine.sqlite", with sqlite: String = ExtensionBench.systemSQLite
  ) throws -> [String] {
    try run(
      BuiltProduct.path(of: "ExtensionHost"), [sqlite, library, database], input: lines.joined(separator: "\n") + "\n")
  }

  /// Runs a program in the folder, and returns its output lines. A crash and a failure are errors.
  func run(_ program: String, _ arguments: [String], input: String = "") throws -> [String] {
    let run = try ProgramRun(
      program, arguments, environment: ["BUCKIA_HOME": folder.file(".home")], input: Data(input.utf8), in: folder.path)
    try #require(run.hasSucceeded, "\(program) ended with \(run.status): \(run.text)")
    return run.output.split(separator: "\n", omittingEmptySubsequences: false).map(String.init).dropLast()
  }
}
