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
    let firedTriggers = try connection.triggersEnabled
    try connection.enableTriggers(settings.firesTriggers)
    do {
      let result = try applyWithTriggersSet(on: connection)
      try connection.enableTriggers(firedTriggers)
      return result
    } catch {
      try connection.enableTriggers(firedTriggers)
      throw error
    }
  }

  private func applyWithTriggersSet(on connection: borrowing SQLiteConnection) throws -> ApplyResult {
    _ = try Ledger.create(on: connection)
    for step in schema.steps { try connection.execute(step.sql) }
    let entry = try Ledger.open(
      incoming.key, state: .applied, file: incoming.file, at: settings.time, on: connection)
    let decider = ConflictDecider(
      policy: settings.policy, resolver: settings.resolver, log: try ConflictLog(entry: entry, on: connection))
    let enforcesForeignKeys = try connection.integer("PRAGMA foreign_keys") == 1
    // Where the application defers them itself, its own open questions must not be forgotten with ours.
    let defersAlready = try enforcesForeignKeys && connection.integer("PRAGMA defer_foreign_keys") == 1
    if enforcesForeignKeys, !defersAlready { try connection.execute("PRAGMA defer_foreign_keys = ON") }

    // Parked rows are deleted and come back, which neither foreign-key actions nor triggers must see.
    let canPark = !enforcesForeignKeys && !settings.firesTriggers
    var run = ApplyRun(schema: schema, decider: decider, canPark: canPark, progress: settings.progress)
    // Foreign-key actions and triggers see the order of changes.
    let changeset =
      canPark
      ? try ApplyOrder.quickest(incoming.changeset, into: schema.matches, on: connection) : incoming.changeset
    try changeset.withBytes { bytes in
      try run.applyAll(bytes, on: connection)
      if enforcesForeignKeys {
        try run.settleDeferredForeignKeys(on: connection)
        if !defersAlready { try connection.execute("PRAGMA defer_foreign_keys = OFF") }
      } else {
        try run.auditForeignKeys(bytes, on: connection)
      }
    }
    try Ledger.close(entry, with: run.counts, on: connection)
    let changed = run.changedTables.map(\.text)
    return ApplyResult(
      counts: run.counts, changedTables: changed, schemaChanges: schema.steps.map(\.description),
      warnings: settings.firesTriggers ? [] : try StaleIndexes.warnings(changed: run.changedTables, on: connection))
  }
}

/// The walk over the changes of one diff, table by table.
struct ApplyRun {
  let schema: SchemaPlan
  let decider: ConflictDecider
  let canPark: Bool
  let progress: (Int) throws -> Void
  private(set) var counts = ApplyCounts()
  private(set) var changedTables: [TableName] = []
  private var isChanged: Set<TableName> = []

  init(
    schema: SchemaPlan, decider: ConflictDecider, canPark: Bool, progress: @escaping (Int) throws -> Void
  ) {
    self.schema = schema
    self.decider = decider
    self.canPark = canPark
    self.progress = progress
  }

  /// How many changes are applied between two looks at whether to go on.
  private static let progressInterval = 4_096

  mutating func applyAll(_ bytes: RawSpan, on connection: borrowing SQLiteConnection) throws {
    var reader = ChangesetReader()
    var applier: TableApplier?
    var done = 0
    while let change = try reader.next(in: bytes) {
      if change.startsTable, let header = reader.table {
        try finish(applier, bytes, on: connection)
        guard let match = schema.matches[TableName(header.name)] else {
          throw EngineError(.missingTable, "table \"\(header.name)\" is not part of the plan", table: header.name)
        }
        applier = TableApplier(match, header: header, decider: decider)
      }
      try applier?.apply(change, reader, bytes, on: connection)
      done += 1
      if done.isMultiple(of: Self.progressInterval) { try progress(done) }
    }
    try finish(applier, bytes, on: connection)
    try progress(done)
  }

  private mutating func finish(
    _ applier: TableApplier?, _ bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws {
    guard let applier else { return }
    try applier.settleDeferred(bytes, on: connection, canPark: canPark)
    counts.add(applier.counts)
    let name = applier.statements.name
    let hasChanged = applier.counts.inserted + applier.counts.updated + applier.counts.deleted > 0
    if hasChanged, isChanged.insert(name).inserted { changedTables.append(name) }
  }

  /// The application enforces foreign keys: what is violated at the end is asked about once, as SQLite does.
  mutating func settleDeferredForeignKeys(on connection: borrowing SQLiteConnection) throws {
    if connection.hasDeferredForeignKeyViolations {
      counts.conflicts += 1
      try decider.recordForeignKey(
        ForeignKeyAudit.Violation(
          table: TableName("(foreign keys)"), columns: [], key: [], row: [],
          message: "rows refer to others that are not there; see PRAGMA foreign_key_check"), on: connection)
    }
  }

  mutating func auditForeignKeys(_ bytes: RawSpan, on connection: borrowing SQLiteConnection) throws {
    let changed = schema.matches.filter { isChanged.contains($0.key) }
    guard !changed.isEmpty else { return }
    for violation in try ForeignKeyAudit(changed: changed).violations(in: bytes, on: connection) {
      counts.conflicts += 1
      try decider.recordForeignKey(violation, on: connection)
    }
  }
}

extension ApplyCounts {
  mutating func add(_ other: ApplyCounts) {
    inserted += other.inserted
    updated += other.updated
    deleted += other.deleted
    conflicts += other.conflicts
    omitted += other.omitted
    unchanged += other.unchanged
  }
}
