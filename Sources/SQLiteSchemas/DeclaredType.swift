/// The declared type of a column, which becomes part of a CREATE TABLE as it is written.
///
/// See <https://sqlite.org/syntax/type-name.html>.
public enum DeclaredType {
  /// The longest declared type that travels, in bytes.
  public static let byteLimit = 1024

  /// Words that would begin a constraint instead of being part of the type.
  private static let constraintWords: Set<String> = [
    "AS", "ALWAYS", "CHECK", "COLLATE", "CONSTRAINT", "DEFAULT", "DEFERRABLE", "FOREIGN", "GENERATED", "INITIALLY",
    "NOT", "NULL", "ON", "PRIMARY", "REFERENCES", "UNIQUE",
  ]

  /// Whether the text is nothing but a type: words, then perhaps one or two numbers in parentheses. Empty is plain.
  ///
  /// Types come from strangers. What this accepts can stand behind a column's name and means only a type there:
  /// no quotes, comments or operators, and no word that opens a constraint.
  public static func isPlain(_ text: String) -> Bool {
    guard text.utf8.count <= byteLimit else { return false }
    var rest = Array(text.utf8)[...]
    var words = 0
    skipSpace(&rest)
    while let first = rest.first, isWordByte(first) {
      let word = rest.prefix(while: isWordByte)
      let isConstraint = constraintWords.contains(ASCIIName.uppercased(String(decoding: word, as: UTF8.self)))
      guard !isConstraint, !isDigit(first) else { return false }
      rest = rest.dropFirst(word.count)
      words += 1
      skipSpace(&rest)
    }
    guard let mark = rest.first else { return true }
    guard words > 0, mark == UInt8(ascii: "(") else { return false }
    rest = rest.dropFirst()
    guard skipNumber(&rest) else { return false }
    if rest.first == UInt8(ascii: ",") {
      rest = rest.dropFirst()
      guard skipNumber(&rest) else { return false }
    }
    guard rest.first == UInt8(ascii: ")") else { return false }
    rest = rest.dropFirst()
    skipSpace(&rest)
    return rest.isEmpty
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

  private static func isWordByte(_ byte: UInt8) -> Bool {
    isDigit(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte) || byte == UInt8(ascii: "_")
      || byte >= 0x80
  }

  private static func skipSpace(_ rest: inout ArraySlice<UInt8>) {
    rest = rest.drop { [0x20, 0x09, 0x0a, 0x0c, 0x0d].contains($0) }
  }

  /// Steps over a number with an optional sign, and the space around it.
  private static func skipNumber(_ rest: inout ArraySlice<UInt8>) -> Bool {
    skipSpace(&rest)
    if let sign = rest.first, sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") { rest = rest.dropFirst() }
    let whole = rest.prefix(while: isDigit)
    rest = rest.dropFirst(whole.count)
    if rest.first == UInt8(ascii: ".") {
      rest = rest.dropFirst()
      rest = rest.drop(while: isDigit)
    }
    skipSpace(&rest)
    return !whole.isEmpty
  }
}
