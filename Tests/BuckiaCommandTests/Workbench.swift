import Foundation
import SQLiteConnections
import TestSupport
import Testing

/// A temporary folder in which the built `buckia` binary is run.
final class Workbench {
  /// The result of a command.
  struct Outcome {
    let status: Int32
    let output: String
    let diagnostics: String

    /// The standard output as a JSON object.
    var json: [String: Any] {
      get throws {
        try #require(try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any], "\(output)")
      }
    }
  }

  private let temporary: TemporaryFolder

  var folder: URL { URL(fileURLWithPath: temporary.path, isDirectory: true) }

  init() throws { temporary = try TemporaryFolder() }

  func path(_ name: String) -> String { temporary.file(name) }

  func names(in name: String = ".") throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path(name)).filter { !$0.hasPrefix(".") }.sorted()
  }

  /// The binary that was built with the tests.
  static var binary: URL { get throws { try URL(fileURLWithPath: BuiltProduct.path(of: "buckia")) } }

  /// Runs `buckia`.
  @discardableResult
  func buckia(
    _ arguments: [String], input: Data = Data(), environment: [String: String] = [:]
  ) throws -> Outcome {
    try run(Self.binary.path, arguments, input: input, environment: environment)
  }

  /// Trusts a contact, with the fingerprint that awaits confirmation.
  func trust(_ contact: String, options: [String]) throws -> Outcome {
    let contacts = try buckia(["contact", "list", "--json"] + options).json["contacts"] as? [[String: Any]] ?? []
    let found = try #require(contacts.first { ($0["name"] as? String)?.lowercased() == contact.lowercased() })
    let proposed = (found["proposal"] as? [String: Any])?["card"] as? [String: Any] ?? found
    let fingerprint = try #require(proposed["fingerprint"] as? String)
    return try buckia(["contact", "trust", contact, "--fingerprint", fingerprint] + options)
  }

  /// Starts `buckia`, and kills it after a delay.
  func killed(_ arguments: [String], environment: [String: String], after milliseconds: Int) throws {
    let process = Process()
    process.executableURL = try Self.binary
    process.arguments = arguments
    process.currentDirectoryURL = folder
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    Thread.sleep(forTimeInterval: Double(milliseconds) / 1000)
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }

  /// Runs a shell command, in which `$BUCKIA` is the binary, for what an argument list cannot express.
  func shell(_ line: String) throws -> Outcome {
    try run("/bin/sh", ["-c", line], input: Data(), environment: ["BUCKIA": Self.binary.path])
  }

  private func run(
    _ program: String, _ arguments: [String], input: Data, environment: [String: String]
  ) throws -> Outcome {
    let usual = ["BUCKIA_HOME": path(".home"), "NO_COLOR": "1"]
    let run = try ProgramRun(
      program, arguments, environment: usual.merging(environment) { $1 }, input: input, in: temporary.path)
    // A crash must not be taken for an exit code.
    try #require(run.hasExited, "\(program) \(arguments) crashed: \(run.errors)")
    return Outcome(status: run.status, output: run.output, diagnostics: run.errors)
  }

  /// Runs SQL on a database, which is created if it does not exist, and returns the rows, with columns separated by
  /// bars.
  @discardableResult
  func sql(_ database: String, _ sql: String) throws -> [String] {
    let connection = try SQLiteConnection(opening: path(database), as: .create)
    var rows: [String] = []
    let statements = sql.split(separator: ";").map { $0.trimmingCharacters(in: .whitespacesAndNewlines) }
    for statement in statements where !statement.isEmpty {
      rows += try TestDatabases.texts(statement, on: connection)
    }
    return rows
  }

  /// Runs statements in a session and writes its changeset or patchset to a file.
  func record(_ database: String, _ statements: String, to file: String, asPatchset: Bool = false) throws {
    let connection = try SQLiteConnection(opening: path(database), as: .readWrite)
    let session = try SQLiteSession(on: connection)
    try session.attach()
    try connection.execute(statements)
    let bytes = try asPatchset ? session.patchset() : session.changeset()
    try Data(bytes).write(to: folder.appendingPathComponent(file))
  }

  /// Applies a raw changeset with SQLite's own function.
  func applyWithSQLite(_ file: String, to database: String) throws {
    let connection = try SQLiteConnection(opening: path(database), as: .readWrite)
    let bytes = try [UInt8](Data(contentsOf: folder.appendingPathComponent(file)))
    try StockChangesets.apply(bytes, to: connection) { kind, table in
      Issue.record("\(kind) in \(table)")
      return .abort
    }
  }
}
