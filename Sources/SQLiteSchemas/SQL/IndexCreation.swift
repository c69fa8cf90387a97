/// A CREATE INDEX statement of `sqlite_schema`, from which an index can be created again with the very same text.
///
/// SQLite keeps the text from the name on and writes `CREATE INDEX` and a space in front of it
/// (<https://sqlite.org/schematab.html>). Where it stands otherwise, something else wrote it.
package struct IndexCreation: Sendable {
  private static let prefix = "CREATE INDEX "

  /// The text behind `CREATE INDEX`, which begins with the name.
  private let rest: String
  /// The text behind the name.
  private let body: String
  /// The names that the statement refers to.
  package let references: SQLReferences

  /// Takes the statement of an index that is not unique.
  ///
  /// - Parameters:
  ///   - sql: The statement.
  ///   - name: The name of the index.
  /// - Returns: nil when SQLite would keep another text for the index, created from this one.
  package init?(_ sql: String, of name: String) {
    let tokens = SQLTokens(sql)
    guard sql.utf8.starts(with: Self.prefix.utf8), tokens.count > 3,
      tokens.tokens[2].range.lowerBound == Self.prefix.utf8.count, tokens.isWord("on", at: 3),
      tokens.name(at: 2).map({ $0.utf8.elementsEqual(name.utf8) }) == true,
      !tokens.tokens.contains(where: { $0.kind == .broken || $0.kind == .parameter }), !tokens.contains(";")
    else { return nil }
    rest = String(decoding: tokens.bytes[Self.prefix.utf8.count...], as: UTF8.self)
    body = String(decoding: tokens.bytes[tokens.tokens[3].range.lowerBound...], as: UTF8.self)
    references = SQLReferences(of: sql)
  }

  /// The statement that creates the index again, in `main` whatever TEMP tables there are.
  package var statement: String { "\(Self.prefix)main.\(rest)" }

  /// The statement with another name: prepared, it tells whether the index can be created while it is still there.
  package func statement(named name: String) -> String {
    "\(Self.prefix)main.\(SQLText.identifier(name)) \(body)"
  }
}

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
