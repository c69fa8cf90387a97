/// Bytes as text, three bytes in four characters, read only as they would be written.
///
/// <https://www.rfc-editor.org/rfc/rfc4648.html>, section 4.
enum Base64 {
  /// The number of characters in a line of a long text.
  static let lineLength = 64
  /// The number of bytes in such a line.
  static let lineBytes = 48

  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
  private static let padding = UInt8(ascii: "=")
  /// The value of each character; 255 for the others.
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

  /// Decodes the output of ``encode(_:)`` and appends the bytes. Returns false for any other text.
  ///
  /// - Returns: True if it was that; the bytes are of no use otherwise.
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

  /// Decodes the output of ``encode(_:)``; nil for any other text.
  static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    return decode(text, into: &bytes) ? bytes : nil
  }

  /// Decodes the output of ``encodePadded(_:)`` and appends the bytes. Returns false for any other text.
  ///
  /// - Returns: True if it was that; the bytes are of no use otherwise.
  static func decodePadded(_ text: [UInt8], into bytes: inout [UInt8]) -> Bool {
    guard text.count % 4 == 0 else { return false }
    var end = text.count
    while end > 0, text.count - end < 2, text[end - 1] == padding { end -= 1 }
    return decode(text[..<end], into: &bytes)
  }
}

/// Keys as text: a prefix, the digit 1, five bits a character, and a checksum of six characters.
///
/// <https://github.com/bitcoin/bips/blob/master/bip-0173.mediawiki>, without its limit on the length.
enum Bech32 {
  private static let alphabet = Array("qpzry9x8gf2tvdw0s3jn54khce6mua7l".utf8)
  private static let separator = UInt8(ascii: "1")
  private static let checksumLength = 6
  /// The value of each character; 255 for the others.
  private static let values: [UInt8] = {
    var values = [UInt8](repeating: 255, count: 256)
    for (value, character) in alphabet.enumerated() { values[Int(character)] = UInt8(value) }
    return values
  }()

  /// Writes bytes in small letters.
  ///
  /// - Parameter prefix: The prefix of the text, in lowercase.
  static func encode(_ bytes: [UInt8], prefix: String) -> String {
    let data = fiveBitGroups(of: bytes)
    let sum = checksum(of: data + [UInt8](repeating: 0, count: checksumLength), prefix: Array(prefix.utf8)) ^ 1
    let check = (0..<checksumLength).map { UInt8(truncatingIfNeeded: sum >> UInt32(5 * (5 - $0))) & 31 }
    return String(decoding: Array(prefix.utf8) + [separator] + (data + check).map { alphabet[Int($0)] }, as: UTF8.self)
  }

  /// Reads a text.
  ///
  /// - Returns: The prefix in lowercase, true for a text in capitals, and the bytes; nil for anything but the exact
  ///   output of ``encode(_:prefix:)`` or the same in capitals.
  static func decode(_ text: String) -> (prefix: String, isUppercase: Bool, bytes: [UInt8])? {
    var characters = Array(text.utf8)
    guard characters.allSatisfy({ (33...126).contains($0) }) else { return nil }
    let isUppercase = characters.contains { (65...90).contains($0) }
    if isUppercase {
      guard !characters.contains(where: { (97...122).contains($0) }) else { return nil }
      characters = characters.map { (65...90).contains($0) ? $0 + 32 : $0 }
    }
    guard let end = characters.lastIndex(of: separator), end > 0, characters.count - end > checksumLength else {
      return nil
    }
    let prefix = Array(characters[..<end])
    let data = characters[(end + 1)...].map { values[Int($0)] }
    guard !data.contains(255), checksum(of: data, prefix: prefix) == 1,
      let bytes = bytes(of: data.dropLast(checksumLength))
    else { return nil }
    return (String(decoding: prefix, as: UTF8.self), isUppercase, bytes)
  }

  private static func fiveBitGroups(of bytes: [UInt8]) -> [UInt8] {
    var groups: [UInt8] = []
    var (pending, count): (UInt32, Int) = (0, 0)
    for byte in bytes {
      pending = pending << 8 | UInt32(byte)
      count += 8
      while count >= 5 {
        count -= 5
        groups.append(UInt8(truncatingIfNeeded: pending >> UInt32(count)) & 31)
      }
    }
    if count > 0 { groups.append(UInt8(truncatingIfNeeded: pending << UInt32(5 - count)) & 31) }
    return groups
  }

  private static func bytes(of groups: ArraySlice<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    var (pending, count): (UInt32, Int) = (0, 0)
    for group in groups {
      pending = pending << 5 | UInt32(group)
      count += 5
      if count >= 8 {
        count -= 8
        bytes.append(UInt8(truncatingIfNeeded: pending >> UInt32(count)))
      }
    }
    // Remaining bits are padding, and must be zero.
    return count < 5 && pending & (1 << UInt32(count) - 1) == 0 ? bytes : nil
  }

  private static func checksum(of data: [UInt8], prefix: [UInt8]) -> UInt32 {
    let generators: [UInt32] = [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3]
    var sum: UInt32 = 1
    for value in prefix.map({ $0 >> 5 }) + [0] + prefix.map({ $0 & 31 }) + data {
      let top = sum >> 25
      sum = (sum & 0x1ff_ffff) << 5 ^ UInt32(value)
      for (bit, generator) in generators.enumerated() where top >> UInt32(bit) & 1 == 1 { sum ^= generator }
    }
    return sum
  }
}
