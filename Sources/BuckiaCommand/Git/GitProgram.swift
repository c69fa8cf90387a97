import BuckiaBytes
import Buckia

/// The `git` of the system.
enum GitProgram {
  /// How a call ended.
  struct Outcome {
    let status: Int32
    /// Its standard output, without the line end behind it.
    let output: String
  }

  /// Runs git in the current folder. What it prints on standard error is shown.
  ///
  /// - Throws: `BuckiaError` with code `git` when git cannot be started.
  static func run(_ arguments: [String]) throws -> Outcome {
    let command = (["git"] + arguments).map { ShellWord($0).description }.joined(separator: " ")
    guard let stream = popen(command, "r") else {
      throw failure("it cannot be started: \(String(cString: strerror(errno)))")
    }
    var bytes: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 4_096)
    while true {
      let count = fread(&piece, 1, piece.count, stream)
      guard count > 0 else { break }
      bytes += piece[..<count]
    }
    let status = pclose(stream)
    // The exit code is in the second byte, unless a signal has ended the shell.
    guard status >= 0, status & 0x7f == 0 else { throw failure("it has been ended by a signal") }
    guard status >> 8 != 127 else { throw failure("it is not installed, or not in PATH") }
    while bytes.last == 0x0a { bytes.removeLast() }
    return Outcome(status: status >> 8, output: String(decoding: bytes, as: UTF8.self))
  }

  /// Runs git and makes sure that it succeeds.
  ///
  /// - Throws: `BuckiaError` with code `git`.
  @discardableResult
  static func require(_ arguments: [String]) throws -> String {
    let outcome = try run(arguments)
    guard outcome.status == 0 else {
      throw failure("git \(arguments.joined(separator: " ")) ended with \(outcome.status)")
    }
    return outcome.output
  }

  private static func failure(_ reason: String) -> BuckiaError { BuckiaError(.git, "git: \(reason)") }
}

extension BuckiaErrorCode {
  /// The program git failed.
  static let git = BuckiaErrorCode(rawValue: "git")
}
