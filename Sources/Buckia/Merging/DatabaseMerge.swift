import SQLiteConnections

/// One merge: applies the changes of an incoming database to that of a connection, in one transaction.
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
  /// The tables whose definition stays, since the other side's would lose values of them, and the column that has these.
  private var keptTables: [TableName: String] = [:]
  /// What of a table the other side's definition loses, where all of it is in the base, too.
  private var harmlessLosses: [TableName: AuthorSchema.TableContent] = [:]
  private var computed = ComputedColumns()

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
    for table in incoming.rekeyed { keptTables[table] = "" }
  }

  /// Merges.
  ///
  /// - Throws: `ReplicationError`, `SQLiteError`, what the resolver and the progress closure throw. Nothing has been changed then.
  consuming func run() throws -> MergeReport {
    if incoming.difference.isEmpty, incoming.unpaired.isEmpty, try sequencesBehind().isEmpty { return report }
    // Most merges meet no conflict, and then no ledger has to be made and removed again.
    var keepsLedger = try Ledger.exists(on: connection)
    while try !apply(keepingLedger: keepsLedger) { keepsLedger = true }
    return report
  }

  /// Applies the changes in one transaction, and again if the schema cannot be merged, or an index cannot be rebuilt.
  ///
  /// - Returns: False if conflicts were met and there is no ledger to record them in. Nothing has been changed then.
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
      } catch let error as ReplicationError where error.isAboutTheSchema {
        try giveWay(to: error)
      }
    }
  }

  /// Has the next attempt do without what this one could not do.
  private mutating func giveWay(to error: ReplicationError) throws {
    if error.code == .columnsDiffer, let table = error.table.map({ TableName($0) }) {
      let column = error.column ?? ""
      if try SchemaReader(connection).table(named: table)?.generated.contains(where: {
        ASCIIName.matches($0.name, column)
      }) == true {
        guard computed.insert(column, of: table) else { throw error }
        return
      }
      if settings.schema == .adopt, keptTables[table] == nil {
        if harmlessLosses[table] == nil, let losses = try harmlessLosses(of: table) {
          harmlessLosses[table] = losses
        } else {
          keptTables[table] = column
        }
        return
      }
    }
    guard settings.schema == .adopt else { throw error }
    schemaRefusal = error
  }

  /// What of a table the other side's definition loses; nil if any of it is not in the base.
  private func harmlessLosses(of table: TableName) throws -> AuthorSchema.TableContent? {
    let (base, ours) = (try SchemaReader(incoming.base.connection), try SchemaReader(connection))
    guard let before = try base.table(named: table),
      let theirs = try SchemaReader(incoming.source.connection).table(named: table),
      let lost = try ours.valuesLost(in: theirs, since: before, ColumnRenames(renames(to: ours)), knownTo: base)
    else { return nil }
    return lost.areKnown ? lost.content : nil
  }

  private func renames(to ours: SchemaReader) throws -> [ColumnRename] {
    try incoming.renames + SchemaReader(incoming.base.connection).renames(to: ours, besides: options.renames)
  }

  /// The other side's schema; nil where nothing of it is needed.
  ///
  /// - Parameter dropped: Tables that were dropped here, and come back as they are there.
  private func theirSchema(with dropped: Set<TableName>) throws -> AuthorSchema? {
    guard let author = incoming.difference.author else {
      if dropped.isEmpty { return nil }
      let statements = try SchemaReader(incoming.source.connection).statements()
      return AuthorSchema(statements: statements.filter { $0.refusal == nil }, replaced: [])
    }
    let replaced = author.replaced.map { entry in
      AuthorSchema.Replaced(entry.statement, content: harmlessLosses[entry.statement.name] ?? entry.content)
    }
    return AuthorSchema(statements: author.statements, replaced: replaced)
  }

  // MARK: One transaction

  private mutating func applyOnce() throws -> Bool {
    let session = settings.session(on: connection)
    return try session.whileReady { try apply(in: session) }
  }

  private mutating func apply(in session: ApplySession) throws -> Bool {
    let transaction = try SQLiteTransaction(on: connection)
    let newest = try ConflictRecord.newest(on: connection)
    let ours = try SchemaReader(connection)
    let renames = try renames(to: ours)
    try requireKnown(renames)
    let dropped = droppedTables(in: ours)
    let schema = try SchemaMerge(
      base: incoming.baseStatements, ours: ours.statements(), theirs: theirSchema(with: dropped), keeping: keptTables,
      returning: dropped)
    settings.schema = schema.author != nil && schemaRefusal == nil ? .adopt : .additive
    let droppedColumns = try droppedColumns(in: ours, ColumnRenames(renames))
    let fitted = try FittedChanges(incoming, without: dropped, options, ColumnRenames(renames), on: connection)
    // The other side's changes of a table that was dropped here make no sense without its other rows.
    let returned =
      dropped.isEmpty
      ? nil
      : try DatabaseComparison.run(
        from: .empty(), to: incoming.source, options: DiffOptions(tables: dropped.sorted { $0.text < $1.text }))
    if let returned { try fitted.changeset.write(contentsOf: returned.changeset) }
    let key = LedgerKey(mergeWith: (0..<32).map { _ in UInt8.random(in: 0...255) })
    let definitions =
      incoming.difference.tables.map(\.definition).filter { !dropped.contains(TableName($0.name)) }
      + (returned?.tables.map(\.definition) ?? [])
    let changeset = try computed.removed(from: fitted.changeset, of: definitions)
    let changes = IncomingChanges(
      key: key, file: options.incomingName ?? incoming.name, definitions: computed.removed(from: definitions),
      author: schema.author, renames: renames, changeset: changeset,
      feed: ChangesetFeed(try ChangesetSummary.of(changeset)))
    let plan: ApplyPlan
    do {
      plan = try Receiver.plan(changes, on: connection, settings: settings, session: session)
    } catch let refusal as Refusal {
      throw BuckiaError(refusal)
    }
    let result = try plan.apply(in: transaction)
    let unpaired = try UnpairedRows(of: incoming, settings.policies)
    let log = try log(of: key)
    let isAnyUnwritten = try computed.recordConflicts(
      of: fitted.changeset, definitions, by: settings.policies, in: log, on: connection)
    guard try log != nil || result.counts.conflicts == 0 && !isAnyUnwritten && unpaired.isEmpty() else { return false }
    if let log { try unpaired.record(in: log) }
    note(result, fitted)
    for sequence in try sequencesBehind() {
      try AutoIncrement.raise(sequence.table, to: sequence.number, on: connection)
    }
    let returnedColumns = try droppedColumns.filter { try !drop($0.column, of: $0.table) }
      .map { "\($0.table).\($0.column)" }
    for (table, column) in droppedColumns where !returnedColumns.contains("\(table).\(column)") {
      report.schemaChanges.removeAll { ASCIIName.matches($0, "add column \(table).\(column)") }
    }
    try noteConflicts(of: schema, dropped, returnedColumns, after: newest)
    if settings.keepsLedger { try removeTraces(of: key) }
    if options.isDryRun { transaction.rollback() } else { try transaction.commit() }
    return true
  }

  /// The log of the conflicts; nil without a ledger.
  private func log(of key: LedgerKey) throws -> ConflictLog? {
    guard settings.keepsLedger,
      let entry = try connection.cachedInteger("SELECT entry FROM main.buckia_ledger WHERE digest = ?1", key.digest)
    else { return nil }
    return ConflictLog(entry: entry, on: connection)
  }

  /// The tables with changes that the base has, and this database no longer has.
  private func droppedTables(in schema: SchemaReader) -> Set<TableName> {
    let base = Set(incoming.baseStatements.filter { $0.kind == .table }.map(\.name))
    let changed = incoming.difference.tables.map { TableName($0.definition.name) }
    return Set(changed.filter { base.contains($0) && schema.entry(named: $0) == nil })
  }

  /// The AUTOINCREMENT tables of which the other side has given out greater numbers, and the greatest of these.
  private func sequencesBehind() throws -> [(table: TableName, number: Int64)] {
    let exists = "SELECT 1 FROM main.sqlite_schema WHERE name = 'sqlite_sequence'"
    guard try connection.integer(exists) != nil, try incoming.source.connection.integer(exists) != nil else {
      return []
    }
    let schema = try SchemaReader(connection)
    var behind: [(table: TableName, number: Int64)] = []
    try incoming.source.connection.forEachRow(of: "SELECT name, seq FROM main.sqlite_sequence") { row in
      let name = TableName(row.text(at: 0) ?? "")
      guard let table = try schema.table(named: name), table.isAutoIncrement else { return }
      let mine =
        try connection.integer("SELECT seq FROM main.sqlite_sequence WHERE name = ?1", binding: [table.name]) ?? 0
      let number = row.integer(at: 1)
      if number > mine, number <= AutoIncrement.greatestIncomingID { behind.append((TableName(table.name), number)) }
    }
    return behind
  }

  /// Requires that the declared renames are true.
  private func requireKnown(_ renames: [ColumnRename]) throws {
    guard let unknown = options.renames.first(where: { !renames.contains($0) }) else { return }
    throw BuckiaError(
      .columnsDiffer,
      "column \"\(unknown.table).\(unknown.oldName)\" has not become \"\(unknown.newName)\" on either side: the first must be "
        + "in the base only, the second on that side only")
  }

  /// The columns of changed tables that the base has, and this database no longer has: the changes may bring them back.
  private func droppedColumns(
    in schema: SchemaReader, _ renames: ColumnRenames
  ) throws -> [(table: TableName, column: String)] {
    let base = try SchemaReader(incoming.base.connection)
    return try incoming.difference.tables.map(\.definition).filter { $0.module == nil }.flatMap { theirs in
      let name = TableName(theirs.name)
      guard let known = base.entry(named: name), known.kind == .table, let mine = schema.entry(named: name),
        mine.kind == .table, !mine.isDefined(like: known)
      else { return [(table: TableName, column: String)]() }
      let (before, local) = (try base.definition(of: known), try schema.definition(of: mine))
      return theirs.columns.map(\.name).filter { column in
        before.column(named: column) != nil && local.column(named: column) == nil
          && !renames.otherNames(of: column, in: name).contains { local.column(named: $0) != nil }
      }.map { (name, $0) }
    }
  }

  /// Drops a column that came back only because the other side still has it.
  ///
  /// - Returns: False if the column has values of the other side, or is needed, and stays.
  private func drop(_ column: String, of table: TableName) throws -> Bool {
    let schema = try SchemaReader(connection)
    guard let definition = try schema.table(named: table) else { return true }
    guard let place = definition.column(named: column) else { return true }
    let name = SQLText.identifier(definition.columns[place].name)
    let standard = definition.columns[place].defaultValue?.sql ?? "NULL"
    guard
      try connection.integer("SELECT 1 FROM main.\(table.quoted) WHERE \(name) IS NOT \(standard) LIMIT 1") == nil
    else { return false }
    return try connection.failure(ofRunning: "ALTER TABLE main.\(table.quoted) DROP COLUMN \(name)") == nil
  }

  private mutating func note(_ result: ApplyResult, _ fitted: FittedChanges) {
    report.inserted = result.counts.inserted
    report.updated = result.counts.updated
    report.deleted = result.counts.deleted
    report.omitted = result.counts.omitted
    if let schemaRefusal {
      report.isSchemaMerged = false
      report.skipped = incoming.skipped
      report.warnings.append(Warning(.schemaNotMerged, schemaRefusal.message))
    }
    report.schemaChanges = result.schemaChanges
    report.changedTables = result.changedTables
    report.warnings += result.warnings
    report.warnings += fitted.warnings
  }

  /// Records the decisions that a person has to make.
  private mutating func noteConflicts(
    of schema: SchemaMerge, _ dropped: Set<TableName>, _ returnedColumns: [String], after newest: Int64
  ) throws {
    report.schemaConflicts = schema.conflicts
    for table in dropped.sorted(by: { $0.text < $1.text }) { noteConflict(.droppedHere, table) }
    report.schemaConflicts += returnedColumns.map { SchemaConflict(.droppedHere, "column", $0) }
    // A table that the other side has dropped stays if it has rows that the base did not have.
    let present = try SchemaReader(connection)
    for table in schema.droppedTables where present.entry(named: table) != nil { noteConflict(.droppedThere, table) }
    guard settings.keepsLedger else { return }
    let conflicts = NewConflicts(after: newest)
    report.conflictCounts = try conflicts.counts(on: connection)
    if options.isDryRun { report.dryRunConflicts = try conflicts.first(naming: .empty, on: connection) }
  }

  private mutating func noteConflict(_ kind: SchemaConflict.Kind, _ table: TableName) {
    let conflict = SchemaConflict(kind, "table", table.text)
    if !report.schemaConflicts.contains(conflict) { report.schemaConflicts.append(conflict) }
  }

  /// Deletes the ledger entries to which no conflict refers.
  private func removeTraces(of key: LedgerKey) throws {
    // Contested keys end with the merge, because the next one has another base.
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
  /// True if another schema mode may succeed.
  fileprivate var isAboutTheSchema: Bool {
    code == .refusedDefinition || code == .columnsDiffer || code == .keyDiffers
  }
}

extension IncomingDatabase {
  /// The left-out items except definitions, which are merged from the schema as SQL if possible.
  fileprivate var rowsLeftOut: [SkippedItem] {
    difference.author == nil ? skipped : skipped.filter { !$0.reason.isAboutDefinition }
  }
}

extension SkipReason {
  /// True if it is about a part of a definition that the schema as SQL holds.
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
