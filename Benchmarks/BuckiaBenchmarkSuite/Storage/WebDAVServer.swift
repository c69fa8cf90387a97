import Buckia
import Foundation

/// Apache with mod_dav on the loopback interface, as the tests start it. It ends with this process.
final class WebDAVServer {
  /// The address of a folder that anybody may write to.
  let address: String
  private let process: Process

  /// Starts it, and waits until it answers.
  ///
  /// - Throws: `BuckiaError` with `otherProgram` when it cannot be started: Apache is missing, or `BUCKIA_BENCH_SERVERS` does not name the folder of the scripts.
  init() throws {
    guard let folder = ProcessInfo.processInfo.environment["BUCKIA_BENCH_SERVERS"] else {
      throw BuckiaError(
        .otherProgram, "BUCKIA_BENCH_SERVERS is not set to the folder of the scripts that start servers")
    }
    process = Process()
    process.executableURL = URL(fileURLWithPath: "\(folder)/apache")
    let (output, errors) = (Pipe(), Pipe())
    process.standardOutput = output
    process.standardError = errors
    process.standardInput = FileHandle.nullDevice
    do { try process.run() } catch {
      throw BuckiaError(.otherProgram, "\(folder)/apache cannot be started: \(error.localizedDescription)")
    }
    var line = Data()
    while let byte = try output.fileHandleForReading.read(upToCount: 1), !byte.isEmpty, byte != Data("\n".utf8) {
      line += byte
    }
    guard let port = Int(String(decoding: line, as: UTF8.self)) else {
      let reason = String(decoding: try errors.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
      throw BuckiaError(.otherProgram, "Apache did not start: \(reason.prefix { $0 != "\n" })")
    }
    address = "http://127.0.0.1:\(port)/open"
  }

  deinit { process.terminate() }
}
