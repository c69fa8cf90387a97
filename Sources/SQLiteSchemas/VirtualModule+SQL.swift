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

extension SpatialIndex {
  fileprivate func arguments(for columns: [ColumnDefinition]) -> [String] {
    columns.enumerated().map { place, column in
      let name = SQLText.identifier(column.name)
      guard place > coordinates else { return name }
      let type = column.safeType
      return "+\(name)\(type.isEmpty ? "" : " \(type)")"
    }
  }
}

extension FullTextOptions {
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

extension FullTextTokenizer {
  /// The value of the option `tokenize`: words, with the values of the tokenizer's options in quotes.
  fileprivate var words: String {
    let options = options.flatMap { [$0.name.rawValue, SQLText.literal($0.value)] }
    return ((stems ? ["porter"] : []) + [kind.rawValue] + options).joined(separator: " ")
  }
}
