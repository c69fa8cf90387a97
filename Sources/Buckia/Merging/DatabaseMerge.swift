import BuckiaApply
import BuckiaDiff
import BuckiaLedger
import BuckiaSchemaPlans
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// One merge: takes what an incoming database has changed into the one that a connection has open, in one transaction.
///
/// The incoming changes pass the gate and are applied as those of a diff file. Their ledger entry stays only if conflicts refer to
/// it.
struct DatabaseMerge: ~Copyable {
  private let incoming: IncomingDatabase
  private let options: MergeOptions
  private var settings: ApplySettings
  private let connection: SQLiteConnection
  private var report: MergeReport
  /// Why the schemas cannot be merged here.
  private var schemaRefusal: ReplicationError?

  /// - Parameters:
  ///   - incoming: The other side.
  ///   - options: How to merge.
  ///   - settings: How to apply, and the present time.
  ///   - connection: The database that is changed. It must outlive the merge.
  init(
    of incoming: IncomingDatabase, _ options: MergeOptions, _ settings: ApplySettings,
    on connection: borrowing SQLiteConnection
  ) {
    self.incoming = incoming
    self.options = options
    self.settings = settings
    self.connection = SQLiteConnection(sharing: connection)
    report = MergeReport(path: connection.path, hasBase: incoming.hasBase, isDryRun: options.isDryRun)
    report.skipped = incoming.rowsLeftOut
  }

  /// Merges.
  ///
  /// - Throws: `ReplicationError`, `SQLiteError`, what the resolver and the progress closure throw. Nothing has been changed then.
  consuming func run() throws -> MergeReport {
    if incoming.difference.isEmpty { return report }
    // Most merges meet no conflict, and then no ledger has to be made and removed again.
    var keepsLedger = try Ledger.exists(on: connection)
    while try !apply(keepingLedger: keepsLedger) { keepsLedger = true }
    return report
  }

  /// Applies the changes in one transaction, again where the schema cannot be merged, or an index not be made anew.
  ///
  /// - Returns: false where conflicts were met and there is no ledger to record them in: nothing has been changed then.
  private mutating func apply(keepingLedger keepsLedger: Bool) throws -> Bool {
    let unchanged = report
    settings.keepsLedger = keepsLedger
    settings.recordsConflicts = keepsLedger
    while true {
      report = unchanged
      do {
        return try applyOnce()
      } catch is IndexRebuildFailure {
        settings.indexPolicy = .keep
      } catch let error as ReplicationError where error.isAboutTheSchema && mergesSchema {
        schemaRefusal = error
      }
    }
  }

  /// Whether more of the other side's schema is taken than new tables and columns.
  private var mergesSchema: Bool { incoming.difference.author != nil && schemaRefusal == nil }

  // MARK: One transaction

  private mutating func applyOnce() throws -> Bool {
    let session = settings.session(on: connection)
    return try session.whileReady { try apply(in: session) }
  }

  private mutating func apply(in session: ApplySession) throws -> Bool {
    let transaction = try SQLiteTransaction(on: connection)
    let newest = try ConflictRecord.newest(on: connection)
    let ours = try SchemaReader(connection)
    let schema = try SchemaMerge(
      base: incoming.baseStatements, ours: ours.statements(), theirs: incoming.difference.author)
    let dropped = droppedTables(in: ours)
    let fitted = try FittedChanges(
      incoming.difference, without: dropped, from: incoming.source.connection, on: connection)
    let key = LedgerKey(mergeWith: (0..<32).map { _ in UInt8.random(in: 0...255) })
    let changes = IncomingChanges(
      key: key, file: options.incomingName ?? incoming.name,
      definitions: incoming.difference.tables.map(\.definition).filter { !dropped.contains(TableName($0.name)) },
      author: schema.author, changeset: fitted.changeset,
      feed: ChangesetFeed(try ChangesetSummary.of(fitted.changeset)))
    settings.schema = mergesSchema ? .adopt : .additive
    let plan: ApplyPlan
    do {
      plan = try Receiver.plan(changes, on: connection, settings: settings, session: session)
    } catch let refusal as Refusal {
      throw BuckiaError(refusal)
    }
    let result = try plan.apply(in: transaction)
    guard settings.keepsLedger || result.counts.conflicts == 0 else { return false }
    note(result, fitted)
    try noteConflicts(of: schema, dropped, after: newest)
    if settings.keepsLedger { try removeTraces(of: key) }
    if options.isDryRun { transaction.rollback() } else { try transaction.commit() }
    return true
  }

