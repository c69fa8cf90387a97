import SQLiteSchemas

extension KeyedTables {
  /// The tables of a diff, and others as they are here.
  ///
  /// - Parameters:
  ///   - names: The others. Those that the diff has, or that are not here, do not count.
  ///   - definitions: The tables of the diff.
  ///   - schema: The schema of the database.
  /// - Throws: `SQLiteError`.
  static func withLocal(
    _ names: [TableName], _ definitions: [TableDefinition], _ schema: SchemaReader
  ) throws -> KeyedTables {
    let known = Set(definitions.map { TableName($0.name) })
    var all = definitions
    for name in names where !known.contains(name) {
      guard let entry = schema.entry(named: name), entry.kind == .table else { continue }
      all.append(try schema.definition(of: entry))
    }
    return try KeyedTables(all, schema)
  }
}
