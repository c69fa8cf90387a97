/// SQLite's way with names: ASCII letters match in either case, everything else byte for byte.
public enum ASCIIName {
  /// The name with A–Z folded to a–z.
  public static func folded(_ name: String) -> String {
    String(decoding: name.utf8.map(folded), as: UTF8.self)
  }

  /// The byte, a–z for A–Z.
  public static func folded(_ byte: UInt8) -> UInt8 { (0x41...0x5a).contains(byte) ? byte | 0x20 : byte }

  /// The name with a–z folded to A–Z.
  public static func uppercased(_ name: String) -> String {
    String(decoding: name.utf8.map { (0x61...0x7a).contains($0) ? $0 & 0xdf : $0 }, as: UTF8.self)
  }

  /// Whether SQLite takes both for the same name.
  public static func matches(_ first: String, _ second: String) -> Bool {
    first.utf8.elementsEqual(second.utf8) { folded($0) == folded($1) }
  }
}

/// Text as SQL source.
public enum SQLText {
  /// A name in double quotes.
  public static func identifier(_ name: String) -> String { quote(name, with: "\"") }

  /// A text literal in single quotes.
  public static func literal(_ text: String) -> String { quote(text, with: "'") }

  private static func quote(_ text: String, with mark: Character) -> String {
    var quoted = String(mark)
    for character in text.unicodeScalars {
      quoted.unicodeScalars.append(character)
      if Character(character) == mark { quoted.append(mark) }
    }
    quoted.append(mark)
    return quoted
  }
}
