/// A K-sortable unique identifier: a timestamp of 4 bytes and a random payload of 16 bytes.
///
/// Ids name diff files and order them. Ids, their ``bytes`` and their text sort in the same order, so a sorted folder
/// listing is a sorted list of ids. The format is that of [segmentio/ksuid](https://github.com/segmentio/ksuid).
///
/// ```swift
/// let id = try KSUID(parsing: "0ujtsYcgvSTl8PAuAdqWYSMnLOv")
/// print(id.unixSeconds)  // 1507608047
/// ```
public struct KSUID: Hashable, Sendable {
  /// Seconds since ``epoch``.
  public let timestamp: UInt32
  /// The first 8 bytes of the payload, big-endian.
  public let payloadHigh: UInt64
  /// The last 8 bytes of the payload, big-endian.
  public let payloadLow: UInt64

  /// The start of timestamps in seconds of Unix time: 13 May 2014, 16:53:20 UTC.
  public static let epoch: Int64 = 1_400_000_000
  /// The size of an id in bytes.
  public static let byteCount = 20
  /// The length of the text of an id in characters.
  public static let textLength = 27
  /// The smallest id: all bits are zero.
  public static let minimum = KSUID(timestamp: 0, payloadHigh: 0, payloadLow: 0)
  /// The greatest id: all bits are one. Its text is `aWgEPTl1tmebfsQzFP4bxwgy80V`.
  public static let maximum = KSUID(timestamp: .max, payloadHigh: .max, payloadLow: .max)

  /// Creates an id from its parts.
  ///
  /// - Parameters:
  ///   - timestamp: Seconds since ``epoch``.
  ///   - payloadHigh: The first 8 bytes of the payload, big-endian.
  ///   - payloadLow: The last 8 bytes of the payload, big-endian.
  public init(timestamp: UInt32, payloadHigh: UInt64, payloadLow: UInt64) {
    self.timestamp = timestamp
    self.payloadHigh = payloadHigh
    self.payloadLow = payloadLow
  }

  /// The time of the id in seconds of Unix time.
  public var unixSeconds: Int64 { Self.epoch + Int64(timestamp) }
}

extension KSUID: Identifiable {
  /// Itself.
  public var id: KSUID { self }
}

extension KSUID: Comparable {
  /// True if an id sorts before another: by timestamp, then by payload.
  public static func < (one: KSUID, other: KSUID) -> Bool {
    (one.timestamp, one.payloadHigh, one.payloadLow) < (other.timestamp, other.payloadHigh, other.payloadLow)
  }
}

// MARK: Bytes

extension KSUID {
  /// Reads an id from 20 bytes: the timestamp, then the payload, both big-endian.
  ///
  /// - Parameter bytes: The bytes, exactly ``byteCount`` of them.
  /// - Throws: `KSUIDError` with `wrongByteCount`.
  public init(bytes: [UInt8]) throws(KSUIDError) {
    guard bytes.count == Self.byteCount else {
      throw KSUIDError(.wrongByteCount, text: "\(bytes.count)")
    }
    func number(_ range: Range<Int>) -> UInt64 { bytes[range].reduce(0) { $0 << 8 | UInt64($1) } }
    self.init(
      timestamp: UInt32(truncatingIfNeeded: number(0..<4)),
      payloadHigh: number(4..<12), payloadLow: number(12..<20))
  }

  /// The id as 20 bytes: the timestamp, then the payload, both big-endian.
  public var bytes: [UInt8] {
    func bigEndian(_ number: some FixedWidthInteger) -> [UInt8] {
      withUnsafeBytes(of: number.bigEndian) { Array($0) }
    }
    return bigEndian(timestamp) + bigEndian(payloadHigh) + bigEndian(payloadLow)
  }
}

extension KSUID: Codable {
  /// Reads the text.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let id = KSUID(try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "it is no KSUID")
    }
    self = id
  }

  /// Writes the text.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
}

