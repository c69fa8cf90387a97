import Foundation

/// A program that has run to its end: what it printed, and how it ended.
public struct ProgramRun: Sendable {
  /// The exit code, or the number of the signal that ended it.
  public let status: Int32
  /// True if it ended by itself. A crash must not pass for an exit code.
  public let hasExited: Bool
  /// What it wrote to standard output.
  public let output: String
  /// What it wrote to standard error.
  public let errors: String

  /// True if it ended by itself with 0.
  public var hasSucceeded: Bool { hasExited && status == 0 }

  /// All that it wrote, standard output first.
  public var text: String { output + errors }

  /// Runs a program, and waits for its end.
  ///
  /// - Parameters:
  ///   - program: Its path.
  ///   - arguments: What it is told.
  ///   - environment: Variables that it gets beside those of this process, or instead of them.
  ///   - input: What it reads from standard input.
  ///   - folder: Where it runs: where this process does, unless another is given.
  /// - Throws: When it cannot be started. A program that fails is not an error.
  public init(
    _ program: String, _ arguments: [String] = [], environment: [String: String] = [:], input: Data = Data(),
    in folder: String? = nil
  ) throws {
    // Files instead of pipes: nothing can fill up while nothing is read.
    let streams = try TemporaryFolder()
    func stream(_ name: String) -> URL { URL(fileURLWithPath: streams.file(name)) }
    try input.write(to: stream("input"))
    for name in ["output", "errors"] { try Data().write(to: stream(name)) }
    let process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    if let folder { process.currentDirectoryURL = URL(fileURLWithPath: folder, isDirectory: true) }
    process.standardInput = try FileHandle(forReadingFrom: stream("input"))
    process.standardOutput = try FileHandle(forWritingTo: stream("output"))
    process.standardError = try FileHandle(forWritingTo: stream("errors"))
    try process.run()
    process.waitUntilExit()
    status = process.terminationStatus
    hasExited = process.terminationReason == .exit
    output = try String(decoding: Data(contentsOf: stream("output")), as: UTF8.self)
    errors = try String(decoding: Data(contentsOf: stream("errors")), as: UTF8.self)
  }

  /// Where a program of a name is on the search path, if it is there.
  public static func path(of name: String) -> String? {
    (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map { "\($0)/\(name)" }.first {
      FileManager.default.isExecutableFile(atPath: $0)
    }
  }
}
