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

  /// Runs a script on a database, which is made when it does not exist.
  func run(script: URL, on database: String) throws {
    let connection = try SQLiteConnection(opening: path(database), as: .create)
    try connection.execute("PRAGMA foreign_keys = ON")
    try connection.execute(try String(contentsOf: script, encoding: .utf8))
  }

  /// Shows a command as a person types it, runs it, and lets it print.
  func type(_ arguments: String...) throws {
    print("\n$ buckia \(arguments.joined(separator: " "))")
    try start(arguments, silently: false)
  }

  /// Runs a command and returns how long it took, in seconds.
  func runSilently(_ arguments: String...) throws -> Double {
    let began = ContinuousClock.now
    try start(arguments, silently: true)
    return (ContinuousClock.now - began) / .seconds(1)
  }

  private func start(_ arguments: [String], silently: Bool) throws {
    // What we printed so far must stand above what the command prints.
    fflush(nil)
    let process = Process()
    process.executableURL = buckia
    process.arguments = arguments
    process.currentDirectoryURL = folder
    if silently { process.standardOutput = FileHandle.nullDevice }
    try process.run()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      throw DemoError("buckia \(arguments.joined(separator: " ")) exited with \(process.terminationStatus)")
    }
  }
}
