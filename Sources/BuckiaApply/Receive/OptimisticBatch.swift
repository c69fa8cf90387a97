import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// Small diffs that are applied together, as if they were one: in key order, and with few statements.
///
/// The batch is optimistic: it assumes that no change meets a conflict. All changes are then written together. The
/// outcome is the same as when each diff is applied by itself, because changes of one row keep their order, and those
/// of different rows are independent as long as no triggers or foreign keys connect them and no constraint refuses any.
/// After the first conflict the transaction has to be rolled back, and each diff is applied by itself.
struct OptimisticBatch {
  /// The result of adding a diff, or of writing the added ones.
  enum Attempt {
    /// It is in the batch; this is its result if the batch succeeds.
    case added(ApplyResult)
    /// It has to be applied by itself, after ``write(on:)``.
    case notEligible
    /// A conflict: the transaction has to be rolled back.
    case conflict(any Error)
  }

  /// The most bytes of changes, and tables, that one diff may have; larger ones gain nothing.
  private static let diffByteLimit = 64 << 10
  private static let tableLimit = 64
  /// The number of diffs, and of bytes of changes, after which the batch is written.
  private static let diffLimit = 256
  private static let byteLimit = 4 << 20

  private let session: ApplySession
  private let observer: (any RowEffectObserver)?
  /// True if the application has TEMP triggers; asked once.
  private var hasTemporaryTriggers: Bool?

  private var admitted: AdmittedChanges?
  private var schema: SchemaPlan?
  private var definitions: [TableDefinition] = []
  private var effectTables: [TableName: AppliedEffects.Table] = [:]
  private var bytes: [UInt8] = []
  private var summary = ChangesetSummary()
  private var diffs = 0

  /// Creates an empty batch.
  ///
  /// - Parameters:
  ///   - session: That of the connection; the same transaction must last until the batch is written.
  ///   - observer: An observer of written rows.
  init(_ session: ApplySession, reportingTo observer: (any RowEffectObserver)?) {
    self.session = session
    self.observer = observer
  }

  /// Adds a diff, and writes its ledger entry at once; its changes follow, with ``write(on:)`` at the latest.
  ///
  /// - Throws: `SQLiteError` when the database fails.
  mutating func add(_ plan: borrowing ApplyPlan) throws -> Attempt {
    let incoming = plan.incoming
    guard let tables = incoming.definitions, !plan.changesSchema, plan.schema.held.isEmpty,
      !plan.schema.keepsDeletedRows, incoming.renames.isEmpty,
      try session.renames(of: incoming.key.sender).isEmpty, incoming.changeset.count <= Self.diffByteLimit,
      incoming.feed.isAllThere, try isPossible(), try !HeldParts.exist(on: session.connection),
      try !ParkedRows.exist(on: session.connection),
      try !ContestedKeys.exist(on: session.connection)
    else { return .notEligible }
    let added = try incoming.feed.summary()
    guard added.tables.count <= Self.tableLimit, try isIndependent(added), let clocks = try clocks(of: added, plan)
    else {
      return .notEligible
    }
    let limit = plan.settings.retention?.byteLimit ?? 0
    let keepsEffects = limit > 0 && incoming.changeset.count <= limit
    if keepsEffects, !added.tables.allSatisfy({ plan.schema.matches[TableName($0.table.name)]?.isComplete == true }) {
      return .notEligible
    }
    let isOfSameTables = definitions.elementsEqual(tables, by: { $0.isIdentical(to: $1) })
    if diffs == Self.diffLimit || bytes.count > Self.byteLimit || !isOfSameTables || !summary.canAppend(added) {
      if let conflict = try write() { return .conflict(conflict) }
    }
    if diffs == 0 {
      schema = plan.schema
      definitions = tables
      effectTables = [:]
      admitted = plan.admitted
    }
    diffs += 1
    summary.append(added, at: bytes.count)
    try incoming.changeset.forEachPiece { bytes.append(contentsOf: $0) }

    let counts = ApplyCounts(expecting: added)
    try LedgerEntries.record(
      incoming.key, placed: incoming.place, state: .applied, file: incoming.file, counts: counts,
      at: plan.settings.time, on: session.connection)
    // The last rowid is that of the ledger entry, because its stream entry has the same number.
    if keepsEffects, let entry = try session.connection.cachedInteger("SELECT last_insert_rowid()") {
      session.effects.add(
        EffectRecord(
          entry: entry, isResumed: false, tables: effectTables(of: added),
          changes: try incoming.changeset.memoryContents ?? incoming.changeset.allBytes()),
        limit: limit)
    }
    try rowVersion(incoming, added, clocks)
    return .added(
      ApplyResult(
        counts: counts,
        changedTables: added.tables.compactMap { plan.schema.matches[TableName($0.table.name)]?.local.name },
        schemaChanges: [], warnings: limit > 0 && !keepsEffects ? [.undoNotKept(limit: limit)] : []))
  }

