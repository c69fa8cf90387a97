import BuckiaBytes
import SQLiteConnections

/// How an incoming virtual table meets what has its name here.
extension SchemaPlan {
  /// What is to be said when the rows of a table are not written, since this database keeps them by itself; nil when they are.
  ///
  /// - Parameter incoming: The author's definition; nil for a raw changeset, which has none.
  static func warning(onPassingOver incoming: TableDefinition?, for entry: SchemaEntry) -> Warning? {
    guard case .virtual(let module, let content) = entry.kind else { return nil }
    if let incoming {
      guard let wanted = incoming.module, ASCIIName.matches(wanted.name, module) else { return nil }
    }
    switch content {
    case .keptByTriggers: return Warning(.rowsKeptByTriggers, entry.name.text)
    case .external(let table): return Warning(.rowsOfExternalContent, entry.name.text, table.text)
    case .own, .contentless, .unknown, .unavailable: return nil
    }
  }

  /// Why what is an ordinary table on one side cannot be a virtual one on the other, or nil.
  static func refusal(of incoming: TableDefinition, for entry: SchemaEntry) -> String? {
    switch (incoming.module, entry.kind) {
    case (let wanted?, .virtual(let module, _)):
      if ASCIIName.matches(wanted.name, module) { return nil }
      return "it is a virtual table of the module \(wanted.name) in the diff, and of \(module) here"
    case (nil, .virtual(let module, .own)):
      return "it is a virtual table (\(module)) here, and an ordinary one in the diff"
    case (let wanted?, .table): return "it is a virtual table (\(wanted.name)) in the diff, and an ordinary one here"
    default: return nil
    }
  }

  /// Pairs the columns of two virtual tables of one module: they must be the same, since none can be added.
  ///
  /// - Throws: `ReplicationError` when they are not.
  static func match(
    _ incoming: TableDefinition, with local: TableDefinition, mode: SchemaMode
  ) throws(ReplicationError) -> TableMatch {
    let offset = incoming.isKeyedByRowID ? 1 : 0
    var columns = Array(0..<offset)
    for column in incoming.columns {
      guard let place = local.column(named: column.name), !columns.contains(place + offset) else {
        throw ReplicationError(
          .columnsDiffer,
          "the virtual table \"\(local.name)\" has no column \"\(column.name)\" here, and none can be added",
          table: local.name, column: column.name)
      }
      columns.append(place + offset)
    }
    guard columns.count == local.columns.count + offset else {
      throw ReplicationError(
        .columnsDiffer,
        "the virtual table \"\(local.name)\" has \(local.columns.count) columns here and \(incoming.columns.count) in the "
          + "diff", table: local.name)
    }
    guard incoming.hasSameKey(as: local) else {
      throw ReplicationError(.keyDiffers, "the virtual table \"\(local.name)\" has another key here", table: local.name)
    }
    if mode == .exact, incoming.module != local.module || columns != Array(columns.indices) {
      throw ReplicationError(
        .schemaDiffers,
        "table \"\(local.name)\" is defined differently here, and the schema mode `exact` allows no difference",
        table: local.name)
    }
    return TableMatch(local: local, columns: columns, checkedValues: [])
  }
}

extension SchemaStep {
  /// Carries the step out.
  ///
  /// - Throws: `ReplicationError` when a module refuses to make a table: only the module understands all of its arguments.
  ///   `SQLiteError` when the database fails.
  package func carryOut(on connection: borrowing SQLiteConnection) throws {
    guard case .createTable(let table, _) = self, table.module != nil else { return try connection.execute(sql) }
    if let reason = try connection.failure(ofRunning: sql) {
      throw ReplicationError(
        .refusedDefinition, "the virtual table \"\(table.name)\" cannot be created: \(reason)", table: table.name)
    }
  }
}
