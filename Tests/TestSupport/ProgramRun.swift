import Foundation

/// A program that has run to its end: its output, and how it ended.
public struct ProgramRun: Sendable {
  /// The exit code, or the number of the signal that ended it.
  public let status: Int32
  /// True if the program exited by itself. A crash must not be taken for an exit code.
  public let hasExited: Bool
  /// The text on standard output.
  public let output: String
  /// The text on standard error.
  public let errors: String

  /// True if the program exited with 0.
  public var hasSucceeded: Bool { hasExited && status == 0 }

  /// The whole output, standard output first.
  public var text: String { output + errors }

  /// Runs a program, and waits for its end.
  ///
  /// - Parameters:
  ///   - program: The path of the program.
  ///   - arguments: The arguments.
  ///   - environment: Variables that are added to those of this process, or replace them.
  ///   - input: The standard input.
  ///   - folder: The working directory; this process's by default.
  /// - Throws: An error if the program cannot be started. A program that fails is not an error.
  public init(
    _ program: String, _ arguments: [String] = [], environment: [String: String] = [:], input: Data = Data(),
    in folder: String? = nil
  ) throws {
    // Files instead of pipes, which could fill up while they are not read.
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

  /// The path of a program on the search path, if it exists.
  public static func path(of name: String) -> String? {
    (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map { "\($0)/\(name)" }.first {
      FileManager.default.isExecutableFile(atPath: $0)
    }
  }
}
