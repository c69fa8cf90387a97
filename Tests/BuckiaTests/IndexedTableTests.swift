import Buckia
import TestSupport
import Testing
@testable import SQLiteConnections

/// Many incoming rows for tables with indexes. Dropping and recreating indexes does not change the result.
@Suite struct IndexedTableTests {
  private static let table = "CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER, b TEXT, c TEXT);"
  private static let schema = "PRAGMA journal_mode = WAL; \(table)"
  private static let indexes = "CREATE INDEX ta ON t(a); CREATE INDEX tb ON t(b, c); CREATE INDEX tl ON t(lower(c));"

  /// Options with so little memory that indexes are dropped and created again.
  private static func options(_ conflicts: ConflictPolicies = .keepLocal, isDryRun: Bool = false) -> ApplyOptions {
    var options = ApplyOptions(conflicts: conflicts, isDryRun: isDryRun)
    options.memoryLimit = 64 << 10
    return options
  }

  private static func rows(_ first: Int, _ last: Int, text: String = "'{\"a\": ' || i || '}'") -> String {
    """
    WITH n(i) AS (SELECT \(first) UNION ALL SELECT i + 1 FROM n WHERE i < \(last))
    INSERT INTO t SELECT i, i * 2654435761 % 4294967296, printf('%08x', i * 40503 * 2654435761 % 4294967296), \(text) FROM n
    """
  }

  private static func version(_ path: String) throws -> String {
    try TestDatabases.rows("PRAGMA schema_version", on: path)[0]
  }

  private func requireSound(_ exchange: Exchange, rows: Int, indexes: Int) throws {
    #expect(try exchange.rows("SELECT integrity_check = 'ok' FROM pragma_integrity_check") == ["1"])
    #expect(try exchange.rows("SELECT count(*) FROM t") == ["\(rows)"])
    #expect(
      try exchange.rows("SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND tbl_name = 't'") == ["\(indexes)"])
  }

  @Test(
    "A large file rebuilds the indexes, whether it is read before or while it is applied",
    arguments: ["journal_mode = WAL", "journal_mode = DELETE", "auto_vacuum = FULL"], [7_000, 60_000])
  func large(setting: String, rows: Int) throws {
    let exchange = try Exchange(Self.schema)
    try exchange.database.initialize()
    try TestDatabases.run("\(Self.indexes) PRAGMA \(setting); VACUUM", on: exchange.mine)
    // More than 4 MiB of changes are applied while they are read.
    try exchange.send(Self.rows(1, rows, text: "printf('%.*c', 70, 'x') || i"))
    let version = try Self.version(exchange.mine)
    let report = try exchange.apply(Self.options())
    #expect(report.diffs.map(\.inserted) == [rows])
    #expect(try Self.version(exchange.mine) != version)
    try requireSound(exchange, rows: rows, indexes: 3)
  }

  @Test("A file after which an index cannot be created again is refused")
  func failingExpression() throws {
    let exchange = try Exchange(Self.schema)
    try exchange.database.initialize()
    try TestDatabases.run("CREATE INDEX ta ON t(a); CREATE INDEX tj ON t(json_extract(c, '$.a'), b)", on: exchange.mine)
    try exchange.send(Self.rows(1, 6_000))
    try exchange.send("\(Self.rows(6_001, 13_000)); UPDATE t SET c = 'no JSON' WHERE id = 12999")
    try exchange.send(Self.rows(20_001, 20_010))
    let report = try exchange.apply(Self.options())
    #expect(report.diffs.map(\.state) == [.applied, .rejected, .applied])
    #expect(report.rejected.first?.reason?.contains("malformed JSON") == true)
    try requireSound(exchange, rows: 6_010, indexes: 2)
  }

  @Test("A refused file does not rebuild the indexes")
  func refused() throws {
    let exchange = try Exchange(Self.schema)
    try exchange.database.initialize()
    try TestDatabases.run("\(Self.indexes) INSERT INTO t VALUES (5000, 0, 'mine', 'mine')", on: exchange.mine)
    try exchange.send(Self.rows(1, 8_000))
    let version = try Self.version(exchange.mine)
    #expect(try exchange.apply(Self.options(.abort)).diffs.map(\.state) == [.rejected])
    #expect(try Self.version(exchange.mine) == version)
    try requireSound(exchange, rows: 1, indexes: 3)
  }

  @Test("A dry run changes nothing")
  func dryRun() throws {
    let exchange = try Exchange(Self.schema)
    try exchange.database.initialize()
    try TestDatabases.run(Self.indexes, on: exchange.mine)
    try exchange.send(Self.rows(1, 8_000))
    let version = try Self.version(exchange.mine)
    #expect(try exchange.apply(Self.options(isDryRun: true)).diffs.map(\.inserted) == [8_000])
    #expect(try Self.version(exchange.mine) == version)
    try requireSound(exchange, rows: 0, indexes: 3)
  }

  enum Borrowing: CaseIterable {
    case free, insideTransaction, withResolver, withRunningStatement
  }

  @Test(
    "On the app's connection, indexes are dropped only without a transaction, resolver or running statement",
    arguments: Borrowing.allCases)
  func borrowed(_ borrowing: Borrowing) throws {
    let exchange = try Exchange(Self.schema)
    try exchange.database.initialize()
    try TestDatabases.run(Self.indexes, on: exchange.mine)
    try exchange.send(Self.rows(1, 8_000))
    let connection = try SQLiteConnection(opening: exchange.mine, as: .readWrite)
    try connection.execute("CREATE TABLE other(x); INSERT INTO other VALUES (1), (2)")
    let version = try connection.integer("PRAGMA schema_version")
    let running = try connection.prepare("SELECT x FROM other")
    let selection = try connection.prepare("SELECT count(*) FROM t WHERE a > 0")
    if borrowing == .withRunningStatement { #expect(try running.step()) }
    if borrowing == .insideTransaction { try connection.execute("BEGIN") }
    let resolver: ConflictResolver? = borrowing == .withResolver ? { @Sendable _ in .useDefault } : nil
    let report: ApplyReport = try DatabaseManager.borrowing(connection.handle.pointer) { database in
      try database.processInboundChanges([exchange.inbound], options: Self.options(), resolver: resolver)
    }
    if borrowing == .insideTransaction { try connection.execute("COMMIT") }
    #expect(report.diffs.map(\.inserted) == [8_000])
    #expect(try (connection.integer("PRAGMA schema_version") != version) == (borrowing == .free))
    #expect(try selection.step())
    #expect(selection.integer(at: 0) == 8_000)
    try requireSound(exchange, rows: 8_000, indexes: 3)
  }
}
