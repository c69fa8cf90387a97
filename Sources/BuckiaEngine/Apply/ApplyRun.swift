import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The walk over the changes of one diff, table by table.
struct ApplyRun {
  /// What the connection and the settings allow.
  struct Rules {
    /// Whether rows may be taken out and put back, which neither foreign-key actions nor triggers must see.
    let canPark: Bool
    /// Whether the order of changes is ours to choose, and several may go in with one statement.
    let isOrderFree: Bool
  }

  let schema: SchemaPlan
  let decider: ConflictDecider
  let rules: Rules
  let session: ApplySession
  let indexes: IndexUpkeep?
  let progress: (Int) throws -> Void
  private(set) var counts = ApplyCounts()
  private(set) var changedTables: [TableName] = []
  private var isChanged: Set<TableName> = []
  private var done = 0

  init(
    schema: SchemaPlan, decider: ConflictDecider, rules: Rules, session: ApplySession, keeping indexes: IndexUpkeep?,
    progress: @escaping (Int) throws -> Void
  ) {
    self.schema = schema
    self.decider = decider
    self.rules = rules
    self.session = session
    self.indexes = indexes
    self.progress = progress
  }

  /// How many changes are applied between two looks at whether to go on.
  private static let progressInterval = 4_096

  mutating func applyAll(
    _ incoming: IncomingChanges, _ bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws {
    let summary = incoming.summary
    var isSorted = [Bool](repeating: false, count: summary.tables.count)
    var isDone = isSorted
    if rules.isOrderFree {
      for (index, table) in summary.tables.enumerated() {
        let match = try match(of: table.table)
        isSorted[index] = try ApplyOrder.isBetterByKey(table, into: match, on: connection)
      }
    }
    for section in summary.sections where !isDone[section.table] {
      let table = summary.tables[section.table].table
      let statements = try session.statements(for: try match(of: table), header: table, on: connection)
      // What an index does not take must not keep the other rows of a batch from it.
      let canBatch = rules.isOrderFree && indexes?.copies.contains { $0.table == statements.name } != true
      let applier = TableApplier(
        statements, header: table, decider: decider, keeping: indexes, canBatch: canBatch)
      if isSorted[section.table] {
        isDone[section.table] = true
        let sections = summary.sections.filter { $0.table == section.table }.map(\.changes)
        let sorter = try ChangeSorter(table, sections: sections, of: incoming.changeset, in: bytes)
        try apply(sorter, with: applier, bytes, on: connection)
      } else {
        try apply(
          ChangeWalk(section.changes, of: table), of: incoming.changeset, with: applier, bytes, on: connection)
      }
    }
    try progress(done)
  }

  private func match(of table: ChangesetTable) throws -> TableMatch {
    guard let match = schema.matches[TableName(table.name)] else {
      throw EngineError(.missingTable, "table \"\(table.name)\" is not part of the plan", table: table.name)
    }
    return match
  }

  private mutating func apply(
    _ changes: ChangeWalk, of spool: ChangesetSpool, with applier: TableApplier, _ bytes: RawSpan,
    on connection: borrowing SQLiteConnection
  ) throws {
    var changes = changes
    var trail = SpoolTrail(of: spool, at: changes.position)
    while let place = changes.next(in: bytes) {
      try applier.apply(place, bytes, on: connection)
      trail.advance(to: place.start)
      try advance()
    }
    try finish(applier, bytes, on: connection)
  }

  private mutating func apply(
    _ sorter: consuming ChangeSorter, with applier: TableApplier, _ bytes: RawSpan,
    on connection: borrowing SQLiteConnection
  ) throws {
    var sorter = sorter
    guard let spool = sorter.beginMerge() else {
      while let place = sorter.next(in: bytes) {
        try applier.apply(place, bytes, on: connection)
        try advance()
      }
      return try finish(applier, bytes, on: connection)
    }
    try spool.withBytes { sorted in
      while let place = sorter.next(in: sorted) {
        try applier.apply(place, sorted, on: connection)
        try advance()
      }
      try finish(applier, sorted, on: connection)
    }
  }

  @inline(__always)
  private mutating func advance() throws {
    done += 1
    if done.isMultiple(of: Self.progressInterval) { try progress(done) }
  }

  private mutating func finish(
    _ applier: TableApplier, _ bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws {
    try applier.flush(bytes, on: connection)
    try applier.settleDeferred(bytes, on: connection, canPark: rules.canPark)
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
    _ incoming: IncomingChanges, _ bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws {
    let changed = schema.matches.filter { isChanged.contains($0.key) }
    guard !changed.isEmpty else { return }
    let found = try ForeignKeyAudit(changed: changed).recordViolations(
      incoming.summary, in: bytes, decider, session, on: connection)
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
