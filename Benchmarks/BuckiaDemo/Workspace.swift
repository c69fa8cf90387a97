import Foundation
import SQLiteConnections

/// The temporary folder in which the demo's databases live and its commands run.
struct Workspace {
  let folder: URL
  private let buckia: URL

  init() throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("buckia-demo-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    let here = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()
    buckia = here.appendingPathComponent("buckia")
    guard FileManager.default.isExecutableFile(atPath: buckia.path) else {
      throw DemoError("the command line is missing at \(buckia.path); build it with: swift build --product buckia")
    }
  }

  func remove() {
    do { try FileManager.default.removeItem(at: folder) } catch {
      print("\(folder.path) could not be removed: \(error)")
    }
  }

  /// The path of a file in the folder.
  func path(_ name: String) -> String { folder.appendingPathComponent(name).path }

  func copy(_ source: URL, to name: String) throws {
    try FileManager.default.copyItem(at: source, to: folder.appendingPathComponent(name))
  }

  func makeFolder(_ name: String) throws {
    try FileManager.default.createDirectory(at: folder.appendingPathComponent(name), withIntermediateDirectories: true)
  }

  func files(in name: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path(name)).sorted()
  }

  /// Runs a script on a database, which is created if needed.
  func run(script: URL, on database: String) throws {
    let connection = try SQLiteConnection(opening: path(database), as: .create)
    try connection.execute("PRAGMA foreign_keys = ON")
    try connection.execute(try String(contentsOf: script, encoding: .utf8))
  }

  /// Runs statements on a database, which is created if needed.
  func run(sql: String, on database: String) throws {
    let connection = try SQLiteConnection(opening: path(database), as: .create)
    try connection.execute("PRAGMA foreign_keys = ON")
    try connection.execute(sql)
  }

  /// The rows of a query, their columns separated by two spaces.
  func rows(_ query: String, of database: String) throws -> [String] {
    let connection = try SQLiteConnection(opening: path(database), as: .readOnly)
    var found: [String] = []
    try connection.forEachRow(of: query) { row in
      found.append((0..<row.columnCount).map { row.text(at: $0) ?? "NULL" }.joined(separator: "  "))
    }
    return found
  }

  func write(_ text: String, to name: String) throws {
    try text.write(toFile: path(name), atomically: true, encoding: .utf8)
  }

  /// Runs a command as one of several people, each with a home of their own, and prints it as they would type it.
  ///
  /// - Parameters:
  ///   - isShown: True if the command and what it says are printed.
  ///   - status: How it must exit.
  func type(_ arguments: [String], as person: String, isShown: Bool, expecting status: Int32) throws {
    if isShown { print("\n\(person)$ buckia \(arguments.joined(separator: " "))") }
    try start(
      arguments, printingTo: isShown ? .standardOutput : .nullDevice, home: "home-\(person)", expecting: status)
  }

  /// Prints a command as a user would type it, then runs it.
  func type(_ arguments: String...) throws {
    print("\n$ buckia \(arguments.joined(separator: " "))")
    try start(arguments)
  }

  /// Runs a command with `--json` and returns the seconds that its report says it took.
  func runSilently(_ arguments: String...) throws -> Double {
    guard let seconds = try report(of: arguments)["seconds"] as? Double else {
      throw DemoError("buckia \(arguments.joined(separator: " ")) did not say how long it took")
    }
    return seconds
  }

  /// Runs a command with `--json` and returns its report.
  func report(of arguments: [String], home: String = "home") throws -> [String: Any] {
    let report = path("report.json")
    guard FileManager.default.createFile(atPath: report, contents: nil) else {
      throw DemoError("\(report) cannot be written")
    }
    try start(
      arguments + ["--json"], printingTo: try FileHandle(forWritingTo: URL(fileURLWithPath: report)), home: home)
    let document = try JSONSerialization.jsonObject(with: Data(contentsOf: URL(fileURLWithPath: report)))
    guard let found = document as? [String: Any] else {
      throw DemoError("buckia \(arguments.joined(separator: " ")) printed no report")
    }
    return found
  }

  private func start(
    _ arguments: [String], printingTo output: FileHandle = .standardOutput, home: String = "home",
    expecting status: Int32 = 0
  ) throws {
    // Our own output must come before the command's.
    fflush(nil)
    let process = Process()
    process.executableURL = buckia
    process.arguments = arguments
    process.currentDirectoryURL = folder
    process.environment = ProcessInfo.processInfo.environment.merging(["BUCKIA_HOME": path(home)]) { $1 }
    process.standardOutput = output
    // `waitUntilExit` polls twenty times a second, which would slow the demo down.
    let end = DispatchSemaphore(value: 0)
    process.terminationHandler = { _ in end.signal() }
    try process.run()
    end.wait()
    guard process.terminationStatus == status else {
      throw DemoError("buckia \(arguments.joined(separator: " ")) exited with \(process.terminationStatus)")
    }
  }
}
