/// The one tar header that a member can have in a diff file, made from its name and size.
///
/// The reader makes the header it expects and compares all 512 bytes, so nothing of a header is ever interpreted but
/// the size of the first: there is no type, mode, link, owner or extension to get wrong. The layout is POSIX ustar
/// (<https://pubs.opengroup.org/onlinepubs/9699919799/utilities/pax.html#tag_20_92_13_06>).
enum TarHeader {
  /// Headers, and the multiple that contents are padded to.
  static let blockBytes = 512
  /// The archive ends with two blocks of zeros.
  static let endBytes = 2 * blockBytes

  private static let sizeField = 124..<136

  /// The header of a member. `name` has at most 100 bytes, `size` at most ``DiffFileLimits/memberBytes``.
  static func bytes(name: String, size: Int64) -> [UInt8] {
    var header = [UInt8](repeating: 0, count: blockBytes)
    func put(_ text: String, at offset: Int) {
      for (index, byte) in text.utf8.enumerated() { header[offset + index] = byte }
    }
    put(String(decoding: name.utf8.prefix(MemberName.byteLimit), as: UTF8.self), at: 0)
    put("0000644", at: 100)  // mode
    put("0000000", at: 108)  // owner
    put("0000000", at: 116)  // group
    put(octal(size, digits: 11), at: sizeField.lowerBound)
    put("00000000000", at: 136)  // time
    put("        ", at: 148)  // checksum, counted as spaces
    put("0", at: 156)  // a regular file
    put("ustar", at: 257)
    put("00", at: 263)
    put("0000000", at: 329)  // device numbers
    put("0000000", at: 337)
    let sum = header.reduce(0) { $0 + Int64($1) }
    put(octal(sum, digits: 6), at: 148)
    header[154] = 0
    return header
  }

  /// The size that a header claims, if its size field is eleven octal digits and a NUL.
  static func claimedSize(_ header: [UInt8]) -> Int64? {
    guard header.count == blockBytes, header[sizeField.upperBound - 1] == 0 else { return nil }
    var size: Int64 = 0
    for byte in header[sizeField].dropLast() {
      guard (UInt8(ascii: "0")...UInt8(ascii: "7")).contains(byte) else { return nil }
      size = size << 3 | Int64(byte - UInt8(ascii: "0"))
    }
    return size
  }

  /// How many zeros follow a content of that size.
  static func padding(after size: Int64) -> Int {
    let rest = Int(size % Int64(blockBytes))
    return rest == 0 ? 0 : blockBytes - rest
  }

  private static func octal(_ number: Int64, digits: Int) -> String {
    let text = String(number, radix: 8)
    return String(repeating: "0", count: max(0, digits - text.count)) + text
  }
}
