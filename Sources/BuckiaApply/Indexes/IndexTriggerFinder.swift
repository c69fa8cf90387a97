import SQLiteConnections
import SQLiteSchemas

/// An index that cannot be kept up to date, and why.
struct NeglectedIndex {
  let name: TableName
  /// The name of its module.
  let module: String
  /// The table whose rows it lacks.
  let table: TableName
  /// Why, as half a sentence.
  let reason: String
}

/// Finds the triggers that keep indexes, and what else there is to know about them.
struct IndexTriggerFinder {
  let schema: IndexSchema
  /// For each index and table what has to be copied, in the order in which it fires.
  private(set) var found: [IndexTrigger] = []
  /// What cannot be copied, as the schema alone tells.
  private(set) var neglected: [NeglectedIndex] = []

  init(_ schema: IndexSchema) { self.schema = schema }

  /// Looks at the triggers of one table.
  mutating func look(at table: TableName) {
    for trigger in schema.triggers[table] ?? [] {
      guard let definition = TriggerDefinition(parsing: trigger.sql) else {
        let names = SQLMentions(of: trigger.sql).names
        for index in schema.indexes where names.contains(index.name) {
          neglect(index, of: table, "its trigger \"\(trigger.name)\" cannot be understood")
        }
        continue
      }
      var seen: Set<TableName> = []
      for target in definition.statements.compactMap(\.target) where seen.insert(target).inserted {
        if let index = schema.index(named: target) {
          if let part = IndexTrigger(definition, of: table, on: index) { found.append(part) }
        } else if let module = schema.otherVirtualTables[target] {
          neglected.append(
            NeglectedIndex(
              name: target, module: module, table: table, reason: "what a table of this module does is not known here"))
        } else if schema.views[target] != nil {
          for index in schema.indexes(writtenThrough: target) {
            neglect(index, of: table, "its triggers write to it through the view \"\(target)\"")
          }
        }
      }
    }
  }

  private mutating func neglect(_ index: IndexTable, of table: TableName, _ reason: String) {
    neglected.append(NeglectedIndex(name: index.name, module: index.module, table: table, reason: reason))
  }

  /// What fires at the same moment put together, so that its order is the one in which SQLite fires it: among several
  /// TEMP triggers SQLite keeps none.
  func groups() -> [[IndexTrigger]] {
    var groups: [(whole: IndexTrigger, parts: [IndexTrigger])] = []
    for trigger in found {
      var isTaken = false
      for place in groups.indices where !isTaken && groups[place].whole.append(trigger) {
        groups[place].parts.append(trigger)
        isTaken = true
      }
      if !isTaken { groups.append((trigger, [trigger])) }
    }
    return groups.map { $0.parts.count == 1 ? $0.parts : [$0.whole] + $0.parts }
  }
}
