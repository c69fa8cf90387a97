@testable import BuckiaApply
@testable import SQLiteSchemas
import BuckiaLedger
import SQLiteConnections
import SQLiteSchemas
import Testing

/// The choice between dropping an index and creating it again, and keeping it.
@Suite struct IndexCostTests {
  struct Case: CustomTestStringConvertible {
    let name: String
    /// The number of rows that the table has before.
    var rows = 0
    /// The inserted value of `a` for row `i`.
    var value = "i * 2654435761 % 4294967296"
    var edits = ""
    var memoryLimit = 64 << 10
    let isCreatedAgain: Bool
    var testDescription: String { name }
  }

  private static let random = "i * 2654435761 % 4294967296"

  private static func insertion(_ first: Int, _ last: Int, _ value: String) -> String {
    """
    WITH n(i) AS (SELECT \(first) UNION ALL SELECT i + 1 FROM n WHERE i < \(last))
    INSERT INTO t SELECT i, \(value), i, i FROM n;
    """
  }

  static let cases = [
    Case(name: "an empty table gets many rows", edits: insertion(1, 40_000, random), isCreatedAgain: true),
    Case(name: "an empty table gets a few rows", edits: insertion(1, 4_000, random), isCreatedAgain: false),
    Case(
      name: "a large table gets some rows", rows: 60_000, edits: insertion(60_001, 70_000, random),
      isCreatedAgain: false),
    Case(
      name: "a small table gets many rows", rows: 5_000, edits: insertion(5_001, 60_000, random), isCreatedAgain: true),
    Case(name: "other columns are updated", rows: 40_000, edits: "UPDATE t SET b = -b", isCreatedAgain: false),
    Case(
      name: "the column is updated in all rows", rows: 40_000, edits: "UPDATE t SET a = -a, b = -b",
      isCreatedAgain: true),
    Case(
      name: "the column is updated in some rows", rows: 40_000, edits: "UPDATE t SET a = -a WHERE b % 7 = 0",
      isCreatedAgain: false),
    Case(
      name: "almost all rows are deleted", rows: 40_000, edits: "DELETE FROM t WHERE b % 20 <> 0", isCreatedAgain: true),
    Case(
      name: "half of the rows are new", rows: 10_001, edits: insertion(10_002, 20_002, random), isCreatedAgain: true),
    Case(
      name: "not quite half of the rows are new", rows: 10_003, edits: insertion(10_004, 20_003, random),
      isCreatedAgain: false),
  ]

  @Test("An index is created again if that costs less than keeping it", arguments: cases)
  func decision(_ example: Case) throws {
    let base = """
      CREATE TABLE t(id INTEGER PRIMARY KEY, a, b, c); CREATE INDEX i ON t(a);
      \(example.rows > 0 ? Self.insertion(1, example.rows, example.value) : "")
      """
    let author = try IndexScenario(base: base, tables: ["t"]).author(example.edits)
    let receiver = try SQLiteConnection(opening: ":memory:", as: .create)
    try receiver.execute(base)
    try Ledger.prepare(on: receiver)
    let version = try receiver.integer("PRAGMA schema_version")
    let settings = ApplySettings(memoryLimit: example.memoryLimit, time: 2_000_000_000_000)
    let result = try IndexScenario.apply(author.changes, to: receiver, settings: settings)
    #expect(result.counts.written > 0)
    #expect(try (receiver.integer("PRAGMA schema_version") != version) == example.isCreatedAgain)
    #expect(try receiver.text("PRAGMA integrity_check") == "ok")
  }

  @Test("With sorts in memory, a sort must fit")
  func sortsInMemory() throws {
    let base = """
      CREATE TABLE t(id INTEGER PRIMARY KEY, a, b, c); CREATE INDEX i ON t(a); \(Self.insertion(1, 40_000, Self.random))
      """
    let author = try IndexScenario(base: base, tables: ["t"]).author("UPDATE t SET a = -a")
    for (limit, isCreatedAgain) in [(64 << 20, true), (1 << 20, false)] {
      let receiver = try SQLiteConnection(opening: ":memory:", as: .create)
      try receiver.execute("\(base) PRAGMA temp_store = MEMORY")
      try Ledger.prepare(on: receiver)
      let version = try receiver.integer("PRAGMA schema_version")
      _ = try IndexScenario.apply(
        author.changes, to: receiver, settings: ApplySettings(memoryLimit: limit, time: 2_000_000_000_000))
      #expect(try (receiver.integer("PRAGMA schema_version") != version) == isCreatedAgain)
    }
  }

  @Test(
    "Rows are counted only up to the number that matters",
    arguments: [
      ("CREATE TABLE t(id INTEGER PRIMARY KEY)", "SELECT i FROM n", 100, 100),
      ("CREATE TABLE t(id INTEGER PRIMARY KEY)", "SELECT i * 1000000000 FROM n", 100, 100),
      ("CREATE TABLE t(id INTEGER PRIMARY KEY)", "SELECT i FROM n", 99, nil),
      ("CREATE TABLE t(id INTEGER PRIMARY KEY)", "SELECT i FROM n WHERE i < 0", 5, 0),
      ("CREATE TABLE t(id INTEGER PRIMARY KEY)", "SELECT -9223372036854775807 UNION SELECT 9223372036854775807", 5, 2),
      ("CREATE TABLE t(id TEXT PRIMARY KEY) WITHOUT ROWID", "SELECT i || 'x' FROM n", 100, 100),
      ("CREATE TABLE t(id TEXT PRIMARY KEY) WITHOUT ROWID", "SELECT i || 'x' FROM n", 50, nil),
      ("CREATE TABLE t(rowid TEXT, oid TEXT, _rowid_ TEXT)", "SELECT i, i, i FROM n", 100, 100),
      ("CREATE TABLE \"t\"(a)", "SELECT i FROM n", 1_000, 100),
    ] as [(String, String, Int, Int?)])
  func rowCounts(definition: String, selection: String, limit: Int, expected: Int?) throws {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute(
      """
      \(definition);
      WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100) INSERT INTO t \(selection)
      """)
    let reader = try SchemaReader(connection)
    let table = try reader.definition(of: #require(reader.entry(named: "t")))
    #expect(try table.rowCountEstimate(upTo: limit, on: connection) == expected)
  }
}
