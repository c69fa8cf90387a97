import BuckiaBenchmarks
import Dispatch
import Foundation

/// Another program that does some work from its start to its end.
public struct ChildProcess {
  /// The program's path.
  public let program: String
  /// What it is given.
  public let arguments: [String]
  /// What is different in its environment.
  public let environment: [String: String]

  /// Describes a process; nothing is started.
  public init(_ program: String, _ arguments: [String], environment: [String: String] = [:]) {
    self.program = program
    self.arguments = arguments
    self.environment = environment
  }

  /// Runs the program to its end.
  ///
  /// - Returns: What it printed.
  /// - Throws: `BenchmarkError` with `otherProgram` when it cannot be started or fails.
  @discardableResult
  public func run() throws -> String {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    let output = Pipe()
    let diagnostics = Pipe()
    process.standardOutput = output
    process.standardError = diagnostics
    process.standardInput = FileHandle.nullDevice
    // `waitUntilExit` looks twenty times a second only, which is no way to take the time.
    let end = DispatchSemaphore(value: 0)
    process.terminationHandler = { _ in end.signal() }
    do { try process.run() } catch {
      throw BenchmarkError(.otherProgram, "\(program) cannot be started: \(error.localizedDescription)")
    }
    let printed = try output.fileHandleForReading.readToEnd() ?? Data()
    // A few lines at most, which a pipe holds while nobody reads.
    let complaint = String(decoding: try diagnostics.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
    end.wait()
    guard process.terminationReason == .exit, process.terminationStatus == 0 else {
      throw BenchmarkError(
        .otherProgram,
        "\(shown) ended with \(process.terminationStatus): "
          + complaint.split(whereSeparator: \.isNewline).suffix(3).joined(separator: " "))
    }
    return String(decoding: printed, as: UTF8.self)
  }

  /// The command without the folders that it names, which are gone when somebody reads this.
  private var shown: String {
    ([program] + arguments).map { $0.split(separator: "/").last.map(String.init) ?? $0 }.joined(separator: " ")
  }

  /// The path of a program that can be run by its name; nil when there is none.
  public static func find(_ name: String) -> String? {
    let folders = ProcessInfo.processInfo.environment["PATH"]?.split(separator: ":") ?? []
    return folders.map { "\($0)/\(name)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
  }

  /// The path of a program that was built beside this one.
  public static func beside(_ name: String) throws -> String {
    guard let own = Bundle.main.executableURL?.resolvingSymlinksInPath() else {
      throw BenchmarkError(.otherProgram, "this program does not know its own path")
    }
    let path = own.deletingLastPathComponent().appendingPathComponent(name).path
    guard FileManager.default.isExecutableFile(atPath: path) else {
      throw BenchmarkError(.otherProgram, "\(path) is missing; build it with: swift build -c release")
    }
    return path
  }
}
