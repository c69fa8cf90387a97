import BuckiaBytes
import SQLiteConnections
import SQLiteSchemas

/// The part of a trigger that maintains one index, ready to be copied.
///
/// A trigger may write to several tables. Its writes to ordinary tables are already part of the author's changes, and
/// only its statements on the index are copied: those that write to it, and each SELECT that passes its name to a
/// function of the application. Such a trigger is copied as a whole or not at all. An index from which rows are
/// deleted, and to which they are not added again, would be worse than one that is out of date.
struct IndexTrigger {
  /// The index that the statements write to.
  let index: IndexTable
  /// The table of the trigger.
  let table: TableName
  let timing: TriggerDefinition.Timing
  let event: TriggerDefinition.Event
  /// The columns after UPDATE OF; empty when there are none.
  let columns: [String]
  /// The expression after WHEN; nil if there is none.
  let condition: String?
  private(set) var statements: [String]
  private(set) var hasConflictClause: Bool
  /// The names that the condition and the statements refer to.
  private(set) var references: SQLReferences
  /// True if the trigger has other statements, which are not copied.
  private(set) var isPartial: Bool
  /// True if it leaves some of the work to a function of the application.
  private(set) var callsApplication: Bool
  /// A function of the application that belongs to the trigger and cannot be copied with it; nil if there is none.
  private(set) var uncopiedFunction: String?

  /// Nil when no statement of the trigger writes to the index.
  ///
  /// - Parameter calls: For each statement the functions of the application that it calls.
  init?(
    _ definition: TriggerDefinition, calling calls: [[String]], of table: TableName, on index: IndexTable,
    in schema: IndexSchema
  ) {
    var own: [TriggerDefinition.Statement] = []
    for (statement, functions) in zip(definition.statements, calls) {
      let names = statement.references.names
      if statement.target == index.name || statement.target == nil && !functions.isEmpty && names.contains(index.name) {
        own.append(statement)
      } else if let function = functions.first, names.contains(index.name) || statement.maintainsUnknown(schema) {
        uncopiedFunction = function
      }
    }
    guard !own.isEmpty, definition.timing != .insteadOf else { return nil }
    self.index = index
    self.table = table
    timing = definition.timing
    event = definition.event
    columns = definition.columns
    condition = definition.condition
    statements = own.map(\.text)
    hasConflictClause = own.contains(where: \.hasConflictClause)
    isPartial = own.count < definition.statements.count
    callsApplication = uncopiedFunction != nil || own.contains { $0.target == nil }
    references = own.reduce(definition.conditionReferences) { $0.union($1.references) }
  }

  /// The tables it reads besides its own and the index. If they change, too, the result depends on the order of changes.
  var otherSources: Set<TableName> { references.sources.subtracting([table, index.name]) }

  /// Appends the statements of another trigger for the same event.
  ///
  /// - Parameter later: A trigger that fires after this one.
  /// - Returns: false when the two triggers do not always fire for the same rows.
  mutating func merge(_ later: IndexTrigger) -> Bool {
    guard index == later.index, table == later.table, timing == later.timing, event == later.event,
      columns.elementsEqual(later.columns, by: ASCIIName.matches), condition == nil, later.condition == nil
    else { return false }
    statements += later.statements
    hasConflictClause = hasConflictClause || later.hasConflictClause
    references = references.union(later.references)
    isPartial = isPartial || later.isPartial
    callsApplication = callsApplication || later.callsApplication
    uncopiedFunction = uncopiedFunction ?? later.uncopiedFunction
    return true
  }

  /// True if another trigger maintains the same index on the same event.
  func sharesWork(with other: IndexTrigger) -> Bool {
    index == other.index && table == other.table && event == other.event
  }

  /// The statement that creates the copy.
  ///
  /// - Parameters:
  ///   - name: The name of the copy.
  ///   - number: The number of the copy in the switch.
  func createStatement(name: String, number: Int) -> String {
    let control = IndexTriggerSwitch.functionName
    let columns = columns.isEmpty ? "" : " OF \(columns.map(SQLText.identifier).joined(separator: ", "))"
    let condition = condition.map { " AND \(control)(\(number), (\($0)) IS TRUE)" } ?? ""
    return """
      CREATE TEMP TRIGGER \(SQLText.identifier(name)) \(timing.rawValue) \(event.rawValue)\(columns) ON main.\(table.quoted)
      WHEN \(control)(\(number))\(condition)
      BEGIN
      \(statements.map { "\($0);" }.joined(separator: "\n"))
      SELECT \(control)(\(number), 0);
      END
      """
  }

  /// A statement that fires the copy. SQLite checks the body of a trigger only when it prepares such a statement.
  ///
  /// - Parameter writable: The columns of the table that can be written.
  func firingStatement(writable: [String]) -> String {
    switch event {
    case .insert: return "INSERT INTO main.\(table.quoted) DEFAULT VALUES"
    case .delete: return "DELETE FROM main.\(table.quoted)"
    case .update:
      let known = writable + ["rowid", "oid", "_rowid_"]
      let updated = columns.first { column in known.contains { ASCIIName.matches($0, column) } }
      let column = SQLText.identifier(updated ?? known[0])
      return "UPDATE main.\(table.quoted) SET \(column) = \(column)"
    }
  }
}

extension TriggerDefinition.Statement {
  /// True if this is a SELECT that names no index. The purpose of its functions is unknown.
  fileprivate func maintainsUnknown(_ schema: IndexSchema) -> Bool {
    target == nil && !schema.indexes.contains { references.names.contains($0.name) }
  }
}

/// Switches copied triggers on and off, and records which one is running, to find one that fails.
///
/// Copies call it through an SQL function: before their statements in the WHEN condition, and after them.
final class IndexTriggerSwitch {
  /// The name of the function.
  ///
  /// `f(n)` returns true if copy n is on. `f(n, v)` returns v; copy n has ended, or its condition is false, when v is 0.
  static let functionName = "buckia_keeps_index"

  /// True if each copy is on.
  var isOn: [Bool] = []
  /// The copy that is running, or was running when the statement failed.
  var running: Int?

  /// Answers a call of the function. Any arguments are safe: all SQL of the connection can call it.
  func answer(_ number: Int64, _ value: Int64?) -> Int64 {
    guard let number = Int(exactly: number), isOn.indices.contains(number) else { return 0 }
    if let value {
      if value == 0 { running = nil }
      return value
    }
    guard isOn[number] else { return 0 }
    running = number
    return 1
  }
}

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

  /// True if a function can be called with one argument.
  func hasUnaryFunction(_ name: String) -> Bool { unary.contains(name) }

  /// The functions of the application that SQL calls, present or not. Their effects are unknown here.
  ///
  /// SpatiaLite's `RTreeAlign()`, for one, writes to the index whose name it is given.
  func applicationFunctions(in references: SQLReferences, _ schema: IndexSchema) -> [String] {
    references.calledFunctions.filter { name in
      let isKnown = ["match", "raise"].contains(name) || builtIn.contains(name) || modules.contains(name)
      return !isKnown && !schema.contains(TableName(name))
    }.sorted()
  }

  /// Why the copy of a trigger must not run; nil if it may.
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

  /// True if a name is that of a virtual table which is not an index, or of an eponymous one.
  private func isUnsafe(in schema: IndexSchema) -> (TableName) -> Bool {
    { table in
      let name = ASCIIName.folded(table.text)
      if schema.otherVirtualTables[table] != nil { return true }
      return !schema.contains(table) && modules.contains(name) && !Self.harmlessModules.contains(name)
    }
  }
}
