import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// Applies the changes of one diff, table by table.
struct ChangesetApplier {
  /// A constraint refused a change, which ends the work.
  struct Refused: Error {}

  let schema: SchemaPlan
  let decider: ConflictDecider
  /// The colliding keys; nil if a conflict ends the work anyway.
  private let collisions: KeyCollisions?
  /// True if triggers of the application may fire. They could observe the order, which is therefore kept, and each
  /// change gets a statement of its own.
  private let seesTriggers: Bool
  /// True if the first change that a constraint refuses ends the run; otherwise it is tried again later.
  private let endsAtRefusals: Bool
  let session: ApplySession
  let indexes: IndexMaintenance?
  private let rebuild: IndexRebuild?
  private let observer: (any RowEffectObserver)?
  /// Collects the effects on rows; nil if they are not wanted.
  private let effects: EffectLog?
  /// Finds the clocks of tables; nil for none.
  private let clocks: DiffClocks?
  /// The rows that were changed here and not sent, of tables that are changed.
  private var exposed: [TableName: ExposedRows] = [:]
  /// The appliers that have applied the changes of these tables last.
  private var coverers: [TableName: TableApplier] = [:]
  /// Observes rows that triggers write; nil without an observer or triggers.
  private var indirect: IndirectEffects?
  let progress: (Int) throws -> Void
  /// Finds rows that only their content identifies.
  private let contents: ContentSearches
  private(set) var counts = ApplyCounts()
  private(set) var changedTables: [TableName] = []
  /// Warnings.
  private(set) var warnings: [Warning] = []
  /// Tables whose changes the plan does not write.
  private(set) var passedOver: [TableName] = []
  private var isChanged: Set<TableName> = []
  /// The rows that have lost a UNIQUE value to another row, with the keys of these.
  private var gaveWay: [TableName: [TableApplier.GivenWay]] = [:]
  /// The INSERTs of each table that wait for its other changes.
  private var waitingInserts: [Int: Set<RowIdentity>] = [:]
  private var done = 0
  /// The place in the changes of the last progress report.
  private var placeOfProgress = 0

  init(
    schema: SchemaPlan, decider: ConflictDecider, _ collisions: KeyCollisions? = nil,
    seesTriggers: Bool = false, endsAtRefusals: Bool = false,
    session: ApplySession, keeping indexes: IndexMaintenance?, rebuilding rebuild: IndexRebuild?,
    reportingTo observer: (any RowEffectObserver)?, gatheringInto effects: EffectLog? = nil,
    clocks: DiffClocks? = nil, progress: @escaping (Int) throws -> Void
  ) throws {
    self.effects = effects
    self.clocks = clocks
    self.schema = schema
    self.decider = decider
    self.collisions = collisions
    self.seesTriggers = seesTriggers
    self.endsAtRefusals = endsAtRefusals
    self.session = session
    self.indexes = indexes
    self.rebuild = rebuild
    self.observer = observer
    if seesTriggers, observer != nil || effects != nil || session.watcher != nil {
      indirect = try IndirectEffects(wantsRows: effects != nil || observer?.wantsRows == true, session)
    }
    self.progress = progress
    contents = ContentSearches(session.contentPolicy, storesUTF16: session.storesUTF16, progress: progress)
  }

  /// The most changes, and bytes of them, between two calls of the progress handler.
  private static let progressInterval = 4_096
  private static let progressBytes = 4 << 20

