/// The text of an id: its 160 bits as a number in base 62, padded with zeros to 27 characters.
///
/// The digits are 0-9, A-Z and a-z, in the order of ASCII, so texts sort as ids do. Each id has one text, and each valid
/// text one id.
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
  /// - Parameter text: 27 characters from 0-9, A-Z and a-z.
  /// - Throws: `KSUIDError`: `wrongLength` for another length, `wrongCharacter` for another character, `aboveMaximum` for
  ///   a number of more than 160 bits.
  public init(parsing text: some StringProtocol) throws(KSUIDError) {
    // UTF-8, not characters: a combining mark or a digit of another script never passes for a digit.
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

  /// Reads an id from its text; nil when ``init(parsing:)`` throws.
  public init?(_ description: String) {
    do throws(KSUIDError) {
      self = try KSUID(parsing: description)
    } catch {
      return nil
    }
  }

  /// The id as one number, in 32-bit limbs from the most significant down.
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

/// Conversion of a 160-bit number to and from base 62. (`UInt128` could hold the payload, but needs macOS 15.)
private enum Base62 {
  static let limbCount = 5

  /// Divides the number by 62 in place.
  ///
  /// - Returns: The remainder, which is the last digit.
  static func divide(_ limbs: inout [UInt32]) -> UInt8 {
    var remainder: UInt64 = 0
    for index in limbs.indices {
      let part = remainder << 32 | UInt64(limbs[index])
      limbs[index] = UInt32(truncatingIfNeeded: part / 62)
      remainder = part % 62
    }
    return UInt8(truncatingIfNeeded: remainder)
  }

  /// Appends a digit to the number.
  ///
  /// - Returns: false when the number no longer fits.
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
