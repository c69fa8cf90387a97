import Foundation

/// A folder of a test's own, gone when the test is done with it.
public final class TemporaryFolder: Sendable {
  /// Where it is.
  public let path: String

  /// Makes a folder with a name nobody else has.
  public init() throws {
    path = FileManager.default.temporaryDirectory.appendingPathComponent("buckia-test-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit {
    do { try FileManager.default.removeItem(atPath: path) } catch { print("left behind: \(path): \(error)") }
  }

  /// The path of a file in it.
  public func file(_ name: String) -> String { "\(path)/\(name)" }

  /// Copies a file within it, or into it.
  public func copy(_ source: String, to name: String) throws -> String {
    let from = source.hasPrefix("/") ? source : file(source)
    try FileManager.default.copyItem(atPath: from, toPath: file(name))
    return file(name)
  }
}
