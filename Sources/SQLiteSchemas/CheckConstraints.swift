/// The CHECK constraints of a CREATE TABLE statement, as text to compare.
///
/// They are expressions and never travel. A table whose constraints have changed may refuse rows elsewhere, so a diff
/// says so by name.
public enum CheckConstraints {
  /// The expressions of all CHECK clauses, in order; comments and white space do not count.
  ///
  /// - Parameter sql: The statement as `sqlite_schema` keeps it. Anything else gives some list, never a crash.
  public static func expressions(in sql: String) -> [[String]] {
    let tokens = SQLTokens(sql)
    var expressions: [[String]] = []
    var index = 0
    while index < tokens.count {
      guard tokens.isWord("check", at: index), tokens.isMark("(", at: index + 1) else {
        index += 1
        continue
      }
      let end = min(tokens.closing(index + 1) + 1, tokens.count)
      expressions.append((index + 1..<end).map { comparable(tokens, at: $0) })
      index = end
    }
    return expressions
  }

  /// The text of a token; words in lower case.
  private static func comparable(_ tokens: SQLTokens, at index: Int) -> String {
    let text = tokens.text(at: index)
    return tokens.tokens[index].kind == .word ? ASCIIName.folded(text) : text
  }
}
