import BuckiaLedger
import BuckiaSchemaPlans
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Small diffs that are applied together, as if they were one: in key order, and with as few statements as that takes.
///
/// It is a bet that none of them meets a conflict. Then all changes are written, and what comes of it is the same as when
/// each diff is applied by itself: changes of one row keep their order, and those of different rows have nothing to do with
/// each other once neither triggers nor foreign keys tie them together and no constraint refuses any. The first conflict
/// loses the bet: the transaction has to be rolled back, and each diff to be applied by itself.
///
/// ```swift
/// var joint = JointApply(session)
/// for changes in diffs {
///   let plan = try ApplyPlan(changes, on: connection, settings: settings, session: session)
///   if let result = try joint.join(plan, on: connection) {
///     results.append(result)
///   } else {
///     try joint.finish(on: connection)
///     results.append(try plan.apply(in: transaction, on: connection))
///   }
/// }
/// try joint.finish(on: connection)
/// ```
package struct JointApply {
  /// The bet is lost: the transaction has to be rolled back.
  package struct Disturbance: Error {
    /// What disturbed.
    package let cause: any Error
  }

  /// The most bytes of changes, and tables, that one diff may have; larger ones gain nothing.
  private static let memberLimit = 64 << 10
  private static let tableLimit = 64
  /// How many diffs, and bytes of their changes, are gathered before they are written.
  private static let diffLimit = 256
  private static let byteLimit = 4 << 20

  private let session: ApplySession
  /// What holds for the transaction; asked once.
  private var isPossible: Bool?
  /// The tables that foreign keys lead to, and those that they lead from.
  private var parents: Set<TableName> = []
  private var children: Set<TableName> = []

  private var schema: SchemaPlan?
  private var definitions: [TableDefinition] = []
  private var bytes: [UInt8] = []
  private var summary = ChangesetSummary()
  private var diffs = 0

  /// Nothing has been gathered yet.
  ///
  /// - Parameter session: That of the connection; the same transaction must last until `finish`.
  package init(_ session: ApplySession) { self.session = session }

  /// Takes a diff in, and writes its ledger entry at once; its changes follow, with `finish` at the latest.
  ///
  /// - Returns: What comes of it if the bet is won; nil when the diff has to be applied by itself, after `finish`.
  /// - Throws: `Disturbance`; `SQLiteError` when the database fails.
  package mutating func join(
    _ plan: borrowing ApplyPlan, on connection: borrowing SQLiteConnection
  ) throws -> ApplyResult? {
    let incoming = plan.incoming
    guard let tables = incoming.definitions, plan.schema.steps.isEmpty, plan.schema.held.isEmpty,
      incoming.renames.isEmpty, incoming.changeset.count <= Self.memberLimit,
      incoming.feed.isAllThere, try isPossible(on: connection), try !HeldParts.exist(on: connection)
    else { return nil }
    let added = try incoming.feed.summary()
    guard added.tables.count <= Self.tableLimit, hasNoTies(added) else { return nil }
    let isOfSameTables = definitions.elementsEqual(tables, by: { $0.isIdentical(to: $1) })
    if diffs == Self.diffLimit || bytes.count > Self.byteLimit || !isOfSameTables || !summary.canAppend(added) {
      try finish(on: connection)
    }
    if diffs == 0 {
      schema = plan.schema
      definitions = tables
    }
    diffs += 1
    summary.append(added, at: bytes.count)
    try incoming.changeset.withBytes { span in span.withUnsafeBytes { bytes.append(contentsOf: $0) } }

    let counts = ApplyCounts(expecting: added)
    try LedgerEntries.record(
      incoming.key, state: .applied, file: incoming.file, counts: counts, at: plan.settings.time, on: connection)
    return ApplyResult(
      counts: counts,
      changedTables: added.tables.compactMap { plan.schema.matches[TableName($0.table.name)]?.local.name },
      schemaChanges: [], warnings: [])
  }

  /// Writes all changes that have been gathered.
  ///
  /// - Throws: `Disturbance`.
  package mutating func finish(on connection: borrowing SQLiteConnection) throws {
    guard diffs > 0, let schema else { return }
    var run = ApplyRun(
      schema: schema, decider: ConflictDecider(policy: .abort, resolver: nil, log: nil),
      rules: ApplyRun.Rules(enforcesForeignKeys: false, isOrderFree: true, endsAtRefusals: true), session: session,
      keeping: nil, progress: { _ in })
    let all = IncomingChanges(
      key: LedgerKey(sender: "", id: nil, digest: [], isRaw: true), file: "", definitions: definitions,
      changeset: ChangesetSpool(bytes), summary: summary)
    let expected = ApplyCounts(expecting: summary)
    bytes = []
    summary = ChangesetSummary()
    diffs = 0
    do {
      try all.changeset.withBytes { try run.applyAll(all, $0, on: connection) { _ in } }
      // A change that was there already is none here, and one to tell of in the report.
      guard run.counts == expected else { throw ApplyRun.Refusal() }
    } catch {
      session.forget()
      throw Disturbance(cause: error)
    }
  }

  /// Whether nothing sees in which order changes are written.
  private mutating func isPossible(on connection: borrowing SQLiteConnection) throws -> Bool {
    if let isPossible { return isPossible }
    let found =
      try !session.firesTriggers && connection.cachedInteger("PRAGMA foreign_keys") != 1
      && !ApplyPlan.hasTemporaryTriggers(on: connection) && !session.hasVirtualTables(on: connection)
    if found {
      let references = try session.references(on: connection)
      parents = Set(references.map(\.parent))
      children = Set(references.map(\.child))
    }
    isPossible = found
    return found
  }

  /// Whether no change can break a foreign key, for a while or for good.
  private func hasNoTies(_ added: ChangesetSummary) -> Bool {
    if parents.isEmpty { return true }
    return added.tables.allSatisfy {
      let name = TableName($0.table.name)
      return !children.contains(name) && ($0.inserted == $0.changeCount || !parents.contains(name))
    }
  }
}

extension ApplyCounts {
  /// What is counted when every change is written.
  fileprivate init(expecting summary: ChangesetSummary) {
    self.init()
    inserted = summary.inserted
    updated = summary.updated
    deleted = summary.deleted
  }
}
