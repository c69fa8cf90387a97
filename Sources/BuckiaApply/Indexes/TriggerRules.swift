import BuckiaBytes
import SQLiteConnections
import SQLiteSchemas

/// The restrictions of SQLite on the functions and tables that triggers of a schema may use. TEMP triggers are exempt.
///
/// They are checked here, because the copy of a trigger must not be able to do what the trigger itself may not.
/// See <https://sqlite.org/src/doc/latest/doc/trusted-schema.md>.
struct TriggerRules {
  /// `SQLITE_DIRECTONLY`.
  private static let directOnly: Int64 = 0x80000
  /// `SQLITE_INNOCUOUS`.
  private static let innocuous: Int64 = 0x200000
  /// The functions whose results depend on previous statements.
  private static let statementFunctions: Set<String> = ["changes", "last_insert_rowid", "total_changes"]
  /// Modules that compute their rows from their arguments, without access to anything else.
  private static let harmlessModules: Set<String> = ["json_each", "json_tree", "generate_series"]

  private var flags: [String: Int64] = [:]
  private var unary: Set<String> = []
  /// The functions that SQLite itself has.
  private var builtIn: Set<String> = []
  private var modules: Set<String> = []
  private let trustsSchema: Bool

  /// Reads the functions, modules and settings of a connection.
  ///
  /// - Throws: `SQLiteError` when they cannot be read.
  init(_ connection: borrowing SQLiteConnection) throws {
    trustsSchema = try connection.integer("PRAGMA trusted_schema") != 0
    try connection.forEachRow(of: "SELECT name, narg, flags, builtin FROM pragma_function_list") { row in
      let name = ASCIIName.folded(row.text(at: 0) ?? "")
      // The strictest flags of all functions with the name: they are innocuous only if all of them are.
      let known = flags[name] ?? Self.innocuous
      let own = row.integer(at: 2)
      flags[name] = (known | own) & ~Self.innocuous | known & own & Self.innocuous
      if row.integer(at: 1) == 1 || row.integer(at: 1) == -1 { unary.insert(name) }
      if row.integer(at: 3) != 0 { builtIn.insert(name) }
    }
    try connection.forEachRow(of: "SELECT name FROM pragma_module_list") { row in
      modules.insert(ASCIIName.folded(row.text(at: 0) ?? ""))
    }
  }

  /// Whether a function can be called with one argument.
  func hasUnaryFunction(_ name: String) -> Bool { unary.contains(name) }

  /// The functions of the application that SQL calls, whether they are there or not: what they do is not known here.
  ///
  /// SpatiaLite's `RTreeAlign()`, for one, writes to the index whose name it is given.
  func applicationFunctions(in references: SQLReferences, _ schema: IndexSchema) -> [String] {
    references.calledFunctions.filter { name in
      let isKnown = ["match", "raise"].contains(name) || builtIn.contains(name) || modules.contains(name)
      return !isKnown && !schema.contains(TableName(name))
    }.sorted()
  }

  /// Why the copy of a trigger must not run; nil when it may.
  func refusal(of trigger: IndexTrigger, in schema: IndexSchema) -> String? {
    let references = trigger.references
    if let function = trigger.uncopiedFunction {
      return "its trigger also calls \(function)(), which may write to the index and is not run here"
    }
    if references.raises { return "its trigger calls RAISE(), which could keep out the row itself" }
    let read = references.sources.union([trigger.index.name])
    if let hidden = read.first(where: schema.temporaryTables.contains) {
      return "the TEMP table \"\(hidden)\" hides the table of that name"
    }
    if let table = read.first(where: isUnsafe(in: schema)) {
      return "its trigger reads the virtual table \"\(table)\""
    }
    for function in references.functions.sorted() {
      if trigger.isPartial, Self.statementFunctions.contains(function) {
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

  /// Whether a name is that of a virtual table which is not an index, or of an eponymous one.
  private func isUnsafe(in schema: IndexSchema) -> (TableName) -> Bool {
    { table in
      let name = ASCIIName.folded(table.text)
      if schema.otherVirtualTables[table] != nil { return true }
      return !schema.contains(table) && modules.contains(name) && !Self.harmlessModules.contains(name)
    }
  }
}
