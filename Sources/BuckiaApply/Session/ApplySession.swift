import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// One connection made ready for applying, and what is kept from one diff to the next: prepared statements, and what has
/// been read of the schema.
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
  /// What ``end()`` sets again; nil where the connection has not been made ready.
  private var previous: (firesTriggers: Bool, enforcesForeignKeys: Bool, cacheSize: Int64)?
  /// True if triggers are told that changes are being applied, and whether the function that tells them goes afterwards.
  private var isApplying = false
  private var removesFunction = false
  /// How many bytes the page cache and the sorting of indexes may take up together.
  let memoryLimit: Int
  /// What becomes of the indexes of a table while its rows are written.
  var indexPolicy: IndexPolicy
  /// How rows that only their content identifies are found.
  var contentPolicy = ContentPolicy.indexWhereFaster
  /// Columns of rows that are here already in which nothing is taken, and nothing is a conflict.
  var ignoredColumns: [TableName: [String]] = [:]
  /// True if there is a ledger, or is to be one. It is set before anything is applied.
  var keepsLedger = true
  /// The page cache in KiB: as the application has it, and as it is now.
  private var cacheKibibytes: (own: Int64, now: Int64) = (0, 0)

  /// The SQL function `buckia_applying()`, by which triggers of the application tell changes that Buckia writes from its own. It goes on
  /// while a session has a connection ready: changes are applied, conflicts resolved, diffs taken back, databases merged.
  package static let applyingFunction = SQLiteStateFunction(named: "buckia_applying")

  /// The memory limit where nothing else is said: 256 MiB.
  package static let defaultMemoryLimit = 256 << 20
  /// The page cache where rows are written one next to the other. SQLite's own default keeps 2 MB, and every page that does not
  /// fit is written and read again.
  private static let usualCacheBytes = 32 << 20

  /// True if the database stores text as UTF-16.
  private(set) var storesUTF16 = false
  /// What is known of the schema.
  private let known: KnownSchema
  /// What else has been read and prepared since the schema changed.
  private var cache = SessionCache()

  /// True if what is done is to show what a failure is about, and is taken back.
  var isRehearsal = false

  /// What the diffs of the transaction did to the rows here, which is written before it is committed.
  var effects = EffectQueue()

  /// Is told of rows that the diff in hand writes because of others; nil for nothing.
  var watcher: (any SharingParticipant)?

  /// The conflicts that were open when the transaction began; nil where they are not to be closed.
  var openConflicts: OpenConflicts?

  /// The held parts that cannot be applied, although there is a place for them, by their number. A rollback does not change that.
  private(set) var heldFailures: [Int64: (refusal: Refusal, isToldOf: Bool)] = [:]

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

  /// What the session knew when a transaction, or a savepoint, was begun.
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
  ///   - memoryLimit: How many bytes the page cache and the sorting of indexes may take up together.
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

  /// Makes the connection ready.
  ///
  /// Foreign keys are not enforced meanwhile, because the changes already hold what the author's foreign-key actions did: a
  /// second cascade here would take rows that only exist here, without a conflict. So no action fires on any connection, and
  /// ``ForeignKeyAudit`` finds what the changes have broken. The pragma does nothing inside a transaction of the
  /// application's; the switch does. SQLite's own apply has had a flag for this since version 3.44
  /// ([`SQLITE_CHANGESETAPPLY_FKNOACTION`](https://sqlite.org/session/c_changesetapply_fknoaction.html)).
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

  /// Makes the page cache larger, until the session ends: what the next file needs is mostly in it already.
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

  /// Puts the connection back as it was. All statements that the session keeps are of no more use.
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

  /// Does something while the connection is ready, and puts it back as it was, whatever happens.
  ///
  /// - Throws: As ``begin()`` and ``end()``; whatever `body` throws.
  package func whileReady<Result>(_ body: () throws -> Result) throws -> Result {
    try cleaningUp(
      after: {
        try begin()
        return try body()
      }, by: end)
  }

  // MARK: What is known

  /// Forgets everything that was read and prepared.
  package func forget() {
    known.forget()
    cache = SessionCache()
  }

  /// Forgets what is no longer true.
  private func refresh() throws {
    if try known.refresh() { cache = SessionCache() }
  }

  /// Where the session stands now: to be asked for when a transaction or a savepoint has begun.
  ///
  /// - Throws: `SQLiteError` when the version of the schema cannot be read.
  func mark() throws -> Mark {
    try refresh()
    var kept = cache
    // Some of them may have failed by then.
    kept.statements = [:]
    return Mark(schemaVersion: known.version, cache: kept, effects: effects)
  }

  /// Goes back to what was known at a mark: to be called when everything that was done since has been rolled back.
  func rollBack(to mark: Mark) {
    known.rollBack(to: mark.schemaVersion)
    cache = mark.cache
    effects = mark.effects
  }

  /// Carries out a step of a plan. What was read before still holds, but for what the step changes.
  ///
  /// - Throws: As `SchemaStep.carryOut(on:)`; `SQLiteError`.
  func carryOut(_ step: SchemaStep) throws {
    try refresh()
    // What is held of other tables has no more of a place than before.
    if cache.hasTriedHeld, try heldTables().contains(step.table) { cache.hasTriedHeld = false }
    try known.carryOut(step)
    guard known.version != nil else { return cache = SessionCache() }
    cache.latestPlan = nil
    // SQLite prepares them again in any case.
    cache.statements = [:]
  }

  /// Keeps what is known although indexes have been dropped or created since a mark, and nothing else: nothing that is known
  /// depends on indexes that are not unique.
  ///
  /// - Throws: `SQLiteError` when the version of the schema cannot be read.
  func followIndexChange(since mark: Mark) throws { try known.follow(from: mark.schemaVersion) }

  /// The tables and views as they are now.
  func schema() throws -> SchemaReader {
    try refresh()
    return try known.tables()
  }

  /// All foreign keys of the schema as it is now.
  func references() throws -> SchemaReferences {
    try refresh()
    return try known.references()
  }

  /// The virtual tables, views and triggers as they are now, TEMP ones too.
  func indexSchema() throws -> IndexSchema {
    try refresh()
    return try known.indexes().withTemporaries(on: connection)
  }

  /// True if there is any virtual table.
  func hasVirtualTables() throws -> Bool {
    try refresh()
    return try known.hasVirtualTables()
  }

  /// Makes the ledger tables where they are missing and the session keeps a ledger.
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

  /// True if what is held has been tried with the schema as it is now: trying it again would change nothing.
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

  /// Forgets of which tables something is held: to be called when a transaction has begun.
  func forgetHeldTables() { cache.heldTables = nil }

  /// Remembers that something of these tables is held now.
  func noteHeld(_ tables: [TableName]) { cache.heldTables?.formUnion(tables) }

  /// Remembers that what is held has been tried with the schema as it is now.
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
    if heldFailures[part] == nil { heldFailures[part] = (refusal, isToldOf: false) }
  }

  /// Remembers that the report says which held parts have failed so far.
  func noteToldOfFailures() {
    for part in heldFailures.keys { heldFailures[part]?.isToldOf = true }
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
    // What a merge finds of renames ends with it.
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

  /// The greatest rowid of a table without a key; 0 where it has no rows.
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
