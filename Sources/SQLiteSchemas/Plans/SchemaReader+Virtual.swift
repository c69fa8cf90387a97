import SQLiteConnections

extension SchemaReader {
  /// Whether a table is a shadow table of a virtual table that travels, and so travels with it.
  package func isInside(_ entry: SchemaEntry) -> Bool {
    guard case .shadow(let owner) = entry.kind else { return false }
    return self.entry(named: TableName(owner))?.kind.hasOwnRows == true
  }

  /// Reads the definition of a virtual table that has rows of its own.
  ///
  /// - Throws: `SQLiteError` when the schema cannot be read.
  func virtualDefinition(of entry: SchemaEntry) throws -> TableDefinition {
    let name = entry.name.text
    var columns: [ColumnDefinition] = []
    // Full-text tables have hidden columns, which hold commands and ranks, not rows.
    let query = "SELECT name FROM pragma_table_xinfo(?1, 'main') WHERE hidden <> 1 ORDER BY cid"
    try connection.forEachRow(of: query, binding: [name]) {
      columns.append(ColumnDefinition(name: $0.text(at: 0) ?? ""))
    }
    let source = "SELECT sql FROM main.sqlite_schema WHERE type = 'table' AND name = ?1"
    let made = VirtualTableDefinition(parsing: try connection.text(source, binding: [name]) ?? "")
    var table = TableDefinition(name: name, columns: columns)
    guard let made, let module = VirtualModule(made, columns: columns.map(\.name)) else {
      throw ReplicationError(
        .refusedTable, "the definition of the virtual table \"\(name)\" is not understood", table: name)
    }
    table.module = module
    if case .spatial(let index) = module {
      table.primaryKey = [0]
      table.columns[0].isNotNull = true
      for place in columns.indices {
        table.columns[place].declaredType =
          place == 0
          ? "INTEGER"
          : place > index.coordinates
            ? VirtualModule.auxiliaryType(in: made.arguments[place]) : index.kind == .real ? "REAL" : "INT"
      }
    }
    return table
  }

  /// Whether a module has a name: then every table of that name can be read without being created.
  func hasModule(named name: String) throws -> Bool {
    var isFound = false
    let query = "SELECT 1 FROM pragma_module_list WHERE lower(name) = lower(?1)"
    try connection.forEachRow(ofCached: query, binding: [name]) { _ in isFound = true }
    return isFound
  }

  /// Why a table may not be created beside those that are there, or nil: the names of the tables that a module makes along
  /// with a virtual one are taken, or the name of an ordinary one is such a name.
  ///
  /// - Parameter siblings: The other tables of the same diff.
  func nameClash(of table: TableDefinition, among siblings: [TableDefinition]) -> String? {
    let own = (table.module?.shadowSuffixes ?? []).map { TableName(table.name + $0) }
    if let taken = own.first(where: { entry(named: $0) != nil }) {
      return "its module keeps its rows in a table \"\(taken)\", and there is another of that name"
    }
    for sibling in siblings {
      if own.contains(TableName(sibling.name)) {
        return "its module keeps its rows in a table \"\(sibling.name)\", which is to be created, too"
      }
    }
    if let owner = shadowNames.owner(of: TableName(table.name)) {
      return "a table of that name would hold the insides of the virtual table \"\(owner)\""
    }
    return nil
  }
}
