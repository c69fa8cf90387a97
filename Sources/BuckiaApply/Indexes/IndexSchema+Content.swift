import SQLiteSchemas
import SQLiteConnections

/// Full-text indexes with external content that no trigger maintains: they are rebuilt from their content.
extension IndexSchema {
  /// Rebuilds an index without triggers if its content has changed.
  ///
  /// - Parameters:
  ///   - index: The index.
  ///   - changed: The tables whose rows have changed.
  /// - Returns: A remark for the report; nil when there was nothing to do.
  /// - Throws: `SQLiteError` when the database fails.
  func rebuildWithoutTriggers(
    _ index: IndexTable, after changed: Set<TableName>, on connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> Remark? {
    guard let content = index.content, !sources(of: content).isDisjoint(with: changed), !isMaintained(index) else {
      return nil
    }
    if let reason = try connection.failure(ofRunning: index.rebuildStatement) {
      return Remark(
        .indexNotRebuilt, index.module, index.name.text, content.text, "was not kept up to date (it has no triggers)",
        reason)
    }
    return Remark(.indexRebuilt, index.module, index.name.text, content.text)
  }

  func isView(_ name: TableName) -> Bool { views[name] != nil }

  /// Whether triggers maintain an index with external content: those of its content table, or TEMP triggers on it.
  private func isMaintained(_ index: IndexTable) -> Bool {
    guard let content = index.content else { return false }
    // The triggers that maintain an index over a view are those of the view's tables.
    let own = isView(content) ? Array(triggers.values.joined()) : triggers[content] ?? []
    let temporary = temporaryTriggers.filter { $0.table == content || isView(content) }
    return (own + temporary).contains { trigger in
      guard let definition = TriggerDefinition(parsing: trigger.sql) else {
        return SQLReferences(of: trigger.sql).names.contains(index.name)
      }
      return definition.statements.contains { $0.target == index.name }
    }
  }

  /// The tables that a table or view takes its rows from, itself included.
  func sources(of content: TableName) -> Set<TableName> {
    var found: Set<TableName> = [content]
    var open = [content]
    while let next = open.popLast() {
      guard let sql = views[next] else { continue }
      for source in SQLReferences(of: sql).sources where found.insert(source).inserted { open.append(source) }
    }
    return found
  }
}

extension IndexMaintenance {
  /// Rebuilds the indexes that no trigger maintains, when changes were applied with triggers on.
  ///
  /// - Parameter changed: The tables that were written.
  /// - Returns: Remarks for the report.
  /// - Throws: `SQLiteError` when the database fails.
  static func rebuildIndexesWithoutTriggers(changed: [TableName], in session: ApplySession) throws -> [Remark] {
    guard !changed.isEmpty else { return [] }
    let schema = try session.indexSchema()
    guard schema.indexes.contains(where: { $0.content != nil }) else { return [] }
    let reached = Set(changed)
    var remarks: [Remark] = []
    for index in schema.indexes {
      if let remark = try schema.rebuildWithoutTriggers(index, after: reached, on: session.connection) {
        remarks.append(remark)
      }
    }
    return remarks
  }
}
