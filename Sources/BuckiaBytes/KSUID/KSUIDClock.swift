/// Generates strictly increasing ids: the hybrid logical clock of one replica.
///
/// Each id is greater than all ids that were generated or observed before, even when the wall clock stops or goes back. So
/// a change that a person makes after receiving a diff is ordered after that diff. Time and randomness are parameters.
///
/// - When the wall clock is past the second of ``last``, the id has the wall clock's second and 128 random bits.
/// - Otherwise the id is `last` plus a random number from 1 to 2^64. Whoever knows `last` still has 64 bits to guess. When
///   the payload overflows, ids continue in the next second with a random payload, ahead of the wall clock.
///
/// ```swift
/// var clock = KSUIDClock(last: newestInLedger)
/// var random = SystemRandomNumberGenerator()
/// let id = try clock.next(unixSeconds: now, using: &random)
/// ```
package struct KSUIDClock: Sendable {
  /// How far ahead of the wall clock an observed id may be, in seconds: five minutes.
  ///
  /// An id further ahead must not be observed: it would move the clock of everybody who observes it ahead for good.
  package static let tolerance: Int64 = 300

  /// The greatest id generated or observed so far.
  package var last: KSUID?

  /// Creates a clock.
  ///
  /// - Parameter last: The greatest id generated or observed before; nil when there is none.
  package init(last: KSUID? = nil) { self.last = last }

  /// Observes an id generated elsewhere: the next id will be greater.
  ///
  /// - Parameter id: An id from a trusted source, at most ``tolerance`` ahead of the wall clock.
  package mutating func observe(_ id: KSUID) {
    if let last, last >= id { return }
    last = id
  }

  /// Generates the next id.
  ///
  /// - Parameters:
  ///   - unixSeconds: The wall clock in seconds of Unix time.
  ///   - generator: The source of the payload.
  /// - Throws: `KSUIDError`: `timeOutOfRange` when a timestamp cannot hold the time, `exhausted` when `last` is
  ///   ``KSUID/maximum``. The clock is unchanged then.
  package mutating func next(
    unixSeconds: Int64, using generator: inout some RandomNumberGenerator
  ) throws(KSUIDError) -> KSUID {
    let (sinceEpoch, overflow) = unixSeconds.subtractingReportingOverflow(KSUID.epoch)
    guard !overflow, let timestamp = UInt32(exactly: sinceEpoch) else {
      throw KSUIDError(.timeOutOfRange, text: "\(unixSeconds)")
    }
    let id =
      if let last, last.timestamp >= timestamp {
        try last.successor(using: &generator)
      } else {
        KSUID(freshAt: timestamp, using: &generator)
      }
    last = id
    return id
  }
}

extension KSUID {
  fileprivate init(freshAt timestamp: UInt32, using generator: inout some RandomNumberGenerator) {
    self.init(timestamp: timestamp, payloadHigh: generator.next(), payloadLow: generator.next())
  }

  /// An id that is greater by a random step.
  fileprivate func successor(using generator: inout some RandomNumberGenerator) throws(KSUIDError) -> KSUID {
    // The step is a random number + 1. The 1 is added as a carry, so that a step of 2^64 needs no wider type.
    if let next = adding(generator.next()) { return next }
    if timestamp < .max { return KSUID(freshAt: timestamp + 1, using: &generator) }
    // The last possible second: the smallest steps, until no id is left.
    if let next = adding(0) { return next }
    throw KSUIDError(.exhausted, text: description)
  }

  /// The id whose payload is greater by `step` + 1; nil when the payload overflows.
  private func adding(_ step: UInt64) -> KSUID? {
    let (low, overflow) = payloadLow.addingReportingOverflow(step)
    let (lowPlusOne, overflowOfOne) = low.addingReportingOverflow(1)
    // Both cannot overflow at once: after the first, `low` is at most 2^64 - 2.
    guard overflow || overflowOfOne else {
      return KSUID(timestamp: timestamp, payloadHigh: payloadHigh, payloadLow: lowPlusOne)
    }
    guard payloadHigh < .max else { return nil }
    return KSUID(timestamp: timestamp, payloadHigh: payloadHigh + 1, payloadLow: lowPlusOne)
  }
}
