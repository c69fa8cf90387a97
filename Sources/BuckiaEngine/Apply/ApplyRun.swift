import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The walk over the changes of one diff, table by table.
struct ApplyRun {
  let schema: SchemaPlan
  let decider: ConflictDecider
  let enforcesForeignKeys: Bool
  let progress: (Int) throws -> Void
  private(set) var counts = ApplyCounts()
  private(set) var changedTables: [TableName] = []
  private var isChanged: Set<TableName> = []

  init(
    schema: SchemaPlan, decider: ConflictDecider, enforcesForeignKeys: Bool, progress: @escaping (Int) throws -> Void
  ) {
    self.schema = schema
    self.decider = decider
    self.enforcesForeignKeys = enforcesForeignKeys
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
        try finish(applier, bytes, after: done, on: connection)
        guard let match = schema.matches[TableName(header.name)] else {
          throw EngineError(.missingTable, "table \"\(header.name)\" is not part of the plan", table: header.name)
        }
        applier = TableApplier(
          match, header: header, decider: decider, enforcesForeignKeys: enforcesForeignKeys)
      }
      try applier?.apply(change, reader, bytes, on: connection)
      done += 1
      if done.isMultiple(of: Self.progressInterval) { try progress(done) }
    }
    try finish(applier, bytes, after: done, on: connection)
    try progress(done)
  }

  private mutating func finish(
    _ applier: TableApplier?, _ bytes: RawSpan, after done: Int, on connection: borrowing SQLiteConnection
  ) throws {
    guard let applier else { return }
    try applier.settleDeferred(bytes, on: connection) { try progress(done) }
    counts.add(applier.counts)
    let name = applier.statements.name
    let hasChanged = applier.counts.inserted + applier.counts.updated + applier.counts.deleted > 0
    if hasChanged, isChanged.insert(name).inserted { changedTables.append(name) }
  }

  /// The application enforces foreign keys: what is violated at the end is asked about once, as SQLite does.
  mutating func settleDeferredForeignKeys(on connection: borrowing SQLiteConnection) throws {
    guard connection.hasDeferredForeignKeyViolations else { return }
    counts.conflicts += 1
    try decider.decideForeignKeys(ForeignKeyCount(on: connection))
    let nowhere = ConflictLayout(name: TableName("(foreign keys)"), columns: [], key: [], sources: [], isKey: [])
    try decider.recordViolation(
      nil, nowhere, message: "rows refer to others that are not there; see PRAGMA foreign_key_check", on: connection)
  }

  /// Nobody enforces foreign keys: what the changes have broken is looked up, recorded row by row, and asked about once.
  mutating func auditForeignKeys(
    _ bytes: RawSpan, watchedBy watch: ForeignKeyWatch, on connection: borrowing SQLiteConnection
  ) throws {
    // A trigger that says `RAISE(FAIL)` leaves a row written that counts as refused.
    let changed = watch.seesEverything ? schema.matches : schema.matches.filter { isChanged.contains($0.key) }
    guard !changed.isEmpty else { return }
    let found = try ForeignKeyAudit(changed: changed, watch: watch).recordViolations(
      in: bytes, decider, on: connection)
    guard found > 0 else { return }
    counts.conflicts += found
    try decider.decideForeignKeys(ForeignKeyCount(found))
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
