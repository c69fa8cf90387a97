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
  func run(on connection: borrowing SQLiteConnection) throws -> [ReleasedDiff] {
    try session.requireLedger(on: connection)
    if try session.hasTriedHeld(on: connection) { return [] }
    guard try HeldParts.exist(on: connection) else {
      session.noteTriedHeld()
      return []
    }
    var released: [ReleasedDiff] = []
    var blocked: [TableName: Blocked] = [:]
    for part in try HeldPart.all(on: connection) {
      let name = TableName(part.table)
      if blocked[name]?.isWhole == true { continue }
      do {
        let attempt = try attempt(part, after: blocked[name] ?? Blocked(), on: connection)
        blocked[name, default: Blocked()].add(attempt.rest)
        if let result = attempt.result { note(result, of: part, in: &released) }
      } catch let error as ChangesetError {
        // The others need not wait for it, and somebody has to know.
        blocked[name, default: Blocked()].isWhole = true
        place(of: part, in: &released) {
          $0.warnings.append(Remark(.heldDamaged, part.table, "\(error)"))
        }
      } catch let error as ReplicationError where error.code == .conflict {
        throw ReplicationError(
          .conflict, "what was held of \(part.file) for table \"\(part.table)\" cannot be applied: \(error.message)",
          table: part.table, cause: error)
      }
    }
    session.noteTriedHeld()
    guard !released.isEmpty else { return [] }
    try HeldParts.removeEmpty(on: connection)
    for part in try HeldPart.all(on: connection) {
      guard let place = released.firstIndex(where: { $0.entry == part.entry }) else { continue }
      released[place].held.append(HeldSummary(part))
    }
    return released
  }

  /// Applies a part, if there is a place for any of it that there was not before.
  ///
  /// - Returns: What was done, if anything, and what still has no place.
  private func attempt(
    _ part: HeldPart, after blocked: Blocked, on connection: borrowing SQLiteConnection
  ) throws -> (result: ApplyResult?, rest: HeldTable?) {
    let name = TableName(part.table)
    var withheld: [Int: String] = [:]
    for index in part.columns where blocked.columns.contains(part.foldedName(of: index)) {
      withheld[index] = "waits for what came before"
    }
    let renames = try session.renames(on: connection)
    let plan = try SchemaPlan(
      definitions: [part.definition], mode: .hold, withholding: [name: withheld], renames: renames,
      local: session.schema(on: connection).schema, on: connection)
    guard part.isAnyNew(beside: plan.held[name]) else { return (nil, plan.held[name]) }
    let admitted = try AdmittedChanges(held: part, on: connection)
    let settled = try ValueCompatibilityCheck(plan, .hold, renames, withholding: [name: withheld])
      .run(admitted.changes, admitted.changes.feed.summary(), on: connection)
    let rest = settled.held[name]
    guard part.isAnyNew(beside: rest) else { return (nil, rest) }
    // What cannot be applied now either is kept anew.
    try HeldParts.remove(part: part.number, on: connection)
    let execution = ApplyExecution(
      admitted: admitted, schema: settled, settings: settings, session: session, resumed: part)
    let result = try execution.run(on: connection)
    return (result, rest)
  }

  private func note(_ result: ApplyResult, of part: HeldPart, in released: inout [ReleasedDiff]) {
    place(of: part, in: &released) { diff in
      diff.counts += result.counts
      diff.changedTables += result.changedTables
      diff.warnings += result.warnings
    }
  }

  private func place(of part: HeldPart, in released: inout [ReleasedDiff], _ change: (inout ReleasedDiff) -> Void) {
    if released.last?.entry != part.entry {
      released.append(
        ReleasedDiff(
          diff: part.diff, sender: part.sender, file: part.file, changedTables: [], counts: ApplyCounts(), held: [],
          warnings: [], entry: part.entry))
    }
    change(&released[released.count - 1])
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
