import BuckiaBenchmarks
import Foundation

/// What is made before the rounds of one benchmark, and goes after them.
///
/// The library would keep it until the process exits, when nothing is cleaned up: its files would stay behind.
final class Preparation: @unchecked Sendable {
  // The lock guards the run.
  private let lock = NSLock()
  private var prepared: Result<ComparisonRun, any Error>?

  /// Makes what the contenders work on.
  ///
  /// A failure is told by the rounds: the library stops everything when a setup throws, and other comparisons may well
  /// succeed.
  func begin(_ comparison: Comparison) {
    lock.withLock { prepared = Result { try ComparisonRun(comparison) } }
  }

  /// The comparison under way.
  ///
  /// - Throws: What its preparation has thrown.
  func run(of comparison: Comparison) throws -> ComparisonRun {
    guard let prepared = lock.withLock({ prepared }) else {
      throw BenchmarkError(.unsuitable, "\(comparison.title) was not prepared")
    }
    return try prepared.get()
  }

  /// Removes all of it.
  func end() { lock.withLock { prepared = nil } }
}
