import BuckiaBytes
import SQLiteConnections

/// A column default that is one literal: a number, text, a blob, NULL, TRUE, FALSE or a CURRENT_ keyword.
///
/// Defaults in a diff become part of a CREATE TABLE statement, so this type holds nothing but a literal: it can only be
/// parsed, and its SQL is written from what was parsed. See <https://sqlite.org/syntax/literal-value.html>.
package struct LiteralDefault: Equatable, Sendable {
  /// The longest default in a diff, in bytes of SQL.
  package static let byteLimit = 1024

  /// The literal as SQL, in canonical spelling.
  package let sql: String

  /// True if the value depends on the time: `CURRENT_TIME`, `CURRENT_DATE` or `CURRENT_TIMESTAMP`.
  ///
  /// ALTER TABLE cannot add a column with such a default.
  package let isTimeDependent: Bool

  /// True if the value is NULL.
  package var isNull: Bool { sql == "NULL" }

  /// Parses a literal.
  ///
  /// - Parameter sql: The text of a DEFAULT clause from `PRAGMA table_info`. Surrounding spaces and parentheses are ignored.
  /// - Returns: nil when the text is not exactly one literal, or longer than `byteLimit`.
  package init?(parsing sql: String) {
    guard sql.utf8.count <= Self.byteLimit else { return nil }
    var text = Self.trimmed(sql[...])
    while text.first == "(", text.last == ")", text.count >= 2 { text = Self.trimmed(text.dropFirst().dropLast()) }
    let upper = ASCIIName.uppercased(String(text))
    isTimeDependent = ["CURRENT_TIME", "CURRENT_DATE", "CURRENT_TIMESTAMP"].contains(upper)
    if isTimeDependent || ["NULL", "TRUE", "FALSE"].contains(upper) {
      self.sql = upper
    } else if let text = Self.unquoted(text, mark: "'") {
      guard !text.utf8.contains(0) else { return nil }
      self.sql = SQLText.literal(text)
    } else if upper.hasPrefix("X"), let digits = Self.unquoted(Substring(upper.dropFirst()), mark: "'") {
      let isHex = digits.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x41...0x46).contains($0) }
      guard isHex, digits.utf8.count.isMultiple(of: 2) else { return nil }
      self.sql = "X'\(digits)'"
    } else if let number = Self.number(upper) {
      self.sql = number
    } else {
      return nil
    }
  }

  /// Takes a default as `PRAGMA table_info` shows it.
  ///
  /// Besides literals SQLite takes a bare word or one in double quotes for text here.
  package init?(columnDefault sql: String) {
    if let literal = LiteralDefault(parsing: sql) {
      self = literal
      return
    }
    let tokens = SQLTokens(sql)
    guard tokens.count == 1, let text = tokens.name(at: 0), !text.contains("\""),
      tokens.tokens[0].kind == .word || sql.utf8.first == 0x22
    else { return nil }
    self.init(parsing: SQLText.literal(text))
  }

  private static func trimmed(_ text: Substring) -> Substring {
    let isSpace: (Character) -> Bool = { $0 == " " || $0 == "\t" || $0 == "\n" || $0 == "\r" || $0 == "\r\n" }
    var text = text.drop(while: isSpace)
    while let last = text.last, isSpace(last) { text.removeLast() }
    return text
  }

  /// The text between two quotes, with doubled quotes made single; nil when there is a single quote inside.
  private static func unquoted(_ text: Substring, mark: Unicode.Scalar) -> String? {
    let scalars = Array(text.unicodeScalars)
    guard scalars.count >= 2, scalars.first == mark, scalars.last == mark else { return nil }
    var result = String.UnicodeScalarView()
    var index = 1
    while index < scalars.count - 1 {
      if scalars[index] == mark {
        guard index + 1 < scalars.count - 1, scalars[index + 1] == mark else { return nil }
        index += 1
      }
      result.append(scalars[index])
      index += 1
    }
    return String(result)
  }

  /// A number with an optional sign: decimal, with fraction and exponent, or hexadecimal.
  private static func number(_ text: String) -> String? {
    var rest = Array(text.utf8)[...]
    var sign = ""
    if let first = rest.first, first == 0x2b || first == 0x2d {
      if first == 0x2d { sign = "-" }
      rest = rest.dropFirst()
      while rest.first == 0x20 { rest = rest.dropFirst() }
    }
    let isDigit: (UInt8) -> Bool = { (0x30...0x39).contains($0) }
    let body = String(decoding: rest, as: UTF8.self)
    if body.hasPrefix("0X") {
      let digits = rest.dropFirst(2)
      guard (1...16).contains(digits.count) else { return nil }
      guard digits.allSatisfy({ isDigit($0) || (0x41...0x46).contains($0) }) else { return nil }
      // The smallest 64-bit integer has no negative, so SQLite refuses this literal.
      guard sign.isEmpty || body != "0X8000000000000000" else { return nil }
      return sign + body
    }
    return SQLText.isDecimal(rest) ? sign + body : nil
  }
}
