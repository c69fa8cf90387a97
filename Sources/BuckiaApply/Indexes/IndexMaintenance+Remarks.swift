import SQLiteSchemas
import SQLiteConnections

/// What is done for indexes after all changes have been applied.
extension IndexMaintenance {
  /// Rebuilds the indexes that are incomplete and can be rebuilt.
  ///
  /// - Parameters:
  ///   - changed: The tables that were written.
  ///   - rowCount: How many of their rows.
  /// - Returns: Remarks for the report about indexes that are or may be incomplete.
  /// - Throws: `SQLiteError` when the database fails.
  func rebuildIncompleteIndexes(changed: [TableName], rowCount: Int) throws -> [Remark] {
    let reached = Set(changed)
    var remarks: [Remark] = []
    for item in unmaintained where reached.contains(item.table) && schema.index(named: item.name) == nil {
      remarks.append(Remark(.indexIncomplete, item.module, item.name.text, item.table.text, Self.problem(item)))
    }
    for index in schema.indexes {
      let problems = try problems(of: index, reached, hasOrder: rowCount > 1 || reached.count > changed.count)
      func remark(_ code: Remark.Code, _ problem: Problem, _ detail: String...) -> Remark {
        Remark(code, [index.module, index.name.text, problem.table.text, problem.text] + detail)
      }
      if problems.isEmpty {
        if let remark = try schema.rebuildWithoutTriggers(index, after: reached, on: session.connection) {
          remarks.append(remark)
        }
      } else if canRebuild(index) {
        if let reason = try session.connection.failure(ofRunning: index.rebuildStatement) {
          remarks += problems.map { remark(.indexNotRebuilt, $0, reason) }
        } else if known.contains(where: { $0.index == index && $0.callsFunctions(besides: schema) }) {
          remarks.append(remark(.indexRebuiltWithoutFunctions, problems[0], index.content?.text ?? ""))
        } else if !schema.isView(index.content ?? index.name), try readsOthers(index) {
          remarks.append(remark(.indexRebuiltWithoutOtherRows, problems[0], index.content?.text ?? ""))
        }
      } else {
        remarks += problems.map { remark(.indexToRebuild, $0) }
      }
    }
    return remarks
  }

  /// Why an index is or may be incomplete: the table whose changes it lacks, and the predicate of a sentence.
  private typealias Problem = (table: TableName, text: String)

  private static func problem(_ item: UnmaintainedIndex) -> String { "was not kept up to date (\(item.reason))" }

  /// - Parameter hasOrder: Whether so many rows were written that their order can make a difference.
  private func problems(
    of index: IndexTable, _ reached: Set<TableName>, hasOrder: Bool
  ) throws -> [Problem] {
    var found: [Problem] = []
    func add(_ table: TableName, _ text: String) {
      if !found.contains(where: { $0 == (table, text) }) { found.append((table, text)) }
    }
    for item in unmaintained where item.name == index.name && reached.contains(item.table) {
      add(item.table, Self.problem(item))
    }
    for (number, copy) in copies.enumerated() where copy.index == index {
      if let failure = failures[number] {
        add(
          copy.table,
          "did not take \(failure.count) change\(failure.count == 1 ? "" : "s") (\(failure.message))")
      }
      guard reached.contains(copy.table) else { continue }
      let others = reached.subtracting([copy.table])
      let sources = copy.otherSources.filter { others.contains($0) || schema.views[$0] != nil && !others.isEmpty }
      if let source = sources.map(\.text).min() {
        add(
          copy.table,
          "may lack changes (its triggers read \"\(source)\", too, which was written at another time than by the author)"
        )
      }
      if hasOrder, try readsOthers(copy) {
        add(
          copy.table,
          "may differ from the author's (its triggers read other rows of that table, too, which came in another order)")
      }
    }
    return found
  }

  /// Whether triggers that maintain an index read other rows than those that they fire for.
  private func readsOthers(_ index: IndexTable) throws -> Bool {
    try known.contains { trigger in
      guard trigger.index == index else { return false }
      return try !trigger.otherSources.isEmpty || readsOthers(trigger)
    }
  }

  /// Whether a trigger reads other rows of its own table than the one that it fires for.
  private func readsOthers(_ trigger: IndexTrigger) throws -> Bool {
    let shown = trigger.references.sources.filter { schema.sources(of: $0).contains(trigger.table) }
    guard !shown.isEmpty else { return false }
    let views = Set(shown.flatMap(schema.sources)).filter { schema.sources(of: $0).contains(trigger.table) }
    let lookups = OwnRowLookups(of: views, keys: try keys(of: trigger.table))
    if views.contains(where: { schema.views[$0].map(lookups.showsSingleRows) == false }) { return true }
    return ([trigger.condition ?? ""] + trigger.statements).contains(where: lookups.readsOthers)
  }

  /// The names by which a row of a table can be looked up: for each key, for each of its columns.
  private func keys(of table: TableName) throws -> [[Set<String>]] {
    let local = try session.schema()
    guard let entry = local.entry(named: table), entry.kind == .table else { return [] }
    let definition = try local.definition(of: entry)
    let key = definition.primaryKey.map { definition.columns[$0].name }
    guard !definition.isWithoutRowID else { return [key.map { [$0] }] }
    let rowID: Set<String> = ["rowid", "oid", "_rowid_"]
    // A single column may be the rowid by another name.
    return key.count == 1 ? [[rowID.union(key)]] : [[rowID], key.map { [$0] }]
  }
}

extension IndexTrigger {
  /// Whether the trigger calls any function. The name of a table can be followed by a parenthesis, too.
  fileprivate func callsFunctions(besides schema: IndexSchema) -> Bool {
    uncopiedFunction != nil || references.calledFunctions.contains { !schema.contains(TableName($0)) }
  }
}
