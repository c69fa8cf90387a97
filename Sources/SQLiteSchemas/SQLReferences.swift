/// What a piece of SQL names, as far as its tokens tell: more rather than less.
public struct SQLReferences: Sendable {
  /// All that may be the name of anything: words, keywords among them, and whatever stands in quotes.
  public private(set) var names: Set<TableName> = []
  /// Names that are called: those before a parenthesis, and operators that call a function. In lower case.
  public private(set) var functions: Set<String> = []
  /// Tables that are read: the names behind FROM, JOIN and IN, and all that may follow them.
  public private(set) var sources: Set<TableName> = []
  /// Whether RAISE() is called.
  public private(set) var raises = false

  /// Names nothing.
  public init() {}

  /// What a whole text names.
  public init(of sql: String) {
    let tokens = SQLTokens(sql)
    self.init(in: tokens, 0..<tokens.count)
  }

  /// These and others.
  public func union(_ other: SQLReferences) -> SQLReferences {
    var both = self
    both.names.formUnion(other.names)
    both.functions.formUnion(other.functions)
    both.sources.formUnion(other.sources)
    both.raises = both.raises || other.raises
    return both
  }

  /// Operators that are functions, too: <https://sqlite.org/lang_expr.html#the_like_glob_regexp_match_and_extract_operators>.
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
      let follows = ["from", "join", "in"].contains { tokens.isWord($0, at: index - 1) }
      // Behind a comma or parenthesis there is a table only where something is read.
      let mayFollow = reads && (tokens.isMark(",", at: index - 1) || tokens.isMark("(", at: index - 1))
      guard follows || mayFollow, !tokens.isWord("delete", at: index - 2) else { continue }
      let isQualified = tokens.isMark(".", at: index + 1)
      sources.insert(TableName(isQualified ? tokens.name(at: index + 2) ?? name : name))
    }
  }
}
