import BuckiaLedger
import BuckiaSchemaPlans
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Applies the changes of one diff to a schema that fits them: holds what has no place, writes the rest, keeps indexes,
/// checks foreign keys, and records the diff in the ledger.
struct ApplyExecution {
  let admitted: AdmittedChanges
  let schema: SchemaPlan
  let settings: ApplySettings
  let session: ApplySession
  /// The held part of an earlier diff that the changes are; nil for a new diff.
  var resumed: HeldPart?

  private var incoming: IncomingChanges { admitted.changes }

  /// Applies the changes in the transaction that is open, which must be rolled back when this throws.
  func run() throws -> ApplyResult {
    guard !session.firesTriggers, try session.hasVirtualTables() else {
      return try applyChanges(keeping: nil)
    }
    let indexes = try IndexMaintenance.begin(over: Set(schema.matches.keys), in: session)
    do {
      var result = try applyChanges(keeping: indexes)
      result.warnings += try indexes.end()
      return result
    } catch {
      _ = try indexes.end()
      throw error
    }
  }

  private func applyChanges(keeping indexes: IndexMaintenance?) throws -> ApplyResult {
    let entry = try resumed?.entry ?? LedgerEntries.nextNumber(on: session.connection)
    let holding = try Holding(admitted, schema, resuming: resumed, entry: entry, in: session)
    let decider = ConflictDecider(
      policies: settings.policies, resolver: settings.resolver,
      log: settings.recordsConflicts ? ConflictLog(entry: entry, on: session.connection) : nil, watching: holding.keys)
    let enforcesForeignKeys = try session.connection.cachedInteger("PRAGMA foreign_keys") == 1
    // TEMP triggers are never off.
    let seesTriggers = try session.firesTriggers || session.hasTemporaryTriggers()
    let rules = ChangesetApplier.Rules(enforcesForeignKeys: enforcesForeignKeys, seesTriggers: seesTriggers)
    // What is held of an earlier diff is little, and must not fail.
    let rebuild =
      try resumed == nil
      ? IndexRebuild(
        of: incoming, keeping: indexes, enforcesForeignKeys: enforcesForeignKeys, seesTriggers: seesTriggers,
        in: session)
      : nil
    var applier = try ChangesetApplier(
      schema: schema, decider: decider, rules: rules, session: session, keeping: indexes, rebuilding: rebuild,
      reportingTo: settings.observer, progress: settings.progress)
    if enforcesForeignKeys {
      try applyEnforcingForeignKeys(holding.known, &applier)
    } else {
      try applyAuditingForeignKeys(holding.known, &applier, seesTriggers: seesTriggers)
    }
    var warnings = applier.warnings + applier.passedOver.compactMap { schema.passedOver[$0] }
    if let indexes {
      warnings += try indexes.rebuildIncompleteIndexes(
        changed: applier.changedTables, rowCount: applier.counts.written)
    } else if try session.hasVirtualTables() {
      warnings += try IndexMaintenance.rebuildIndexesWithoutTriggers(changed: applier.changedTables, in: session)
    }
    let held = try holding.finish(after: decider)
    try decider.finish()
    if resumed == nil {
      try LedgerEntries.record(
        incoming.key, state: held.isEmpty ? .applied : .held, number: entry, file: incoming.file,
        counts: applier.counts, reason: held.isEmpty ? nil : HeldSummary.reason(held), at: settings.time,
        on: session.connection)
    } else {
      try LedgerEntries.add(applier.counts, to: entry, on: session.connection)
    }
    var result = ApplyResult(
      counts: applier.counts, changedTables: applier.changedTables.map(\.text), schemaChanges: [],
      warnings: warnings)
    result.held = held
    return result
  }

  /// The connection enforces foreign keys: they are deferred meanwhile, as SQLite's own apply does.
  private func applyEnforcingForeignKeys(_ known: AdmittedChanges, _ applier: inout ChangesetApplier) throws {
    // Where the application has deferred them itself, its own open violations must not be forgotten with ours.
    let defersAlready = try session.connection.cachedInteger("PRAGMA defer_foreign_keys") == 1
    if !defersAlready { try session.connection.execute("PRAGMA defer_foreign_keys = ON") }
    do {
      try applier.applyAll(known) { try known.changes.requireDefinition(of: $0) }
      try applier.decideDeferredForeignKeys()
    } catch {
      if !defersAlready { try session.connection.execute("PRAGMA defer_foreign_keys = OFF") }
      throw error
    }
    if !defersAlready { try session.connection.execute("PRAGMA defer_foreign_keys = OFF") }
  }

  /// The connection does not enforce foreign keys: violations are looked up afterwards.
  private func applyAuditingForeignKeys(
    _ known: AdmittedChanges, _ applier: inout ChangesetApplier, seesTriggers: Bool
  ) throws {
    let watch = try ForeignKeyWatch(changed: Set(schema.matches.keys), seesTriggers: seesTriggers, session)
    try applier.applyAll(known) { try known.changes.requireDefinition(of: $0) }
    try applier.auditForeignKeys(known.changes, watchedBy: watch)
    // After an error the rollback removes them: TEMP triggers belong to the transaction they were made in.
    try watch.stop()
  }
}