  /// Applies all changes, as far as need be while they are still arriving.
  ///
  /// - Parameter check: Called for each table when its first changes have arrived.
  mutating func applyAll(_ admitted: AdmittedChanges, check: (ChangesetTable) throws -> Void) throws {
    let incoming = admitted.changes
    let window = ChangesetWindow(incoming.changeset)
    var arrival = try incoming.feed.arrival(beyond: 0)
    // Sorting needs all changes; changes that are still arriving are in order.
    let isAllThere = arrival.isComplete
    let canSort = !seesTriggers && isAllThere
    var orderings: [ApplyOrdering] = []
    var next = 0
    while true {
      while next < arrival.summary.sections.count {
        for table in arrival.summary.tables.dropFirst(orderings.count) {
          try check(table.table)
          if schema.passedOver[TableName(table.table.name)] != nil {
            passedOver.append(TableName(table.table.name))
            orderings.append(.done)
            continue
          }
          let match = try match(of: table.table)
          orderings.append(
            try canSort && ApplyOrder.isBetterByKey(table, into: match, on: session.connection) ? .byKey : .asGiven)
        }
        let section = arrival.summary.sections[next]
        next += 1
        if orderings[section.table] == .done { continue }
        let table = arrival.summary.tables[section.table].table
        do {
          try rebuild?.willWrite(
            arrival.summary.tables[section.table], into: match(of: table), section.changes, of: incoming.changeset)
          let waiting = try isAllThere ? waitingInserts(into: section.table, arrival.summary, incoming) : []
          let applier = try tableApplier(for: table, of: incoming.changeset, waiting: waiting)
          if orderings[section.table] == .byKey {
            orderings[section.table] = .done
            let sections = arrival.summary.sectionsByTable[section.table]
            let sorter = try ChangeSorter(table, sections: sections, of: incoming.changeset) { [progress, done] in
              try progress(done)
            }
            try apply(sorter, with: applier)
          } else {
            try apply(section: next - 1, of: incoming, in: window, &arrival, with: applier)
          }
        } catch let error as SQLiteError where error.isCorrupt && !error.isAboutLedger {
          throw ReplicationError.damaged(table: table.name, error)
        }
      }
      if arrival.isComplete { break }
      arrival = try self.arrival(beyond: arrival.end, of: incoming)
    }
    for (name, rows) in exposed.sorted(by: { $0.key.text < $1.key.text }) {
      let applier = coverers[name]
      applier?.counts = ApplyCounts()
      try rows.cover {
        try applier?.uniqueParking.get()?.makeRoom(for: $0) ?? false
      } _: { kind, outcome, layout, base, local, incoming in
        counts.conflicts += 1
        try decider.record(kind, outcome, layout, base: base, local: local, incoming: incoming)
      }
      try applier?.settleParked()
      if let applier {
        counts += applier.counts
        gaveWay[name, default: []] += applier.takeGivenWay()
      }
    }
    try contents.end()
    try rebuild?.finish { [progress, done] in try progress(done) }
    try indirect?.report { [observer, effects, session] effect, table in
      if effect.cause == .indirect, effect.operation != .delete, !effect.key.isEmpty {
        try session.watcher?.didWriteIndirectly(effect.key, of: effect.table)
      }
      try observer?.didWrite(effect)
      try effects?.write(effect, of: table)
    }
    try progress(done)
  }

  /// The order in which the changes of a table are applied.
  private enum ApplyOrdering {
    /// In the order of the file.
    case asGiven
    /// By key, all sections of the table at once.
    case byKey
    /// Nothing is left to do.
    case done
  }

  /// The INSERTs into a table that wait for its other changes, over all its sections.
  private mutating func waitingInserts(
    into table: Int, _ summary: ChangesetSummary, _ incoming: IncomingChanges
  ) throws -> Set<RowIdentity> {
    if let known = waitingInserts[table] { return known }
    let match = try match(of: summary.tables[table].table)
    guard ApplyOrder.mayCollide(summary.tables[table], in: match) else { return [] }
    let found = try ApplyOrder.collidingInserts(
      into: table, match, summary, in: incoming.changeset, on: session.connection)
    waitingInserts[table] = found
    return found
  }

  /// Waits for more changes.
  ///
  /// - Throws: `ChangesetFeed.Incomplete` when an INSERT that is done should perhaps have waited for what arrives now.
  private func arrival(beyond position: Int, of incoming: IncomingChanges) throws -> ChangesetFeed.Arrival {
    let arrival = try incoming.feed.arrival(beyond: position)
    for table in arrival.summary.tables where table.hasDeleteBehindInsert {
      guard let match = schema.matches[TableName(table.table.name)] else { continue }
      if ApplyOrder.mayCollide(table, in: match) { throw ChangesetFeed.Incomplete() }
    }
    return arrival
  }

  private mutating func tableApplier(
    for table: ChangesetTable, of changeset: TemporaryBuffer, waiting: Set<RowIdentity>
  ) throws -> TableApplier {
    let match = try match(of: table)
    let statements = try session.statements(for: match, header: table)
    let known = try collisions?.known(of: statements, table)
    // A row that an index refuses must not keep the other rows of a batch from it. And FTS5 writes all collected rows
    // with each statement for several rows, which costs more than these statements save.
    let canBatch =
      !seesTriggers && known == nil && !statements.isFullText
      && (observer == nil || !statements.match.local.isKeyedByRowID)
      && indexes?.copies.contains { $0.table == statements.name } != true
    try indirect?.begin(statements.name)
    let isReportedOtherwise = indirect?.watches(statements.name) == true
    let gathered = isReportedOtherwise ? nil : effects.map { EffectTable(statements, table, in: $0) }
    let clock = try clocks?.clock(for: match, table)
    if clock != nil, exposed[statements.name] == nil, decider.usesLatest(for: statements.name) {
      exposed[statements.name] = clocks?.exposedRows(of: match.local, keeping: indexes)
    }
    let applier = TableApplier(
      RowWriter(
        statements, table, keeping: indexes, searching: contents, reportingTo: isReportedOtherwise ? nil : observer,
        gatheringInto: gathered, watchedBy: session.watcher),
      match, header: table, of: changeset, decider: decider, collisions, known,
      staying: collisions?.refused.references.staying(in: statements.name), waiting: waiting, clock: clock,
      exposing: exposed[statements.name],
      ignoring: session.ignoredColumns[statements.name] ?? [], canBatch: canBatch,
      storesUTF16: session.storesUTF16)
    if applier.exposed != nil { coverers[statements.name] = applier }
    return applier
  }

