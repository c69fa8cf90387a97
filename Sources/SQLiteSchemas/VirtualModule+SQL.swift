/// The SQL that makes a virtual table from its definition. Every name stands in quotes, every option is one of ours.
extension VirtualModule {
  /// A CREATE VIRTUAL TABLE statement.
  ///
  /// - Parameter table: The table that has this module, and may be created.
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
  /// As the option `tokenize` has it: words, those of the options in quotes.
  fileprivate var words: String {
    let options = options.flatMap { [$0.name.rawValue, SQLText.literal($0.value)] }
    return ((stems ? ["porter"] : []) + [kind.rawValue] + options).joined(separator: " ")
  }
}
