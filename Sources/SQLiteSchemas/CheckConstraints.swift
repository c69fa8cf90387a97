/// The CHECK constraints of a CREATE TABLE statement, as text to compare.
///
/// They are expressions and never travel. A table whose constraints have changed may refuse rows elsewhere, so a diff
/// says so by name.
public enum CheckConstraints {
  /// The expressions of all CHECK clauses, in order; comments and white space do not count.
  ///
  /// - Parameter sql: The statement as `sqlite_schema` keeps it. Anything else gives some list, never a crash.
  public static func expressions(in sql: String) -> [[String]] {
    let tokens = tokens(of: Array(sql.utf8))
    var expressions: [[String]] = []
    var index = 0
    while index + 1 < tokens.count {
      guard tokens[index] == "check", tokens[index + 1] == "(" else {
        index += 1
        continue
      }
      var depth = 0
      var expression: [String] = []
      index += 1
      repeat {
        if tokens[index] == "(" { depth += 1 }
        if tokens[index] == ")" { depth -= 1 }
        expression.append(tokens[index])
        index += 1
      } while depth > 0 && index < tokens.count
      expressions.append(expression)
    }
    return expressions
  }

  /// Splits SQL into words, quoted text and single characters; words outside quotes in lower case.
  private static func tokens(of sql: [UInt8]) -> [String] {
    var tokens: [String] = []
    var index = 0
    func at(_ place: Int) -> UInt8 { place < sql.count ? sql[place] : 0 }
    while index < sql.count {
      let start = index
      switch (sql[index], at(index + 1)) {
      case (UInt8(ascii: "-"), UInt8(ascii: "-")):
        while index < sql.count, sql[index] != UInt8(ascii: "\n") { index += 1 }
      case (UInt8(ascii: "/"), UInt8(ascii: "*")):
        index += 2
        while index < sql.count, !(sql[index] == UInt8(ascii: "*") && at(index + 1) == UInt8(ascii: "/")) { index += 1 }
        index += 2
      case (let mark, _) where mark == UInt8(ascii: "'") || mark == UInt8(ascii: "\"") || mark == UInt8(ascii: "`"):
        index += 1
        while index < sql.count, sql[index] != mark || at(index + 1) == mark { index += sql[index] == mark ? 2 : 1 }
        index += 1
        tokens.append(String(decoding: sql[start..<min(index, sql.count)], as: UTF8.self))
      case (let byte, _) where isWord(byte):
        while index < sql.count, isWord(sql[index]) { index += 1 }
        tokens.append(ASCIIName.folded(String(decoding: sql[start..<index], as: UTF8.self)))
      case (let byte, _):
        if byte > 0x20 { tokens.append(String(Unicode.Scalar(byte))) }
        index += 1
      }
    }
    return tokens
  }

  private static func isWord(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte) || byte == 0x5f
      || byte >= 0x80
  }
}
