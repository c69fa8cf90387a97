import NIOConcurrencyHelpers

/// Those who want to know how far rounds have come.
final class ProgressObservers: Sendable {
  private let continuations = NIOLockedValueBox<[Int: AsyncStream<SyncProgress>.Continuation]>([:])

  deinit {
    for continuation in continuations.withLockedValue({ $0 }).values { continuation.finish() }
  }

  func stream() -> AsyncStream<SyncProgress> {
    // Whoever is slow sees the newest state, and not each one before.
    AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
      let number = continuations.withLockedValue { known in
        let number = (known.keys.max() ?? 0) + 1
        known[number] = continuation
        return number
      }
      continuation.onTermination = { [weak self] _ in
        self?.continuations.withLockedValue { known in known[number] = nil }
      }
    }
  }

  func send(_ progress: SyncProgress) {
    for continuation in continuations.withLockedValue({ $0 }).values { continuation.yield(progress) }
  }
}
