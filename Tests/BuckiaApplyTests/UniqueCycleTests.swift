import BuckiaBytes
@testable import BuckiaApply
@testable import BuckiaLedger
@testable import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas
import Testing
import ReplicationTestSupport
import TestSupport

/// Values that move between rows under UNIQUE: swaps, cycles, shifted columns, some of them blocked by a row that only
/// exists here.
///
/// The values alone determine what can be applied: an UPDATE or INSERT can be applied if no row has its new values, or
/// if the row that has them loses them by a change that can be applied. Every such change must be applied.
@Suite struct UniqueCycleTests {
  /// The unique values, and what depends on the rows.
  struct Shape: Sendable {
    let name: String
    let definition: String
    /// True if rows have a second unique value.
    var second = true
    var enforcesForeignKeys = false
    var firesTriggers = false
    /// A query that must return nothing afterwards.
    var mustBeEmpty = "SELECT 1 WHERE 0"
  }

  private static let children = """
    CREATE TABLE c(id INTEGER PRIMARY KEY, u REFERENCES t(u) ON UPDATE CASCADE ON DELETE CASCADE, v)
    """
  /// No row that refers to others changes with them.
  private static let keptChildren = "SELECT 1 WHERE EXISTS (SELECT * FROM kept EXCEPT SELECT * FROM c)"
  private static let total = """
    CREATE TABLE total(id INTEGER PRIMARY KEY, s); INSERT INTO total VALUES (1, 0);
    CREATE TRIGGER i AFTER INSERT ON t BEGIN UPDATE total SET s = s + NEW.u; END;
    CREATE TRIGGER d AFTER DELETE ON t BEGIN UPDATE total SET s = s - OLD.u; END;
    CREATE TRIGGER u AFTER UPDATE ON t BEGIN UPDATE total SET s = s + NEW.u - OLD.u; END
    """

  static let shapes: [Shape] = [
    Shape(name: "a rowid table", definition: "CREATE TABLE t(k INTEGER PRIMARY KEY, u UNIQUE, w)", second: false),
    Shape(name: "two columns", definition: "CREATE TABLE t(k INTEGER PRIMARY KEY, u UNIQUE, w UNIQUE)"),
    Shape(name: "a text key", definition: "CREATE TABLE t(k TEXT PRIMARY KEY, u INT NOT NULL UNIQUE, w TEXT UNIQUE)"),
    Shape(
      name: "no rowid", definition: "CREATE TABLE t(k TEXT PRIMARY KEY, u INT UNIQUE, w TEXT UNIQUE) WITHOUT ROWID"),
    Shape(
      name: "no rowid, a composite key",
      definition: "CREATE TABLE t(k INT, u INT, w, k2 DEFAULT 7, PRIMARY KEY (k2, k), UNIQUE (u)) WITHOUT ROWID",
      second: false),
    Shape(
      name: "a composite value",
      definition: "CREATE TABLE t(k INTEGER PRIMARY KEY, u, w, l NOT NULL DEFAULT 3, UNIQUE (l, u))", second: false),
    Shape(
      name: "an expression",
      definition: "CREATE TABLE t(k INTEGER PRIMARY KEY, u, w); CREATE UNIQUE INDEX e ON t(u || 'x')", second: false),
    Shape(
      name: "some rows only",
      definition: """
        CREATE TABLE t(k TEXT PRIMARY KEY, u, w UNIQUE); CREATE UNIQUE INDEX e ON t(u) WHERE w IS NOT 'nothing'
        """),
    Shape(
      name: "a generated column",
      definition: "CREATE TABLE t(k INTEGER PRIMARY KEY, u, w, g AS (u * 2) STORED UNIQUE)", second: false),
    Shape(name: "capital letters", definition: "CREATE TABLE t(k INT PRIMARY KEY, u UNIQUE, w COLLATE NOCASE UNIQUE)"),
    Shape(
      name: "foreign keys that would follow",
      definition: "CREATE TABLE t(k INTEGER PRIMARY KEY, u INT UNIQUE, w); \(children)",
      second: false, enforcesForeignKeys: true, mustBeEmpty: keptChildren),
    Shape(
      name: "foreign keys that would follow, two columns",
      definition: "CREATE TABLE t(k TEXT PRIMARY KEY, u INT NOT NULL UNIQUE, w UNIQUE) WITHOUT ROWID; \(children)",
      enforcesForeignKeys: true, mustBeEmpty: keptChildren),
    Shape(
      name: "foreign keys that would take away",
      definition: """
        CREATE TABLE t(k INTEGER PRIMARY KEY, u INT UNIQUE, w);
        CREATE TABLE c(id INTEGER PRIMARY KEY, u, v REFERENCES t(k) ON DELETE CASCADE)
        """, second: false, enforcesForeignKeys: true, mustBeEmpty: keptChildren),
    Shape(
      name: "a circle inside the table",
      definition: """
        CREATE TABLE t(k INTEGER PRIMARY KEY, u INT UNIQUE, w REFERENCES t(u) ON UPDATE CASCADE ON DELETE RESTRICT)
        """, second: false, enforcesForeignKeys: true),
    Shape(
      name: "triggers that count", definition: "CREATE TABLE t(k INTEGER PRIMARY KEY, u INT UNIQUE, w); \(total)",
      second: false, firesTriggers: true,
      mustBeEmpty: "SELECT 1 WHERE (SELECT s FROM total) IS NOT (SELECT sum(u) FROM t)"),
    Shape(
      name: "triggers that count, only positive values",
      definition: "CREATE TABLE t(k INTEGER PRIMARY KEY, u INT NOT NULL UNIQUE CHECK (u > 0), w UNIQUE); \(total)",
      firesTriggers: true, mustBeEmpty: "SELECT 1 WHERE (SELECT s FROM total) IS NOT (SELECT sum(u) FROM t)"),
    Shape(
      name: "triggers over an expression",
      definition: """
        CREATE TABLE t(k INTEGER PRIMARY KEY, u INT, w UNIQUE); CREATE UNIQUE INDEX e ON t(abs(u)); \(total)
        """, firesTriggers: true,
      mustBeEmpty: "SELECT 1 WHERE (SELECT s FROM total) IS NOT (SELECT sum(u) FROM t)"),
  ]

