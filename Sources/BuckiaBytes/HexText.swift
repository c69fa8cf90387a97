/// Bytes as hexadecimal text. What we write is lowercase; what we read must be.
package enum HexText {
  private static let digits = Array("0123456789abcdef".utf8)

  /// Two lowercase digits for each byte.
  package static func lowercase(_ bytes: some Sequence<UInt8>) -> String {
    var text: [UInt8] = []
    text.reserveCapacity(2 * bytes.underestimatedCount)
    for byte in bytes {
      text.append(digits[Int(byte >> 4)])
      text.append(digits[Int(byte & 15)])
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// The bytes that lowercase text stands for, or nil when it is anything else.
  package static func bytes(_ text: String) -> [UInt8]? {
    var bytes: [UInt8] = []
    var high: UInt8?
    for character in text.utf8 {
      guard let digit = value(of: character), !(0x41...0x46).contains(character) else { return nil }
      if let first = high {
        bytes.append(first << 4 | digit)
        high = nil
      } else {
        high = digit
      }
    }
    return high == nil ? bytes : nil
  }

  /// The value of one digit of either case.
  static func value(of digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}

/// A value that is a fixed number of bytes and travels as lowercase hexadecimal.
package protocol FixedBytes: Hashable, Sendable, CustomStringConvertible {
  /// How many bytes every value has.
  static var byteCount: Int { get }
  /// The bytes.
  var bytes: [UInt8] { get }
  /// Makes a value of bytes that were counted.
  init(checked bytes: [UInt8])
}

extension FixedBytes {
  /// Makes a value of exactly ``byteCount`` bytes; nil for any other number.
  package init?(_ bytes: [UInt8]) {
    guard bytes.count == Self.byteCount else { return nil }
    self.init(checked: bytes)
  }

  /// Reads exactly two lowercase digits for each byte.
  package init?(hex: String) {
    guard hex.utf8.count == 2 * Self.byteCount, let bytes = HexText.bytes(hex) else { return nil }
    self.init(bytes)
  }

  /// Two lowercase digits for each byte.
  package var description: String { HexText.lowercase(bytes) }

  /// A random value.
  package static func random(using generator: inout some RandomNumberGenerator) -> Self? {
    Self((0..<byteCount).map { _ in UInt8.random(in: 0...255, using: &generator) })
  }
}
