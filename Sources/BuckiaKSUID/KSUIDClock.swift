/// Makes ids that only ever grow: a hybrid logical clock of one replica.
///
/// Every id is greater than all that were made or observed before, even when the wall clock stands still or goes
/// back, so what a person does after reading someone's diff is ordered after that diff. Time and randomness are
/// passed in.
///
/// - When the wall clock is past the second of ``last``, the id is that second and 128 fresh random bits.
/// - Otherwise it is `last` plus a random step of 1 to 2^64: greater for certain, and whoever knows `last` still has
///   64 bits to guess. Ids stay in one second for as long as the payload has room (about 2^64 steps from a payload in
///   the middle); then they move on to the next second with a fresh payload, ahead of the wall clock.
///
/// ```swift
/// var clock = KSUIDClock(last: newestInLedger)
/// var random = SystemRandomNumberGenerator()
/// let id = try clock.next(unixSeconds: now, using: &random)
/// ```
public struct KSUIDClock: Sendable {
  /// How far ahead of the wall clock an id that was made elsewhere may be, in seconds: five minutes.
  ///
  /// Later ones must not be observed, or whoever made them sets the clock of everybody who does, for good.
  public static let tolerance: Int64 = 300

  /// The greatest id made or observed so far.
  public var last: KSUID?

  /// Starts a clock.
  ///
  /// - Parameter last: The greatest id known from before, if any.
  public init(last: KSUID? = nil) { self.last = last }

  /// Takes note of an id made elsewhere: the next one will be greater.
  ///
  /// Only ids that are trusted belong here: one far in the future takes the clock with it.
  public mutating func observe(_ id: KSUID) {
    if let last, last >= id { return }
    last = id
  }

  /// Makes the next id and remembers it.
  ///
  /// - Parameters:
  ///   - unixSeconds: The wall clock in seconds of Unix time.
  ///   - generator: Where the random part comes from.
  /// - Throws: `KSUIDError`: `timeOutOfRange` when an id cannot hold the second, `exhausted` when `last` is the greatest
  ///   id there is. The clock is unchanged then.
  public mutating func next(
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

  /// A greater id, by a random step.
  fileprivate func successor(using generator: inout some RandomNumberGenerator) throws(KSUIDError) -> KSUID {
    // The step is 1 + a random number: the 1 goes in as a carry, so a step of 2^64 needs no wider type.
    if let next = adding(generator.next()) { return next }
    if timestamp < .max { return KSUID(freshAt: timestamp + 1, using: &generator) }
    // The very last second: small steps until nothing is left.
    if let next = adding(0) { return next }
    throw KSUIDError(.exhausted, text: description)
  }

  /// The id whose payload is greater by `step` + 1, or nil when the payload has no room.
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
