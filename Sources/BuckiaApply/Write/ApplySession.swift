import BuckiaLedger
import BuckiaSchemaPlans
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// One connection made ready for applying, and what is kept from one diff to the next: prepared statements, and what has
/// been read of the schema.
///
/// Triggers are off meanwhile, unless they are to fire, and the page cache is larger; `end` puts both back. One session
/// serves any number of diffs and transactions; many small diffs are several times faster with it.
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
  /// Whether the local triggers fire.
  let firesTriggers: Bool
  /// What ``end()`` sets again; nil where the connection has not been made ready.
  private var previous: (firesTriggers: Bool, cacheSize: Int64)?
  /// How many bytes the page cache and the sorting of indexes may take up together.
  let memoryLimit: Int
  /// What becomes of the indexes of a table while its rows are written.
  var indexPolicy: IndexPolicy
  /// The page cache in KiB: as the application has it, and as it is now.
  private var cacheKibibytes: (own: Int64, now: Int64) = (0, 0)

  /// The memory limit where nothing else is said: 256 MiB.
  package static let defaultMemoryLimit = 256 << 20
  /// The page cache where rows are written one next to the other. SQLite's own default keeps 2 MB, and every page that does not
  /// fit is written and read again.
  private static let usualCacheBytes = 32 << 20

  /// Whether the database stores text as UTF-16.
  private(set) var storesUTF16 = false
  /// What has been read and prepared since the schema changed.
  private var cache = SchemaCache()

  private struct SchemaCache {
    var schemaVersion: Int64?
    var reader: SchemaReader?
    var hasLedger = false
    var hasTriedHeld = false
    var hasVirtualTables: Bool?
    var references: Set<Reference>?
    var renames: ColumnRenames?
    var latestPlan: (definitions: [TableDefinition], mode: SchemaMode, plan: SchemaPlan)?
    var statements: [StatementKey: TableStatements] = [:]
  }

  /// The most tables whose statements are kept.
  private static let tableLimit = 256

  private struct StatementKey: Hashable {
    let table: TableName
    let columns: [Int]
    let keyFlags: [UInt8]
  }

  /// - Parameters:
  ///   - connection: The connection that all diffs are applied on. It must outlive the session.
  ///   - firesTriggers: Whether the local triggers fire.
  ///   - memoryLimit: How many bytes the page cache and the sorting of indexes may take up together.
  ///   - indexPolicy: What becomes of the indexes of a table while its rows are written.
  package init(
    on connection: borrowing SQLiteConnection, firesTriggers: Bool = false,
    memoryLimit: Int = ApplySession.defaultMemoryLimit, indexPolicy: IndexPolicy = .rebuildWhereFaster
  ) {
    self.connection = SQLiteConnection(sharing: connection)
    self.firesTriggers = firesTriggers
    self.memoryLimit = max(0, memoryLimit)
    self.indexPolicy = indexPolicy
  }

  /// Makes the connection ready.
  ///
  /// - Throws: `SQLiteError`; ``end()`` must follow then, too.
  package func begin() throws {
    let fired = try connection.triggersEnabled
    let cacheSize = try connection.integer("PRAGMA main.cache_size") ?? 0
    previous = (fired, cacheSize)
    storesUTF16 = try connection.text("PRAGMA main.encoding") != "UTF-8"
    // Each switch makes SQLite prepare all statements again.
    if fired != firesTriggers { try connection.enableTriggers(firesTriggers) }
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
    guard let (fired, cacheSize) = previous else { return }
    previous = nil
    let triggers = Result { if fired != firesTriggers { try connection.enableTriggers(fired) } }
    try connection.execute("PRAGMA main.cache_size = \(cacheSize)")
    try triggers.get()
  }

  /// Forgets everything that was read and prepared: to be called when changes of the schema have been rolled back, since
  /// another schema may then get the same version.
  package func forget() { cache = SchemaCache() }

  /// Forgets what is no longer true.
  private func refresh() throws {
    let version = try connection.cachedInteger("PRAGMA main.schema_version")
    guard version != cache.schemaVersion else { return }
    forget()
    cache.schemaVersion = version
  }

  /// The schema as it is now.
  func schema() throws -> SchemaReader {
    try refresh()
    if let reader = cache.reader { return reader }
    let made = try SchemaReader(connection)
    cache.reader = made
    return made
  }

  /// Creates or migrates the ledger tables where that is needed.
  func requireLedger() throws {
    try refresh()
    if cache.hasLedger { return }
    try Ledger.prepare(on: connection)
    cache.hasLedger = true
  }

  /// Whether the application has TEMP triggers.
  func hasTemporaryTriggers() throws -> Bool {
    try connection.cachedInteger(
      "SELECT 1 FROM temp.sqlite_schema WHERE type = 'trigger' AND \(RowSideEffects.isNotOurs) LIMIT 1") != nil
  }

  /// Whether what is held has been tried with the schema as it is now: trying it again would change nothing.
  func hasTriedHeld() throws -> Bool {
    try refresh()
    return cache.hasTriedHeld
  }

  /// Remembers that what is held has been tried with the schema as it is now.
  func noteTriedHeld() { cache.hasTriedHeld = true }

  /// Whether there is any virtual table; most databases have none, and then there are no indexes to keep.
  func hasVirtualTables() throws -> Bool {
    try refresh()
    if let known = cache.hasVirtualTables { return known }
    let found = try IndexSchema.hasVirtualTables(on: connection)
    cache.hasVirtualTables = found
    return found
  }

  /// A foreign key: a table that refers to another.
  struct Reference: Hashable {
    let child: TableName
    let parent: TableName
    /// Whether it refers to the parent's primary key, not to other columns under UNIQUE.
    let isToPrimaryKey: Bool
    /// Whether it acts on the child when the parent's row is updated or deleted.
    let hasAction: Bool
  }

  /// All foreign keys of the schema as it is now.
  func references() throws -> Set<Reference> {
    try refresh()
    if let known = cache.references { return known }
    var found: Set<Reference> = []
    let query = """
      SELECT DISTINCT t.name, f."table", f."to" IS NULL OR NOT EXISTS (
        SELECT 1 FROM pragma_table_info(f."table", 'main') AS p WHERE p.name = f."to" COLLATE NOCASE AND p.pk = 0),
        f.on_update NOT IN ('NO ACTION', 'RESTRICT') OR f.on_delete NOT IN ('NO ACTION', 'RESTRICT')
      FROM main.sqlite_schema AS t, pragma_foreign_key_list(t.name, 'main') AS f
      WHERE t.type = 'table' AND t.sql LIKE '%REFERENCES%'
      """
    try connection.forEachRow(of: query) { row in
      found.insert(
        Reference(
          child: TableName(row.text(at: 0) ?? ""), parent: TableName(row.text(at: 1) ?? ""),
          isToPrimaryKey: row.integer(at: 2) != 0, hasAction: row.integer(at: 3) != 0))
    }
    cache.references = found
    return found
  }

  /// Tables, and all tables whose rows change with theirs through foreign-key actions.
  func tablesChanged(with tables: Set<TableName>) throws -> Set<TableName> {
    guard try connection.cachedInteger("PRAGMA foreign_keys") == 1 else { return tables }
    let acting = try references().filter(\.hasAction)
    var reached = tables
    var open = Array(tables)
    while let next = open.popLast() {
      for reference in acting where reference.parent == next && reached.insert(reference.child).inserted {
        open.append(reference.child)
      }
    }
    return reached
  }

  /// A plan for all tables of a diff; the one for the same definitions, when that was made last.
  func plan(for definitions: [TableDefinition], mode: SchemaMode) throws -> SchemaPlan {
    let local = try schema()
    if let latestPlan = cache.latestPlan, latestPlan.mode == mode,
      latestPlan.definitions.elementsEqual(definitions, by: { $0.isIdentical(to: $1) })
    {
      return latestPlan.plan
    }
    let plan = try SchemaPlan(definitions: definitions, mode: mode, renames: renames(), local: local)
    cache.latestPlan = (definitions, mode, plan)
    return plan
  }

  /// The renames that applied diffs have declared, and others.
  func renames(and others: [ColumnRename] = []) throws -> ColumnRenames {
    try refresh()
    if others.isEmpty, let known = cache.renames { return known }
    let found = ColumnRenames(try KnownRenames.all(on: connection) + others)
    if others.isEmpty { cache.renames = found }
    return found
  }

  /// The statements for changes of one table.
  func statements(for match: TableMatch, header: ChangesetTable) throws -> TableStatements {
    let key = StatementKey(table: TableName(match.local.name), columns: match.columns, keyFlags: header.keyFlags)
    if let known = cache.statements[key] { return known }
    if cache.statements.count >= Self.tableLimit { cache.statements.removeAll() }
    // What has been read may be older than the table: then it does not know it.
    let sql = cache.reader?.entry(named: key.table)?.sql
    let made = try TableStatements(match, header: header, createdBy: sql, storesUTF16: storesUTF16, on: connection)
    cache.statements[key] = made
    return made
  }
}
