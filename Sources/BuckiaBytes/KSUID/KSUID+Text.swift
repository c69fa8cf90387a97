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
