/// A module's own words, understood: what the arguments of a CREATE VIRTUAL TABLE statement say.
extension VirtualModule {
  /// Describes a virtual table.
  ///
  /// - Parameters:
  ///   - definition: The statement that made it.
  ///   - columns: The names of its columns, as SQLite has them. Hidden ones do not count.
  /// - Returns: nil when it is none whose rows travel.
  public init?(_ definition: VirtualTableDefinition, columns: [String]) {
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

  /// The type that the author wrote behind an auxiliary column of an R-tree, of which SQLite takes no notice.
  ///
  /// - Parameter argument: `+name type`.
  public static func auxiliaryType(in argument: String) -> String {
    let tokens = SQLTokens(argument)
    guard tokens.isMark("+", at: 0), tokens.count > 2 else { return "" }
    return tokens.text(of: 2..<tokens.count)
  }
}

extension VirtualTableDefinition {
  /// An argument of a full-text table of the form `name = value`.
  struct FullTextArgument {
    /// In lower case, as it is written: SQLite takes the beginning of a name for the name.
    let name: String
    /// Without its quotes.
    let value: String

    init?(_ argument: String) {
      let tokens = SQLTokens(argument)
      guard tokens.count >= 2, tokens.tokens[0].kind == .word, tokens.isMark("=", at: 1) else { return nil }
      name = ASCIIName.folded(tokens.text(at: 0))
      value =
        (tokens.count == 3 ? tokens.name(at: 2) : nil) ?? tokens.text(of: min(2, tokens.count)..<tokens.count)
    }

    /// Whether SQLite takes the argument for this option.
    func isMeant(by option: String) -> Bool { option.utf8.starts(with: name.utf8) }
  }

  /// The table or view that a full-text table of version 5 takes its text from; empty for one that keeps no text, nil for one
  /// that keeps its own.
  public var fullTextContent: String? {
    // `p` and `t` are taken before `c`, and `content` before `content_rowid`.
    arguments.lazy.compactMap(FullTextArgument.init).first { $0.isMeant(by: "content") }?.value
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
  /// These and another one; nil when that is none of those that travel.
  fileprivate func adding(_ option: VirtualTableDefinition.FullTextArgument) -> FullTextOptions? {
    var options = self
    if option.isMeant(by: "prefix") {
      for length in option.value.split(whereSeparator: { $0 == " " || $0 == "," }) {
        guard let number = Int(length) else { return nil }
        options.prefixes.append(number)
      }
    } else if option.isMeant(by: "tokenize") {
      guard let tokenizer = FullTextTokenizer(words: option.value) else { return nil }
      options.tokenizer = tokenizer
    } else if option.isMeant(by: "content") || option.isMeant(by: "content_rowid") {
      // Where the text is the table's own, it does not matter what its key would be called.
      return options
    } else if option.isMeant(by: "columnsize") {
      guard ["0", "1"].contains(option.value) else { return nil }
      options.hasColumnSizes = option.value == "1"
    } else if option.isMeant(by: "detail") {
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
  /// Takes the value of the option `tokenize` apart: words, some in single quotes.
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
  /// A bare word, a number, or text in single quotes: all that SQLite allows in the option `tokenize`.
  fileprivate func tokenizerWord(at index: Int) -> String? {
    switch tokens[index].kind {
    case .word, .number: text(at: index)
    case .text: name(at: index)
    case .name, .blob, .parameter, .mark, .broken: nil
    }
  }
}
