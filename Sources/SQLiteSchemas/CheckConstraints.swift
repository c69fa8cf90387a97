import BuckiaBytes

/// The CHECK constraints of a CREATE TABLE statement, as text to compare.
///
/// CHECK expressions are not replicated. But where they differ, one database can refuse rows of the other, so a diff
/// reports the difference.
package enum CheckConstraints {
  /// The expressions of all CHECK clauses in order, each as a list of tokens without comments and white space.
  ///
  /// - Parameter sql: The CREATE TABLE statement from `sqlite_schema`. Any other text gives some list.
  package static func expressions(in sql: String) -> [[String]] {
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

  /// The expression of the constraint with a name; nil where there is none.
  ///
  /// - Parameters:
  ///   - name: The name.
  ///   - sql: The CREATE TABLE statement from `sqlite_schema`.
  package static func expression(named name: String, in sql: String) -> String? {
    let tokens = SQLTokens(sql)
    for index in tokens.tokens.indices
    where tokens.isWord("constraint", at: index) && tokens.isWord("check", at: index + 2)
      && tokens.isMark("(", at: index + 3)
    {
      guard tokens.name(at: index + 1).map({ $0.utf8.elementsEqual(name.utf8) }) == true else { continue }
      let end = tokens.closing(index + 3)
      guard end < tokens.count else { return nil }
      return tokens.text(of: (index + 4)..<end)
    }
    return nil
  }

  /// The text of a token, in lower case if it is a word.
  private static func comparable(_ tokens: SQLTokens, at index: Int) -> String {
    let text = tokens.text(at: index)
    return tokens.tokens[index].kind == .word ? ASCIIName.folded(text) : text
  }
}