  @Test("Every applicable change is applied, and nothing else changes", arguments: Seeds.shards)
  func resolvesCycles(_ shard: Int) throws {
    try Seeds.tryEach(400, shard: shard) { seed in
      let shape = Self.shapes[Int(seed) / Seeds.shards.count % Self.shapes.count]
      var random = SeededGenerator(seed: seed)
      let moves = Moves(&random, hasSecond: shape.second)
      let author = try SQLiteConnection(opening: ":memory:", as: .create)
      try author.execute(shape.authorsDefinition)
      for row in moves.before.sorted(by: { $0.key < $1.key }) {
        try author.execute("INSERT INTO t(k, u, w) VALUES \(shape.row(row.key, row.value))")
      }
      let session = try SQLiteSession(on: author)
      try session.attach()
      for (key, row) in moves.after.sorted(by: { $0.key < $1.key }) {
        try author.execute("INSERT OR REPLACE INTO t(k, u, w) VALUES \(shape.row(key, row))")
      }
      for key in moves.before.keys where moves.after[key] == nil {
        try author.execute("DELETE FROM t WHERE k = \(shape.key(key))")
      }
      let changes = try session.changeset()

      let connection = try SQLiteConnection(opening: ":memory:", as: .create)
      try connection.execute("\(shape.definition); PRAGMA foreign_keys = \(shape.enforcesForeignKeys ? "ON" : "OFF")")
      for row in moves.before.merging(moves.localRows, uniquingKeysWith: { mine, _ in mine }) {
        try connection.execute("INSERT INTO t(k, u, w) VALUES \(shape.row(row.key, row.value))")
      }
      if shape.enforcesForeignKeys, shape.definition.contains("TABLE c") {
        try connection.execute(
          "INSERT INTO c SELECT k, u, k FROM t WHERE k < 1000; CREATE TABLE kept AS SELECT * FROM c")
      }
      let incoming = try IncomingChanges(
        key: LedgerKey(sender: "", id: nil, digest: [UInt8](repeating: 1, count: 32), isRaw: true), file: "test",
        definitions: try shape.definitions(author), changeset: TemporaryBuffer(changes))
      let transaction = try SQLiteTransaction(on: connection)
      let result = try Receiver.plan(
        incoming, on: connection, settings: ApplySettings(firesTriggers: shape.firesTriggers, time: 2_000_000_000_000)
      ).apply()
      try transaction.commit()
      var found: [Int: Moves.Row] = [:]
      let second = shape.second ? "w" : "NULL"
      try connection.forEachRow(of: "SELECT k, u, \(second) FROM t") {
        found[Int($0.integer(at: 0))] = Moves.Row(u: Int($0.integer(at: 1)), w: $0.text(at: 2))
      }
      let expected = moves.outcome
      let replay = "\(Seeds.replay(seed, "resolvesCycles")) (\(shape.name))"
      #expect(try connection.integer("SELECT 1 FROM pragma_foreign_key_check") == nil, "\(replay)")
      // A referenced value stays, and blocks others; or the referring rows follow it.
      if try connection.integer("SELECT 1 FROM buckia_conflict WHERE kind = 'foreign-key'") != nil { return }
      #expect(found == expected.rows, "\(replay)")
      #expect(result.counts.conflicts == expected.refused, "\(replay)")
      #expect(try connection.integer(shape.mustBeEmpty) == nil, "\(replay): \(shape.mustBeEmpty)")
    }
  }
}

