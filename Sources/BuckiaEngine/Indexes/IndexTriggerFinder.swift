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
        } else if schema.views.contains(target) {
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

/// What triggers of a connection may use: the rules SQLite has for those of a schema, which TEMP triggers are exempt from.
///
/// The copy of a trigger must not be able to do what the trigger itself could not.
/// See <https://sqlite.org/src/doc/latest/doc/trusted-schema.md>.
struct TriggerRules {
  private static let directOnly: Int64 = 0x80000
  private static let innocuous: Int64 = 0x200000

  private var flags: [String: Int64] = [:]
  private var unary: Set<String> = []
  private var modules: Set<String> = []
  private let trustsSchema: Bool

  /// - Throws: `SQLiteError` when SQLite cannot tell.
  init(_ connection: borrowing SQLiteConnection) throws {
    trustsSchema = try connection.integer("PRAGMA trusted_schema") != 0
    try connection.forEachRow(of: "SELECT name, narg, flags FROM pragma_function_list") { row in
      let name = ASCIIName.folded(row.text(at: 0) ?? "")
      // The strictest of all that share the name: one that is not innocuous takes the bit from all.
      let known = flags[name] ?? Self.innocuous
      let own = row.integer(at: 2)
      flags[name] = (known | own) & ~Self.innocuous | known & own & Self.innocuous
      if row.integer(at: 1) == 1 || row.integer(at: 1) == -1 { unary.insert(name) }
    }
    try connection.forEachRow(of: "SELECT name FROM pragma_module_list") { row in
      modules.insert(ASCIIName.folded(row.text(at: 0) ?? ""))
    }
  }

  /// Whether a function can be called with one argument.
  func hasUnaryFunction(_ name: String) -> Bool { unary.contains(name) }

  /// Why the copy of a trigger must not run, or nil.
  func refusal(of trigger: IndexTrigger, in schema: IndexSchema) -> String? {
    let mentions = trigger.mentions
    if mentions.raises { return "its trigger calls RAISE(), which could keep out the row itself" }
    let read = mentions.sources.union([trigger.index.name])
    if let hidden = read.first(where: schema.temporaryTables.contains) {
      return "the TEMP table \"\(hidden)\" hides the table of that name"
    }
    if let table = read.first(where: isUnsafe(in: schema)) {
      return "its trigger reads the virtual table \"\(table)\""
    }
    for function in mentions.functions.sorted() {
      guard let flags = flags[function] else { continue }
      if flags & Self.directOnly != 0 { return "its trigger calls \(function)(), which no trigger may" }
      if !trustsSchema, flags & Self.innocuous == 0 {
        return "its trigger calls \(function)(), and the connection does not trust its schema"
      }
    }
    return nil
  }

  /// Whether a name stands for a virtual table that is no index: one of the schema, or a module of that name.
  private func isUnsafe(in schema: IndexSchema) -> (TableName) -> Bool {
    { table in
      if schema.otherVirtualTables[table] != nil { return true }
      let isKnown = schema.tables.contains(table) || schema.views.contains(table) || schema.index(named: table) != nil
      return !isKnown && modules.contains(ASCIIName.folded(table.text))
    }
  }
}
