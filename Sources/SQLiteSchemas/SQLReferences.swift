import BuckiaBytes

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

  /// The functions without the keywords that a parenthesis can follow, too.
  package var calledFunctions: Set<String> { functions.subtracting(Self.keywords) }

  private static let keywords: Set<String> = [
    "and", "as", "between", "by", "case", "cast", "check", "else", "exists", "filter", "from", "having", "in",
    "intersect", "into", "is", "join", "limit", "not", "offset", "on", "or", "over", "partition", "returning", "select",
    "set", "then", "union", "except", "all", "distinct", "using", "values", "when", "where", "with", "collate",
  ]

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
    let reads = Self.reads(tokens, range)
    for index in range {
      guard let name = tokens.name(at: index) else { continue }
      let folded = ASCIIName.folded(name)
      names.insert(TableName(name))
      if tokens.tokens[index].kind != .text, tokens.isMark("(", at: index + 1) || Self.operators.contains(folded) {
        functions.insert(folded)
        if folded == "raise" { raises = true }
      }
      if let source = Self.source(in: tokens, at: index, mayBeListed: reads) { sources.insert(source) }
    }
  }

  /// Whether anything is read.
  static func reads(_ tokens: SQLTokens, _ range: Range<Int>) -> Bool {
    range.contains { tokens.isWord("from", at: $0) && !tokens.isWord("delete", at: $0 - 1) }
  }

  /// The table or view that is read where its name stands at an index; nil when that is no such name.
  ///
  /// - Parameter mayBeListed: Whether there can be a table after a comma or parenthesis: only where something is read.
  static func source(in tokens: SQLTokens, at index: Int, mayBeListed: Bool) -> TableName? {
    guard let name = tokens.name(at: index) else { return nil }
    let isSource = ["from", "join", "in"].contains { tokens.isWord($0, at: index - 1) }
    let mayBeSource = mayBeListed && (tokens.isMark(",", at: index - 1) || tokens.isMark("(", at: index - 1))
    guard isSource || mayBeSource, !tokens.isWord("delete", at: index - 2) else { return nil }
    let isQualified = tokens.isMark(".", at: index + 1)
    return TableName(isQualified ? tokens.name(at: index + 2) ?? name : name)
  }
}
