import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Applies held parts of earlier diffs for which the schema has a place now, by the rules and in the order in which
/// they would have been applied with that schema.
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

  /// Because of a part, SQLite has rolled back the whole transaction, or allows no more writing in it. The earlier work
  /// is applied again, without the part.
  struct TransactionLost: Error {
    let part: Int64
    let cause: any Error
  }

  /// There is a place for a part, but its sender is not trusted any more.
  private struct Unwelcome: Error {
    let refusal: Refusal
  }

  /// Applies the parts. A part that fails stays held, as do later parts of its table, and the others are applied.
  ///
  /// - Returns: The diffs of which something was applied, or could not be, in the order of arrival.
  /// - Throws: `TransactionLost`; what is not a part's own fault. The transaction that is open must be rolled back then.
  func run() throws -> [ReleasedDiff] {
    guard session.keepsLedger else { return [] }
    try session.requireLedger()
    if try session.hasTriedHeld() { return [] }
    guard try HeldParts.exist(on: session.connection) else {
      try session.noteTriedHeld()
      return []
    }
    // The effects tell if all parts of a diff are known.
    try session.effects.write(on: session.connection)
    var released: [ReleasedDiff] = []
    var blocked: [TableName: Blocked] = [:]
    let gate = try ReceiverGate(on: session.connection, senders: settings.senders)
    for part in try HeldPart.all(on: session.connection) {
      let name = TableName(part.table)
      if blocked[name]?.isWhole == true { continue }
      do {
        if gate.refusal(ofHeld: part) == nil, let failure = session.heldFailures[part.number] { throw failure.refusal }
        let attempt = try attempt(part, after: blocked[name] ?? Blocked(), through: gate)
        blocked[name, default: Blocked()].add(attempt.rest)
        if let result = attempt.result {
          release(of: part, in: &released) {
            $0.add(result.counts, changedTables: result.changedTables, warnings: result.warnings)
          }
        }
      } catch let unwelcome as Unwelcome {
        // A held part that failed for good holds up no other file.
        if session.heldFailures[part.number]?.isReported != true {
          session.noteFailure(of: part.number, unwelcome.refusal)
          release(of: part, in: &released) { $0.add(unwelcome.refusal, of: part) }
        }
      } catch {
        let refusal = try refusal(of: part, because: error)
        blocked[name, default: Blocked()].isWhole = true
        if session.heldFailures[part.number]?.isReported != true {
          release(of: part, in: &released) { $0.add(refusal, of: part) }
        }
      }
    }
    try session.noteTriedHeld()
    guard !released.isEmpty else { return [] }
    for diff in released { try HeldParts.noteApplied(entry: diff.entry, on: session.connection) }
    let rest = Dictionary(grouping: try HeldPart.all(on: session.connection), by: \.entry)
    for index in released.indices {
      released[index].finish(holding: (rest[released[index].entry] ?? []).map { HeldSummary($0) })
    }
    return released
  }

  /// Why a part cannot be applied, although there is a place for it.
  ///
  /// - Throws: The error, when it is not the part's fault; `TransactionLost`.
  private func refusal(of part: HeldPart, because error: any Error) throws -> Refusal {
    guard session.connection.isInTransaction, (error as? ReplicationError)?.code != .damagedDatabase else {
      throw TransactionLost(part: part.number, cause: error)
    }
    guard let refusal = (error as? any FileFault)?.refusal else { throw error }
    session.noteFailure(of: part.number, refusal)
    return refusal
  }

  /// Applies a part, if there is a place for any of it that there was not before.
  ///
  /// - Returns: The result, if anything was applied, and the parts that stay held.
  private func attempt(
    _ part: HeldPart, after blocked: Blocked, through gate: ReceiverGate
  ) throws -> (result: ApplyResult?, rest: HeldTable?) {
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
    let admitted: AdmittedChanges
    switch try gate.admit(held: part, on: session.connection) {
    case .admitted(let changes): admitted = changes
    case .refused(let refusal): throw Unwelcome(refusal: refusal)
    case .alreadyRecorded, .contained: return (nil, plan.held[name])
    }
    let check = ValueCompatibilityCheck(
      schema: plan, mode: .hold, renames: renames, session: session, withheld: [name: withheld])
    let checked = try check.run(admitted.changes, admitted.changes.feed.summary())
    let rest = checked.held[name]
    guard part.isAnyNew(beside: rest) else { return (nil, rest) }
    return (try apply(part, admitted, checked), rest)
  }

  /// Applies a part in a savepoint; the rest of it stays held.
  private func apply(_ part: HeldPart, _ admitted: AdmittedChanges, _ schema: SchemaPlan) throws -> ApplyResult {
    let effects = settings.observer?.mark ?? 0
    let gathered = session.effects
    let whole = try SQLiteTransaction(on: session.connection)
    do {
      try HeldParts.remove(part: part.number, on: session.connection)
      let execution = ApplyExecution(
        admitted: admitted, schema: schema, settings: settings, session: session, resumed: part)
      let savepoint = try SQLiteTransaction(on: session.connection)
      let result: ApplyResult
      do { result = try execution.run(in: savepoint) } catch {
        throw FaultDiagnosis.refined(error, on: session.connection)
      }
      try savepoint.commit()
      try whole.commit()
      return result
    } catch {
      settings.observer?.rewind(to: effects)
      session.effects = gathered
      // The cached schema and statements may refer to a schema that is rolled back.
      session.forget()
      throw error
    }
  }

  private func release(of part: HeldPart, in released: inout [ReleasedDiff], _ change: (inout ReleasedDiff) -> Void) {
    if released.last?.entry != part.entry { released.append(ReleasedDiff(part, from: settings.senders)) }
    change(&released[released.count - 1])
  }
}

extension HeldPart {
  fileprivate func foldedName(of column: Int) -> String { ASCIIName.folded(definition.columns[column].name) }

  /// True if the schema has a place for anything beside the given rest.
  fileprivate func isAnyNew(beside rest: HeldTable?) -> Bool {
    guard let rest else { return true }
    return !rest.isWhole && (isWhole || !Set(columns).isSubset(of: rest.columns))
  }
}
