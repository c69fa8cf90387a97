import Foundation

/// A folder for the databases of one benchmark, gone afterwards.
public final class ScratchFolder {
  private let path: String
  private var files = 0

  /// Makes a folder in the system's place for temporary files.
  public init() throws {
    path = FileManager.default.temporaryDirectory.appendingPathComponent("buckia-bench-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  /// The path of a file that does not exist yet.
  func newFile() -> String {
    files += 1
    return "\(path)/\(files).sqlite"
  }

  deinit {
    do { try FileManager.default.removeItem(atPath: path) } catch { print("left behind: \(path): \(error)") }
  }
}
