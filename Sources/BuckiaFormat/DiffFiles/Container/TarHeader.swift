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

  /// What all headers have in common: mode, owner and group, time, type, magic, version and device numbers.
  private static let template: [UInt8] = {
    var header = [UInt8](repeating: 0, count: blockBytes)
    let fields: [(Int, String)] = [
      (100, "0000644"), (108, "0000000"), (116, "0000000"), (136, "00000000000"), (156, "0"), (257, "ustar"),
      (263, "00"), (329, "0000000"), (337, "0000000"),
    ]
    for (offset, text) in fields { header.replaceSubrange(offset..<offset + text.utf8.count, with: text.utf8) }
    return header
  }()
  private static let checksumField = 148..<156
  /// The sum of the template's bytes, with the checksum counted as spaces.
  private static let templateSum = template.reduce(Int64(checksumField.count * 0x20)) { $0 + Int64($1) }

  /// The header of a member. `name` has at most 100 bytes, `size` at most ``DiffFileLimits/memberBytes``.
  static func bytes(name: String, size: Int64) -> [UInt8] {
    var header = template
    var sum = templateSum
    func put(_ byte: UInt8, at offset: Int) {
      header[offset] = byte
      sum += Int64(byte)
    }
    var offset = 0
    for byte in name.utf8.prefix(MemberName.byteLimit) {
      put(byte, at: offset)
      offset += 1
    }
    for place in 0..<11 { put(octalDigit(size, place), at: sizeField.lowerBound + 10 - place) }
    for place in 0..<6 { header[checksumField.lowerBound + 5 - place] = octalDigit(sum, place) }
    header[checksumField.upperBound - 1] = UInt8(ascii: " ")
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

  /// The octal digit of a number that stands at a place, the last being 0.
  private static func octalDigit(_ number: Int64, _ place: Int) -> UInt8 {
    UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number >> (3 * Int64(place)) & 7)
  }
}
