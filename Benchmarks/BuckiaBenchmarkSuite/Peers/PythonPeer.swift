import Foundation

/// A Python with libraries that Buckia is compared with, and the script that runs them.
struct PythonPeer {
  let program: String
  let script: String

  /// Looks for it. `BUCKIA_BENCH_PYTHON` and `BUCKIA_BENCH_PEERS` name the Python and the script.
  ///
  /// - Returns: nil when there is none.
  static func find(in environment: [String: String] = ProcessInfo.processInfo.environment) -> PythonPeer? {
    guard let program = environment["BUCKIA_BENCH_PYTHON"], let script = environment["BUCKIA_BENCH_PEERS"],
      FileManager.default.isExecutableFile(atPath: program)
    else { return nil }
    return PythonPeer(program: program, script: script)
  }

  /// The script with a command and its arguments; nothing is started.
  func process(_ arguments: [String]) -> ChildProcess { ChildProcess(program, [script] + arguments) }

  /// The lines that the script prints.
  ///
  /// - Throws: `BuckiaError` with `otherProgram` when it fails.
  func lines(_ command: String) throws -> [String] {
    try process([command]).run().split(whereSeparator: \.isNewline).map(String.init)
  }
}
