import Buckia
import BuckiaBenchmarks
import Dispatch
import Foundation

/// Another program, run from start to end.
struct ChildProcess {
  /// The program's path.
  let program: String
  let arguments: [String]
  /// Variables that are added to the environment.
  let environment: [String: String]

  /// Describes a process; nothing is started.
  init(_ program: String, _ arguments: [String], environment: [String: String] = [:]) {
    self.program = program
    self.arguments = arguments
    self.environment = environment
  }

  /// Runs the program and waits for its end.
  ///
  /// - Returns: Its standard output.
  /// - Throws: `BuckiaError` with `otherProgram` when it cannot be started or fails.
  @discardableResult
  func run() throws -> String {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    let output = Pipe()
    let diagnostics = Pipe()
    process.standardOutput = output
    process.standardError = diagnostics
    process.standardInput = FileHandle.nullDevice
    // `waitUntilExit` polls twenty times a second, which is too coarse for timing.
    let end = DispatchSemaphore(value: 0)
    process.terminationHandler = { _ in end.signal() }
    do { try process.run() } catch {
      throw BuckiaError(.otherProgram, "\(program) cannot be started: \(error.localizedDescription)")
    }
    let printed = try output.fileHandleForReading.readToEnd() ?? Data()
    // A few lines at most, which fit into the pipe's buffer.
    let complaint = String(decoding: try diagnostics.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
    end.wait()
    guard process.terminationReason == .exit, process.terminationStatus == 0 else {
      throw BuckiaError(
        .otherProgram,
        "\(shortCommand) ended with \(process.terminationStatus): "
          + complaint.split(whereSeparator: \.isNewline).suffix(3).joined(separator: " "))
    }
    return String(decoding: printed, as: UTF8.self)
  }

  /// Runs the program, which prints how many seconds each piece of its work took.
  ///
  /// - Parameter count: How many pieces.
  /// - Throws: `BuckiaError` with `otherProgram` when it fails, or prints something else.
  func seconds(_ count: Int) throws -> [Double] {
    let seconds = try run().split(whereSeparator: \.isWhitespace).map { Double($0) ?? -1 }
    guard seconds.count == count, seconds.allSatisfy({ $0 >= 0 }) else {
      throw BuckiaError(.otherProgram, "\(shortCommand) did not say how long it took")
    }
    return seconds
  }

  /// The command without folders, since the temporary ones are gone when the message is read, and without most of its
  /// arguments where there are hundreds.
  private var shortCommand: String {
    let words = ([program] + arguments).map { $0.split(separator: "/").last.map(String.init) ?? $0 }
    return words.prefix(9).joined(separator: " ") + (words.count > 9 ? " …" : "")
  }

  /// Runs a subcommand of this program in a process of its own, which prints whole numbers.
  ///
  /// - Parameter count: How many.
  /// - Throws: `BuckiaError` with `otherProgram` when it fails, or prints something else.
  static func numbers(_ count: Int, of arguments: [String]) throws -> [Int] {
    let process = ChildProcess(try path(of: "BuckiaBenchmarkSuite"), arguments)
    let numbers = try process.run().split(whereSeparator: \.isWhitespace).map { Int($0) ?? -1 }
    guard numbers.count == count, numbers.allSatisfy({ $0 >= 0 }) else {
      throw BuckiaError(.otherProgram, "\(process.shortCommand) did not print what it has measured")
    }
    return numbers
  }

  /// The path of a program in a folder of `PATH`; nil when there is none.
  static func find(_ name: String) -> String? {
    let folders = ProcessInfo.processInfo.environment["PATH"]?.split(separator: ":") ?? []
    return folders.map { "\($0)/\(name)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
  }

  /// The path of an executable of this package, which the build has put beside this one.
  static func path(of product: String) throws -> String {
    guard let own = Bundle.main.executableURL?.resolvingSymlinksInPath() else {
      throw BuckiaError(.otherProgram, "this program does not know its own path")
    }
    let path = own.deletingLastPathComponent().appendingPathComponent(product).path
    guard FileManager.default.isExecutableFile(atPath: path) else {
      throw BuckiaError(.otherProgram, "\(path) is missing; build it with: swift build -c release")
    }
    return path
  }
}
