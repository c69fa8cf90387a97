import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Applies the changes of one diff to a schema that fits them: holds unknown parts, writes the rest, maintains indexes,
/// checks foreign keys, and records the diff in the ledger.
struct ApplyExecution {
  let admitted: AdmittedChanges
  let schema: SchemaPlan
  let settings: ApplySettings
  let session: ApplySession
  /// The held part of an earlier diff that the changes are; nil for a new diff.
  var resumed: HeldPart?
  /// True if the schema has become the author's before, which is not taken back.
  var hasAdoptedSchema = false

  private var incoming: IncomingChanges { admitted.changes }

  /// Applies the changes in a savepoint, again as long as they refer to rows that are left out.
  ///
  /// - Parameter savepoint: A savepoint in which nothing else has been written. It must be rolled back when this
  ///   throws.
  func run(in savepoint: borrowing SQLiteTransaction) throws -> ApplyResult {
    let effects = settings.observer?.mark ?? 0
    var refused: RefusedRows?
    while true {
      switch try run(knowing: refused) {
      case .applied(let result): return result
      case .refersToRefused(let found):
        refused = found
        try savepoint.restart()
        settings.observer?.rewind(to: effects)
      }
    }
  }

  /// Applies the changes in the transaction that is open, which must be rolled back when this throws, and when it has
  /// to be run again.
  ///
  /// - Parameter refused: The left-out rows that an earlier run, which was rolled back, has found; nil for the first
  ///   run.
  func run(knowing refused: RefusedRows?) throws -> ApplyEnd {
    guard !session.firesTriggers, try session.hasVirtualTables() else {
      return try applyChanges(keeping: nil, knowing: refused)
    }
    let indexes = try IndexMaintenance.begin(over: Set(schema.matches.keys), in: session)
    do {
      let end = try applyChanges(keeping: indexes, knowing: refused)
      let warnings = try indexes.end()
      guard case .applied(var result) = end else { return end }
      result.warnings += warnings
      return .applied(result)
    } catch {
      throw cleaningUp(after: error) { _ = try indexes.end() }
    }
  }

