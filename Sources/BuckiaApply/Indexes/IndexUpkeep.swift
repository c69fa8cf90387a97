import SQLiteConnections
import SQLiteSchemas

/// Keeps full-text and R-tree indexes up to date while changes are applied with triggers off.
///
/// Triggers are off because the changes hold what the author's did. Indexes are the exception: they do not travel, so
/// what keeps them has to run here. The statements of the local triggers that write to an index are copied into TEMP
/// triggers, which fire all the same (<https://sqlite.org/c3ref/c_dbconfig_defensive.html#sqlitedbconfigenabletrigger>),
/// word for word and with the same event and condition. So exactly the rows that are written reach the index, whatever
/// becomes of conflicts. Everything is part of the open transaction and gone after `end`.
///
/// An index never decides about a row. A copy that fails is left out and its row written without it; the index is then
/// made anew from its content where it has one, and named otherwise.
final class IndexUpkeep {
  let schema: IndexSchema
  private let control = IndexSwitch()
  private var functions: SQLiteFunctions
  /// The copies that are there; their place is their number.
  private(set) var copies: [IndexTrigger] = []
  private(set) var neglected: [NeglectedIndex] = []
  /// Every part of a trigger that keeps an index of a table looked at, copied or not.
  private(set) var known: [IndexTrigger] = []
  /// For each copy how many statements it failed in, and what SQLite said first.
  private(set) var failures: [Int: (count: Int, message: String)] = [:]
  /// The answers of `canRebuild`.
  private var rebuildable: [TableName: Bool] = [:]

  private init(_ schema: IndexSchema, on connection: borrowing SQLiteConnection) {
    self.schema = schema
    functions = SQLiteFunctions(on: connection)
  }

  /// Copies what keeps the indexes of some tables.
  ///
  /// - Parameters:
  ///   - tables: The tables that will be written.
  ///   - connection: The connection, inside the transaction that writes them.
  /// - Throws: `SQLiteError` when the database fails; nothing is left behind. What merely cannot be copied is in the
  ///   remarks.
  static func begin(
    over tables: Set<TableName>, on connection: borrowing SQLiteConnection
  ) throws -> IndexUpkeep {
    let upkeep = IndexUpkeep(try IndexSchema(connection), on: connection)
    do {
      try upkeep.copyTriggers(of: tables, on: connection)
    } catch {
      _ = try upkeep.end(on: connection)
      throw error
    }
    return upkeep
  }

  /// Takes the copies and functions away.
  ///
  /// - Returns: What could not be taken away, for people.
  /// - Throws: `SQLiteError`; rolling the transaction back takes the rest away.
  func end(on connection: borrowing SQLiteConnection) throws -> [String] {
    for number in copies.indices { try remove(number, on: connection) }
    copies = []
    control.isOn = []
    // R-trees keep a statement running until the transaction ends or a savepoint begins, and SQLite parts with no
    // function meanwhile.
    if connection.isInTransaction { try connection.execute("SAVEPOINT buckia_indexes; RELEASE buckia_indexes") }
    let kept = functions.removeAll()
    guard !kept.isEmpty else { return [] }
    return [
      "the functions \(kept.joined(separator: ", ")) stay on this connection until it is closed: one of its statements "
        + "was running"
    ]
  }

  // MARK: Copying

  private func copyTriggers(of tables: Set<TableName>, on connection: borrowing SQLiteConnection) throws {
    var finder = IndexTriggerFinder(schema)
    // The application's own TEMP triggers may write to any table.
    let looked =
      schema.temporaryTriggers.isEmpty ? try schema.reach(of: tables, on: connection) : Set(schema.triggers.keys)
    let tables = schema.triggers.keys.filter(looked.contains)
    for table in tables.sorted(by: { $0.text < $1.text }) { finder.look(at: table) }
    neglected = finder.neglected
    known = finder.found
    guard !known.isEmpty else { return }

    let rules = try TriggerRules(connection)
    let called = known.reduce(into: Set<String>()) { $0.formUnion($1.mentions.functions) }
    let missing = called.intersection(GeoPackageFunctions.names).filter { !rules.hasUnaryFunction($0) }
    guard try addFunctions(missing) else {
      for trigger in known { neglect(trigger, "a statement of this connection is running") }
      return
    }
    for group in finder.groups() {
      // Together if that is possible, else each alone.
      if group.count > 1, try refusal(ofCopying: group[0], rules, on: connection) == nil { continue }
      for trigger in group.count > 1 ? Array(group.dropFirst()) : group {
        if let reason = try refusal(ofCopying: trigger, rules, on: connection) { neglect(trigger, reason) }
      }
    }
  }

  /// Adds the function that copies ask, and some of those of GeoPackages.
  ///
  /// - Returns: false when ours are still there from another time, and SQLite does not part with them now.
  private func addFunctions(_ geoPackage: Set<String>) throws(SQLiteError) -> Bool {
    let control = control
    do throws(SQLiteError) {
      try functions.add(IndexSwitch.functionName, argumentCount: nil, isDeterministic: false) { arguments in
        .integer(control.answer(arguments.integer(at: 0), arguments.count > 1 ? arguments.integer(at: 1) : nil))
      }
      try GeoPackageFunctions.add(geoPackage, to: &functions)
      return true
    } catch {
      if error.isBusy { return false }
      throw error
    }
  }

  private func neglect(_ trigger: IndexTrigger, _ reason: String) {
    neglected.append(
      NeglectedIndex(name: trigger.index.name, module: trigger.index.module, table: trigger.table, reason: reason))
  }

  private func name(of number: Int) -> String { "buckia_index_\(number)" }

  private func remove(_ number: Int, on connection: borrowing SQLiteConnection) throws(SQLiteError) {
    try connection.execute("DROP TRIGGER IF EXISTS temp.\(name(of: number))")
  }

  /// Makes the copy of a trigger.
  ///
  /// - Returns: Why it could not be made, or nil.
  private func refusal(
    ofCopying trigger: IndexTrigger, _ rules: TriggerRules, on connection: borrowing SQLiteConnection
  ) throws -> String? {
    if let reason = rules.refusal(of: trigger, in: schema) { return reason }
    // The policy of a statement overrides that of the triggers it fires (https://sqlite.org/lang_createtrigger.html),
    // and ours have one where the table would otherwise lose rows.
    if trigger.hasConflictClause, try !TableStatements.conflictClause(of: trigger.table, on: connection).isEmpty {
      return "its trigger says what to do about a conflict, and so does the table itself"
    }
    let number = copies.count
    let creation = trigger.creation(name: name(of: number), number: number)
    if let reason = try connection.failure(ofRunning: creation) { return reason }
    let writable = try connection.writableColumns(of: trigger.table)
    if let reason = try connection.failure(ofPreparing: trigger.probe(writable: writable)) {
      try remove(number, on: connection)
      return reason
    }
    copies.append(trigger)
    control.isOn.append(true)
    return nil
  }

  // MARK: Running

  /// Runs a statement that writes one row. When a copy fails, the statement runs again without it.
  ///
  /// - Returns: Why the row is refused by itself; nil when it was written.
  /// - Throws: `SQLiteError` when the statement fails by itself.
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
    // What is made anew need not be kept until then; anything else should lack as few rows as can be.
    if canRebuild(index) {
      for other in copies.indices where copies[other].index == index { control.isOn[other] = false }
    } else {
      control.isOn[number] = true
    }
  }

  /// Whether an index holds just what its content does: then it can be made anew from that.
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
