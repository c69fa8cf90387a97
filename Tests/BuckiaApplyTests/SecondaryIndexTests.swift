@testable import BuckiaApply
import BuckiaLedger
import SQLiteConnections
import TestSupport
import Testing

/// Indexes that are dropped while many rows are written, and created again, which only affects the time.
@Suite struct SecondaryIndexTests {
  private static let table = "CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER, b TEXT, c REAL, d BLOB);"

  /// SQL that inserts rows with scattered values.
  private static func rows(_ first: Int, _ last: Int, into table: String = "t") -> String {
    """
    WITH n(i) AS (SELECT \(first) UNION ALL SELECT i + 1 FROM n WHERE i < \(last))
    INSERT INTO \(table) SELECT i, i * 2654435761 % 4294967296, printf('%08x', i * 40503 * 2654435761 % 4294967296),
      i * 7919 % 10007 * 0.5, CAST(printf('%08x', i * 48271 % 2147483647) AS BLOB) FROM n;
    """
  }

  private static func scenario(_ base: String, tables: [String] = ["t"]) -> IndexScenario {
    IndexScenario(base: base, tables: tables)
  }

  /// The results that must not depend on how the indexes were kept.
  private struct State: Equatable {
    var schema: [String]
    var rows: [String]
    var statistics: [String]
    var check: String
  }

  private static func state(of connection: borrowing SQLiteConnection) throws -> State {
    let hasStatistics = try connection.integer("SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_stat1'") != nil
    return State(
      schema: try TestDatabases.texts(
        "SELECT type || name || tbl_name || quote(sql) FROM sqlite_schema ORDER BY 1", on: connection),
      rows: try TestDatabases.texts(
        "SELECT quote(id) || quote(a) || quote(b) || quote(c) || quote(d) FROM t ORDER BY id", on: connection),
      statistics: hasStatistics
        ? try TestDatabases.texts(
          "SELECT rowid || quote(tbl) || quote(idx) || stat FROM sqlite_stat1 ORDER BY 1", on: connection) : [],
      check: try connection.text("PRAGMA integrity_check") ?? "")
  }

  /// Applies changes, and returns true if any index was dropped meanwhile.
  private static func apply(
    _ changes: [UInt8], to connection: borrowing SQLiteConnection, policy: IndexPolicy = .rebuild,
    memoryLimit: Int = ApplySession.defaultMemoryLimit
  ) throws -> (result: ApplyResult, hasDropped: Bool) {
    try Ledger.prepare(on: connection)
    let version = try connection.integer("PRAGMA schema_version")
    var settings = ApplySettings(memoryLimit: memoryLimit, time: 2_000_000_000_000)
    settings.indexPolicy = policy
    let result = try IndexScenario.apply(changes, to: connection, settings: settings)
    return (result, try connection.integer("PRAGMA schema_version") != version)
  }

  static let indexes = [
    "CREATE INDEX plain ON t(a)",
    "CREATE INDEX \"we ird \"\" one\" ON t ( b COLLATE NOCASE DESC,  a )  -- by name\n",
    "CREATE INDEX [some] ON t(d, c) WHERE a > 1000",
    "CREATE INDEX 'computed' ON t(upper(b), c || ' of ' || a)",
    "create index if not exists main.Later on t(c, b)",
    "CREATE INDEX own ON t(b COLLATE buckia_bytes)",
  ]

  @Test("A dropped index is the same afterwards: its text, its statistics, its rows", arguments: indexes)
  func same(_ index: String) throws {
    var states: [State] = []
    for policy in [IndexPolicy.rebuild, .keep] {
      let base = "\(Self.table) \(Self.rows(1, 500))"
      let author = try Self.scenario(base).author(Self.rows(501, 9_000))
      let receiver = try SQLiteConnection(opening: ":memory:", as: .create)
      try receiver.registerByteCollation()
      try receiver.execute("\(base) \(index); ANALYZE")
      let (result, hasDropped) = try Self.apply(author.changes, to: receiver, policy: policy)
      #expect(result.counts.inserted == 8_500)
      #expect(hasDropped == (policy != .keep))
      states.append(try Self.state(of: receiver))
    }
    #expect(states[0] == states[1])
    #expect(states[0].check == "ok")
    #expect(!states[0].statistics.isEmpty)
  }

  @Test("The same connection also plans queries by the old statistics")
  func planned() throws {
    let base = "\(Self.table) CREATE TABLE u(x); \(Self.rows(1, 400)) CREATE INDEX ta ON t(a); CREATE INDEX tb ON t(b);"
    let author = try Self.scenario("\(Self.table) \(Self.rows(1, 400))").author(Self.rows(401, 9_000))
    let receiver = try SQLiteConnection(opening: ":memory:", as: .create)
    // The statistics say that almost all rows have the same `a`.
    try receiver.execute(
      "\(base) ANALYZE; UPDATE sqlite_stat1 SET stat = '400 399' WHERE idx = 'ta'; ANALYZE sqlite_schema")
    let plan = "EXPLAIN QUERY PLAN SELECT * FROM t WHERE a = 1 AND b = '2'"
    func index() throws -> String {
      var detail = ""
      try receiver.forEachRow(of: plan) { detail = $0.text(at: 3) ?? "" }
      return detail
    }
    #expect(try index().contains("tb"))
    #expect(try Self.apply(author.changes, to: receiver).hasDropped)
    #expect(try index().contains("tb"))
  }

