import Foundation
import SQLiteConnections
import TestSupport
import Testing

/// A temporary folder in which the built `buckia` binary is run.
final class Workbench {
  /// What a command left behind.
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

  /// The binary stands where the test bundle stands.
  static var binary: URL {
    get throws {
      let here = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()
      let folders = Bundle.allBundles.map { $0.bundleURL.deletingLastPathComponent() } + [here]
      let candidates = folders.map { $0.appendingPathComponent("buckia") }
      return try #require(
        candidates.first { FileManager.default.isExecutableFile(atPath: $0.path) && !$0.hasDirectoryPath },
        "the binary is in none of \(folders.map(\.path))")
    }
  }

  /// Runs `buckia`.
  @discardableResult
  func buckia(
    _ arguments: [String], input: Data = Data(), environment: [String: String] = [:]
  ) throws -> Outcome {
    try run(Self.binary, arguments, input: input, environment: environment)
  }

  /// Starts `buckia`, and kills it after some time.
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

  /// Runs a line of the shell's, in which `$BUCKIA` is the binary: for what no argument list can hold.
  func shell(_ line: String) throws -> Outcome {
    try run(
      URL(fileURLWithPath: "/bin/sh"), ["-c", line], input: Data(), environment: ["BUCKIA": Self.binary.path])
  }

  private func run(
    _ program: URL, _ arguments: [String], input: Data, environment: [String: String]
  ) throws -> Outcome {
    // Files instead of pipes: nothing can fill up while nothing is read.
    let stem = path(".\(UUID().uuidString)")
    defer {
      for part in ["in", "out", "err"] { unlink("\(stem).\(part)") }
    }
    try input.write(to: URL(fileURLWithPath: "\(stem).in"))
    for part in ["out", "err"] { try Data().write(to: URL(fileURLWithPath: "\(stem).\(part)")) }
    let process = Process()
    process.executableURL = program
    process.arguments = arguments
    process.currentDirectoryURL = folder
    process.environment = ProcessInfo.processInfo.environment
      .merging(["BUCKIA_HOME": path(".home"), "NO_COLOR": "1"]) { $1 }.merging(environment) { $1 }
    process.standardInput = try FileHandle(forReadingFrom: URL(fileURLWithPath: "\(stem).in"))
    process.standardOutput = try FileHandle(forWritingTo: URL(fileURLWithPath: "\(stem).out"))
    process.standardError = try FileHandle(forWritingTo: URL(fileURLWithPath: "\(stem).err"))
    try process.run()
    process.waitUntilExit()
    func text(_ part: String) throws -> String {
      String(decoding: try Data(contentsOf: URL(fileURLWithPath: "\(stem).\(part)")), as: UTF8.self)
    }
    let (output, diagnostics) = (try text("out"), try text("err"))
    // A crash must not pass for an exit code.
    try #require(
      process.terminationReason == .exit, "\(program.lastPathComponent) \(arguments) crashed: \(diagnostics)")
    return Outcome(status: process.terminationStatus, output: output, diagnostics: diagnostics)
  }

  /// Runs SQL on a database, which is made when it does not exist, and returns the rows, columns parted by bars.
  @discardableResult
  func sql(_ database: String, _ sql: String) throws -> [String] {
    let connection = try SQLiteConnection(opening: path(database), as: .create)
    var rows: [String] = []
    let statements = sql.split(separator: ";").map { $0.trimmingCharacters(in: .whitespacesAndNewlines) }
    for statement in statements where !statement.isEmpty {
      try connection.forEachRow(of: statement) { row in
        rows.append((0..<row.columnCount).map { row.text(at: $0) ?? "NULL" }.joined(separator: "|"))
      }
    }
    return rows
  }

  /// Runs statements under a session and writes its changeset or patchset into a file.
  func record(_ database: String, _ statements: String, to file: String, asPatchset: Bool = false) throws {
    let connection = try SQLiteConnection(opening: path(database), as: .readWrite)
    let session = try SQLiteSession(on: connection)
    try session.attach()
    try connection.execute(statements)
    let bytes = try asPatchset ? session.patchset() : session.changeset()
    try Data(bytes).write(to: folder.appendingPathComponent(file))
  }

  /// Applies a raw changeset with SQLite's own call.
  func applyWithSQLite(_ file: String, to database: String) throws {
    let connection = try SQLiteConnection(opening: path(database), as: .readWrite)
    let bytes = try [UInt8](Data(contentsOf: folder.appendingPathComponent(file)))
    try StockChangesets.apply(bytes, to: connection) { kind, table in
      Issue.record("\(kind) in \(table)")
      return .abort
    }
  }
}