extension UniqueCycleTests {
  /// Whole columns that move: row by row, as in SQLite, each of these would take minutes.
  @Test(
    "Tens of thousands of rows shift, rotate in one cycle, swap, or are blocked by one row",
    arguments: [
      "-u + 1", "CASE -u WHEN 20000 THEN 1 ELSE -u + 1 END", "CASE -u % 2 WHEN 0 THEN -u - 1 ELSE -u + 1 END",
      "(-u * 7919) % 20011",
    ], ["", "INSERT INTO t VALUES (30000, 20001, 'in the way')"])
  func many(_ value: String, _ localRow: String) throws {
    let fill =
      "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) INSERT INTO t SELECT i, i, 'x' FROM n"
    let schema = "CREATE TABLE t(id INTEGER PRIMARY KEY, u INTEGER UNIQUE, x)"
    let author = try SQLiteConnection(opening: ":memory:", as: .create)
    try author.execute("\(schema); \(fill)")
    let session = try SQLiteSession(on: author)
    try session.attach()
    try author.execute("UPDATE t SET u = -u; UPDATE t SET u = \(value)")
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute("\(schema); \(fill); \(localRow)")
    let incoming = try IncomingChanges(
      key: LedgerKey(sender: "", id: nil, digest: [1], isRaw: true), file: "test", definitions: nil,
      changeset: TemporaryBuffer(try session.changeset()))
    let transaction = try SQLiteTransaction(on: connection)
    let counts = try Receiver.plan(incoming, on: connection, settings: ApplySettings(time: 2_000_000_000_000))
      .apply(in: transaction).counts
    try transaction.commit()
    // A row that would get the local row's value stays, and so does one that would get the value of a row that stays.
    // Each row had its number.
    var movers: [Int64: Int64] = [:]
    try author.forEachRow(of: "SELECT u, id FROM t") { movers[$0.integer(at: 0)] = $0.integer(at: 1) }
    var expected = Dictionary(uniqueKeysWithValues: movers.map { ($1, $0) })
    var taken: Int64 = localRow.isEmpty ? 0 : 20_001
    while let mover = movers[taken] {
      expected[mover] = mover
      taken = mover
    }
    var found: [Int64: Int64] = [:]
    try connection.forEachRow(of: "SELECT id, u FROM t WHERE id <= 20000") {
      found[$0.integer(at: 0)] = $0.integer(at: 1)
    }
    #expect(found == expected)
    #expect(counts.updated + counts.conflicts == 20_000)
  }
}

