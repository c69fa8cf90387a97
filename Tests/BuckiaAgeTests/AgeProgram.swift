import Foundation
import Testing

/// The `age` that is installed.
enum AgeProgram {
  private static let folders = ["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"]
  private static func path(_ name: String) -> String? {
    folders.map { "\($0)/\(name)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
  }

  static let isInstalled = path("age") != nil && path("age-keygen") != nil
  static let requirement: Comment = "age is not installed (make setup installs it)"

  /// Runs it; the exit code says whether it did what it was told.
  @discardableResult
  static func run(_ name: String = "age", _ arguments: [String]) throws -> Int32 {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: try #require(path(name)))
    process.arguments = arguments
    process.standardInput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    return process.terminationStatus
  }
}
