import Dispatch

/// Waits for asynchronous work: programs of the command line run on the main thread, which has nothing else to do.
package enum AwaitedTask {
  /// What the work has come to. The semaphore orders the one write before the one read.
  private final class Outcome<Value: Sendable>: @unchecked Sendable {
    var result: Result<Value, any Error>?
  }

  /// Does the work.
  ///
  /// - Parameters:
  ///   - work: The work.
  ///   - tick: Is called ten times a second meanwhile, on the thread that waits.
  /// - Throws: What the work throws.
  package static func run<Value: Sendable>(
    _ work: @escaping @Sendable () async throws -> Value, meanwhile tick: () -> Void = {}
  ) throws -> Value {
    let outcome = Outcome<Value>()
    let isDone = DispatchSemaphore(value: 0)
    Task.detached {
      do { outcome.result = .success(try await work()) } catch { outcome.result = .failure(error) }
      isDone.signal()
    }
    while isDone.wait(timeout: .now() + .milliseconds(100)) == .timedOut { tick() }
    guard let result = outcome.result else { throw CancellationError() }
    return try result.get()
  }
}
