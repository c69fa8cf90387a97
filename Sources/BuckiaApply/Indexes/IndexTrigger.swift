import SQLiteSchemas

/// The part of a trigger that keeps one index, ready to be copied.
///
/// A trigger may write to several tables. What it writes to ordinary ones is in the author's changes already; only its
/// statements on an index are done again here.
struct IndexTrigger {
  /// The index it writes to.
  let index: IndexTable
  /// The table it belongs to.
  let table: TableName
  let timing: TriggerDefinition.Timing
  let event: TriggerDefinition.Event
  /// The columns behind UPDATE OF.
  let columns: [String]
  /// The expression behind WHEN.
  let condition: String?
  private(set) var statements: [String]
  private(set) var hasConflictClause: Bool
  /// What the condition and the statements name.
  private(set) var mentions: SQLMentions
  /// Whether the trigger has other statements, which are not copied.
  private(set) var isPart: Bool

  /// nil when no statement of the trigger writes to the index.
  init?(_ definition: TriggerDefinition, of table: TableName, on index: IndexTable) {
    let own = definition.statements.filter { $0.target == index.name }
    guard !own.isEmpty, definition.timing != .insteadOf else { return nil }
    self.index = index
    self.table = table
    timing = definition.timing
    event = definition.event
    columns = definition.columns
    condition = definition.condition
    statements = own.map(\.text)
    hasConflictClause = own.contains(where: \.hasConflictClause)
    isPart = own.count < definition.statements.count
    mentions = own.reduce(definition.conditionMentions) { $0.union($1.mentions) }
  }

  /// The tables it reads besides its own and the index: when they change, too, their order matters.
  var otherSources: Set<TableName> { mentions.sources.subtracting([table, index.name]) }

  /// Adds the statements of a trigger that fires later at the same moment.
  ///
  /// - Returns: Whether both do fire at the same moment, whatever the row holds.
  mutating func append(_ later: IndexTrigger) -> Bool {
    guard index == later.index, table == later.table, timing == later.timing, event == later.event,
      columns.elementsEqual(later.columns, by: ASCIIName.matches), condition == nil, later.condition == nil
    else { return false }
    statements += later.statements
    hasConflictClause = hasConflictClause || later.hasConflictClause
    mentions = mentions.union(later.mentions)
    isPart = isPart || later.isPart
    return true
  }

  /// The statement that makes the copy.
  ///
  /// - Parameters:
  ///   - name: The name of the copy.
  ///   - number: What it tells the switch about itself.
  func creation(name: String, number: Int) -> String {
    let control = IndexSwitch.functionName
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

  /// A statement that cannot be prepared when the copy cannot run: SQLite looks at the body of a trigger no sooner.
  ///
  /// - Parameter writable: The columns of the table that can be written.
  func probe(writable: [String]) -> String {
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

/// What copied triggers ask before they run, and tell when they have: so that one which fails can be known and left out.
final class IndexSwitch {
  /// The function by which they do.
  ///
  /// `f(n)` asks whether number n may run, `f(n, v)` hands on v and tells that n is done when it is 0.
  static let functionName = "buckia_keeps_index"

  /// Whether each copy may run.
  var isOn: [Bool] = []
  /// The copy that is running, or ran when its statement failed.
  var running: Int?

  /// Answers one call. Safe with any arguments: the function can be called by anyone on the connection.
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
