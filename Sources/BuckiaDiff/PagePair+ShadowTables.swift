import SQLiteSchemas
import SQLiteConnections

extension PagePair {
  /// Whether a virtual table holds the same rows in both databases, as the pages of its shadow tables tell: then it need
  /// not be read. Most are the same, and a large one takes as long as all the rest.
  ///
  /// - Returns: false, too, when pages cannot tell.
  func hasSameShadowTables(_ table: TableDefinition) throws -> Bool {
    guard let module = table.module else { return false }
    for suffix in module.contentSuffixes {
      let name = TableName(table.name + suffix)
      guard let olderEntry = older.schema.entry(named: name), let newerEntry = newer.schema.entry(named: name),
        case .shadow = olderEntry.kind, case .shadow = newerEntry.kind
      else { return false }
      let definition = try newer.schema.definition(of: newerEntry)
      let olderDefinition = try older.schema.definition(of: olderEntry)
      let changes = ChangeCollector(of: definition)
      let refusal = try compare(definition, with: olderDefinition, into: changes)
      guard refusal == nil, changes.isEmpty else { return false }
    }
    return true
  }
}

extension VirtualModule {
  /// The suffixes of the names of those shadow tables that the rows are read from. The others only help to find them.
  fileprivate var contentSuffixes: [String] {
    switch self {
    case .spatial: ["_node", "_rowid"]
    case .fullText: ["_content"]
    }
  }
}
