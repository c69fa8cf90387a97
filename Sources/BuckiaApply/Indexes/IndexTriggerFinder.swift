import SQLiteConnections
import SQLiteSchemas

/// An index that cannot be maintained, and why.
struct UnmaintainedIndex {
  let name: TableName
  /// The name of the module.
  let module: String
  /// The table whose changes the index lacks.
  let table: TableName
  /// The reason, as a clause.
  let reason: String
}

/// Finds the triggers that maintain indexes.
struct IndexTriggerFinder {
  let schema: IndexSchema
  /// The parts of triggers to be copied, in the order in which they fire.
  private(set) var found: [IndexTrigger] = []
  /// The indexes that cannot be maintained, by the schema alone.
  private(set) var unmaintained: [UnmaintainedIndex] = []

  init(_ schema: IndexSchema) { self.schema = schema }

  /// Adds the triggers of a table.
  mutating func addTriggers(of table: TableName) {
    for trigger in schema.triggers[table] ?? [] {
      guard let definition = TriggerDefinition(parsing: trigger.sql) else {
        let names = SQLReferences(of: trigger.sql).names
        for index in schema.indexes where names.contains(index.name) {
          addUnmaintained(index, of: table, "its trigger \"\(trigger.name)\" cannot be understood")
        }
        continue
      }
      var seen: Set<TableName> = []
      for target in definition.statements.compactMap(\.target) where seen.insert(target).inserted {
        if let index = schema.index(named: target) {
          if let part = IndexTrigger(definition, of: table, on: index) { found.append(part) }
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
