/// Quoting for SQL.
package enum SQLText {
  /// The name in double quotes.
  package static func identifier(_ name: String) -> String { quote(name, with: "\"") }

  /// The text in single quotes.
  package static func literal(_ text: String) -> String { quote(text, with: "'") }

  private static func quote(_ text: String, with mark: Character) -> String {
    var quoted = String(mark)
    for character in text.unicodeScalars {
      quoted.unicodeScalars.append(character)
      if Character(character) == mark { quoted.append(mark) }
    }
    quoted.append(mark)
    return quoted
  }

  /// The number that text stands for where a column stores numbers, without the spaces around it; nil when it stands for
  /// none. See <https://sqlite.org/datatype3.html#type_affinity>.
  package static func trimmedNumber(_ text: [UInt8]) -> String? {
    let isSpace: (UInt8) -> Bool = { $0 == 0x20 || (0x09...0x0d).contains($0) }
    var number = text.drop(while: isSpace)
    while let last = number.last, isSpace(last) { number.removeLast() }
    let hasSign = number.first == 0x2b || number.first == 0x2d
    return isDecimal(hasSign ? number.dropFirst() : number) ? String(decoding: number, as: UTF8.self) : nil
  }

  /// Whether the text is a decimal number without a sign: digits, perhaps with a fraction and an exponent.
  package static func isDecimal(_ text: ArraySlice<UInt8>) -> Bool {
    let isDigit: (UInt8) -> Bool = { (0x30...0x39).contains($0) }
    let whole = text.prefix(while: isDigit).count
    var rest = text.dropFirst(whole)
    var fraction = 0
    if rest.first == 0x2e {
      rest = rest.dropFirst()
      fraction = rest.prefix(while: isDigit).count
      rest = rest.dropFirst(fraction)
    }
    guard whole + fraction > 0 else { return false }
    guard let mark = rest.first else { return true }
    guard mark == 0x65 || mark == 0x45 else { return false }
    rest = rest.dropFirst()
    if rest.first == 0x2b || rest.first == 0x2d { rest = rest.dropFirst() }
    return !rest.isEmpty && rest.allSatisfy(isDigit)
  }
}
