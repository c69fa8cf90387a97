import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

extension ApplyPlan {
  /// Carries the plan out: schema steps, changes, conflict records and the ledger row.
  ///
  /// Everything happens inside the transaction that is open on the connection; it is the caller's to commit, and to roll
  /// back when this throws. Triggers are off meanwhile, unless the settings say otherwise, and as before afterwards.
  ///
  /// - Parameter connection: The connection the plan was made on, in the same transaction.
  /// - Returns: What was done.
  /// - Throws: `EngineError` with `conflict` under the policy `abort`; `SQLiteError` when the database fails; what the
  ///   resolver or `progress` throws. The transaction must be rolled back then.
  public consuming func apply(on connection: borrowing SQLiteConnection) throws -> ApplyResult {
    guard connection.isInTransaction else {
      throw SQLiteError(code: 21, message: "apply needs an open transaction", path: connection.path)
    }
    if let session {
      // Whatever was read and prepared may speak of a schema that is rolled back now.
      do { return try apply(in: session, on: connection) } catch {
        session.forget()
        throw error
      }
    }
    let session = try ApplySession(on: connection, firesTriggers: settings.firesTriggers)
    do {
      let result = try apply(in: session, on: connection)
      try session.end(on: connection)
      return result
    } catch {
      try session.end(on: connection)
      throw error
    }
  }

  private func apply(in session: ApplySession, on connection: borrowing SQLiteConnection) throws -> ApplyResult {
    try session.requireLedger(on: connection)
    for step in schema.steps { try connection.execute(step.sql) }
    guard !session.firesTriggers, try session.hasVirtualTables(on: connection) else {
      return try applyChanges(in: session, keeping: nil, on: connection)
    }
    let indexes = try IndexUpkeep.begin(over: Set(schema.matches.keys), on: connection)
    do {
      var result = try applyChanges(in: session, keeping: indexes, on: connection)
      result.warnings += try indexes.end(on: connection)
      return result
    } catch {
      _ = try indexes.end(on: connection)
      throw error
    }
  }

  private func applyChanges(
    in session: ApplySession, keeping indexes: IndexUpkeep?, on connection: borrowing SQLiteConnection
  ) throws -> ApplyResult {
    let entry = try Ledger.nextEntry(on: connection)
    let decider = ConflictDecider(
      policy: settings.policy, resolver: settings.resolver,
      log: settings.recordsConflicts ? ConflictLog(entry: entry) : nil)
    let enforcesForeignKeys = try connection.cachedInteger("PRAGMA foreign_keys") == 1
    // Where the application defers them itself, its own open questions must not be forgotten with ours.
    let defersAlready = try enforcesForeignKeys && connection.cachedInteger("PRAGMA defer_foreign_keys") == 1
    if enforcesForeignKeys, !defersAlready { try connection.execute("PRAGMA defer_foreign_keys = ON") }

    // Foreign-key actions and triggers see the order of changes; TEMP triggers are never off.
    let isFree = try !enforcesForeignKeys && !session.firesTriggers && !Self.hasTemporaryTriggers(on: connection)
    let rules = ApplyRun.Rules(enforcesForeignKeys: enforcesForeignKeys, isOrderFree: isFree)
    var run = ApplyRun(
      schema: schema, decider: decider, rules: rules, session: session, keeping: indexes, progress: settings.progress)
    try incoming.changeset.withBytes { bytes in
      try run.applyAll(incoming, bytes, on: connection) { try requireDefinition(of: $0) }
      if enforcesForeignKeys {
        try run.settleDeferredForeignKeys(on: connection)
        if !defersAlready { try connection.execute("PRAGMA defer_foreign_keys = OFF") }
      } else {
        try run.auditForeignKeys(incoming, bytes, on: connection)
      }
    }
    let warnings = try indexes?.settle(changed: run.changedTables, on: connection) ?? []
    try decider.finish(on: connection)
    try Ledger.record(
      incoming.key, state: .applied, entry: entry, file: incoming.file, counts: run.counts, at: settings.time,
      on: connection)
    let changed = run.changedTables.map(\.text)
    return ApplyResult(
      counts: run.counts, changedTables: changed, schemaChanges: schema.steps.map(\.description),
      warnings: warnings)
  }

  /// Whether the application has TEMP triggers.
  private static func hasTemporaryTriggers(on connection: borrowing SQLiteConnection) throws -> Bool {
    try connection.cachedInteger(
      "SELECT 1 FROM temp.sqlite_schema WHERE type = 'trigger' AND \(IndexUpkeep.isNoCopy) LIMIT 1") != nil
  }
}
