import BuckiaBytes

extension VirtualModule {
  /// Interprets the arguments of a CREATE VIRTUAL TABLE statement.
  ///
  /// - Parameters:
  ///   - definition: The statement.
  ///   - columns: The names of the table's columns in SQLite, without hidden ones.
  /// - Returns: nil when rows of the table are not replicated.
  package init?(_ definition: VirtualTableDefinition, columns: [String]) {
    let module = ASCIIName.folded(definition.module)
    if let kind = SpatialIndex.Kind(rawValue: module) {
      let coordinates = definition.arguments.dropFirst().prefix { !$0.utf8.starts(with: [UInt8(ascii: "+")]) }.count
      guard SpatialIndex.coordinateCounts.contains(coordinates), columns.count == definition.arguments.count else {
        return nil
      }
      self = .spatial(SpatialIndex(kind: kind, coordinates: coordinates))
    } else if module == FullTextIndex.moduleName {
      self = .fullText(FullTextIndex(definition, columns: columns))
    } else {
      return nil
    }
  }

  /// The declared type of an auxiliary column of an R-tree, which SQLite ignores.
  ///
  /// - Parameter argument: The argument, of the form `+name type`.
  package static func auxiliaryType(in argument: String) -> String {
    let tokens = SQLTokens(argument)
    guard tokens.isMark("+", at: 0), tokens.count > 2 else { return "" }
    return tokens.text(of: 2..<tokens.count)
  }
}

extension VirtualTableDefinition {
  /// An option of a full-text table: an argument of the form `name = value`.
  struct FullTextArgument {
    /// The name in lower case, as written. SQLite accepts a prefix of a name for the name.
    let name: String
    /// The value without quotes.
    let value: String

    init?(_ argument: String) {
      let tokens = SQLTokens(argument)
      guard tokens.count >= 2, tokens.tokens[0].kind == .word, tokens.isMark("=", at: 1) else { return nil }
      name = ASCIIName.folded(tokens.text(at: 0))
      value =
        (tokens.count == 3 ? tokens.name(at: 2) : nil) ?? tokens.text(of: min(2, tokens.count)..<tokens.count)
    }

    /// Whether SQLite takes the argument for an option.
    func isOption(_ option: String) -> Bool { option.utf8.starts(with: name.utf8) }
  }

  /// The table or view with the content of an FTS5 table; empty for a contentless table, nil for one that stores its own
  /// content. See <https://sqlite.org/fts5.html#external_content_and_contentless_tables>.
  package var fullTextContent: String? {
    // SQLite matches a prefix with `content` before `content_rowid`.
    arguments.lazy.compactMap(FullTextArgument.init).first { $0.isOption("content") }?.value
  }
}

extension FullTextIndex {
  fileprivate init(_ definition: VirtualTableDefinition, columns: [String]) {
    var unindexed: [Int] = []
    var names: [String] = []
    var options: FullTextOptions? = FullTextOptions()
    for argument in definition.arguments {
      if let option = VirtualTableDefinition.FullTextArgument(argument) {
        options = options?.adding(option)
        continue
      }
      let tokens = SQLTokens(argument)
      if tokens.isWord("unindexed", at: 1) { unindexed.append(names.count) }
      names.append(tokens.name(at: 0) ?? "")
    }
    guard names.elementsEqual(columns, by: { $0.utf8.elementsEqual($1.utf8) }) else {
      self.init(options: nil)
      return
    }
    self.init(unindexed: unindexed, options: options?.refusal == nil ? options : nil)
  }
}

extension FullTextOptions {
  /// The options with another one added; nil when a diff cannot contain that one.
  fileprivate func adding(_ option: VirtualTableDefinition.FullTextArgument) -> FullTextOptions? {
    var options = self
    if option.isOption("prefix") {
      for length in option.value.split(whereSeparator: { $0 == " " || $0 == "," }) {
        guard let number = Int(length) else { return nil }
        options.prefixes.append(number)
      }
    } else if option.isOption("tokenize") {
      guard let tokenizer = FullTextTokenizer(words: option.value) else { return nil }
      options.tokenizer = tokenizer
    } else if option.isOption("content") || option.isOption("content_rowid") {
      // The table stores its own content, so these two have no effect.
      return options
    } else if option.isOption("columnsize") {
      guard ["0", "1"].contains(option.value) else { return nil }
      options.hasColumnSizes = option.value == "1"
    } else if option.isOption("detail") {
      let value = ASCIIName.folded(option.value)
      guard !value.isEmpty, let detail = Detail.allCases.first(where: { "\($0.rawValue)s".hasPrefix(value) }) else {
        return nil
      }
      options.detail = detail
    } else {
      return nil
    }
    return options
  }
}

extension FullTextTokenizer {
  /// Parses the value of the option `tokenize`: words, some of them in single quotes.
  fileprivate init?(words text: String) {
    let tokens = SQLTokens(text)
    var words: [String] = []
    for index in 0..<tokens.count {
      guard let word = tokens.tokenizerWord(at: index) else { return nil }
      words.append(word)
    }
    var rest = words[...]
    let stems = rest.first.map(ASCIIName.folded) == "porter"
    if stems { rest = rest.dropFirst() }
    guard let kind = Kind(rawValue: rest.first.map(ASCIIName.folded) ?? Kind.unicode61.rawValue), !words.isEmpty else {
      return nil
    }
    rest = rest.dropFirst()
    guard rest.count.isMultiple(of: 2) else { return nil }
    var options: [Option] = []
    while let name = rest.popFirst(), let value = rest.popFirst() {
      guard let known = OptionName(rawValue: ASCIIName.folded(name)) else { return nil }
      options.append(Option(known, value))
    }
    self.init(kind, stems: stems, options: options)
  }
}

extension SQLTokens {
  /// The text of a bare word, a number or quoted text, which is all that the option `tokenize` may contain; else nil.
  fileprivate func tokenizerWord(at index: Int) -> String? {
    switch tokens[index].kind {
    case .word, .number: text(at: index)
    case .text: name(at: index)
    case .name, .blob, .parameter, .mark, .broken: nil
    }
  }
}
