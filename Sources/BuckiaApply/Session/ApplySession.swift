import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// A connection that is prepared for applying, with the statements and the schema that are cached from one diff to the
/// next.
///
/// Triggers are off meanwhile, unless they are to fire, foreign keys are not enforced, and the page cache is larger; `end`
/// puts all back. One session serves any number of diffs and transactions; many small diffs are several times faster with it.
///
/// ```swift
/// let session = ApplySession(on: connection)
/// try session.begin()
/// for changes in diffs {
///   reports.append(try ApplyPlan(changes, settings: settings, session: session).apply(in: transaction))
/// }
/// try session.end()
/// ```
package final class ApplySession {
  /// The connection that all diffs are applied on.
  let connection: SQLiteConnection
  /// True if the local triggers fire.
  let firesTriggers: Bool
  /// The settings that ``end()`` restores; nil if the connection is not prepared.
  private var previous: (firesTriggers: Bool, enforcesForeignKeys: Bool, cacheSize: Int64)?
  /// True while `buckia_applying()` returns 1 on the connection.
  private var isApplying = false
  private var removesFunction = false
  /// The most bytes for the page cache and the sorting of indexes together.
  let memoryLimit: Int
  /// What becomes of the indexes of a table while its rows are written.
  var indexPolicy: IndexPolicy
  /// How rows that only their content identifies are found.
  var contentPolicy = ContentPolicy.indexWhereFaster
  /// Columns of rows that are here already in which nothing is taken, and nothing is a conflict.
  var ignoredColumns: [TableName: [String]] = [:]
  /// True if there is a ledger, or is to be one. It is set before anything is applied.
  var keepsLedger = true
  /// The size of the page cache in KiB: that of the application, and the present one.
  private var cacheKibibytes: (own: Int64, now: Int64) = (0, 0)

  /// The SQL function `buckia_applying()`, by which triggers of the application distinguish Buckia's writes from
  /// others. It returns 1 while a session is prepared: to apply changes, resolve conflicts, undo diffs or merge
  /// databases.
  package static let applyingFunction = SQLiteStateFunction(named: "buckia_applying")

  /// The default memory limit: 256 MiB.
  package static let defaultMemoryLimit = 256 << 20
  /// The page cache for writing rows in order. SQLite's default of 2 MB makes it write and read again every page that
  /// does not fit.
  private static let usualCacheBytes = 32 << 20

  /// True if the database stores text as UTF-16.
  private(set) var storesUTF16 = false
  /// The cached schema.
  private let known: KnownSchema
  /// Other cached data and statements that depend on the schema.
  private var cache = SessionCache()

  /// True during a rehearsal, which finds the cause of a failure and is rolled back.
  var isRehearsal = false

  /// The effects of the transaction's diffs, which are written before the commit.
  var effects = EffectQueue()

  /// Observes rows that the present diff writes indirectly; nil for none.
  var watcher: (any SharingParticipant)?

  /// The conflicts that were open when the transaction began; nil if conflicts are not closed.
  var openConflicts: OpenConflicts?

  /// The held parts that cannot be applied, although there is a place for them, by their number. A rollback does not change that.
  private(set) var heldFailures: [Int64: (refusal: Refusal, isReported: Bool)] = [:]

  fileprivate struct SessionCache {
    var hasLedger = false
    var hasTriedHeld = false
    var hasTriedParked = false
    var heldTables: Set<TableName>?
    var renames: [String: ColumnRenames] = [:]
    var latestPlan:
      (
        definitions: [TableDefinition], mode: SchemaMode, renames: ColumnRenames, replaced: Set<TableName>,
        plan: SchemaPlan
      )?
    var statements: [StatementKey: TableStatements] = [:]
  }

  /// The state of the session when a transaction or savepoint began.
  package struct Mark {
    fileprivate let schemaVersion: Int64?
    fileprivate let cache: SessionCache
    fileprivate let effects: EffectQueue
  }

  /// The most tables whose statements are kept, and the most senders whose renames are.
  private static let tableLimit = 256
  private static let senderLimit = 64

  fileprivate struct StatementKey: Hashable {
    let table: TableName
    let columns: [Int]
    let keyFlags: [UInt8]
  }

  /// - Parameters:
  ///   - connection: The connection that all diffs are applied on. It must outlive the session.
  ///   - firesTriggers: True if the local triggers fire.
  ///   - memoryLimit: The most bytes for the page cache and the sorting of indexes together.
  ///   - indexPolicy: What becomes of the indexes of a table while its rows are written.
  package init(
    on connection: borrowing SQLiteConnection, firesTriggers: Bool = false,
    memoryLimit: Int = ApplySession.defaultMemoryLimit, indexPolicy: IndexPolicy = .rebuildWhereFaster
  ) {
    self.connection = SQLiteConnection(sharing: connection)
    known = KnownSchema(connection)
    self.firesTriggers = firesTriggers
    self.memoryLimit = max(0, memoryLimit)
    self.indexPolicy = indexPolicy
  }

  /// Prepares the connection.
  ///
  /// Foreign keys are not enforced meanwhile, because the changes already contain the effects of the author's
  /// foreign-key actions: a second cascade here would delete rows that only exist here, without a conflict. No action
  /// fires on any connection, and ``ForeignKeyAudit`` finds the references that the changes have broken. The pragma has
  /// no effect inside a transaction of the application; the switch does. SQLite's own apply has a flag for this since
  /// version 3.44 ([`SQLITE_CHANGESETAPPLY_FKNOACTION`](https://sqlite.org/session/c_changesetapply_fknoaction.html)).
  ///
  /// - Throws: `ReplicationError` with `deferredViolations` where the transaction has violations open: SQLite counts them, would
  ///   not see that the changes mend one, and would refuse to commit. `SQLiteError`. ``end()`` must follow in any case.
  package func begin() throws {
    let enforced = try connection.foreignKeysEnforced
    guard !enforced || !connection.hasDeferredForeignKeyViolations else { throw ReplicationError.deferredViolations }
    removesFunction = try Self.applyingFunction.add(to: connection)
    Self.applyingFunction.begin(on: connection)
    isApplying = true
    let fired = try connection.triggersEnabled
    let cacheSize = try connection.integer("PRAGMA main.cache_size") ?? 0
    previous = (fired, enforced, cacheSize)
    storesUTF16 = try connection.text("PRAGMA main.encoding") != "UTF-8"
    // Each switch makes SQLite prepare all statements again.
    if fired != firesTriggers { try connection.enableTriggers(firesTriggers) }
    if enforced { try connection.enforceForeignKeys(false) }
    let pageSize = try connection.integer("PRAGMA main.page_size") ?? 4_096
    let kibibytes = cacheSize < 0 ? -cacheSize : cacheSize * pageSize / 1_024
    cacheKibibytes = (own: kibibytes, now: kibibytes)
    try usePageCache(of: min(Self.usualCacheBytes, memoryLimit))
  }

  /// Makes the page cache larger until the session ends, because the next file mostly needs the same pages.
  func growPageCache(to bytes: Int) throws {
    if Int64(bytes >> 10) > cacheKibibytes.now { try usePageCache(of: bytes) }
  }

  /// Lets the page cache be of a size in bytes, and never smaller than the application has it. SQLite sorts in as much memory
  /// again (<https://sqlite.org/tempfiles.html>).
  func usePageCache(of bytes: Int) throws {
    let kibibytes = max(cacheKibibytes.own, Int64(bytes >> 10))
    guard kibibytes != cacheKibibytes.now else { return }
    try connection.execute("PRAGMA main.cache_size = -\(kibibytes)")
    cacheKibibytes.now = kibibytes
  }

  /// Restores the connection. Statements of the session must not be used any more.
  ///
  /// - Throws: `SQLiteError`; what could be put back has been.
  package func end() throws {
    forget()
    if isApplying { Self.applyingFunction.end(on: connection) }
    if removesFunction { Self.applyingFunction.remove(from: connection) }
    (isApplying, removesFunction) = (false, false)
    guard let (fired, enforced, cacheSize) = previous else { return }
    previous = nil
    let triggers = Result { if fired != firesTriggers { try connection.enableTriggers(fired) } }
    let foreignKeys = Result { if enforced { try connection.enforceForeignKeys(true) } }
    try connection.execute("PRAGMA main.cache_size = \(cacheSize)")
    try triggers.get()
    try foreignKeys.get()
  }

  /// Calls `body` while the connection is prepared, and restores it whatever happens.
  ///
  /// - Throws: As ``begin()`` and ``end()``; whatever `body` throws.
  package func whileReady<Result>(_ body: () throws -> Result) throws -> Result {
    try cleaningUp(
      after: {
        try begin()
        return try body()
      }, by: end)
  }

  // MARK: Cached schema

  /// Discards all cached data and statements.
  package func forget() {
    known.forget()
    cache = SessionCache()
  }

  /// Discards cached data of an earlier schema.
  private func refresh() throws {
    if try known.refresh() { cache = SessionCache() }
  }

  /// The present state. Call it when a transaction or savepoint has begun.
  ///
  /// - Throws: `SQLiteError` when the version of the schema cannot be read.
  func mark() throws -> Mark {
    try refresh()
    var kept = cache
    // Some of them may have failed by then.
    kept.statements = [:]
    return Mark(schemaVersion: known.version, cache: kept, effects: effects)
  }

  /// Returns to the state of a mark. Call it when everything since has been rolled back.
  func rollBack(to mark: Mark) {
    known.rollBack(to: mark.schemaVersion)
    cache = mark.cache
    effects = mark.effects
  }

  /// Executes a step of a plan. Cached data stay valid except for what the step changes.
  ///
  /// - Throws: As `SchemaStep.carryOut(on:)`; `SQLiteError`.
  func carryOut(_ step: SchemaStep) throws {
    try refresh()
    // The step gives no place to held parts of other tables.
    if cache.hasTriedHeld, try heldTables().contains(step.table) { cache.hasTriedHeld = false }
    try known.carryOut(step)
    guard known.version != nil else { return cache = SessionCache() }
    cache.latestPlan = nil
    // SQLite prepares them again in any case.
    cache.statements = [:]
  }

  /// Keeps cached data although indexes have been dropped or created since a mark, and nothing else: no cached data
  /// depend on indexes that are not unique.
  ///
  /// - Throws: `SQLiteError` when the version of the schema cannot be read.
  func followIndexChange(since mark: Mark) throws { try known.follow(from: mark.schemaVersion) }

  /// The present tables and views.
  func schema() throws -> SchemaReader {
    try refresh()
    return try known.tables()
  }

  /// All foreign keys of the present schema.
  func references() throws -> SchemaReferences {
    try refresh()
    return try known.references()
  }

  /// The present virtual tables, views and triggers, also those of TEMP.
  func indexSchema() throws -> IndexSchema {
    try refresh()
    return try known.indexes().withTemporaries(on: connection)
  }

  /// True if there is any virtual table.
  func hasVirtualTables() throws -> Bool {
    try refresh()
    return try known.hasVirtualTables()
  }

  /// Creates the ledger tables if they are missing and the session keeps a ledger.
  ///
  /// - Returns: True if they were made now.
  @discardableResult
  func requireLedger() throws -> Bool {
    try refresh()
    if cache.hasLedger || !keepsLedger { return false }
    let isNew = try Ledger.prepare(on: connection)
    try refresh()
    cache.hasLedger = true
    return isNew
  }

  /// True if any table has a clock.
  func hasClocks() throws -> Bool {
    try connection.cachedInteger("SELECT 1 FROM main.buckia_clock LIMIT 1") != nil
  }

  /// True if the application has TEMP triggers.
  func hasTemporaryTriggers() throws -> Bool {
    try connection.cachedInteger(
      "SELECT 1 FROM temp.sqlite_schema WHERE type = 'trigger' AND \(TableStatements.isNotOurs) LIMIT 1") != nil
  }

  /// True if held parts have been tried with the present schema. Another try would change nothing.
  func hasTriedHeld() throws -> Bool {
    try refresh()
    return cache.hasTriedHeld
  }

  /// The tables of which something is held, and perhaps some of which something was.
  func heldTables() throws -> Set<TableName> {
    try refresh()
    if let known = cache.heldTables { return known }
    let found = try keepsLedger ? HeldParts.tables(on: connection) : []
    cache.heldTables = found
    return found
  }

  /// Discards the list of tables with held parts. Call it when a transaction has begun.
  func forgetHeldTables() { cache.heldTables = nil }

  /// Remembers that something of these tables is held now.
  func noteHeld(_ tables: [TableName]) { cache.heldTables?.formUnion(tables) }

  /// Records that held parts have been tried with the present schema.
  func noteTriedHeld() throws {
    try refresh()
    cache.hasTriedHeld = true
  }

  /// True if all parked rows have been tried in this session.
  func hasTriedParked() throws -> Bool {
    try refresh()
    return cache.hasTriedParked
  }

  /// Remembers that all parked rows have been tried.
  func noteTriedParked() throws {
    try refresh()
    cache.hasTriedParked = true
  }

  /// Remembers why a held part cannot be applied. It is not tried again in this session.
  func noteFailure(of part: Int64, _ refusal: Refusal) {
    if heldFailures[part] == nil { heldFailures[part] = (refusal, isReported: false) }
  }

  /// Records that the report names the held parts that have failed so far.
  func noteReportedFailures() {
    for part in heldFailures.keys { heldFailures[part]?.isReported = true }
  }

  /// A plan for all tables of a diff; the one for the same definitions and renames, when that was made last.
  func plan(
    for definitions: [TableDefinition], mode: SchemaMode, renames: ColumnRenames, replaced: Set<TableName> = []
  ) throws -> SchemaPlan {
    let local = try schema()
    if let latest = cache.latestPlan, latest.mode == mode, latest.renames == renames, latest.replaced == replaced,
      latest.definitions.elementsEqual(definitions, by: { $0.isIdentical(to: $1) })
    {
      return latest.plan
    }
    let plan = try SchemaPlan(definitions: definitions, mode: mode, renames: renames, replaced: replaced, local: local)
    cache.latestPlan = (definitions, mode, renames, replaced, plan)
    return plan
  }

  /// The renames that a sender has declared in applied diffs, and others.
  ///
  /// - Parameter sender: The verified key in hex; empty for unsigned diffs, whose renames are not kept.
  func renames(of sender: String, and others: [ColumnRename] = []) throws -> ColumnRenames {
    try refresh()
    if others.isEmpty, let known = cache.renames[sender] { return known }
    let found = ColumnRenames(try KnownRenames.all(of: sender, on: connection) + others)
    if others.isEmpty {
      if cache.renames.count >= Self.senderLimit { cache.renames.removeAll() }
      cache.renames[sender] = found
    }
    return found
  }

  /// Keeps the renames of a diff that name columns of this database, for later diffs of the same sender.
  func keepRenames(of changes: IncomingChanges, at time: Int64) throws {
    // The renames of a merge are not kept.
    guard !changes.renames.isEmpty, !changes.key.sender.isEmpty, changes.key.sender != LedgerKey.mergeSender else {
      return
    }
    let local = try schema()
    let all = try renames(of: changes.key.sender, and: changes.renames)
    // The names that the columns of each table have here, had or got.
    var names: [TableName: Set<[UInt8]>] = [:]
    let known = try changes.renames.filter { rename in
      if names[rename.table] == nil, let table = try local.table(named: rename.table) {
        let columns = table.columns.map(\.name)
        let others = columns.flatMap { all.otherNames(of: $0, in: rename.table) }
        names[rename.table] = Set((columns + others).map { Array(ASCIIName.folded($0).utf8) })
      }
      return names[rename.table]?.contains(Array(ASCIIName.folded(rename.oldName).utf8)) == true
    }
    try KnownRenames.add(known, of: changes.key.sender, at: time, on: connection)
    guard !known.isEmpty else { return }
    cache.renames[changes.key.sender] = nil
    cache.hasTriedHeld = false
  }

  /// The greatest rowid of a table without a key; 0 for an empty table.
  func greatestRowID(of table: TableDefinition) throws -> Int64 {
    try connection.cachedInteger("SELECT max(\(table.keySQL[0])) FROM main.\(TableName(table.name).quoted)") ?? 0
  }

  /// The statements for changes of one table.
  func statements(for match: TableMatch, header: ChangesetTable) throws -> TableStatements {
    let key = StatementKey(table: TableName(match.local.name), columns: match.columns, keyFlags: header.keyFlags)
    if let known = cache.statements[key] { return known }
    if cache.statements.count >= Self.tableLimit { cache.statements.removeAll() }
    let sql = try schema().entry(named: key.table)?.sql
    let made = try TableStatements(match, header: header, createdBy: sql, storesUTF16: storesUTF16, on: connection)
    cache.statements[key] = made
    return made
  }
}
