/// Definitions of tables that have been read, as many as there is room for.
struct KeptDefinitions {
  /// The most columns that are kept, of all tables together: some 10 MB of memory.
  private static let columnLimit = 65_536

  private var definitions: [TableName: TableDefinition] = [:]
  private var columnCount = 0

  /// The definition of a table; nil where it is not kept.
  subscript(name: TableName) -> TableDefinition? { definitions[name] }

  /// Keeps a definition, in the place of an earlier one of the same table.
  mutating func keep(_ definition: TableDefinition) {
    let name = TableName(definition.name)
    forget(name)
    if columnCount + definition.columns.count > Self.columnLimit {
      definitions = [:]
      columnCount = 0
    }
    columnCount += definition.columns.count
    definitions[name] = definition
  }

  /// Forgets the definition of a table.
  mutating func forget(_ name: TableName) {
    if let known = definitions.removeValue(forKey: name) { columnCount -= known.columns.count }
  }

  /// Takes a definition out, to be changed and kept again: it is not copied then.
  mutating func take(_ name: TableName) -> TableDefinition? {
    let known = definitions[name]
    forget(name)
    return known
  }
}
