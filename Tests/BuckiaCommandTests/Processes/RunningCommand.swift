import BuckiaBytes
import Foundation
import Testing

/// A started `buckia` process that can be waited for or killed.
final class RunningCommand {
  private let process = Process()
  private let stem: String

  /// Starts `buckia` in the folder of a workbench.
  init(_ arguments: [String], on bench: Workbench, environment: [String: String] = [:]) throws {
    stem = bench.path(".\(UUID().uuidString)")
    for part in ["out", "err"] { try Data().write(to: URL(fileURLWithPath: "\(stem).\(part)")) }
    process.executableURL = try Workbench.binary
    process.arguments = arguments
    process.currentDirectoryURL = bench.folder
    process.environment = ProcessInfo.processInfo.environment
      .merging(["BUCKIA_HOME": bench.path(".home"), "NO_COLOR": "1"]) { $1 }.merging(environment) { $1 }
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = try FileHandle(forWritingTo: URL(fileURLWithPath: "\(stem).out"))
    process.standardError = try FileHandle(forWritingTo: URL(fileURLWithPath: "\(stem).err"))
    try process.run()
  }

  deinit {
    if process.isRunning {
      kill(process.processIdentifier, SIGKILL)
      process.waitUntilExit()
    }
    for part in ["out", "err"] { unlink("\(stem).\(part)") }
  }

  /// True if the process has not ended yet.
  var isRunning: Bool { process.isRunning }

  /// The output so far, on standard output and on standard error.
  func printed() throws -> (output: String, diagnostics: String) {
    func text(_ part: String) throws -> String {
      String(decoding: try Data(contentsOf: URL(fileURLWithPath: "\(stem).\(part)")), as: UTF8.self)
    }
    return (try text("out"), try text("err"))
  }

  /// Waits for the first line of output.
  ///
  /// - Throws: If the process ends without one.
  func firstLine() throws -> String {
    while true {
      let isOver = !process.isRunning
      let (output, diagnostics) = try printed()
      if let end = output.firstIndex(of: "\n") { return String(output[..<end]) }
      try #require(!isOver, "\(diagnostics)")
      usleep(10_000)
    }
  }

  /// Waits for the process to end. A crash is an error.
  func outcome() throws -> Workbench.Outcome {
    process.waitUntilExit()
    let (output, diagnostics) = try printed()
    try #require(process.terminationReason == .exit, "buckia crashed: \(diagnostics)")
    return Workbench.Outcome(status: process.terminationStatus, output: output, diagnostics: diagnostics)
  }

  /// Interrupts the process, as Control-C does.
  ///
  /// - Parameter signal: Another signal to end it with.
  /// - Returns: The signal that ended the process; nil if it exited by itself.
  func interrupt(by signal: Int32 = SIGINT) -> Int32? {
    kill(process.processIdentifier, signal)
    // A process that ignores the signal would block the tests for ever. While all other tests run, one that heeds it
    // may take minutes.
    let end = Date(timeIntervalSinceNow: 300)
    while process.isRunning, Date() < end { usleep(10_000) }
    if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    process.waitUntilExit()
    return process.terminationReason == .uncaughtSignal ? process.terminationStatus : nil
  }

  /// Kills the process without a chance to clean up, as a power cut does.
  ///
  /// - Returns: True if it was still at work.
  func killNow() -> Bool {
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
    return process.terminationReason == .uncaughtSignal
  }
}
