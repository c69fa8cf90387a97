import BuckiaStorage

/// Holds transfers back so that all of them together stay under a number of bytes a second.
actor BandwidthLimit {
  private let bytesPerSecond: Int64
  private let clock = ContinuousClock()
  /// When everything that was let through will have taken its time.
  private var free: ContinuousClock.Instant

  init(bytesPerSecond: Int64) {
    self.bytesPerSecond = max(1, bytesPerSecond)
    free = clock.now
  }

  /// Waits until so many bytes may pass.
  func pass(_ count: Int) async throws {
    let start = max(free, clock.now)
    free = start + .nanoseconds(Int64(Double(count) / Double(bytesPerSecond) * 1e9))
    if start > clock.now { try await clock.sleep(until: start) }
  }

  /// The same bytes, no faster than they may be.
  nonisolated func limiting(_ chunks: ByteChunks) -> ByteChunks {
    ByteChunks {
      var iterator = chunks.makeAsyncIterator()
      return {
        guard let chunk = try await iterator.next() else { return nil }
        try await self.pass(chunk.count)
        return chunk
      }
    }
  }
}
