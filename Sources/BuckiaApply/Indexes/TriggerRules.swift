import SQLiteConnections
import SQLiteSchemas

/// What triggers of a connection may use: the rules SQLite has for those of a schema, which TEMP triggers are exempt from.
///
/// The copy of a trigger must not be able to do what the trigger itself could not.
/// See <https://sqlite.org/src/doc/latest/doc/trusted-schema.md>.
struct TriggerRules {
  private static let directOnly: Int64 = 0x80000
  private static let innocuous: Int64 = 0x200000
  /// What tells of the statements before.
  private static let retrospective: Set<String> = ["changes", "last_insert_rowid", "total_changes"]
  /// Modules that compute their rows from their arguments and touch nothing else.
  private static let harmlessModules: Set<String> = ["json_each", "json_tree", "generate_series"]

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
      if trigger.isPart, Self.retrospective.contains(function) {
        return "its trigger calls \(function)() behind statements that are not run here"
      }
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
      let name = ASCIIName.folded(table.text)
      if schema.otherVirtualTables[table] != nil { return true }
      let isKnown = schema.tables.contains(table) || schema.views[table] != nil || schema.index(named: table) != nil
      return !isKnown && modules.contains(name) && !Self.harmlessModules.contains(name)
    }
  }
}