extension UniqueCycleTests.Shape {
  fileprivate var keyType: String { definition.contains("k TEXT") ? "TEXT" : "INT" }
  fileprivate func key(_ key: Int) -> String { keyType == "TEXT" ? "'\(key)'" : "\(key)" }
  fileprivate func row(_ key: Int, _ row: UniqueCycleTests.Moves.Row) -> String {
    "(\(self.key(key)), \(row.u), \(second ? row.w.map { "'\($0)'" } ?? "NULL" : "NULL"))"
  }
  /// The author's table has the same key, but no constraints.
  fileprivate var authorsDefinition: String {
    if definition.contains("PRIMARY KEY (k2, k)") {
      return "CREATE TABLE t(k INT, u, w, k2 DEFAULT 7, PRIMARY KEY (k2, k))"
    }
    return "CREATE TABLE t(k \(definition.contains("k INTEGER") ? "INTEGER" : keyType) PRIMARY KEY, u, w)"
  }
  fileprivate func definitions(_ author: borrowing SQLiteConnection) throws -> [TableDefinition]? {
    let reader = try SchemaReader(author)
    return try reader.entries.map { try reader.definition(of: $0) }
  }
}

extension UniqueCycleTests {
  /// Rows before and after the changes, and rows that only exist at the receiver.
  struct Moves {
    struct Row: Equatable {
      var u: Int
      var w: String?
    }

    private(set) var before: [Int: Row] = [:]
    private(set) var after: [Int: Row] = [:]
    private(set) var localRows: [Int: Row] = [:]

    init(_ random: inout SeededGenerator, hasSecond: Bool) {
      let count = random.oneIn(4) ? Int.random(in: 65...120, using: &random) : Int.random(in: 2...12, using: &random)
      for key in 1...count { before[key] = Row(u: key * 10, w: hasSecond ? "w\(key)" : nil) }
      let values = Self.moved(Array(1...count), by: &random)
      let words = random.oneIn(2) ? Self.moved(Array(1...count), by: &random) : Array(1...count)
      for key in 1...count where !random.oneIn(12) {
        after[key] = Row(u: values[key - 1] * 10, w: hasSecond ? "w\(words[key - 1])" : nil)
      }
      // New rows get the values left behind, if no other row does.
      for number in 0..<Int.random(in: 0...3, using: &random) {
        let free = Int.random(in: 1...(count + 3), using: &random)
        let row = Row(u: free * 10, w: hasSecond ? "w\(free)" : nil)
        if !after.values.contains(where: { $0.u == row.u || (row.w != nil && $0.w == row.w) }) {
          after[count + 10 + number] = row
        }
      }
      // A local row has a value that another row would get.
      for number in 0..<Int.random(in: 0...2, using: &random) {
        let taken = Int.random(in: (count + 1)...(count + 3), using: &random)
        let row = Row(u: taken * 10, w: hasSecond ? "w\(taken + 50)" : nil)
        if !localRows.values.contains(where: { $0.u == row.u }) { localRows[1_000 + number] = row }
      }
    }

    /// The numbers shifted, swapped, reversed or shuffled.
    private static func moved(_ numbers: [Int], by random: inout SeededGenerator) -> [Int] {
      switch Int.random(in: 0..<6, using: &random) {
      case 0: return numbers.map { $0 + 1 }
      case 1: return numbers.map { $0 - 1 < 1 ? numbers.count : $0 - 1 }
      case 2: return numbers.map { $0 % 2 == 0 ? $0 - 1 : $0 < numbers.count ? $0 + 1 : $0 }
      case 3: return numbers.reversed()
      case 4: return numbers.map { $0 + 3 }
      default: return numbers.shuffled(using: &random)
      }
    }

    /// The expected rows at the receiver, and the number of changes that cannot be applied.
    var outcome: (rows: [Int: Row], refused: Int) {
      var rows = before.merging(localRows) { mine, _ in mine }
      for key in before.keys where after[key] == nil { rows[key] = nil }
      var wanted = after.filter { rows[$0.key] != $0.value }
      while true {
        let blocked = wanted.filter { key, row in
          rows.contains { other, here in
            let later = wanted[other] ?? here
            // The row that has the value keeps it.
            return other != key
              && ((here.u == row.u && later.u == row.u) || (row.w != nil && here.w == row.w && later.w == row.w))
          }
        }
        if blocked.isEmpty { break }
        for key in blocked.keys { wanted[key] = nil }
      }
      let refused = after.filter { rows[$0.key] != $0.value && wanted[$0.key] == nil }.count
      for (key, row) in wanted { rows[key] = row }
      return (rows, refused)
    }
  }
}
