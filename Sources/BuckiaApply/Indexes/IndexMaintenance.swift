import BuckiaBytes
import SQLiteConnections
import SQLiteSchemas

/// Keeps full-text and R-tree indexes up to date while changes are applied with triggers off.
///
/// Triggers are off because the changes already contain the effects of the author's triggers. Indexes are the
/// exception: they are not replicated, and have to be maintained here. The statements of local triggers that write to
/// an index are copied into TEMP triggers, which fire even when triggers are off
/// (<https://sqlite.org/c3ref/c_dbconfig_defensive.html#sqlitedbconfigenabletrigger>), unchanged and with the same
/// event and condition. The index thereby gets exactly the rows that are written, however conflicts are resolved. The
/// copies are part of the open transaction, and `end` removes them.
///
/// An index never causes a row to be refused. When a copy fails, the row is written without it. The index is rebuilt later
/// if it has external content, and reported otherwise.
final class IndexMaintenance {
  let schema: IndexSchema
  let session: ApplySession
  private let control = IndexTriggerSwitch()
  private var functions: SQLiteFunctions
  /// The copies; their indexes are their numbers.
  private(set) var copies: [IndexTrigger] = []
  /// The indexes that are not maintained.
  private(set) var unmaintained: [UnmaintainedIndex] = []
  /// Every part of a trigger that maintains an index, copied or not.
  private(set) var known: [IndexTrigger] = []
  /// For each copy the number of statements in which it failed, and the first message of SQLite.
  private(set) var failures: [Int: (count: Int, message: String)] = [:]
  /// The results of `canRebuild`.
  private var rebuildable: [TableName: Bool] = [:]

  private init(_ session: ApplySession) throws {
    self.session = session
    schema = try session.indexSchema()
    functions = SQLiteFunctions(on: session.connection)
  }

  /// Copies the triggers that maintain the indexes of some tables.
  ///
  /// - Parameters:
  ///   - tables: The tables that will be written.
  ///   - session: That of the transaction that writes them.
  /// - Throws: `SQLiteError` when the database fails; nothing is left behind. A trigger that cannot be copied is reported
  ///   later.
  static func begin(over tables: Set<TableName>, in session: ApplySession) throws -> IndexMaintenance {
    let maintenance = try IndexMaintenance(session)
    do {
      try maintenance.copyTriggers(of: tables)
    } catch {
      throw cleaningUp(after: error) { _ = try maintenance.end() }
    }
    return maintenance
  }

  /// Removes the copies and functions.
  ///
  /// - Returns: Warnings for the report about copies that could not be removed.
  /// - Throws: `SQLiteError`. Rolling the transaction back removes the rest.
  func end() throws -> [Warning] {
    for number in copies.indices { try remove(number) }
    copies = []
    control.isOn = []
    // R-trees keep a statement running until the transaction ends or a savepoint begins, and SQLite removes no function
    // meanwhile.
    if session.connection.isInTransaction {
      try session.connection.execute("SAVEPOINT buckia_indexes; RELEASE buckia_indexes")
    }
    let kept = functions.removeAll()
    return kept.isEmpty ? [] : [Warning(.functionsKept, kept.joined(separator: ", "))]
  }

  // MARK: Copying

  private func copyTriggers(of tables: Set<TableName>) throws {
    var finder = IndexTriggerFinder(schema: schema, session: session)
    // The TEMP triggers of the application may write to any table.
    let candidates =
      schema.temporaryTriggers.isEmpty
      ? tables.filter { schema.triggers[$0] != nil } : Set(schema.triggers.keys)
    for table in candidates.sorted(by: { $0.text < $1.text }) { try finder.addTriggers(of: table) }
    unmaintained = finder.unmaintained
    known = finder.found
    guard !known.isEmpty else { return }

    let rules = try finder.rules()
    let called = known.reduce(into: Set<String>()) { $0.formUnion($1.references.functions) }
    let missing = called.intersection(GeoPackageFunctions.names).filter { !rules.hasUnaryFunction($0) }
    guard try addFunctions(missing) else {
      for trigger in known { addUnmaintained(trigger, "a statement of this connection is running") }
      return
    }
    var refused: [IndexTrigger] = []
    for group in finder.groups() {
      // The merged trigger if it can be copied, otherwise each trigger by itself.
      if group.count > 1, try refusal(ofCopying: group[0], rules) == nil { continue }
      for trigger in group.count > 1 ? Array(group.dropFirst()) : group {
        guard let reason = try refusal(ofCopying: trigger, rules) else { continue }
        addUnmaintained(trigger, reason)
        refused.append(trigger)
      }
    }
    // If a function's additions are missing, no other trigger may delete rows.
    for number in copies.indices {
      let isHalf = refused.contains { $0.callsApplication && $0.sharesWork(with: copies[number]) }
      if isHalf { control.isOn[number] = false }
    }
  }

