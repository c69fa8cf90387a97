import BuckiaBytes

/// What an SQL expression over the columns of a table depends on.
package enum RowExpression {
  /// Whether the value of an expression is known to depend on the row and its parameters alone: it has no subquery, and of functions and
  /// operators only those of SQLite that are the same everywhere and at any time.
  ///
  /// - Parameter reserved: The beginning of parameters that it must not have, without the first character.
  /// - Returns: false also where that cannot be told.
  package static func dependsOnRowAlone(_ expression: String, withoutParameters reserved: String) -> Bool {
    let tokens = SQLTokens(expression)
    for index in 0..<tokens.count {
      switch tokens.tokens[index].kind {
      case .broken: return false
      case .parameter:
        let name = tokens.text(at: index).dropFirst()
        if ASCIIName.folded(String(name)).utf8.starts(with: reserved.utf8) { return false }
      case .name, .text:
        if tokens.isMark("(", at: index + 1) { return false }
      case .word:
        let word = ASCIIName.folded(tokens.text(at: index))
        if forbidden.contains(word) { return false }
        // `IN name` asks another table.
        if word == "in", !tokens.isMark("(", at: index + 1) { return false }
        if tokens.isMark("(", at: index + 1), !functions.contains(word), !operators.contains(word) { return false }
      case .blob, .number, .mark: break
      }
    }
    return true
  }

  /// Words that bring other rows along, the time, or functions that an application may have of its own.
  private static let forbidden: Set<String> = [
    "current_date", "current_time", "current_timestamp", "exists", "filter", "like", "match", "over", "raise", "regexp",
    "select", "values", "with",
  ]
  /// Words in front of a parenthesis that are no functions.
  private static let operators: Set<String> = [
    "and", "between", "case", "cast", "collate", "distinct", "else", "escape", "from", "in", "is", "isnull", "not",
    "notnull", "null", "or", "then", "when",
  ]
  private static let functions: Set<String> = [
    "abs", "coalesce", "hex", "ifnull", "iif", "instr", "length", "likelihood", "likely", "ltrim", "max", "min",
    "nullif",
    "round", "rtrim", "substr", "substring", "trim", "typeof", "unicode", "unlikely",
  ]
}
