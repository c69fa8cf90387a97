import BuckiaSchemaPlans
import SQLiteConnections
import SQLiteSchemas

extension ComparisonRun {
  /// Whether a virtual table holds the same rows in both databases, as the pages of the tables inside it tell: then it need
  /// not be read. Most are the same, and a large one takes as long as all the rest.
  ///
  /// - Returns: false, too, when pages cannot tell.
  func isSameInside(
    _ table: TableDefinition, _ older: borrowing SQLiteConnection, _ olderSchema: borrowing SchemaReader,
    _ newer: borrowing SQLiteConnection, _ newerSchema: borrowing SchemaReader
  ) throws -> Bool {
    guard let module = table.module, let pages else { return false }
    for suffix in module.rowSuffixes {
      let name = TableName(table.name + suffix)
      guard let olderEntry = olderSchema.entry(named: name), let newerEntry = newerSchema.entry(named: name),
        case .shadow = olderEntry.kind, case .shadow = newerEntry.kind
      else { return false }
      let changes = ChangeCollector()
      let reason = try comparePages(
        newerSchema.definition(of: newerEntry, on: newer), olderSchema.definition(of: olderEntry, on: older), pages,
        older,
        newer, into: changes)
      guard reason == nil, changes.isEmpty else { return false }
    }
    return true
  }

  /// What is to be said of the settings of a full-text table; nil where there is nothing to say.
  func remarkOnSettings(
    of table: TableDefinition, isNew: Bool, _ older: borrowing SQLiteConnection, _ newer: borrowing SQLiteConnection
  ) throws -> String? {
    guard let settings = try FullTextSettings(of: table, on: newer) else { return nil }
    let known = isNew ? FullTextSettings.none : try FullTextSettings(of: table, on: older)
    guard let known, known != settings else { return nil }
    let names = settings.names.isEmpty ? known.names : settings.names
    return "its settings (\(names.joined(separator: ", "))) do not travel; its rows do"
  }
}

extension VirtualModule {
  /// The endings of the names of those inner tables that the rows are read from. The others only help to find them.
  fileprivate var rowSuffixes: [String] {
    switch self {
    case .spatial: ["_node", "_rowid"]
    case .fullText: ["_content"]
    }
  }
}
