import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

extension ApplyPlan {
  /// Carries the plan out inside a transaction that the application has open on its own connection.
  ///
  /// ```swift
  /// try SQLiteConnection.borrowing(handle) { connection in
  ///   let plan = try ApplyPlan(changes, on: connection, settings: settings)
  ///   return try plan.apply(on: connection).changedTables
  /// }
  /// ```
  ///
  /// When this throws, everything is as it was before: rows, schema, ledger, and the connection's settings; the
  /// application's transaction is open, with what the application did in it, and can go on. There is one exception. When
  /// the disk is full or fails, SQLite can roll back the whole transaction by itself
  /// (<https://sqlite.org/lang_transaction.html#response_to_errors_within_a_transaction>); so can a trigger. Then nothing
  /// of the application's own work is left either, and the error says so: its code is `transactionLost`.
  ///
  /// For that it takes a savepoint, which makes SQLite keep a copy of each page that changes. Whoever owns the transaction
  /// does without one: see ``apply(in:on:)``.
  ///
  /// - Parameter connection: The connection the plan was made on, in the same transaction.
  /// - Returns: What was done.
  /// - Throws: `EngineError` with `conflict` under the policy `abort`, with `transactionLost` as said above; `SQLiteError`
  ///   when the database fails; what the resolver or `progress` throws.
  public consuming func apply(on connection: borrowing SQLiteConnection) throws -> ApplyResult {
    guard connection.isInTransaction else {
      throw SQLiteError(code: 21, message: "apply needs an open transaction", path: connection.path)
    }
    let savepoint = try SQLiteTransaction(on: connection)
    let result: ApplyResult
    do {
      result = try apply(in: savepoint, on: connection)
    } catch {
      guard connection.isInTransaction else { throw EngineError.transactionLost(error) }
      throw error
    }
    try savepoint.commit()
    return result
  }