  struct Need: CustomTestStringConvertible {
    let name: String
    let base: String
    var edits = SecondaryIndexTests.rows(1, 8_000)
    /// Run on the receiver's connection beforehand.
    var setting = ""
    var testDescription: String { name }
  }

  static let needs = [
    Need(name: "it is unique", base: "\(table) CREATE UNIQUE INDEX i ON t(a);"),
    Need(
      name: "a constraint made it",
      base: "CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER, b TEXT UNIQUE, c REAL, d BLOB);"),
    Need(
      name: "rows refer by it to others that are changed",
      base: """
        CREATE TABLE p(id INTEGER PRIMARY KEY);
        CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER REFERENCES p, b TEXT, c REAL, d BLOB);
        CREATE INDEX i ON t(a, b); INSERT INTO p VALUES (-1);
        WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 8000)
        INSERT INTO p SELECT i * 2654435761 % 4294967296 FROM n;
        """, edits: "\(rows(1, 8_000)) DELETE FROM p WHERE id = -1;"),
    Need(
      name: "a trigger of the application may look for rows", base: "\(table) CREATE INDEX i ON t(a);",
      setting: "CREATE TEMP TABLE n(x); CREATE TEMP TRIGGER r AFTER INSERT ON main.t BEGIN DELETE FROM n; END;"),
    Need(
      name: "a trigger that keeps a full-text index looks for rows",
      base: """
        \(table) CREATE INDEX i ON t(a); CREATE VIRTUAL TABLE words USING fts5(b);
        CREATE TRIGGER r AFTER INSERT ON t BEGIN
          INSERT INTO words(rowid, b) SELECT id, b FROM t WHERE id = new.id;
        END;
        """),
    Need(
      name: "something else wrote its definition",
      base: """
        \(table) CREATE INDEX i ON t(a); PRAGMA writable_schema = ON;
        UPDATE sqlite_schema SET sql = 'CREATE INDEX  i ON t(a)' WHERE name = 'i'; PRAGMA writable_schema = RESET;
        """),
  ]

  @Test("An index that is needed meanwhile stays", arguments: needs)
  func needed(_ need: Need) throws {
    let author = try Self.scenario(need.base, tables: need.base.contains("p(id") ? ["t", "p"] : ["t"]).author(
      need.edits)
    let receiver = try SQLiteConnection(opening: ":memory:", as: .create)
    try receiver.execute(need.base)
    if !need.setting.isEmpty { try receiver.execute(need.setting) }
    let (result, hasDropped) = try Self.apply(author.changes, to: receiver)
    #expect(!hasDropped)
    #expect(result.counts.inserted >= 8_000)
    #expect(try receiver.text("PRAGMA integrity_check") == "ok")
  }

  @Test("A reference to unchanged rows does not keep its index")
  func unchangedParents() throws {
    let base = """
      CREATE TABLE p(id INTEGER PRIMARY KEY);
      CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER REFERENCES p, b TEXT, c REAL, d BLOB); CREATE INDEX i ON t(a, b);
      """
    let author = try Self.scenario(base).author(Self.rows(1, 8_000))
    let receiver = try SQLiteConnection(opening: ":memory:", as: .create)
    try receiver.execute(base)
    #expect(try Self.apply(author.changes, to: receiver).hasDropped)
  }

  @Test("While the application runs a statement, the indexes stay")
  func running() throws {
    let base = "\(Self.table) CREATE INDEX i ON t(a);"
    let author = try Self.scenario(base).author(Self.rows(1, 8_000))
    let receiver = try SQLiteConnection(opening: ":memory:", as: .create)
    try receiver.execute("\(base) CREATE TABLE other(x); INSERT INTO other VALUES (1), (2)")
    let statement = try receiver.prepare("SELECT x FROM other")
    #expect(try statement.step())
    let (result, hasDropped) = try Self.apply(author.changes, to: receiver)
    #expect(result.counts.inserted == 8_000)
    #expect(!hasDropped)
    #expect(try statement.step())
    #expect(try receiver.text("PRAGMA integrity_check") == "ok")
  }

