import Dispatch

/// Removes files that are done, in a thread of its own: ten thousand of them take as long as some of what is applied
/// meanwhile.
final class FileRemover: @unchecked Sendable {
  private let queue = DispatchQueue(label: "buckia.remover")
  // Touched on the queue only, which does one thing after the other.
  private var results: [(place: Int, outcome: FileRemoval.Outcome)] = []

  /// Begins to remove files, after those that were given before.
  ///
  /// - Parameter files: The files, each with the place of its outcome in the report.
  func remove(_ files: [(place: Int, removal: FileRemoval)]) {
    guard !files.isEmpty else { return }
    queue.async { for file in files { self.results.append((file.place, file.removal.run())) } }
  }

  /// Waits until all files have been seen to.
  ///
  /// - Returns: What became of them.
  func finish() -> [(place: Int, outcome: FileRemoval.Outcome)] { queue.sync { results } }
}