  /// Writes all changes that have been gathered.
  ///
  /// - Returns: The conflict that one of them met: the transaction has to be rolled back. Nil when all were written.
  mutating func write() throws -> (any Error)? {
    guard diffs > 0, let schema, let admitted else { return nil }
    let all = admitted.replaced(
      by: IncomingChanges(
        key: LedgerKey(sender: "", id: nil, digest: [], isRaw: true), file: "", definitions: definitions,
        changeset: TemporaryBuffer(bytes), feed: ChangesetFeed(summary)))
    let rebuild = try IndexRebuild(of: all.changes, keeping: nil, seesTriggers: false, in: session)
    var applier = try ChangesetApplier(
      schema: schema, decider: ConflictDecider(policies: .abort, resolver: nil, log: nil),
      endsAtRefusals: true,
      session: session, keeping: nil, rebuilding: rebuild, reportingTo: observer, progress: { _ in })
    let expected = ApplyCounts(expecting: summary)
    bytes = []
    summary = ChangesetSummary()
    diffs = 0
    do {
      try applier.applyAll(all) { _ in }
      // A change with nothing left to do counts as none here, and has to be reported for its own file.
      guard applier.counts == expected else { throw ChangesetApplier.Refused() }
      return nil
    } catch {
      return error
    }
  }

  /// True if nothing sees in which order changes are written.
  private mutating func isPossible() throws -> Bool {
    if session.firesTriggers { return false }
    // A file of the same group can have made the first.
    if try session.hasVirtualTables() { return false }
    let hasTriggers = try hasTemporaryTriggers ?? session.hasTemporaryTriggers()
    hasTemporaryTriggers = hasTriggers
    return !hasTriggers
  }

  /// The clocks of the tables that a diff changes, by name; nil if the diff may meet an entry of a clock, and has to be
  /// applied by itself.
  private func clocks(of added: ChangesetSummary, _ plan: borrowing ApplyPlan) throws -> [TableName: TableClock]? {
    let policies = plan.settings.policies
    guard try session.keepsLedger && session.hasClocks() else { return policies.usesLatest ? nil : [:] }
    guard let diff = plan.incoming.key.id else { return nil }
    let finder = try DiffClocks(
      diff: diff, session: session, unsent: nil, isAlone: false, origins: plan.incoming.rowOrigins())
    var clocks: [TableName: TableClock] = [:]
    for table in added.tables {
      let name = TableName(table.table.name)
      guard let match = plan.schema.matches[name] else { return nil }
      let clock = try finder.clock(for: match, table.table, findsRuns: false)
      if policies.usesLatest(for: name), clock?.isTrivial != true || plan.settings.unsent?.rows(of: name) != nil {
        return nil
      }
      clocks[name] = clock
    }
    return clocks
  }

  /// Row versions the changes of a diff, assuming that they are applied.
  private func rowVersion(_ incoming: IncomingChanges, _ added: ChangesetSummary, _ clocks: [TableName: TableClock])
    throws
  {
    guard !clocks.isEmpty else { return }
    let sections = TableSections(added, of: incoming.changeset)
    // In the order of the changes, which gives the row versions the same numbers each time.
    var seen: Set<TableName> = []
    for name in added.tables.map({ TableName($0.table.name) }) where seen.insert(name).inserted {
      guard let clock = clocks[name] else { continue }
      try sections.forEachChange(of: name) { change, bytes in
        try clock.rowVersion(change, bytes)
      }
    }
  }

  /// How the changes of a diff's tables are laid out: the same for all diffs between two writes, which have the same definitions.
  private mutating func effectTables(of added: ChangesetSummary) -> [AppliedEffects.Table] {
    added.tables.compactMap { table in
      let name = TableName(table.table.name)
      if let known = effectTables[name] { return known }
      let made = schema?.matches[name].map { AppliedEffects.Table(name: $0.local.name, columns: $0.columnNames) }
      effectTables[name] = made
      return made
    }
  }

  /// True if no change can break a foreign key, even for a while.
  private func isIndependent(_ added: ChangesetSummary) throws -> Bool {
    let references = try session.references()
    if references.isEmpty { return true }
    return added.tables.allSatisfy {
      let name = TableName($0.table.name)
      return !references.isChild(name) && ($0.inserted == $0.changeCount || !references.isParent(name))
    }
  }
}
