import BuckiaBytes
import SQLiteConnections
import SQLiteSchemas

/// Finds the triggers that maintain indexes.
struct IndexTriggerFinder {
  let schema: IndexSchema
  let session: ApplySession
  /// The parts of triggers to be copied, in the order in which they fire.
  private(set) var found: [IndexTrigger] = []
  /// The indexes that cannot be maintained, by the schema alone.
  private(set) var unmaintained: [UnmaintainedIndex] = []
  var knownRules: TriggerRules?

  /// What triggers may do, read when it first matters.
  mutating func rules() throws -> TriggerRules {
    if let knownRules { return knownRules }
    let rules = try TriggerRules(session.connection)
    knownRules = rules
    return rules
  }

  /// Adds the triggers of a table.
  mutating func addTriggers(of table: TableName) throws {
    for trigger in schema.triggers[table] ?? [] {
      guard let definition = TriggerDefinition(parsing: trigger.sql) else {
        let names = SQLReferences(of: trigger.sql).names
        for index in schema.indexes where names.contains(index.name) {
          addUnmaintained(index, of: table, "its trigger \"\(trigger.name)\" cannot be understood")
        }
        continue
      }
      let calls = try definition.statements.map { statement in
        if statement.references.calledFunctions.isEmpty { return [String]() }
        return try rules().applicationFunctions(in: statement.references, schema)
      }
      for target in targets(of: definition, calling: calls) {
        if let index = schema.index(named: target) {
          if let part = IndexTrigger(definition, calling: calls, of: table, on: index, in: schema) {
            found.append(part)
          }
        } else if let module = schema.otherVirtualTables[target] {
          unmaintained.append(
            UnmaintainedIndex(
              name: target, module: module, table: table, reason: "what a table of this module does is not known here"))
        } else if schema.views[target] != nil {
          for index in schema.indexes(writtenThrough: target) {
            addUnmaintained(index, of: table, "its triggers write to it through the view \"\(target)\"")
          }
        }
      }
    }
  }

  /// The tables that a trigger writes, each once: the targets of its statements, and the indexes whose names it passes
  /// to functions of the application.
  private func targets(of definition: TriggerDefinition, calling calls: [[String]]) -> [TableName] {
    var targets: [TableName] = []
    var seen: Set<TableName> = []
    for (statement, functions) in zip(definition.statements, calls) {
      if let target = statement.target {
        if seen.insert(target).inserted { targets.append(target) }
      } else if !functions.isEmpty {
        for index in schema.indexes where statement.references.names.contains(index.name) {
          if seen.insert(index.name).inserted { targets.append(index.name) }
        }
      }
    }
    return targets
  }

  private mutating func addUnmaintained(_ index: IndexTable, of table: TableName, _ reason: String) {
    unmaintained.append(UnmaintainedIndex(name: index.name, module: index.module, table: table, reason: reason))
  }

  /// The triggers, with those for the same event merged, because SQLite fires several TEMP triggers in no defined order.
  ///
  /// - Returns: Groups of one trigger, or of a merged trigger followed by the ones that it was merged from.
  func groups() -> [[IndexTrigger]] {
    var groups: [(whole: IndexTrigger, parts: [IndexTrigger])] = []
    for trigger in found {
      var isMerged = false
      for place in groups.indices where !isMerged && groups[place].whole.merge(trigger) {
        groups[place].parts.append(trigger)
        isMerged = true
      }
      if !isMerged { groups.append((trigger, [trigger])) }
    }
    return groups.map { $0.parts.count == 1 ? $0.parts : [$0.whole] + $0.parts }
  }
}
