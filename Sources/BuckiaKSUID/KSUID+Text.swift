/// The text of an id: the 160-bit number in base 62, digits before capitals before small letters (their order in
/// ASCII, which is what makes text order and byte order agree), padded with zeros to 27 characters.
///
/// Each id has one text and each accepted text one id, so texts can be compared instead of ids.
extension KSUID: LosslessStringConvertible {
  /// The 27 characters of the id.
  public var description: String {
    var limbs = self.limbs
    var digits = [UInt8](repeating: 0, count: Self.textLength)
    for place in digits.indices.reversed() {
      digits[place] = Base62.character(of: Base62.divide(&limbs))
    }
    return String(decoding: digits, as: UTF8.self)
  }

  /// Reads an id from its text.
  ///
  /// - Throws: `KSUIDError`: `wrongLength` unless it is 27 characters long, `wrongCharacter` for anything but 0-9, A-Z
  ///   and a-z, `aboveMaximum` for a number of more than 160 bits.
  public init(parsing text: some StringProtocol) throws(KSUIDError) {
    // UTF-8 is counted and read, not characters: a combining mark or another script's digit never passes for a digit.
    let characters = text.utf8
    guard characters.count == Self.textLength else {
      throw KSUIDError(.wrongLength, text: text)
    }
    var limbs = [UInt32](repeating: 0, count: Base62.limbCount)
    for character in characters {
      guard let digit = Base62.digit(of: character) else { throw KSUIDError(.wrongCharacter, text: text) }
      guard Base62.append(digit, to: &limbs) else { throw KSUIDError(.aboveMaximum, text: text) }
    }
    self.init(limbs: limbs)
  }

  /// Reads an id from its text, or gives nil where ``init(parsing:)`` would say what is wrong.
  public init?(_ description: String) {
    do throws(KSUIDError) {
      self = try KSUID(parsing: description)
    } catch {
      return nil
    }
  }

  /// The id as one number, in 32-bit pieces from the most significant one down.
  private var limbs: [UInt32] {
    [
      timestamp,
      UInt32(truncatingIfNeeded: payloadHigh >> 32), UInt32(truncatingIfNeeded: payloadHigh),
      UInt32(truncatingIfNeeded: payloadLow >> 32), UInt32(truncatingIfNeeded: payloadLow),
    ]
  }

  private init(limbs: [UInt32]) {
    self.init(
      timestamp: limbs[0],
      payloadHigh: UInt64(limbs[1]) << 32 | UInt64(limbs[2]),
      payloadLow: UInt64(limbs[3]) << 32 | UInt64(limbs[4]))
  }
}

/// Arithmetic on a 160-bit number in base 62. (`UInt128` would do for the payload, but needs macOS 15.)
private enum Base62 {
  static let limbCount = 5

  /// Divides the number by 62 in place and returns the remainder: its last digit.
  static func divide(_ limbs: inout [UInt32]) -> UInt8 {
    var remainder: UInt64 = 0
    for index in limbs.indices {
      let part = remainder << 32 | UInt64(limbs[index])
      limbs[index] = UInt32(truncatingIfNeeded: part / 62)
      remainder = part % 62
    }
    return UInt8(truncatingIfNeeded: remainder)
  }

  /// Puts a digit behind the number; false when it no longer fits.
  static func append(_ digit: UInt8, to limbs: inout [UInt32]) -> Bool {
    var carry = UInt64(digit)
    for index in limbs.indices.reversed() {
      let part = UInt64(limbs[index]) * 62 + carry
      limbs[index] = UInt32(truncatingIfNeeded: part)
      carry = part >> 32
    }
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
