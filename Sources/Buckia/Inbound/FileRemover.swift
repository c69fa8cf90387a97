import BuckiaSchemaPlans
import Dispatch

/// Removes files that are done, in a thread of its own: ten thousand of them take as long as some of what is applied
/// meanwhile.
final class FileRemover: @unchecked Sendable {
  private let queue = DispatchQueue(label: "buckia.remover")
  // Touched on the queue only, which does one thing after the other.
  private var failures: [(place: Int, remark: Remark)] = []

  /// Begins to remove files, after those that were given before.
  ///
  /// - Parameter files: The paths, each with the place of the file's outcome in the report.
  func remove(_ files: [(place: Int, path: String)]) {
    guard !files.isEmpty else { return }
    queue.async {
      for file in files {
        guard let reason = FileSystem.remove(file.path) else { continue }
        self.failures.append((file.place, Remark(.notRemoved, file.path, reason)))
      }
    }
  }

  /// Waits until all files are gone.
  ///
  /// - Returns: What is to be said of those that could not be removed.
  func finish() -> [(place: Int, remark: Remark)] { queue.sync { failures } }
}
