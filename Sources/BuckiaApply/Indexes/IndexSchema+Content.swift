import SQLiteConnections
import SQLiteSchemas

/// Full-text indexes over the rows of other tables that no trigger keeps: they follow from these, and are made anew.
extension IndexSchema {
  /// Makes an index anew whose content has changed.
  ///
  /// - Parameters:
  ///   - index: The index.
  ///   - changed: The tables whose rows have changed.
  /// - Returns: What is to be said of it; nil when there was nothing to do.
  /// - Throws: `SQLiteError` when the database fails.
  func remake(
    _ index: IndexTable, after changed: Set<TableName>, on connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> String? {
    guard let content = index.content, !sources(of: content).isDisjoint(with: changed), !isKept(index) else {
      return nil
    }
    let subject =
      "the \(index.module) index \"\(index.name)\" over \(isView(content) ? "view" : "table") \"\(content)\""
    if let reason = try connection.failure(ofRunning: index.rebuildStatement) {
      return "\(subject) was not kept up to date (it has no triggers), and cannot be rebuilt (\(reason))"
    }
    return "\(subject) has no triggers: it was made anew from that"
  }

  private func isView(_ name: TableName) -> Bool { views[name] != nil }

  /// Whether triggers keep an index over external content: those of its table, or the application's own TEMP triggers on it.
  private func isKept(_ index: IndexTable) -> Bool {
    guard let content = index.content else { return false }
    // What keeps an index over a view stands at the tables of the view.
    let own = isView(content) ? Array(triggers.values.joined()) : triggers[content] ?? []
    let temporary = temporaryTriggers.filter { $0.table == content || isView(content) }
    return (own + temporary).contains { trigger in
      guard let definition = TriggerDefinition(parsing: trigger.sql) else {
        return SQLMentions(of: trigger.sql).names.contains(index.name)
      }
      return definition.statements.contains { $0.target == index.name }
    }
  }

  /// The tables whose rows a table or view gives.
  private func sources(of content: TableName) -> Set<TableName> {
    var found: Set<TableName> = [content]
    var open = [content]
    while let next = open.popLast() {
      guard let sql = views[next] else { continue }
      for source in SQLMentions(of: sql).sources where found.insert(source).inserted { open.append(source) }
    }
    return found
  }
}

extension IndexUpkeep {
  /// Makes those indexes anew that no trigger keeps, where the triggers themselves fire.
  ///
  /// - Parameter changed: The tables that were written.
  /// - Returns: What is to be said of them.
  /// - Throws: `SQLiteError` when the database fails.
  static func remakeUnkept(changed: [TableName], on connection: borrowing SQLiteConnection) throws -> [String] {
    guard !changed.isEmpty else { return [] }
    let schema = try IndexSchema(connection)
    guard schema.indexes.contains(where: { $0.content != nil }) else { return [] }
    let reached = try schema.reach(of: Set(changed), on: connection)
    var remarks: [String] = []
    for index in schema.indexes {
      if let remark = try schema.remake(index, after: reached, on: connection) { remarks.append(remark) }
    }
    return remarks
  }
}