  /// Adds the function of the switch, and some of the GeoPackage functions.
  ///
  /// - Returns: false when the functions of an earlier run still exist, and SQLite cannot replace them now.
  private func addFunctions(_ geoPackage: Set<String>) throws(SQLiteError) -> Bool {
    let control = control
    do throws(SQLiteError) {
      try functions.add(IndexTriggerSwitch.functionName, argumentCount: nil, isDeterministic: false) { arguments in
        .integer(control.answer(arguments.integer(at: 0), arguments.count > 1 ? arguments.integer(at: 1) : nil))
      }
      try GeoPackageFunctions.add(geoPackage, to: &functions)
      return true
    } catch {
      if error.isBusy { return false }
      throw error
    }
  }

  private func addUnmaintained(_ trigger: IndexTrigger, _ reason: String) {
    unmaintained.append(
      UnmaintainedIndex(name: trigger.index.name, module: trigger.index.module, table: trigger.table, reason: reason))
  }

  private func name(of number: Int) -> String { "\(SQLiteConnection.temporaryPrefix)index_\(number)" }

  private func remove(_ number: Int) throws(SQLiteError) {
    try session.connection.execute("DROP TRIGGER IF EXISTS temp.\(name(of: number))")
  }

  /// Creates the copy of a trigger.
  ///
  /// - Returns: Why it could not be created; nil if it was.
  private func refusal(ofCopying trigger: IndexTrigger, _ rules: TriggerRules) throws -> String? {
    if let reason = rules.refusal(of: trigger, in: schema) { return reason }
    // The conflict clause of a statement overrides those of the triggers that it fires
    // (https://sqlite.org/lang_createtrigger.html), and our statements have one if the table would lose rows otherwise.
    if trigger.hasConflictClause, try !TableStatements.conflictClause(of: trigger.table, on: session.connection).isEmpty
    {
      return "its trigger says what to do about a conflict, and so does the table itself"
    }
    let number = copies.count
    let creation = trigger.createStatement(name: name(of: number), number: number)
    if let reason = try session.connection.failure(ofRunning: creation) { return reason }
    let writable = try session.connection.writableColumns(of: trigger.table)
    if let reason = try session.connection.failure(ofPreparing: trigger.firingStatement(writable: writable)) {
      try remove(number)
      return reason
    }
    copies.append(trigger)
    control.isOn.append(true)
    return nil
  }

  // MARK: Running

  /// Runs a statement that writes one row. When a copy fails, the statement runs again without it.
  ///
  /// - Returns: Why the table refuses the row; nil if the row was written.
  /// - Throws: `SQLiteError` when the statement fails for another reason than a copy.
  func attempt(_ statement: borrowing SQLiteStatement) throws(SQLiteError) -> SQLiteRefusal? {
    var failed: [(number: Int, message: String)] = []
    while true {
      control.running = nil
      let failure: SQLiteError?
      var refusal: SQLiteRefusal?
      do throws(SQLiteError) {
        refusal = try statement.attempt()
        failure = nil
      } catch {
        failure = error
      }
      if failure == nil, refusal == nil {
        for failure in failed { note(failure.number, failure.message) }
        return nil
      }
      guard let number = control.running, failure?.isAboutTheStatement != false else {
        for failure in failed { control.isOn[failure.number] = true }
        if let failure { throw failure }
        return refusal
      }
      control.isOn[number] = false
      failed.append((number, failure?.message ?? statement.lastMessage))
    }
  }

  private func note(_ number: Int, _ message: String) {
    let index = copies[number].index
    let before = failures[number]
    failures[number] = (count: (before?.count ?? 0) + 1, message: before?.message ?? message)
    // An index that will be rebuilt need not be maintained until then. Any other one should lack as few rows as possible.
    if canRebuild(index) {
      for other in copies.indices where copies[other].index == index { control.isOn[other] = false }
    } else {
      control.isOn[number] = true
    }
  }

  /// True if an index can be rebuilt, because it has external content and its triggers add all rows of it.
  func canRebuild(_ index: IndexTable) -> Bool {
    if let known = rebuildable[index.name] { return known }
    let answer = index.content != nil && !schema.hasConditions(on: index)
    rebuildable[index.name] = answer
    return answer
  }
}

extension SQLiteConnection {
  /// The columns of a table of `main` that can be written.
  fileprivate func writableColumns(of table: TableName) throws -> [String] {
    var columns: [String] = []
    let query = "SELECT name FROM pragma_table_xinfo(?1, 'main') WHERE hidden = 0"
    try forEachRow(of: query, binding: [table.text]) { columns.append($0.text(at: 0) ?? "") }
    return columns
  }
}