/// The text of an id: its 160 bits as a number in base 62, padded with zeros to 27 characters.
///
/// The digits are 0-9, A-Z and a-z, in the order of ASCII, so texts sort as ids do. Each id has one text, and each valid
/// text one id.
extension KSUID: LosslessStringConvertible {
  /// The 27 characters of the id.
  public var description: String {
    var limbs = self.limbs
    var digits = [UInt8](repeating: 0, count: Self.textLength)
    var place = digits.count
    while place > 0 {
      var group = Base62.divide(&limbs)
      for _ in 0..<min(place, Base62.groupLength) {
        place -= 1
        digits[place] = Base62.character(of: UInt8(group % 62))
        group /= 62
      }
    }
    return String(decoding: digits, as: UTF8.self)
  }

  /// Reads an id from its text.
  ///
  /// - Parameter text: 27 characters from 0-9, A-Z and a-z.
  /// - Throws: `KSUIDError`: `wrongLength` for another length, `wrongCharacter` for another character, `aboveMaximum` for
  ///   a number of more than 160 bits.
  public init(parsing text: some StringProtocol) throws(KSUIDError) {
    // UTF-8, not characters: a combining mark or a digit of another script never passes for a digit.
    let characters = text.utf8
    guard characters.count == Self.textLength else {
      throw KSUIDError(.wrongLength, text: text)
    }
    var limbs = Base62.Limbs(0, 0, 0, 0, 0)
    var group: UInt64 = 0
    var scale: UInt64 = 1
    var place = 0
    for character in characters {
      guard let digit = Base62.digit(of: character) else { throw KSUIDError(.wrongCharacter, text: text) }
      group = group * 62 + UInt64(digit)
      scale *= 62
      place += 1
      guard scale == Base62.groupScale || place == Self.textLength else { continue }
      guard Base62.append(group, times: scale, to: &limbs) else { throw KSUIDError(.aboveMaximum, text: text) }
      (group, scale) = (0, 1)
    }
    self.init(limbs: limbs)
  }

  /// Reads an id from its text; nil when ``init(parsing:)`` throws.
  public init?(_ description: String) {
    do throws(KSUIDError) {
      self = try KSUID(parsing: description)
    } catch {
      return nil
    }
  }

  /// The id as one number.
  private var limbs: Base62.Limbs {
    (
      timestamp,
      UInt32(truncatingIfNeeded: payloadHigh >> 32), UInt32(truncatingIfNeeded: payloadHigh),
      UInt32(truncatingIfNeeded: payloadLow >> 32), UInt32(truncatingIfNeeded: payloadLow)
    )
  }

  private init(limbs: Base62.Limbs) {
    self.init(
      timestamp: limbs.0,
      payloadHigh: UInt64(limbs.1) << 32 | UInt64(limbs.2),
      payloadLow: UInt64(limbs.3) << 32 | UInt64(limbs.4))
  }
}

/// Conversion of a 160-bit number to and from base 62, several digits at a time. (`UInt128` could hold the payload, but needs
/// macOS 15.)
private enum Base62 {
  /// A number in 32-bit limbs from the most significant down. They are no array: ids are read by the thousand.
  typealias Limbs = (UInt32, UInt32, UInt32, UInt32, UInt32)

  /// How many digits fit in a limb, and 62 to that power.
  static let groupLength = 5
  static let groupScale: UInt64 = 62 * 62 * 62 * 62 * 62

  /// Takes the last group of digits off the number.
  ///
  /// - Returns: The group, as a number.
  static func divide(_ limbs: inout Limbs) -> UInt64 {
    var remainder: UInt64 = 0
    func divide(_ limb: inout UInt32) {
      let part = remainder << 32 | UInt64(limb)
      limb = UInt32(truncatingIfNeeded: part / groupScale)
      remainder = part % groupScale
    }
    divide(&limbs.0)
    divide(&limbs.1)
    divide(&limbs.2)
    divide(&limbs.3)
    divide(&limbs.4)
    return remainder
  }

