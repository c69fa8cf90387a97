import BuckiaKSUID
import BuckiaLedger
import BuckiaSchemaPlans
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Applies what is held of earlier diffs, as far as there is a place for it now: by the rules and in the order in which it
/// would have been applied had the place been there.
struct HeldRelease {
  private let settings: ApplySettings
  private let session: ApplySession

  /// - Parameters:
  ///   - settings: How to apply; the mode of the schema is `hold` in any case.
  ///   - session: That of the connection.
  init(_ settings: ApplySettings, _ session: ApplySession) {
    var settings = settings
    settings.schema = .hold
    self.settings = settings
    self.session = session
  }

  /// What earlier parts of a table still wait for: later ones must not overtake them.
  private struct Blocked {
    var isWhole = false
    var columns: Set<String> = []

    mutating func add(_ rest: HeldTable?) {
      guard let rest else { return }
      isWhole = rest.isWhole
      columns.formUnion(rest.columns.map { ASCIIName.folded(rest.definition.columns[$0].name) })
    }
  }

  /// Applies what can be.
  ///
  /// - Parameter connection: The database, with a transaction open, to be rolled back when this throws.
  /// - Returns: The diffs of which something was applied, in the order of arrival.
  /// - Throws: `ReplicationError` with `conflict` under the policy `abort`; `SQLiteError`. What is damaged stays, and is told of.
  func run() throws -> [DiffOutcome] {
    try session.requireLedger()
    if try session.hasTriedHeld() { return [] }
    guard try HeldParts.exist(on: session.connection) else {
      session.noteTriedHeld()
      return []
    }
    var released: [Release] = []
    var blocked: [TableName: Blocked] = [:]
    for part in try HeldPart.all(on: session.connection) {
      let name = TableName(part.table)
      if blocked[name]?.isWhole == true { continue }
      do {
        let attempt = try attempt(part, after: blocked[name] ?? Blocked())
        blocked[name, default: Blocked()].add(attempt.rest)
        if let result = attempt.result { Self.release(of: part, in: &released) { $0.add(result) } }
      } catch let error as ChangesetError {
        // The others need not wait for it, and the report says so.
        blocked[name, default: Blocked()].isWhole = true
        Self.release(of: part, in: &released) {
          $0.outcome.warnings.append(Remark(.heldDamaged, part.table, "\(error)"))
        }
      } catch let error as ReplicationError where error.code == .conflict {
        throw ReplicationError(
          .conflict, "what was held of \(part.file) for table \"\(part.table)\" cannot be applied: \(error.message)",
          table: part.table, cause: error)
      }
    }
    session.noteTriedHeld()
    guard !released.isEmpty else { return [] }
    for release in released { try HeldParts.noteApplied(entry: release.entry, on: session.connection) }
    let rest = Dictionary(grouping: try HeldPart.all(on: session.connection), by: \.entry)
    return released.map { $0.outcome(holding: (rest[$0.entry] ?? []).map { HeldSummary($0) }) }
  }

  /// Applies a part, if there is a place for any of it that there was not before.
  ///
  /// - Returns: What was done, if anything, and what still has no place.
  private func attempt(_ part: HeldPart, after blocked: Blocked) throws -> (result: ApplyResult?, rest: HeldTable?) {
    let name = TableName(part.table)
    var withheld: [Int: String] = [:]
    for index in part.columns where blocked.columns.contains(part.foldedName(of: index)) {
      withheld[index] = "waits for what came before"
    }
    let renames = try session.renames(of: part.senderKey)
    let plan = try SchemaPlan(
      definitions: [part.definition], mode: .hold, withholding: [name: withheld], renames: renames,
      local: session.schema())
    guard part.isAnyNew(beside: plan.held[name]) else { return (nil, plan.held[name]) }
    let admitted = try AdmittedChanges(held: part, on: session.connection)
    let checked = try ValueCompatibilityCheck(plan, .hold, renames, session, withholding: [name: withheld])
      .run(admitted.changes, admitted.changes.feed.summary())
    let rest = checked.held[name]
    guard part.isAnyNew(beside: rest) else { return (nil, rest) }
    // What cannot be applied now either is held again.
    try HeldParts.remove(part: part.number, on: session.connection)
    let execution = ApplyExecution(
      admitted: admitted, schema: checked, settings: settings, session: session, resumed: part)
    let savepoint = try SQLiteTransaction(on: session.connection)
    let result = try execution.run(in: savepoint)
    try savepoint.commit()
    return (result, rest)
  }

  private static func release(of part: HeldPart, in released: inout [Release], _ change: (inout Release) -> Void) {
    if released.last?.entry != part.entry { released.append(Release(part)) }
    change(&released[released.count - 1])
  }
}

/// What has been applied now of a diff of which parts were held.
private struct Release {
  let entry: Int64
  var outcome: DiffOutcome
  private var counts = ApplyCounts()

  init(_ part: HeldPart) {
    entry = part.entry
    outcome = DiffOutcome(id: part.diff, path: part.file, sender: part.sender, state: .applied)
  }

  mutating func add(_ result: ApplyResult) {
    counts += result.counts
    outcome.set(counts)
    outcome.changedTables += result.changedTables
    outcome.warnings += result.warnings
  }

  /// The outcome, given what is still held.
  func outcome(holding held: [HeldSummary]) -> DiffOutcome {
    var outcome = outcome
    outcome.reason = "what was kept of it has found its place"
    guard !held.isEmpty else { return outcome }
    outcome.state = .held
    outcome.heldParts = held.reduce(0) { $0 + $1.partCount }
    outcome.reason? += "; \(HeldSummary.reason(held))"
    return outcome
  }
}

extension HeldPart {
  fileprivate func foldedName(of column: Int) -> String { ASCIIName.folded(definition.columns[column].name) }

  /// Whether there is a place for anything that is kept, given what has none.
  fileprivate func isAnyNew(beside rest: HeldTable?) -> Bool {
    guard let rest else { return true }
    return !rest.isWhole && (isWhole || !Set(columns).isSubset(of: rest.columns))
  }
}