  /// Carries the plan out inside a transaction, or savepoint, of the caller's, which takes everything back on failure.
  ///
  /// Triggers are off meanwhile, unless the settings say otherwise, and as before afterwards, whatever happens; so is the
  /// deferral of foreign keys.
  ///
  /// - Parameters:
  ///   - transaction: To be committed when this returns; it must be left to roll back when this throws.
  ///   - connection: The connection that the plan and the transaction were made on, in this order or the other.
  /// - Returns: What was done.
  /// - Throws: `EngineError` with `conflict` under the policy `abort`; `SQLiteError` when the database fails; what the
  ///   resolver or `progress` throws.
  public consuming func apply(
    in transaction: borrowing SQLiteTransaction, on connection: borrowing SQLiteConnection
  ) throws -> ApplyResult {
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

  /// Carries out what was kept of an earlier diff, inside the transaction of another.
  consuming func apply(
    resumedIn session: ApplySession, on connection: borrowing SQLiteConnection
  ) throws -> ApplyResult { try apply(in: session, on: connection) }

  private func apply(in session: ApplySession, on connection: borrowing SQLiteConnection) throws -> ApplyResult {
    try session.requireLedger(on: connection)
    for step in schema.steps { try step.carryOut(on: connection) }
    if !incoming.renames.isEmpty {
      try Ledger.add(incoming.renames, on: connection)
      session.forget()
    }
    // What was kept of earlier diffs comes first, now that there may be a place for it.
    let released = try resumed == nil ? HeldRelease(settings, session).run(on: connection) : []
    guard !session.firesTriggers, try session.hasVirtualTables(on: connection) else {
      var result = try applyChanges(in: session, keeping: nil, on: connection)
      result.released = released
      return result
    }
    let indexes = try IndexMaintenance.begin(over: Set(schema.matches.keys), on: connection)
    do {
      var result = try applyChanges(in: session, keeping: indexes, on: connection)
      result.warnings += try indexes.end(on: connection)
      result.released = released
      return result
    } catch {
      _ = try indexes.end(on: connection)
      throw error
    }
  }

  private func applyChanges(
    in session: ApplySession, keeping indexes: IndexMaintenance?, on connection: borrowing SQLiteConnection
  ) throws -> ApplyResult {
    let entry = try resumed?.entry ?? Ledger.nextEntry(on: connection)
    let holding = try Holding(self, entry: entry, in: session, on: connection)
    let decider = ConflictDecider(
      policy: settings.policy, resolver: settings.resolver,
      log: settings.recordsConflicts ? ConflictLog(entry: entry) : nil, watching: holding.keys)
    let enforcesForeignKeys = try connection.cachedInteger("PRAGMA foreign_keys") == 1
    // Foreign-key actions and triggers see the order of changes; TEMP triggers are never off.
    let seesTriggers = try session.firesTriggers || Self.hasTemporaryTriggers(on: connection)
    let rules = ApplyRun.Rules(
      enforcesForeignKeys: enforcesForeignKeys, isOrderFree: !enforcesForeignKeys && !seesTriggers)
    var run = ApplyRun(
      schema: schema, decider: decider, rules: rules, session: session, keeping: indexes, progress: settings.progress)
    if enforcesForeignKeys {
      try applyEnforcingForeignKeys(holding.known, &run, on: connection)
    } else {
      try applyAuditingForeignKeys(holding.known, &run, seesTriggers: seesTriggers, in: session, on: connection)
    }
    var warnings = run.warnings + run.passedOver.compactMap { schema.passedOver[$0] }
    if let indexes {
      warnings += try indexes.rebuildIncompleteIndexes(changed: run.changedTables, on: connection)
    } else if try session.hasVirtualTables(on: connection) {
      warnings += try IndexMaintenance.rebuildIndexesWithoutTriggers(changed: run.changedTables, on: connection)
    }
    let held = try holding.finish(after: decider, on: connection)
    try decider.finish(on: connection)
    if resumed == nil {
      try Ledger.record(
        incoming.key, state: held.isEmpty ? .applied : .held, entry: entry, file: incoming.file, counts: run.counts,
        reason: held.isEmpty ? nil : HeldSummary.reason(held), at: settings.time, on: connection)
    } else {
      try Ledger.add(run.counts, to: entry, on: connection)
    }
    let changed = run.changedTables.map(\.text)
    var result = ApplyResult(
      counts: run.counts, changedTables: changed, schemaChanges: schema.steps.map(\.description), warnings: warnings)
    result.held = held
    return result
  }

  /// The application enforces foreign keys: they are deferred meanwhile, as SQLite does it.
  private func applyEnforcingForeignKeys(
    _ incoming: IncomingChanges, _ run: inout ApplyRun, on connection: borrowing SQLiteConnection
  ) throws {
    // Where the application defers them itself, its own open questions must not be forgotten with ours.
    let defersAlready = try connection.cachedInteger("PRAGMA defer_foreign_keys") == 1
    if !defersAlready { try connection.execute("PRAGMA defer_foreign_keys = ON") }
    do {
      try incoming.changeset.withBytes { bytes in
        try run.applyAll(incoming, bytes, on: connection) {
          try Self.requireDefinition(of: $0, among: incoming)
        }
      }
      try run.settleDeferredForeignKeys(on: connection)
    } catch {
      if !defersAlready { try connection.execute("PRAGMA defer_foreign_keys = OFF") }
      throw error
    }
    if !defersAlready { try connection.execute("PRAGMA defer_foreign_keys = OFF") }
  }

  /// Nobody enforces foreign keys: what the changes have broken is looked up afterwards.
  private func applyAuditingForeignKeys(
    _ incoming: IncomingChanges, _ run: inout ApplyRun, seesTriggers: Bool, in session: ApplySession,
    on connection: borrowing SQLiteConnection
  ) throws {
    let watch = try ForeignKeyWatch(
      changed: Set(schema.matches.keys), seesTriggers: seesTriggers, session, on: connection)
    try incoming.changeset.withBytes { bytes in
      try run.applyAll(incoming, bytes, on: connection) {
        try Self.requireDefinition(of: $0, among: incoming)
      }
      try run.auditForeignKeys(incoming, bytes, watchedBy: watch, on: connection)
    }
    // After an error the rollback takes them away: TEMP triggers are part of the transaction they were made in.
    try watch.stop(on: connection)
  }

  /// Whether the application has TEMP triggers.
  static func hasTemporaryTriggers(on connection: borrowing SQLiteConnection) throws -> Bool {
    try connection.cachedInteger(
      "SELECT 1 FROM temp.sqlite_schema WHERE type = 'trigger' AND \(RowHooks.isNotOurs) LIMIT 1") != nil
  }
}
