/// What makes a table a virtual one whose rows travel: its module, and all that has to be said to it.
///
/// A closed description: whoever makes the table anew writes SQL of his own from it, and nothing in it is SQL. Columns and
/// their names stand in the `TableDefinition`. See <https://sqlite.org/rtree.html> and <https://sqlite.org/fts5.html>.
public enum VirtualModule: Equatable, Sendable {
  /// An R-tree. Its first column is the key.
  case spatial(SpatialIndex)
  /// A full-text table with content of its own. It goes by rowid.
  case fullText(FullTextIndex)

  /// The name of the module.
  public var name: String {
    switch self {
    case .spatial(let index): index.kind.rawValue
    case .fullText: FullTextIndex.moduleName
    }
  }

  /// The endings of the names of the tables in which the module keeps its content, all that there can be.
  public var shadowSuffixes: [String] { Self.shadowSuffixes(ofModule: name) }

  /// The endings of the names of the tables in which a module keeps its content; none for modules that are not known here.
  public static func shadowSuffixes(ofModule module: String) -> [String] {
    switch ASCIIName.folded(module) {
    case "rtree", "rtree_i32", "geopoly": ["_node", "_parent", "_rowid"]
    case FullTextIndex.moduleName: ["_data", "_idx", "_content", "_docsize", "_config"]
    case "fts3", "fts4": ["_content", "_segments", "_segdir", "_docsize", "_stat"]
    default: []
    }
  }
}

/// What there is to say of an R-tree besides its columns: the key, then coordinates, then what else it stores.
public struct SpatialIndex: Equatable, Sendable {
  /// What a coordinate is. The raw values are the modules' names.
  public enum Kind: String, Sendable, CaseIterable {
    /// A floating-point number of 32 bits.
    case real = "rtree"
    /// An integer of 32 bits.
    case integer = "rtree_i32"
  }

  /// What the coordinates are.
  public var kind: Kind
  /// How many columns behind the key are coordinates. Those behind them are auxiliary: of any type, and not searched.
  public var coordinates: Int

  /// Describes an R-tree.
  public init(kind: Kind = .real, coordinates: Int) {
    self.kind = kind
    self.coordinates = coordinates
  }

  /// One to five dimensions.
  static let coordinateCounts: Set<Int> = [2, 4, 6, 8, 10]
  static let auxiliaryLimit = 100
}

/// What there is to say of a full-text table besides the names of its columns.
public struct FullTextIndex: Equatable, Sendable {
  /// The name of the module, in lower case.
  public static let moduleName = "fts5"

  /// The columns that are only stored: places among the columns, in ascending order.
  public var unindexed: [Int]
  /// How it is indexed; nil when that cannot be said in these terms. Its rows travel all the same, to where the table is.
  public var options: FullTextOptions?

  /// Describes a full-text table.
  public init(unindexed: [Int] = [], options: FullTextOptions? = FullTextOptions()) {
    self.unindexed = unindexed
    self.options = options
  }
}

/// The options of a full-text table. See <https://sqlite.org/fts5.html#fts5_table_creation_and_initialization>.
public struct FullTextOptions: Equatable, Sendable {
  /// What the index knows of where a word stands.
  public enum Detail: String, Sendable, CaseIterable {
    case full, column, none
  }

  /// How text is cut into words; nil for what SQLite does by itself.
  public var tokenizer: FullTextTokenizer?
  /// The lengths, in characters, of the beginnings of words that have an index of their own.
  public var prefixes: [Int]
  /// What the index knows of where a word stands.
  public var detail: Detail
  /// Whether the number of words of each value is stored.
  public var hasColumnSizes: Bool

  /// Makes options.
  public init(
    tokenizer: FullTextTokenizer? = nil, prefixes: [Int] = [], detail: Detail = .full, hasColumnSizes: Bool = true
  ) {
    self.tokenizer = tokenizer
    self.prefixes = prefixes
    self.detail = detail
    self.hasColumnSizes = hasColumnSizes
  }

  static let prefixLimit = 31
  static let prefixLengths = 1...999

  /// Why SQLite would not take them, or nil.
  var refusal: String? {
    if prefixes.count > Self.prefixLimit || !prefixes.allSatisfy(Self.prefixLengths.contains) {
      return "its prefix lengths are none that SQLite allows"
    }
    return tokenizer?.refusal
  }
}

/// How a full-text table cuts text into words: one of SQLite's own tokenizers.
///
/// See <https://sqlite.org/fts5.html#tokenizers>. Those of applications are known to nobody else.
public struct FullTextTokenizer: Equatable, Sendable {
  /// Which one.
  public enum Kind: String, Sendable, CaseIterable {
    case unicode61, ascii, trigram
  }

  /// What can be said to it.
  public enum OptionName: String, Sendable, CaseIterable {
    case removeDiacritics = "remove_diacritics"
    case categories
    case tokenCharacters = "tokenchars"
    case separators
    case caseSensitive = "case_sensitive"
  }

  /// Something that is said to it.
  public struct Option: Equatable, Sendable {
    /// What it is about.
    public var name: OptionName
    /// The value, any text: it is written in quotes.
    public var value: String

    /// Makes an option.
    public init(_ name: OptionName, _ value: String) {
      self.name = name
      self.value = value
    }
  }

  /// Whether `porter` stands before it, which makes English words their stems.
  public var stems: Bool
  /// Which one.
  public var kind: Kind
  /// What is said to it, in that order.
  public var options: [Option]

  /// Describes a tokenizer.
  public init(_ kind: Kind, stems: Bool = false, options: [Option] = []) {
    self.kind = kind
    self.stems = stems
    self.options = options
  }

  /// The most options that travel.
  public static let optionLimit = 16

  /// Why SQLite would not take it, or nil.
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
}

extension FullTextTokenizer.Option {
  /// Whether the value is one for this option.
  fileprivate var isValid: Bool {
    switch name {
    case .removeDiacritics: ["0", "1", "2"].contains(value)
    case .caseSensitive: ["0", "1"].contains(value)
    case .tokenCharacters, .separators:
      value.utf8.count <= TableDefinition.nameByteLimit && !value.utf8.contains(0)
    case .categories:
      // Unicode's general categories: `L* Nd Co`.
      value.utf8.count <= TableDefinition.nameByteLimit
        && value.utf8.split(separator: 0x20).allSatisfy { word in
          word.count == 2 && (0x41...0x5a).contains(word[word.startIndex])
            && ((0x61...0x7a).contains(word[word.startIndex + 1]) || word[word.startIndex + 1] == UInt8(ascii: "*")
              || word.elementsEqual("LC".utf8))
        }
    }
  }
}
