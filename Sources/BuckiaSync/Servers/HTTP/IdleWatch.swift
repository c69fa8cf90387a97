import NIOConcurrencyHelpers

/// Gives a request up when the server keeps it waiting for too long.
///
/// Only waiting for the server counts, not the time in which nobody reads what has come, or in which there is nothing to send yet because
/// of a bandwidth limit or a slow disk. The time-outs of async-http-client cannot tell these apart.
final class IdleWatch: Sendable {
  /// How often a watch looks before it gives up. A program that is too busy to look has not waited for the server.
  private static let looks = 4

  private struct State {
    /// The number of the wait that goes on, or of the last one.
    var wait = 0
    var isWaiting = false
    var cancel: (@Sendable () -> Void)?
    var hasGivenUp = false
  }

  private let state = NIOLockedValueBox(State())
  private let watcher: Task<Void, Never>

  /// Starts to watch.
  ///
  /// - Parameter seconds: How long the server may take for its next bytes, or for taking ours.
  init(seconds: Double) {
    let pause = Duration.seconds(seconds / Double(Self.looks))
    watcher = Task { [state] in
      var last: Int?
      var count = 0
      while count < Self.looks {
        do { try await Task.sleep(for: pause) } catch { return }
        let wait = state.withLockedValue { $0.isWaiting ? $0.wait : nil }
        count = wait != nil && wait == last ? count + 1 : 0
        last = wait
      }
      let cancel = state.withLockedValue {
        $0.hasGivenUp = true
        return $0.cancel
      }
      cancel?()
    }
  }

  deinit { watcher.cancel() }

  /// Whether the server has kept a request waiting for too long.
  var isOver: Bool { state.withLockedValue { $0.hasGivenUp } }

  /// Does what waits for the server. It is cancelled with the task around it, and when the watch gives up.
  func waiting<Result: Sendable>(
    for work: @escaping @Sendable () async throws -> Result
  ) async throws -> Result {
    let task = Task(operation: work)
    let isLate = state.withLockedValue {
      $0.wait += 1
      $0.isWaiting = true
      $0.cancel = { task.cancel() }
      return $0.hasGivenUp
    }
    if isLate { task.cancel() }
    defer {
      state.withLockedValue {
        $0.isWaiting = false
        $0.cancel = nil
      }
    }
    return try await withTaskCancellationHandler(operation: { try await task.value }, onCancel: { task.cancel() })
  }

  /// Does something that the server waits for, while something else waits for the server.
  func pausing<Result>(for work: () async throws -> Result) async throws -> Result {
    state.withLockedValue { $0.isWaiting = false }
    defer {
      state.withLockedValue {
        $0.wait += 1
        $0.isWaiting = $0.cancel != nil
      }
    }
    return try await work()
  }
}
