/// What an index is over: the terms of a CREATE INDEX statement, and the condition of a partial one, each as its text.
package struct IndexTerms: Sendable {
  /// The columns and expressions, without ASC and DESC.
  package private(set) var terms: [String] = []
  /// The condition that rows of a partial index fulfil.
  package let condition: String?

  /// Takes a statement of `sqlite_schema` apart.
  ///
  /// - Returns: nil for anything else than a valid CREATE INDEX.
  package init?(_ sql: String) {
    let tokens = SQLTokens(sql)
    // CREATE [UNIQUE] INDEX name ON table (…)
    guard let on = tokens.tokens.indices.first(where: { tokens.isWord("on", at: $0) && $0 > 2 }),
      tokens.isMark("(", at: on + 2)
    else { return nil }
    let end = tokens.closing(on + 2)
    guard end < tokens.count else { return nil }
    var start = on + 3
    var depth = 0
    for place in start...end {
      if tokens.isMark("(", at: place) { depth += 1 }
      if tokens.isMark(")", at: place), place < end { depth -= 1 }
      guard place == end || (depth == 0 && tokens.isMark(",", at: place)) else { continue }
      var last = place
      if last > start, tokens.isWord("asc", at: last - 1) || tokens.isWord("desc", at: last - 1) { last -= 1 }
      terms.append(tokens.text(of: start..<last))
      start = place + 1
    }
    if end + 1 == tokens.count {
      condition = nil
    } else {
      guard tokens.isWord("where", at: end + 1) else { return nil }
      condition = tokens.text(of: (end + 2)..<tokens.count)
    }
  }
}