/// Updates indexes after all changes have been applied.
extension IndexMaintenance {
  /// Rebuilds the indexes that are incomplete and can be rebuilt.
  ///
  /// - Parameters:
  ///   - changed: The tables that were written.
  ///   - rowCount: The number of their written rows.
  /// - Returns: Warnings for the report about indexes that are or may be incomplete.
  /// - Throws: `SQLiteError` when the database fails.
  func rebuildIncompleteIndexes(changed: [TableName], rowCount: Int) throws -> [Warning] {
    let reached = Set(changed)
    var warnings: [Warning] = []
    for item in unmaintained where reached.contains(item.table) && schema.index(named: item.name) == nil {
      warnings.append(Warning(.indexIncomplete, item.module, item.name.text, item.table.text, Self.problem(item)))
    }
    for index in schema.indexes {
      let problems = try problems(of: index, reached, hasOrder: rowCount > 1 || reached.count > changed.count)
      func warning(_ code: Warning.Code, _ problem: Problem, _ detail: String...) -> Warning {
        Warning(code, [index.module, index.name.text, problem.table.text, problem.text] + detail)
      }
      if problems.isEmpty {
        if let warning = try schema.rebuildWithoutTriggers(index, after: reached, on: session.connection) {
          warnings.append(warning)
        }
      } else if canRebuild(index) {
        if let reason = try session.connection.failure(ofRunning: index.rebuildStatement) {
          warnings += problems.map { warning(.indexNotRebuilt, $0, reason) }
        } else if known.contains(where: { $0.index == index && $0.callsFunctions(besides: schema) }) {
          warnings.append(warning(.indexRebuiltWithoutFunctions, problems[0], index.content?.text ?? ""))
        } else if !schema.isView(index.content ?? index.name), try readsOthers(index) {
          warnings.append(warning(.indexRebuiltWithoutOtherRows, problems[0], index.content?.text ?? ""))
        }
      } else {
        warnings += problems.map { warning(.indexToRebuild, $0) }
      }
    }
    return warnings
  }

  /// Why an index is or may be incomplete: the table whose changes it lacks, and the predicate of a sentence.
  private typealias Problem = (table: TableName, text: String)

  private static func problem(_ item: UnmaintainedIndex) -> String { "was not kept up to date (\(item.reason))" }

  /// - Parameter hasOrder: True if more than one row was written, in an order that can make a difference.
  private func problems(of index: IndexTable, _ reached: Set<TableName>, hasOrder: Bool) throws -> [Problem] {
    var found: [Problem] = []
    func add(_ table: TableName, _ text: String) {
      if !found.contains(where: { $0 == (table, text) }) { found.append((table, text)) }
    }
    for item in unmaintained where item.name == index.name && reached.contains(item.table) {
      add(item.table, Self.problem(item))
    }
    for (number, copy) in copies.enumerated() where copy.index == index {
      if let failure = failures[number] {
        add(copy.table, "did not take \(failure.count) change\(failure.count == 1 ? "" : "s") (\(failure.message))")
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

  /// True if triggers that maintain an index read other rows than those that they fire for.
  private func readsOthers(_ index: IndexTable) throws -> Bool {
    try known.contains { trigger in
      guard trigger.index == index else { return false }
      return try !trigger.otherSources.isEmpty || readsOthers(trigger)
    }
  }

  /// True if a trigger reads other rows of its own table than the one that it fires for.
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
    guard let definition = try local.table(named: table) else { return [] }
    let key = definition.primaryKey.map { definition.columns[$0].name }
    guard !definition.isWithoutRowID else { return [key.map { [$0] }] }
    let rowID: Set<String> = ["rowid", "oid", "_rowid_"]
    // A single column may be an alias of the rowid.
    return key.count == 1 ? [[rowID.union(key)]] : [[rowID], key.map { [$0] }]
  }
}

extension IndexTrigger {
  /// True if the trigger calls any function. The name of a table can be followed by a parenthesis, too.
  fileprivate func callsFunctions(besides schema: IndexSchema) -> Bool {
    uncopiedFunction != nil || references.calledFunctions.contains { !schema.contains(TableName($0)) }
  }
}

extension IndexMaintenance {
  /// Rebuilds the indexes that no trigger maintains, when changes were applied with triggers on.
  ///
  /// - Parameter changed: The tables that were written.
  /// - Returns: Warnings for the report.
  /// - Throws: `SQLiteError` when the database fails.
  static func rebuildIndexesWithoutTriggers(changed: [TableName], in session: ApplySession) throws -> [Warning] {
    guard !changed.isEmpty else { return [] }
    let schema = try session.indexSchema()
    guard schema.indexes.contains(where: { $0.content != nil }) else { return [] }
    let reached = Set(changed)
    var warnings: [Warning] = []
    for index in schema.indexes {
      if let warning = try schema.rebuildWithoutTriggers(index, after: reached, on: session.connection) {
        warnings.append(warning)
      }
    }
    return warnings
  }
}
