import BuckiaBytes

/// The module of a virtual table whose rows are replicated, with its options as data. Nothing in it is run as SQL.
///
/// The columns are in the table's definition. See <https://sqlite.org/rtree.html> and <https://sqlite.org/fts5.html>.
package enum VirtualModule: Equatable, Sendable {
  /// An R-tree. The first column is the key.
  case spatial(SpatialIndex)
  /// An FTS5 table that stores its own content. The rowid is the key.
  case fullText(FullTextIndex)

  /// The name of the module.
  package var name: String {
    switch self {
    case .spatial(let index): index.kind.rawValue
    case .fullText: FullTextIndex.moduleName
    }
  }

  /// The name suffixes of all shadow tables that the module can have.
  package var shadowSuffixes: [String] { Self.shadowSuffixes(ofModule: name) }

  /// The modules whose tables replicate, in lower case.
  package static let knownNames: Set<String> = ["rtree", "rtree_i32", "fts5"]

  /// The name suffixes of all shadow tables that a module can have; none for an unknown module. See
  /// <https://sqlite.org/vtab.html#the_xshadowname_method>.
  package static func shadowSuffixes(ofModule module: String) -> [String] {
    switch ASCIIName.folded(module) {
    case "rtree", "rtree_i32", "geopoly": ["_node", "_parent", "_rowid"]
    case FullTextIndex.moduleName: ["_data", "_idx", "_content", "_docsize", "_config"]
    case "fts3", "fts4": ["_content", "_segments", "_segdir", "_docsize", "_stat"]
    default: []
    }
  }

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

/// The parameters of an R-tree. Its columns are the key, the coordinates and the auxiliary columns, in this order.
package struct SpatialIndex: Equatable, Sendable {
  /// The type of the coordinates. The raw value is the name of the module.
  package enum Kind: String, Sendable, CaseIterable {
    /// 32-bit floating-point numbers.
    case real = "rtree"
    /// 32-bit integers.
    case integer = "rtree_i32"
  }

  /// The type of the coordinates.
  package var kind: Kind
  /// The number of coordinate columns. The columns after them are auxiliary ones.
  package var coordinates: Int

  /// Creates the parameters of an R-tree.
  package init(kind: Kind = .real, coordinates: Int) {
    self.kind = kind
    self.coordinates = coordinates
  }

  /// Two coordinates for each of one to five dimensions.
  static let coordinateCounts: Set<Int> = [2, 4, 6, 8, 10]
  static let auxiliaryLimit = 100

  fileprivate func arguments(for columns: [ColumnDefinition]) -> [String] {
    columns.enumerated().map { place, column in
      let name = SQLText.identifier(column.name)
      guard place > coordinates else { return name }
      let type = column.safeType
      return "+\(name)\(type.isEmpty ? "" : " \(type)")"
    }
  }
}

/// The parameters of a full-text table.
package struct FullTextIndex: Equatable, Sendable {
  /// The name of the module, in lower case.
  package static let moduleName = "fts5"

  /// The UNINDEXED columns: their indexes, in ascending order.
  package var unindexed: [Int]
  /// The options; nil when this type cannot express them. Then rows are replicated only to an existing table.
  package var options: FullTextOptions?

  /// Creates the parameters of a full-text table.
  package init(unindexed: [Int] = [], options: FullTextOptions? = FullTextOptions()) {
    self.unindexed = unindexed
    self.options = options
  }

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

/// The options of a full-text table. See <https://sqlite.org/fts5.html#fts5_table_creation_and_initialization>.
package struct FullTextOptions: Equatable, Sendable {
  /// How precisely the index records the position of a token.
  package enum Detail: String, Sendable, CaseIterable {
    case full, column, none
  }

  /// The tokenizer; nil for the default one.
  package var tokenizer: FullTextTokenizer?
  /// The lengths in characters of the prefix indexes.
  package var prefixes: [Int]
  /// How precisely the index records the position of a token.
  package var detail: Detail
  /// True if the size of each value in tokens is stored.
  package var hasColumnSizes: Bool

  /// Creates options.
  package init(
    tokenizer: FullTextTokenizer? = nil, prefixes: [Int] = [], detail: Detail = .full, hasColumnSizes: Bool = true
  ) {
    self.tokenizer = tokenizer
    self.prefixes = prefixes
    self.detail = detail
    self.hasColumnSizes = hasColumnSizes
  }

  static let prefixLimit = 31
  static let prefixLengths = 1...999

  /// Why SQLite would refuse the options; nil when it would not.
  var refusal: String? {
    if prefixes.count > Self.prefixLimit || !prefixes.allSatisfy(Self.prefixLengths.contains) {
      return "its prefix lengths are none that SQLite allows"
    }
    return tokenizer?.refusal
  }

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

  fileprivate var arguments: [String] {
    var arguments: [String] = []
    if let tokenizer { arguments.append("tokenize = \(SQLText.literal(tokenizer.words))") }
    if !prefixes.isEmpty {
      arguments.append("prefix = \(SQLText.literal(prefixes.map(String.init).joined(separator: " ")))")
    }
    if detail != .full { arguments.append("detail = \(detail.rawValue)") }
    if !hasColumnSizes { arguments.append("columnsize = 0") }
    return arguments
  }
}

/// A built-in tokenizer of FTS5. See <https://sqlite.org/fts5.html#tokenizers>.
package struct FullTextTokenizer: Equatable, Sendable {
  /// The built-in tokenizers besides `porter`.
  package enum Kind: String, Sendable, CaseIterable {
    case unicode61, ascii, trigram
  }

  /// The options of the tokenizers.
  package enum OptionName: String, Sendable, CaseIterable {
    case removeDiacritics = "remove_diacritics"
    case categories
    case tokenCharacters = "tokenchars"
    case separators
    case caseSensitive = "case_sensitive"
  }

  /// An option with its value.
  package struct Option: Equatable, Sendable {
    /// Which option it is.
    package var name: OptionName
    /// The value: any text, since it is quoted in SQL.
    package var value: String

    /// Creates an option.
    package init(_ name: OptionName, _ value: String) {
      self.name = name
      self.value = value
    }
  }

  /// True if `porter` wraps the tokenizer, which reduces English words to their stems.
  package var stems: Bool
  /// Which tokenizer it is.
  package var kind: Kind
  /// The options in order.
  package var options: [Option]

  /// Creates a tokenizer.
  package init(_ kind: Kind, stems: Bool = false, options: [Option] = []) {
    self.kind = kind
    self.stems = stems
    self.options = options
  }

  /// The most options of a tokenizer in a diff.
  package static let optionLimit = 16
  /// The longest value of an option in a diff, in bytes.
  fileprivate static let valueByteLimit = 1024

  /// Why SQLite would refuse the tokenizer; nil when it would not.
  var refusal: String? {
    if options.count > Self.optionLimit { return "its tokenizer has more than \(Self.optionLimit) options" }
    let broken = options.first { !Self.names(for: kind).contains($0.name) || !$0.isValid }
    return broken.map { "its tokenizer \(kind.rawValue) has no option \($0.name.rawValue) with such a value" }
  }

  private static func names(for kind: Kind) -> Set<OptionName> {
    switch kind {
    case .unicode61: [.removeDiacritics, .categories, .tokenCharacters, .separators]
    case .ascii: [.tokenCharacters, .separators]
    case .trigram: [.caseSensitive]
    }
  }

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

  /// The value of the option `tokenize`: words, with the values of the tokenizer's options in quotes.
  fileprivate var words: String {
    let options = options.flatMap { [$0.name.rawValue, SQLText.literal($0.value)] }
    return ((stems ? ["porter"] : []) + [kind.rawValue] + options).joined(separator: " ")
  }
}

extension FullTextTokenizer.Option {
  /// True if the value is valid for the option.
  fileprivate var isValid: Bool {
    switch name {
    case .removeDiacritics: ["0", "1", "2"].contains(value)
    case .caseSensitive: ["0", "1"].contains(value)
    case .tokenCharacters, .separators:
      value.utf8.count <= FullTextTokenizer.valueByteLimit && !value.utf8.contains(0)
    case .categories:
      // Unicode's general categories: `L* Nd Co`.
      value.utf8.count <= FullTextTokenizer.valueByteLimit
        && value.utf8.split(separator: 0x20).allSatisfy { word in
          word.count == 2 && (0x41...0x5a).contains(word[word.startIndex])
            && ((0x61...0x7a).contains(word[word.startIndex + 1]) || word[word.startIndex + 1] == UInt8(ascii: "*")
              || word.elementsEqual("LC".utf8))
        }
    }
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

    /// True if SQLite takes the argument for an option.
    func isOption(_ option: String) -> Bool { option.utf8.starts(with: name.utf8) }
  }

  /// The table or view with the content of an FTS5 table; empty for a contentless table, nil for one that stores its own
  /// content. See <https://sqlite.org/fts5.html#external_content_and_contentless_tables>.
  package var fullTextContent: String? {
    // SQLite matches a prefix with `content` before `content_rowid`.
    arguments.lazy.compactMap(FullTextArgument.init).first { $0.isOption("content") }?.value
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

/// The SQL that creates a virtual table from its definition. Names are quoted, and options are written from parsed values.
extension VirtualModule {
  /// The CREATE VIRTUAL TABLE statement of a table.
  ///
  /// - Parameter table: The table, which has this module and no `creationRefusal`.
  func createStatement(for table: TableDefinition) -> String {
    let arguments: [String]
    switch self {
    case .spatial(let index): arguments = index.arguments(for: table.columns)
    case .fullText(let index):
      arguments =
        table.columns.enumerated().map { place, column in
          SQLText.identifier(column.name) + (index.unindexed.contains(place) ? " UNINDEXED" : "")
        } + (index.options ?? FullTextOptions()).arguments
    }
    return
      "CREATE VIRTUAL TABLE main.\(SQLText.identifier(table.name)) USING \(name)(\(arguments.joined(separator: ", ")))"
  }
}