  private func match(of table: ChangesetTable) throws -> TableMatch {
    guard let match = schema.matches[TableName(table.name)] else {
      throw ReplicationError(.missingTable, "table \"\(table.name)\" is not part of the plan", table: table.name)
    }
    return match
  }

  /// Applies the changes of a section, and waits for more of it while it may go on.
  private mutating func apply(
    section place: Int, of incoming: IncomingChanges, in window: ChangesetWindow,
    _ arrival: inout ChangesetFeed.Arrival, with applier: TableApplier
  ) throws {
    var stretches = ChangeStretches(arrival.summary.sections[place].changes, of: applier.header, in: window)
    while true {
      while try stretches.advance() {
        try window.withBytes { bytes in
          while let change = stretches.next(in: bytes) {
            try applier.apply(change, bytes)
            try advance(to: stretches.position)
          }
          try applier.flush(bytes)
        }
      }
      guard !arrival.isComplete, place + 1 == arrival.summary.sections.count else { break }
      arrival = try self.arrival(beyond: arrival.summary.sections[place].changes.upperBound, of: incoming)
      stretches.extend(to: arrival.summary.sections[place].changes.upperBound)
    }
    try finish(applier)
  }

  private mutating func apply(_ sorter: consuming ChangeSorter, with applier: TableApplier) throws {
    var sorter = sorter
    var place = 0
    while try sorter.advance() {
      place += sorter.bytes.count
      try sorter.bytes.withRawSpan { bytes in
        while let change = sorter.next(in: bytes) {
          try applier.apply(change, bytes)
          try advance(to: place)
        }
        try applier.flush(bytes)
      }
    }
    try finish(applier)
  }

  @inline(__always)
  private mutating func advance(to place: Int) throws {
    done += 1
    // Another section or table begins at another place.
    let isFar = place - placeOfProgress >= Self.progressBytes || place < placeOfProgress
    guard isFar || done.isMultiple(of: Self.progressInterval) else { return }
    placeOfProgress = place
    contents.changeCount = done
    try progress(done)
  }

  private mutating func finish(_ applier: TableApplier) throws {
    if endsAtRefusals, !applier.deferred.isEmpty { throw Refused() }
    let done = done
    try applier.retryDeferred { [progress] in try progress(done) }
    if !applier.alteredText.isEmpty {
      // The outcome of one file must not be lost among many.
      if endsAtRefusals { throw Refused() }
      warnings += applier.textWarnings
    }
    if applier.statements.match.local.isAutoIncrement {
      try AutoIncrement.raise(applier.statements.name, to: applier.greatestRowID, on: session.connection)
    } else if applier.statements.match.local.module == nil, !applier.statements.match.local.isKeyedByRowID,
      applier.counts.inserted > 0, applier.greatestRowID > AutoIncrement.greatestIncomingID
    {
      if endsAtRefusals { throw Refused() }
      warnings.append(Warning(.lastKeys, applier.statements.name.text, "\(applier.greatestRowID)"))
    }
    try applier.settleParked()
    gaveWay[applier.statements.name, default: []] += applier.takeGivenWay()
    try applier.clock?.flush()
    counts += applier.counts
    let name = applier.statements.name
    let hasChanged = applier.counts.inserted + applier.counts.updated + applier.counts.deleted > 0
    if hasChanged, isChanged.insert(name).inserted { changedTables.append(name) }
  }

  /// Mends the references that the changes have broken, and asks about them once.
  ///
  /// - Returns: False if the changes have to be rolled back and applied again, with the new decisions.
  mutating func repairReferences(
    _ incoming: IncomingChanges, watchedBy watch: ForeignKeyWatch, _ decisions: ReferenceDecisions,
    _ parked: ParkedChildren
  ) throws -> Bool {
    // A trigger with `RAISE(FAIL)` leaves a row written that counts as refused.
    let changed = watch.seesEverything ? schema.matches : schema.matches.filter { isChanged.contains($0.key) }
    guard !changed.isEmpty || decisions.count > 0 || !parked.written.isEmpty else { return true }
    let audit = ForeignKeyAudit(session: session, changed: changed, watch: watch, collisions: collisions)
    var repair = ReferenceRepair(
      session: session, audit: audit, decisions: decisions, parked: parked, decider: decider, indexes: indexes,
      observer: observer, effects: effects)
    try repair.follow(gaveWay)
    guard try repair.run(TableSections(incoming.feed.summary(), of: incoming.changeset)) else { return false }
    counts += repair.counts
    return true
  }
}

extension TableApplier {
  /// Warnings about text that could not be stored unchanged.
  fileprivate var textWarnings: [Warning] {
    let names = statements.match.local.changesetColumns
    return alteredText.sorted().map {
      Warning(.alteredText, statements.name.text, names[statements.match.columns[$0]])
    }
  }
}