  @Test("An index is rebuilt on the main table, not on a TEMP table of the same name")
  func hidden() throws {
    let base = "\(Self.table) CREATE INDEX i ON t(a);"
    let author = try Self.scenario(base).author(Self.rows(1, 8_000))
    let receiver = try SQLiteConnection(opening: ":memory:", as: .create)
    try receiver.execute("\(base) CREATE TEMP TABLE t(a, x)")
    #expect(try Self.apply(author.changes, to: receiver).hasDropped)
    #expect(try receiver.integer("SELECT count(*) FROM main.sqlite_schema WHERE name = 'i'") == 1)
    #expect(try receiver.integer("SELECT count(*) FROM temp.sqlite_schema WHERE name = 'i'") == 0)
  }

  private struct Stop: Error {}

  @Test("After an interrupted index creation, the state is as before")
  func stopped() throws {
    let base = "\(Self.table) \(Self.rows(1, 100)) CREATE INDEX i ON t(b); CREATE INDEX j ON t(d); ANALYZE;"
    let author = try Self.scenario("\(Self.table) \(Self.rows(1, 100))").author(Self.rows(101, 9_000))
    let receiver = try SQLiteConnection(opening: ":memory:", as: .create)
    try receiver.execute(base)
    try Ledger.prepare(on: receiver)
    let before = try Self.state(of: receiver)
    var calls = 0
    var settings = ApplySettings(time: 2_000_000_000_000)
    settings.indexPolicy = .rebuild
    // All rows are written when this is called with their number.
    settings.progress = { done in
      guard done == 8_900 else { return }
      calls += 1
      if calls == 2 { throw Stop() }
    }
    #expect(throws: Stop.self) { try IndexScenario.apply(author.changes, to: receiver, settings: settings) }
    #expect(try Self.state(of: receiver) == before)
    #expect(calls == 2)
  }

  @Test("Indexes are the same in any mix, order and division of changes into files", arguments: 0..<8)
  func mixed(seed: Int) throws {
    var random = SeededGenerator(seed: UInt64(seed))
    let definition = random.pick([
      Self.table, "CREATE TABLE t(id TEXT PRIMARY KEY, a INTEGER, b TEXT, c REAL, d BLOB) WITHOUT ROWID;",
      "CREATE TABLE t(id TEXT PRIMARY KEY, a INTEGER, b TEXT UNIQUE, c REAL, d BLOB);",
    ])
    let base = "\(definition) \(Self.rows(1, 2_000))"
    let indexes = random.some(3, of: Array(Self.indexes.dropLast())).joined(separator: "; ")
    let edits = """
      \(Self.rows(2_001, 9_000)) UPDATE t SET b = b || 'x', c = -c WHERE a % \(Int.random(in: 1...3, using: &random)) = 0;
      DELETE FROM t WHERE a % \(Int.random(in: 2...9, using: &random)) = 1;
      """
    let local = "UPDATE t SET d = x'00' WHERE a % 5 = 0; DELETE FROM t WHERE a % 11 = 3;"
    let author = try Self.scenario(base).author(edits)
    var outcomes: [(State, ApplyCounts)] = []
    for policy in [IndexPolicy.rebuild, .keep] {
      let receiver = try SQLiteConnection(opening: ":memory:", as: .create)
      try receiver.execute("\(base) \(indexes); \(local) ANALYZE")
      let limit = 1 << Int.random(in: 16...28, using: &random)
      let result = try Self.apply(author.changes, to: receiver, policy: policy, memoryLimit: limit).result
      outcomes.append((try Self.state(of: receiver), result.counts))
    }
    #expect(outcomes[0].0 == outcomes[1].0, "seed \(seed)")
    #expect(outcomes[0].1 == outcomes[1].1, "seed \(seed)")
    #expect(outcomes[0].0.check == "ok", "seed \(seed)")
  }

  @Test("The page cache is restored afterwards, and never smaller meanwhile than the application's")
  func cache() throws {
    let base = "\(Self.table) CREATE UNIQUE INDEX u ON t(a); CREATE INDEX i ON t(b);"
    let author = try Self.scenario(base).author(Self.rows(1, 8_000))
    for (own, limit) in [(-2_000, 256 << 20), (-500_000, 16 << 20), (3_000, 0)] {
      let receiver = try SQLiteConnection(opening: ":memory:", as: .create)
      try receiver.execute("\(base) PRAGMA cache_size = \(own)")
      var smallest = Int64.max
      var largest = Int64.min
      var settings = ApplySettings(memoryLimit: limit, time: 2_000_000_000_000)
      let path = SQLiteConnection(sharing: receiver)
      settings.progress = { _ in
        let size = try path.integer("PRAGMA cache_size") ?? 0
        let kibibytes = size < 0 ? -size : 4 * size
        smallest = min(smallest, kibibytes)
        largest = max(largest, kibibytes)
      }
      _ = try IndexScenario.apply(author.changes, to: receiver, settings: settings)
      let asked = Int64(own < 0 ? -own : 4 * own)
      #expect(smallest >= asked)
      #expect(largest <= max(asked, Int64(limit >> 10)))
      #expect(try receiver.integer("PRAGMA cache_size") == Int64(own))
    }
  }
}