  /// The tables with changes that the base has, and this database no longer has.
  private func droppedTables(in schema: SchemaReader) -> Set<TableName> {
    let base = Set(incoming.baseStatements.filter { $0.kind == .table }.map(\.name))
    let changed = incoming.difference.tables.map { TableName($0.definition.name) }
    return Set(changed.filter { base.contains($0) && schema.entry(named: $0) == nil })
  }

  private mutating func note(_ result: ApplyResult, _ fitted: FittedChanges) {
    report.inserted = result.counts.inserted
    report.updated = result.counts.updated
    report.deleted = result.counts.deleted
    report.omitted = result.counts.omitted
    if let schemaRefusal {
      report.isSchemaMerged = false
      report.skipped = incoming.skipped
      report.warnings.append(Remark(.schemaNotMerged, schemaRefusal.message))
    }
    report.schemaChanges = result.schemaChanges
    report.changedTables = result.changedTables
    report.warnings += result.warnings
    report.warnings += fitted.renumbered.map { Remark(.renumberedRows, $0.table.text, "\($0.count)") }
  }

  /// Notes what a person has to decide.
  private mutating func noteConflicts(
    of schema: SchemaMerge, _ dropped: Set<TableName>, after newest: Int64
  ) throws {
    report.schemaConflicts = schema.conflicts
    for table in dropped.sorted(by: { $0.text < $1.text }) { noteConflict(.droppedHere, table) }
    // A table that the other side has dropped stays where it holds rows that were not there.
    let present = try SchemaReader(connection)
    for table in schema.droppedTables where present.entry(named: table) != nil { noteConflict(.droppedThere, table) }
    guard settings.keepsLedger else { return }
    let conflicts = NewConflicts(after: newest)
    report.conflictCounts = try conflicts.counts(on: connection)
    if options.isDryRun { report.dryRunConflicts = try conflicts.first(naming: .nobody, on: connection) }
  }

  private mutating func noteConflict(_ kind: SchemaConflict.Kind, _ table: TableName) {
    let conflict = SchemaConflict(kind, "table", table.text)
    if !report.schemaConflicts.contains(conflict) { report.schemaConflicts.append(conflict) }
  }

  /// Removes from the ledger what no conflict refers to.
  private func removeTraces(of key: LedgerKey) throws {
    // What the keys mean to both sides ends with the merge: the next one has another base.
    try ContestedKeys.forget(sender: key.sender, on: connection)
    if report.conflictCounts.isEmpty { try LedgerEntries.remove(key, on: connection) }
  }
}

extension BuckiaError {
  /// The gate does not let the changes of a database file pass.
  fileprivate init(_ refusal: Refusal) {
    let reason =
      refusal.code == .untrusted
      ? "this database trusts known senders only, and the changes of a database file have no sender" : refusal.reason
    self.init(refusal.code, reason)
  }
}

extension ReplicationError {
  /// Whether another mode of taking the schema over may do.
  fileprivate var isAboutTheSchema: Bool {
    code == .refusedDefinition || code == .columnsDiffer || code == .keyDiffers
  }
}

extension IncomingDatabase {
  /// What was left out, but for definitions: these are merged from the schema as SQL, where that could be had.
  fileprivate var rowsLeftOut: [SkippedItem] {
    difference.author == nil ? skipped : skipped.filter { !$0.reason.isAboutDefinition }
  }
}

extension SkipReason {
  /// Whether it is about a part of a definition that the schema as SQL holds.
  fileprivate var isAboutDefinition: Bool {
    switch code {
    case .tableDropped, .columnDropped, .requiredColumnDropped, .typeChanged, .collationDropped, .expressionDefault,
      .generatedColumn, .newForeignKey, .foreignKeyToOldTable, .newCheck, .changedCheck, .conflictClause,
      .keyCollation, .uniqueCollation, .newObject, .changedObject, .droppedObject, .columnNotAddable,
      .tooManyNewColumns,
      .moduleArgumentsDiffer:
      true
    default: false
    }
  }
}
