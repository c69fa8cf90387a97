import Dispatch

/// Runs what waits for the disk where it keeps no thread of the cooperative pool from others' work.
package enum BlockingWork {
  /// - Throws: What the work throws.
  package static func run<Result: Sendable>(_ work: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
      DispatchQueue.global().async { continuation.resume(with: Swift.Result { try work() }) }
    }
  }
}
