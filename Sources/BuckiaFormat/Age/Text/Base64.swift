/// Bytes as text, three bytes in four characters, read only as they would be written.
///
/// <https://www.rfc-editor.org/rfc/rfc4648.html>, section 4.
enum Base64 {
  /// How many characters of a long text stand in a line.
  static let lineLength = 64
  /// How many bytes such a line holds.
  static let lineBytes = 48

  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
  private static let padding = UInt8(ascii: "=")
  /// What each character stands for, and 255 for those that stand for nothing.
  private static let values: [UInt8] = {
    var values = [UInt8](repeating: 255, count: 256)
    for (value, character) in alphabet.enumerated() { values[Int(character)] = UInt8(value) }
    return values
  }()

  /// Writes bytes without padding, as headers have them.
  static func encode(_ bytes: some Collection<UInt8>) -> [UInt8] {
    var text: [UInt8] = []
    text.reserveCapacity((bytes.count * 4 + 2) / 3)
    var (pending, count): (UInt32, UInt32) = (0, 0)
    for byte in bytes {
      pending = pending << 8 | UInt32(byte)
      count += 8
      while count >= 6 {
        count -= 6
        text.append(alphabet[Int(pending >> count & 63)])
      }
    }
    if count > 0 { text.append(alphabet[Int(pending << (6 - count) & 63)]) }
    return text
  }

  /// Writes bytes and fills up the last four characters, as armor has them.
  static func encodePadded(_ bytes: some Collection<UInt8>) -> [UInt8] {
    var text = encode(bytes)
    while text.count % 4 != 0 { text.append(padding) }
    return text
  }

  /// Reads what ``encode(_:)`` has written, and adds it to some bytes.
  ///
  /// - Returns: Whether it was that; the bytes are of no use otherwise.
  static func decode(_ text: some Collection<UInt8>, into bytes: inout [UInt8]) -> Bool {
    var (pending, count): (UInt32, UInt32) = (0, 0)
    for character in text {
      let value = values[Int(character)]
      guard value < 64 else { return false }
      pending = pending << 6 | UInt32(value)
      count += 6
      if count >= 8 {
        count -= 8
        bytes.append(UInt8(truncatingIfNeeded: pending >> count))
      }
    }
    // Six bits alone are no byte, and bits that fill up the last character are 0.
    return count < 6 && pending & (1 << count - 1) == 0
  }

  /// Reads what ``encode(_:)`` has written; nil for anything else.
  static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    return decode(text, into: &bytes) ? bytes : nil
  }

  /// Reads what ``encodePadded(_:)`` has written, and adds it to some bytes.
  ///
  /// - Returns: Whether it was that; the bytes are of no use otherwise.
  static func decodePadded(_ text: [UInt8], into bytes: inout [UInt8]) -> Bool {
    guard text.count % 4 == 0 else { return false }
    var end = text.count
    while end > 0, text.count - end < 2, text[end - 1] == padding { end -= 1 }
    return decode(text[..<end], into: &bytes)
  }
}
