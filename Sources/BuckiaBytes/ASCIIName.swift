/// Comparison of names as SQLite does it: the case of ASCII letters does not matter, all other bytes must be equal.
package enum ASCIIName {
  /// The name with A-Z in lower case.
  package static func folded(_ name: String) -> String {
    String(decoding: name.utf8.map(folded), as: UTF8.self)
  }

  /// The byte, in lower case if it is A-Z.
  @inlinable package static func folded(_ byte: UInt8) -> UInt8 { (0x41...0x5a).contains(byte) ? byte | 0x20 : byte }

  /// The name with a-z in upper case.
  package static func uppercased(_ name: String) -> String {
    String(decoding: name.utf8.map { (0x61...0x7a).contains($0) ? $0 & 0xdf : $0 }, as: UTF8.self)
  }

  /// True if two names are the same to SQLite.
  package static func matches(_ first: String, _ second: String) -> Bool {
    first.utf8.elementsEqual(second.utf8) { folded($0) == folded($1) }
  }
}
