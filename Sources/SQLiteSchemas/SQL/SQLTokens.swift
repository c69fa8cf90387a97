import BuckiaBytes

/// The tokens of SQL text, as SQLite's own tokenizer finds them.
///
/// Quoted names, text, blobs, numbers and comments are recognised, so that a word inside them is never taken for a
/// keyword. Any bytes can be tokenized; those that are no valid token become `broken` ones.
/// See <https://sqlite.org/lang_keywords.html> and <https://sqlite.org/lang_expr.html#literal_values_constants_>.
struct SQLTokens {
  enum Kind {
    /// A keyword or an unquoted name.
    case word
    /// A name in double quotes, backticks or brackets.
    case name
    /// Text in single quotes. SQLite accepts it as a name where the grammar requires one.
    case text
    case blob
    case number
    /// A parameter: `?`, or a name after `:`, `@`, `$` or `#`.
    case parameter
    /// One character of an operator, a parenthesis, comma or semicolon.
    case mark
    /// An unterminated quote or blob, or an invalid byte.
    case broken
  }

  let bytes: [UInt8]
  /// The kind of each token, and the range of its bytes, quotes included.
  let tokens: [(kind: Kind, range: Range<Int>)]

  init(_ sql: String) { self.init(Array(sql.utf8)) }

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    var tokens: [(kind: Kind, range: Range<Int>)] = []
    var index = 0
    while index < bytes.count {
      let start = index
      let kind = Self.take(bytes, &index)
      if let kind { tokens.append((kind, start..<index)) }
    }
    self.tokens = tokens
  }

  /// Moves past a token, a comment or white space.
  ///
  /// - Returns: The kind of token; nil for a comment or white space.
  private static func take(_ bytes: [UInt8], _ index: inout Int) -> Kind? {
    func at(_ place: Int) -> UInt8 { place < bytes.count ? bytes[place] : 0 }
    let first = bytes[index]
    let second = at(index + 1)
    switch first {
    case UInt8(ascii: " "), 0x09, 0x0a, 0x0c, 0x0d:
      index += 1
      return nil
    case UInt8(ascii: "-") where second == UInt8(ascii: "-"):
      while index < bytes.count, bytes[index] != 0x0a { index += 1 }
      return nil
    case UInt8(ascii: "/") where second == UInt8(ascii: "*"):
      index += 2
      while index < bytes.count, !(bytes[index] == UInt8(ascii: "*") && at(index + 1) == UInt8(ascii: "/")) {
        index += 1
      }
      index = min(index + 2, bytes.count)
      return nil
    case UInt8(ascii: "'"): return takeQuoted(bytes, &index) ? .text : .broken
    case UInt8(ascii: "\""), UInt8(ascii: "`"): return takeQuoted(bytes, &index) ? .name : .broken
    case UInt8(ascii: "["):
      while index < bytes.count, bytes[index] != UInt8(ascii: "]") { index += 1 }
      guard index < bytes.count else { return .broken }
      index += 1
      return .name
    case UInt8(ascii: "x") where second == UInt8(ascii: "'"), UInt8(ascii: "X") where second == UInt8(ascii: "'"):
      index += 1
      return takeQuoted(bytes, &index) ? .blob : .broken
    case UInt8(ascii: "?"), UInt8(ascii: ":"), UInt8(ascii: "@"), UInt8(ascii: "$"), UInt8(ascii: "#"):
      index += 1
      while isWord(at(index)) { index += 1 }
      return .parameter
    case _ where isDigit(first) || first == UInt8(ascii: ".") && isDigit(second):
      takeNumber(bytes, &index)
      return .number
    case _ where isWord(first):
      while isWord(at(index)) { index += 1 }
      return .word
    default:
      index += 1
      return first > 0x20 && first < 0x7f ? .mark : .broken
    }
  }

  /// Moves past quoted text, in which two quotes in a row stand for one.
  ///
  /// - Returns: True if the text is terminated.
  private static func takeQuoted(_ bytes: [UInt8], _ index: inout Int) -> Bool {
    let mark = bytes[index]
    index += 1
    while index < bytes.count {
      if bytes[index] == mark {
        guard index + 1 < bytes.count, bytes[index + 1] == mark else {
          index += 1
          return true
        }
        index += 1
      }
      index += 1
    }
    return false
  }

  private static func takeNumber(_ bytes: [UInt8], _ index: inout Int) {
    let isHexadecimal = bytes[index...].starts(with: [0x30, 0x78]) || bytes[index...].starts(with: [0x30, 0x58])
    while index < bytes.count, isWord(bytes[index]) || bytes[index] == UInt8(ascii: ".") {
      let isExponent = !isHexadecimal && bytes[index] | 0x20 == UInt8(ascii: "e")
      index += 1
      if isExponent, index < bytes.count, bytes[index] == UInt8(ascii: "+") || bytes[index] == UInt8(ascii: "-") {
        index += 1
      }
    }
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

  private static func isWord(_ byte: UInt8) -> Bool {
    isDigit(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte) || byte == 0x5f
      || byte == UInt8(ascii: "$") || byte >= 0x80
  }

  var count: Int { tokens.count }

  /// The text of a token.
  func text(at index: Int) -> String { String(decoding: bytes[tokens[index].range], as: UTF8.self) }

  /// The text of consecutive tokens, with white space and comments between them.
  func text(of range: Range<Int>) -> String {
    guard !range.isEmpty else { return "" }
    let start = tokens[range.lowerBound].range.lowerBound
    return String(decoding: bytes[start..<tokens[range.upperBound - 1].range.upperBound], as: UTF8.self)
  }

  /// True if the token at an index exists and is a keyword.
  ///
  /// - Parameter keyword: The keyword in lower case.
  func isWord(_ keyword: String, at index: Int) -> Bool {
    guard tokens.indices.contains(index), tokens[index].kind == .word else { return false }
    return bytes[tokens[index].range].elementsEqual(keyword.utf8) { byte, letter in
      ASCIIName.folded(byte) == letter
    }
  }

  /// True if the token at an index exists and is one of some keywords, given in lower case.
  func isAnyWord(_ keywords: [String], at index: Int) -> Bool { keywords.contains { isWord($0, at: index) } }

  /// True if a character is one of the tokens.
  func contains(_ mark: Unicode.Scalar) -> Bool { tokens.indices.contains { isMark(mark, at: $0) } }

  /// The bytes of a token.
  func bytes(at index: Int) -> ArraySlice<UInt8> { bytes[tokens[index].range] }

  /// True if both have the same tokens, whatever the white space and the comments between them.
  func isEqual(to other: SQLTokens) -> Bool {
    count == other.count && tokens.indices.allSatisfy { bytes(at: $0) == other.bytes(at: $0) }
  }

  /// True if the token at an index exists and is a character.
  func isMark(_ mark: Unicode.Scalar, at index: Int) -> Bool {
    guard tokens.indices.contains(index), tokens[index].kind == .mark else { return false }
    return bytes[tokens[index].range.lowerBound] == UInt8(ascii: mark)
  }

  /// The unquoted text of a token that can be a name; nil when it cannot.
  func name(at index: Int) -> String? {
    guard tokens.indices.contains(index) else { return nil }
    switch tokens[index].kind {
    case .word: return text(at: index)
    case .name, .text: return unquoted(tokens[index].range)
    case .blob, .number, .parameter, .mark, .broken: return nil
    }
  }

  private func unquoted(_ range: Range<Int>) -> String {
    let mark = bytes[range.lowerBound]
    if mark == UInt8(ascii: "[") { return String(decoding: bytes[range].dropFirst().dropLast(), as: UTF8.self) }
    var name: [UInt8] = []
    var index = range.lowerBound + 1
    while index < range.upperBound - 1 {
      name.append(bytes[index])
      index += bytes[index] == mark ? 2 : 1
    }
    return String(decoding: name, as: UTF8.self)
  }

  /// The index of the parenthesis that closes the one at an index; `count` when there is none.
  func closing(_ index: Int) -> Int {
    var depth = 0
    var place = index
    while place < count {
      if isMark("(", at: place) { depth += 1 }
      if isMark(")", at: place) {
        depth -= 1
        if depth == 0 { return place }
      }
      place += 1
    }
    return count
  }
}

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

  /// True if the text is a decimal number without a sign: digits, perhaps with a fraction and an exponent.
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
