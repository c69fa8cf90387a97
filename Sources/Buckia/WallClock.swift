import BuckiaBytes

/// The time, for the façade and the rounds of sync; everything below them is given the time.
package enum WallClock {
  /// Milliseconds since 1970.
  package static var unixMilliseconds: Int64 {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    return Int64(now.tv_sec) * 1_000 + Int64(now.tv_nsec) / 1_000_000
  }

  /// How long `body` takes, in seconds.
  static func timing<Result>(_ body: () throws -> Result) rethrows -> (result: Result, seconds: Double) {
    let start = ContinuousClock.now
    let result = try body()
    return (result, (ContinuousClock.now - start) / .seconds(1))
  }
}
