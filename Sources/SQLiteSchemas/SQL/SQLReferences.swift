import BuckiaBytes

/// The names that a piece of SQL refers to, found by its tokens. Rather too many than too few.
package struct SQLReferences: Sendable {
  /// All words and quoted names, keywords included.
  package private(set) var names: Set<TableName> = []
  /// Functions in lower case: names before a parenthesis, and operators that call a function.
  package private(set) var functions: Set<String> = []
  /// Tables and views that are read: the names after FROM, JOIN and IN.
  package private(set) var sources: Set<TableName> = []
  /// True if RAISE() is called.
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

  /// True if anything is read.
  static func reads(_ tokens: SQLTokens, _ range: Range<Int>) -> Bool {
    range.contains { tokens.isWord("from", at: $0) && !tokens.isWord("delete", at: $0 - 1) }
  }

  /// The table or view that is read where its name stands at an index; nil when that is no such name.
  ///
  /// - Parameter mayBeListed: True if there can be a table after a comma or parenthesis: only where something is read.
  static func source(in tokens: SQLTokens, at index: Int, mayBeListed: Bool) -> TableName? {
    guard let name = tokens.name(at: index) else { return nil }
    let isSource = tokens.isAnyWord(["from", "join", "in"], at: index - 1)
    let mayBeSource = mayBeListed && (tokens.isMark(",", at: index - 1) || tokens.isMark("(", at: index - 1))
    guard isSource || mayBeSource, !tokens.isWord("delete", at: index - 2) else { return nil }
    let isQualified = tokens.isMark(".", at: index + 1)
    return TableName(isQualified ? tokens.name(at: index + 2) ?? name : name)
  }

  /// True if the value of an expression is known to depend on the row and its parameters alone: it has no subquery, and of functions and
  /// operators only those of SQLite that are the same everywhere and at any time.
  ///
  /// - Parameter reserved: The beginning of parameters that it must not have, without the first character.
  /// - Returns: false also if that is unknown.
  package static func areRowAlone(in expression: String, withoutParameters reserved: String) -> Bool {
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
        if otherWords.contains(word) { return false }
        // `IN name` asks another table.
        if word == "in", !tokens.isMark("(", at: index + 1) { return false }
        if tokens.isMark("(", at: index + 1), !rowFunctions.contains(word), !plainWords.contains(word) { return false }
      case .blob, .number, .mark: break
      }
    }
    return true
  }

  /// Words that bring other rows along, the time, or functions that an application may have of its own.
  private static let otherWords: Set<String> = [
    "current_date", "current_time", "current_timestamp", "exists", "filter", "like", "match", "over", "raise", "regexp",
    "select", "values", "with",
  ]
  /// Words in front of a parenthesis that are no functions.
  private static let plainWords: Set<String> = [
    "and", "between", "case", "cast", "collate", "distinct", "else", "escape", "from", "in", "is", "isnull", "not",
    "notnull", "null", "or", "then", "when",
  ]
  private static let rowFunctions: Set<String> = [
    "abs", "coalesce", "hex", "ifnull", "iif", "instr", "length", "likelihood", "likely", "ltrim", "max", "min",
    "nullif",
    "round", "rtrim", "substr", "substring", "trim", "typeof", "unicode", "unlikely",
  ]
}

/// What is known of SQL functions by their names, in lower case.
package enum SQLFunctions {
  /// Functions that read or write files, load code, show memory, or run what they are given. SQLite, its shell and its
  /// extensions have them.
  package static let withEffects: Set<String> = [
    "load_extension", "fts3_tokenizer", "readfile", "writefile", "edit", "fsdir", "lsdir", "lsmode", "zipfile", "eval",
    "exec", "shell", "system", "carray", "remember", "nextchar", "btreeinfo", "dbstat", "bytecode", "tables_used",
    "stmtrand", "shell_add_schema", "shell_putsnl", "shell_module_schema",
  ]

  /// The functions of SQLite itself that compute a value and do nothing else, of all versions and build options.
  /// See <https://sqlite.org/lang_corefunc.html> and the pages that follow it.
  package static let pure: Set<String> = core.union(aggregates).union(dates).union(mathematics).union(documents)

  private static let core: Set<String> = [
    "abs", "changes", "char", "coalesce", "concat", "concat_ws", "format", "glob", "hex", "if", "ifnull", "iif",
    "instr",
    "last_insert_rowid", "length", "like", "likelihood", "likely", "lower", "ltrim", "match", "nullif", "octet_length",
    "printf", "quote", "random", "randomblob", "replace", "round", "rtrim", "sign", "soundex", "substr", "substring",
    "total_changes", "trim", "typeof", "unhex", "unicode", "unistr", "unistr_quote", "unlikely", "upper", "zeroblob",
    // Of full-text tables, where their own queries call them.
    "bm25", "highlight", "snippet",
  ]
  private static let aggregates: Set<String> = [
    "avg", "count", "group_concat", "max", "median", "min", "percentile", "percentile_cont", "percentile_disc",
    "string_agg", "sum", "total", "cume_dist", "dense_rank", "first_value", "lag", "last_value", "lead", "nth_value",
    "ntile", "percent_rank", "rank", "row_number",
  ]
  private static let dates: Set<String> = [
    "current_date", "current_time", "current_timestamp", "date", "datetime", "julianday", "strftime", "time",
    "timediff",
    "unixepoch",
  ]
  private static let mathematics: Set<String> = [
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "ceiling", "cos", "cosh", "degrees", "exp",
    "floor", "ln", "log", "log10", "log2", "mod", "pi", "pow", "power", "radians", "sin", "sinh", "sqrt", "tan", "tanh",
    "trunc",
  ]
  private static let documents: Set<String> = [
    "->", "->>", "json", "json_array", "json_array_insert", "json_array_length", "json_error_position", "json_extract",
    "json_group_array", "json_group_object", "json_insert", "json_object", "json_patch", "json_pretty", "json_quote",
    "json_remove", "json_replace", "json_set", "json_type", "json_valid", "jsonb", "jsonb_array", "jsonb_array_insert",
    "jsonb_extract", "jsonb_group_array", "jsonb_group_object", "jsonb_insert", "jsonb_object", "jsonb_patch",
    "jsonb_remove", "jsonb_replace", "jsonb_set",
  ]
}
