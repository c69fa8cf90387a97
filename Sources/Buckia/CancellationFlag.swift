import Dispatch

/// A flag by which one thread cancels the work of another.
package final class CancellationFlag: @unchecked Sendable {
  // The lock guards `isCancelled`.
  private let lock = DispatchSemaphore(value: 1)
  private var isCancelled = false

  /// Creates a flag that is not set.
  package init() {}

  /// Runs long work on a thread of its own, since threads of the cooperative pool must not block.
  ///
  /// - Parameter work: Polls the flag it is given, which is set when the task is cancelled.
  package static func onThreadOfItsOwn<Result: Sendable>(
    _ work: @escaping @Sendable (CancellationFlag) throws -> Result
  ) async throws -> Result {
    let flag = CancellationFlag()
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        DispatchQueue(label: "buckia.work").async {
          do {
            try flag.check()
            continuation.resume(returning: try work(flag))
          } catch {
            continuation.resume(throwing: error)
          }
        }
      }
    } onCancel: {
      flag.cancel()
    }
  }

  /// Sets the flag.
  package func cancel() {
    lock.wait()
    isCancelled = true
    lock.signal()
  }

  /// True if the flag is set.
  package var isSet: Bool {
    lock.wait()
    defer { lock.signal() }
    return isCancelled
  }

  /// - Throws: `CancellationError` when the flag is set.
  package func check() throws { if isSet { throw CancellationError() } }

  /// A progress closure that also stops the work when the flag is set.
  func checking<Progress>(_ progress: @escaping (Progress) throws -> Void) -> (Progress) throws -> Void {
    {
      try self.check()
      try progress($0)
    }
  }
}

/// Runs work that polls for cancellation, for a caller that throws to stop it.
///
/// - Parameters:
///   - poll: Throws to stop.
///   - work: Receives the closure to poll.
/// - Throws: What `poll` has thrown; else whatever `work` throws.
func polling<Result>(
  _ poll: @escaping () throws -> Void, _ work: (_ isWanted: @escaping () -> Bool) throws -> Result
) throws -> Result {
  var stop: (any Error)?
  let result = Swift.Result {
    try work {
      do { try poll() } catch { stop = error }
      return stop == nil
    }
  }
  if let stop { throw stop }
  return try result.get()
}
