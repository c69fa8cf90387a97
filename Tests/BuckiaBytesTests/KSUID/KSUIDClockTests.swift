import BuckiaBytes
import Testing
import TestSupport

@Suite struct KSUIDClockTests {
  private let now: Int64 = 1_700_000_000
  private var timestamp: UInt32 { UInt32(now - KSUID.epoch) }

  @Test("The first id has the given second and a random payload")
  func firstID() throws {
    var clock = KSUIDClock()
    var random = ConstantGenerator(value: 7)
    let id = try clock.next(unixSeconds: now, using: &random)
    #expect(id == KSUID(timestamp: timestamp, payloadHigh: 7, payloadLow: 7))
    #expect(clock.last == id)
  }

  @Test("The payload is random again when the second advances, even if it is smaller")
  func freshPayload() throws {
    var clock = KSUIDClock(last: KSUID(timestamp: timestamp - 1, payloadHigh: 9, payloadLow: 9))
    var random = ConstantGenerator(value: 1)
    let id = try clock.next(unixSeconds: now, using: &random)
    #expect(id == KSUID(timestamp: timestamp, payloadHigh: 1, payloadLow: 1))
  }

  @Test("Ids increase whatever the wall clock and the observed ids do", arguments: Array(0..<20) as [UInt64])
  func strictlyIncreasing(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var clock = KSUIDClock()
    var greatest = KSUID.minimum
    var seconds = now
    for _ in 0..<200 {
      switch Int.random(in: 0..<6, using: &random) {
      case 0: seconds += Int64.random(in: 0...3, using: &random)
      case 1: seconds -= Int64.random(in: 0...100, using: &random)
      case 2:
        let observed = KSUID(
          timestamp: UInt32(seconds - KSUID.epoch + Int64.random(in: -5...5, using: &random)),
          payloadHigh: Bool.random(using: &random) ? .max : random.next(),
          payloadLow: Bool.random(using: &random) ? .max : random.next())
        clock.observe(observed)
        greatest = max(greatest, observed)
      default: break
      }
      let id = try clock.next(unixSeconds: seconds, using: &random)
      #expect(id > greatest, "seed \(seed)")
      #expect(id.description > greatest.description, "seed \(seed)")
      greatest = id
    }
  }

  @Test("The step within a second is a random number from 1 to 2^64")
  func step() throws {
    let last = KSUID(timestamp: timestamp, payloadHigh: 5, payloadLow: 100)
    for (value, expected) in [
      (0, KSUID(timestamp: timestamp, payloadHigh: 5, payloadLow: 101)),
      (41, KSUID(timestamp: timestamp, payloadHigh: 5, payloadLow: 142)),
      (UInt64.max - 100, KSUID(timestamp: timestamp, payloadHigh: 6, payloadLow: 0)),
      (UInt64.max - 99, KSUID(timestamp: timestamp, payloadHigh: 6, payloadLow: 1)),
      (.max, KSUID(timestamp: timestamp, payloadHigh: 6, payloadLow: 100)),
    ] {
      var clock = KSUIDClock(last: last)
      var random = ConstantGenerator(value: value)
      #expect(try clock.next(unixSeconds: now, using: &random) == expected)
    }
  }

  @Test("A payload that overflows moves on to the next second")
  func carry() throws {
    var clock = KSUIDClock(last: KSUID(timestamp: timestamp, payloadHigh: .max, payloadLow: .max - 3))
    var random = ConstantGenerator(value: 3)
    let id = try clock.next(unixSeconds: now, using: &random)
    #expect(id == KSUID(timestamp: timestamp + 1, payloadHigh: 3, payloadLow: 3))
  }

  @Test("Observing a smaller id changes nothing")
  func olderIsIgnored() {
    let last = KSUID(timestamp: timestamp, payloadHigh: 1, payloadLow: 1)
    var clock = KSUIDClock(last: last)
    clock.observe(KSUID(timestamp: timestamp, payloadHigh: 1, payloadLow: 0))
    #expect(clock.last == last)
    clock.observe(KSUID(timestamp: timestamp, payloadHigh: 1, payloadLow: 2))
    #expect(clock.last == KSUID(timestamp: timestamp, payloadHigh: 1, payloadLow: 2))
  }

  @Test("Ids continue after an observed id in the future at once")
  func ahead() throws {
    var clock = KSUIDClock()
    let observed = KSUID(timestamp: timestamp + 200, payloadHigh: 1, payloadLow: 1)
    clock.observe(observed)
    var random = SeededGenerator(seed: 1)
    let id = try clock.next(unixSeconds: now, using: &random)
    #expect(id > observed)
    #expect(id.timestamp == timestamp + 200)
  }

  @Test("No id follows the maximum, and the id before it is followed by the maximum")
  func exhausted() throws {
    var random = SeededGenerator(seed: 1)
    var clock = KSUIDClock(last: KSUID(timestamp: .max, payloadHigh: .max, payloadLow: .max - 1))
    #expect(try clock.next(unixSeconds: now, using: &random) == KSUID.maximum)
    let error = try #require(throws: KSUIDError.self) { try clock.next(unixSeconds: now, using: &random) }
    #expect(error.code == .exhausted)
    #expect(error.description.contains("aWgEPTl1tmebfsQzFP4bxwgy80V"))
    #expect(clock.last == KSUID.maximum)
  }

  @Test(
    "A time that a timestamp cannot hold is refused, and the clock is unchanged",
    arguments: [
      Int64.min, -1, 0, KSUID.epoch - 1, KSUID.epoch + 0x1_0000_0000, 1_700_000_000_000, .max,
    ])
  func timeOutOfRange(seconds: Int64) throws {
    var random = SeededGenerator(seed: 1)
    var clock = KSUIDClock()
    let error = try #require(throws: KSUIDError.self) {
      try clock.next(unixSeconds: seconds, using: &random)
    }
    #expect(error.code == .timeOutOfRange)
    #expect(error.text == "\(seconds)")
    #expect(clock.last == nil)
  }

  @Test("The first and the last second are accepted", arguments: [KSUID.epoch, KSUID.epoch + 0xffff_ffff])
  func edges(seconds: Int64) throws {
    var random = SeededGenerator(seed: 1)
    var clock = KSUIDClock()
    #expect(try clock.next(unixSeconds: seconds, using: &random).unixSeconds == seconds)
  }
}
