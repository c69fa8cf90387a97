/// The names that a piece of SQL refers to, found by its tokens. Rather too many than too few.
package struct SQLReferences: Sendable {
  /// All words and quoted names, keywords included.
  package private(set) var names: Set<TableName> = []
  /// Functions in lower case: names before a parenthesis, and operators that call a function.
  package private(set) var functions: Set<String> = []
  /// Tables and views that are read: the names after FROM, JOIN and IN.
  package private(set) var sources: Set<TableName> = []
  /// Whether RAISE() is called.
  package private(set) var raises = false

  /// Creates an empty set of references.
  package init() {}

  /// Finds the references in a statement or an expression.
  package init(of sql: String) {
    let tokens = SQLTokens(sql)
    self.init(in: tokens, 0..<tokens.count)
  }

  /// The references of both.
  package func union(_ other: SQLReferences) -> SQLReferences {
    var both = self
    both.names.formUnion(other.names)
    both.functions.formUnion(other.functions)
    both.sources.formUnion(other.sources)
    both.raises = both.raises || other.raises
    return both
  }

  /// Operators that call functions: <https://sqlite.org/lang_expr.html#the_like_glob_regexp_match_and_extract_operators>.
  private static let operators: Set<String> = ["like", "glob", "regexp", "match"]

  init(in tokens: SQLTokens, _ range: Range<Int>) {
    let reads = range.contains { tokens.isWord("from", at: $0) && !tokens.isWord("delete", at: $0 - 1) }
    for index in range {
      guard let name = tokens.name(at: index) else { continue }
      let folded = ASCIIName.folded(name)
      names.insert(TableName(name))
      if tokens.tokens[index].kind != .text, tokens.isMark("(", at: index + 1) || Self.operators.contains(folded) {
        functions.insert(folded)
        if folded == "raise" { raises = true }
      }
      let isSource = ["from", "join", "in"].contains { tokens.isWord($0, at: index - 1) }
      // After a comma or parenthesis there can only be a table when something is read.
      let mayBeSource = reads && (tokens.isMark(",", at: index - 1) || tokens.isMark("(", at: index - 1))
      guard isSource || mayBeSource, !tokens.isWord("delete", at: index - 2) else { continue }
      let isQualified = tokens.isMark(".", at: index + 1)
      sources.insert(TableName(isQualified ? tokens.name(at: index + 2) ?? name : name))
    }
  }
}
