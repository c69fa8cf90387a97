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
  /// Whether the size of each value in tokens is stored.
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

  /// Whether `porter` wraps the tokenizer, which reduces English words to their stems.
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
}

extension FullTextTokenizer.Option {
  /// Whether the value is valid for the option.
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
