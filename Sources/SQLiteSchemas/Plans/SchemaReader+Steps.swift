import SQLiteConnections

/// A schema that changes while it is known: a folder can hold thousands of files that each add something to it, and whoever read
/// all of it anew for each would take a time that grows with their square.
extension SchemaReader {
  /// Carries out a step of a plan, and reads what it has changed.
  ///
  /// - Returns: Whether the reader describes the schema as it is now. It does not once a virtual table was made, along with the
  ///   tables of its module.
  /// - Throws: As ``SchemaStep/carryOut(on:)``. What the reader says means nothing any more then.
  package func carryOut(_ step: SchemaStep) throws -> Bool {
    try step.carryOut(on: connection)
    switch step {
    case .createTable(let table, _):
      guard table.module == nil else { return false }
      try addEntry(
        SchemaEntry(
          name: TableName(table.name), kind: .table, isWithoutRowID: table.isWithoutRowID, isStrict: table.isStrict,
          sql: createStatement(of: TableName(table.name)), isNameRepaired: false))
    case .addColumn(let column, let table):
      guard let place = places[table] else { return false }
      let old = entries[place]
      entries[place] = SchemaEntry(
        name: old.name, kind: old.kind, isWithoutRowID: old.isWithoutRowID, isStrict: old.isStrict,
        sql: try createStatement(of: table), isNameRepaired: old.isNameRepaired)
      addColumn(column.added, to: old.name)
    }
    return true
  }

  private func addEntry(_ entry: SchemaEntry) throws {
    places[entry.name] = entries.count
    entries.append(entry)
    definitions?.forget(entry.name)
  }

  /// The statement that SQLite has for a table. That of a new one is found at once: it is the last.
  private func createStatement(of table: TableName) throws -> String {
    let query = """
      SELECT sql FROM main.sqlite_schema WHERE type = 'table' AND name = ?1 COLLATE NOCASE ORDER BY rowid DESC LIMIT 1
      """
    var found = ""
    try connection.forEachRow(ofCached: query, binding: [table.text]) { found = $0.text(at: 0) ?? "" }
    return found
  }

  /// Adds a new column to the definition of its table, if that is kept. SQLite adds it behind all others, and neither to a key nor
  /// to an index (<https://sqlite.org/lang_altertable.html#altertabaddcol>). To read all columns again would take longer than to
  /// add one.
  private func addColumn(_ column: ColumnDefinition, to table: TableName) {
    guard var definition = definitions?.take(table) else { return }
    definition.columns.append(column)
    definitions?.keep(definition)
  }
}