  private func applyChanges(keeping indexes: IndexMaintenance?, knowing refused: RefusedRows?) throws -> ApplyEnd {
    let entry = try resumed?.entry ?? (session.keepsLedger ? LedgerEntries.nextNumber(on: session.connection) : 0)
    let holding = try Holding(admitted, schema, resuming: resumed, entry: entry, in: session)
    let refused = refused ?? RefusedRows(with: session.connection.library)
    try refused.beginRun()
    let contested = ContestedKeys(
      of: resumed?.senderKey ?? incoming.key.sender, entry: entry, isResumed: resumed != nil, on: session.connection)
    let collisions = try KeyCollisions(
      refused: refused, contested: contested, recordsContests: settings.recordsConflicts, in: session)
    let decider = ConflictDecider(
      policies: settings.policies, resolver: settings.resolver, rules: ConflictRules(on: session.connection),
      log: settings.recordsConflicts ? ConflictLog(entry: entry, on: session.connection) : nil, contested: contested,
      open: session.openConflicts, from: incoming.key.sender, watching: holding.keys, makesRoom: settings.makesRoom)
    // TEMP triggers are never off.
    let seesTriggers = try session.firesTriggers || session.hasTemporaryTriggers()

    // Held parts of an earlier diff are small, and rebuilding indexes must not make them fail.
    let rebuild =
      try resumed == nil ? IndexRebuild(of: incoming, keeping: indexes, seesTriggers: seesTriggers, in: session) : nil
    let effects = try effectLog(of: entry)
    session.watcher = settings.sharing.flatMap { $0.isWatching ? $0 : nil }
    defer { session.watcher = nil }
    var applier = try ChangesetApplier(
      schema: schema, decider: decider, collisions, seesTriggers: seesTriggers, session: session, keeping: indexes,
      rebuilding: rebuild,
      reportingTo: settings.observer, gatheringInto: effects, clocks: clocks(beside: seesTriggers),
      progress: settings.progress)
    let known = holding.known.changes
    let sections = TableSections(try known.feed.summary(), of: known.changeset)
    try refused.references.beginRun(sections, schema.matches, in: session)
    let parked = ParkedChildren(of: entry, keeping: indexes, in: session)
    try parked.returnRows(beside: sections, schema.matches, refused.references)
    let watch = try ForeignKeyWatch(changed: Set(schema.matches.keys), seesTriggers: seesTriggers, session)
    try applier.applyAll(holding.known) { try known.requireDefinition(of: $0) }
    if try refused.findReferring(
      in: known, schema.matches, session, staysOut: { decider.mayLeaveOut(rowsOf: $0) })
    {
      return .refersToRefused(refused)
    }
    guard try applier.repairReferences(known, watchedBy: watch, refused.references, parked) else {
      return .refersToRefused(refused)
    }
    try session.noteTriedParked()
    // After an error the rollback removes them: TEMP triggers belong to the transaction they were made in.
    try watch.stop()
    try refused.references.endRun(on: session.connection)
    if session.keepsLedger {
      for (table, rows) in refused.references.kept {
        for row in rows {
          try RowNotes(.kept, of: table).note(row.local, on: session.connection)
          settings.sharing?.didKeep(row.incoming, of: table)
        }
      }
    }
    var warnings = applier.warnings + applier.passedOver.compactMap { schema.passedOver[$0] }
    var counts = applier.counts
    for table in applier.passedOver {
      guard let warning = schema.passedOver[table], warning.code == .keyChanged,
        let definition = incoming.definition(of: table)
      else { continue }
      let count = try decider.recordAll(of: definition, in: sections, because: warning)
      counts.conflicts += count
      counts.omitted += count
    }
    if let warning = try incoming.warnOfOldValues() { warnings.append(warning) }
    if let indexes {
      warnings += try indexes.rebuildIncompleteIndexes(changed: applier.changedTables, rowCount: applier.counts.written)
    } else if try session.hasVirtualTables() {
      warnings += try IndexMaintenance.rebuildIndexesWithoutTriggers(changed: applier.changedTables, in: session)
    }
    let held = try holding.finish(after: decider)
    try decider.finish()
    if resumed != nil {
      try LedgerEntries.add(counts, to: entry, on: session.connection)
    } else if session.keepsLedger {
      try LedgerEntries.record(
        incoming.key, placed: incoming.place, state: held.isEmpty ? .applied : .held, number: entry,
        file: incoming.file,
        counts: counts, reason: held.isEmpty ? nil : HeldSummary.reason(held), at: settings.time,
        on: session.connection)
    }
    if let effects {
      session.effects.add(try effects.record(), limit: effects.byteLimit)
      if !effects.isComplete, effects.isTooLarge { warnings.append(.undoNotKept(limit: effects.byteLimit)) }
    }
    var result = ApplyResult(
      counts: counts, changedTables: applier.changedTables.map(\.text), schemaChanges: [],
      warnings: warnings)
    result.held = held
    return .applied(result)
  }

  /// Maintains the clocks of tables; nil if no table has one, and for changes without an id. An undo is a local edit
  /// like any other, which the next diff sends.
  private func clocks(beside seesTriggers: Bool) throws -> DiffClocks? {
    guard session.keepsLedger, incoming.key.sender != LedgerEntries.ownSender, let diff = incoming.key.id,
      try session.hasClocks()
    else { return nil }
    return try DiffClocks(
      diff: diff, session: session, unsent: settings.unsent, sharing: incoming.place == nil ? nil : settings.sharing,
      isAlone: !seesTriggers, origins: incoming.rowOrigins(), isFromReturning: incoming.isFromReturning)
  }

  /// Collects the effects on local rows; nil if they are not kept, or cannot all be kept.
  private func effectLog(of entry: Int64) throws -> EffectLog? {
    let limit = settings.retention?.byteLimit ?? 0
    guard limit > 0, !hasAdoptedSchema else { return nil }
    // For a held part, the effects of the earlier parts must be recorded, too.
    if resumed != nil {
      var reader = EffectReader()
      if try reader.parts(of: entry, on: session.connection).isEmpty { return nil }
    }
    return EffectLog(of: entry, isResumed: resumed != nil, byteLimit: limit)
  }
}