  /// Appends digits to the number.
  ///
  /// - Parameters:
  ///   - group: The digits, as a number.
  ///   - scale: 62 to the power of how many there are, at most a group.
  /// - Returns: false when the number no longer fits.
  static func append(_ group: UInt64, times scale: UInt64, to limbs: inout Limbs) -> Bool {
    var carry = group
    func multiply(_ limb: inout UInt32) {
      let part = UInt64(limb) * scale + carry
      limb = UInt32(truncatingIfNeeded: part)
      carry = part >> 32
    }
    multiply(&limbs.4)
    multiply(&limbs.3)
    multiply(&limbs.2)
    multiply(&limbs.1)
    multiply(&limbs.0)
    return carry == 0
  }

  static func character(of digit: UInt8) -> UInt8 {
    switch digit {
    case 0..<10: UInt8(ascii: "0") + digit
    case 10..<36: UInt8(ascii: "A") + digit - 10
    default: UInt8(ascii: "a") + digit - 36
    }
  }

  static func digit(of character: UInt8) -> UInt8? {
    switch character {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): character - UInt8(ascii: "A") + 10
    case UInt8(ascii: "a")...UInt8(ascii: "z"): character - UInt8(ascii: "a") + 36
    default: nil
    }
  }
}

/// Generates strictly increasing ids: the hybrid logical clock of one replica.
///
/// Each id is greater than all ids that were generated or observed before, even when the wall clock stops or goes back. So
/// a change that a person makes after receiving a diff is ordered after that diff. Time and randomness are parameters.
///
/// - When the wall clock is past the second of ``last``, the id has the wall clock's second and 128 random bits.
/// - Otherwise the id is `last` plus a random number from 1 to 2^64. With `last` known, 64 bits are left to guess. When
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

/// Why bytes or text are not an id, or why no id can be generated.
public struct KSUIDError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The kinds of error.
  public enum Code: String, Sendable {
    /// The number of bytes is not 20.
    case wrongByteCount
    /// The length of the text is not 27 characters.
    case wrongLength
    /// The text contains a character other than 0-9, A-Z and a-z.
    case wrongCharacter
    /// The text is a number of more than 160 bits.
    case aboveMaximum
    /// The timestamp of an id cannot hold the time.
    case timeOutOfRange
    /// The greatest possible id has been used.
    case exhausted
  }

  /// The kind of error.
  public let code: Code
  /// The invalid text, count or time: at most 60 characters. Everything but printable ASCII is escaped, because the text
  /// may be the name of a file from another person.
  public let text: String

  init(_ code: Code, text: some StringProtocol) {
    self.code = code
    var shown = ""
    for (index, scalar) in text.unicodeScalars.prefix(61).enumerated() {
      if index == 60 {
        shown += "…"
      } else if (0x20..<0x7f).contains(scalar.value), scalar != "\"", scalar != "\\" {
        shown.unicodeScalars.append(scalar)
      } else {
        shown += "\\u{\(String(scalar.value, radix: 16))}"
      }
    }
    self.text = shown
  }

  /// What is wrong and what would be valid, in English.
  public var description: String {
    switch code {
    case .wrongByteCount: "an id has 20 bytes, not \(text)"
    case .wrongLength: "\"\(text)\" is not an id: an id has 27 characters"
    case .wrongCharacter: "\"\(text)\" is not an id: an id has only the characters 0-9, A-Z and a-z"
    case .aboveMaximum: "\"\(text)\" is not an id: the greatest one is \(KSUID.maximum)"
    case .timeOutOfRange:
      "no id can have the Unix time \(text): ids reach from May 2014 to June 2150; check the clock"
    case .exhausted: "no id is greater than \(text), which has been seen: check where that id came from"
    }
  }
}
