import BuckiaSync
import NIOConcurrencyHelpers

/// A clock that advances when somebody waits, and at no other time.
final class TestClock: Sendable {
  private let time: NIOLockedValueBox<Int64>
  private let pauses = NIOLockedValueBox<[Int64]>([])

  /// - Parameter time: In milliseconds since 1970.
  init(_ time: Int64 = 1_800_000_000_000) { self.time = NIOLockedValueBox(time) }

  var now: Int64 { time.withLockedValue { $0 } }
  /// The length of each wait, in milliseconds.
  var waited: [Int64] { pauses.withLockedValue { $0 } }

  func advance(_ milliseconds: Int64) { time.withLockedValue { $0 += milliseconds } }

  var clock: TokenClock {
    TokenClock(
      now: { self.now },
      sleep: { milliseconds in
        try Task.checkCancellation()
        self.pauses.withLockedValue { $0.append(milliseconds) }
        self.advance(milliseconds)
      })
  }
}
