import Buckia
import BuckiaApply
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import TestSupport
import Testing

/// Well-formed changes without meaning: any value in any column, keys of any kind, rows that do not exist.
@Suite struct ArbitraryChangesTests {
  private static let schema = """
    CREATE TABLE plain(id INTEGER PRIMARY KEY, a, b TEXT, c REAL UNIQUE);
    CREATE TABLE keyed(k TEXT PRIMARY KEY COLLATE NOCASE, n INTEGER CHECK (n < 5)) WITHOUT ROWID;
    CREATE TABLE loose(k, l, n, PRIMARY KEY (l, k));
    CREATE TABLE strict(id INTEGER PRIMARY KEY, t TEXT NOT NULL, b BLOB) STRICT;
    CREATE TABLE rows(a, b NUMERIC UNIQUE);
    CREATE TABLE computed(id INTEGER PRIMARY KEY, a, twice AS (a * 2), parent REFERENCES plain(id) ON DELETE CASCADE);
    INSERT INTO plain VALUES (1, 'x', 'y', 1.5), (2, NULL, '', 2), (3, 0, 'z', NULL);
    INSERT INTO keyed VALUES ('a', 1), ('B', 2);
    INSERT INTO loose VALUES (1, 2, 3), (NULL, 1, 1), (NULL, 1, 1), ('1', 2, 4);
    INSERT INTO strict VALUES (1, 'a', x'00');
    INSERT INTO rows VALUES (1, 1), ('a', 2);
    INSERT INTO computed(id, a, parent) VALUES (1, 1, 1), (2, 2, 9)
    """

  /// The name and the key columns of each table, as in a raw changeset.
  private static let tables: [(name: String, keyFlags: [UInt8])] = [
    ("plain", [1, 0, 0, 0]), ("keyed", [1, 0]), ("loose", [2, 1, 0]), ("strict", [1, 0, 0]), ("rows", [1, 0, 0]),
    ("computed", [1, 0, 0]),
  ]

  @Test(
    "Random well-formed changes are applied or refused as a whole, and leave the database intact", arguments: 0..<120)
  func anything(seed: Int) throws {
    var random = SeededGenerator(seed: UInt64(seed))
    let exchange = try Exchange(Self.schema)
    var writer = ChangesetWriter()
    let format: ChangesetFormat = Bool.random(using: &random) ? .changeset : .patchset
    for _ in 0..<Int.random(in: 1...3, using: &random) {
      let table = Self.tables[Int.random(in: Self.tables.indices, using: &random)]
      let header = ChangesetTable(name: table.name, format: format, keyFlags: table.keyFlags)
      writer.beginTable(header)
      for _ in 0..<Int.random(in: 1...20, using: &random) { writer.appendArbitraryChange(of: header, &random) }
    }
    try exchange.plantRaw(writer.bytes)
    let before = try exchange.everythingButOurs()
    let policy = ConflictPolicy.allCases[seed % ConflictPolicy.allCases.count]
    let report = try exchange.apply(ApplyOptions(conflicts: ConflictPolicies(policy), triggers: seed.isMultiple(of: 2)))
    let outcome = try #require(report.diffs.first, "seed \(seed)")
    switch outcome.state {
    case .applied: break
    case .rejected: #expect(try exchange.everythingButOurs() == before, "seed \(seed)")
    default: Issue.record("seed \(seed): \(outcome.state)")
    }
    #expect(try exchange.rows("PRAGMA integrity_check") == ["'111.107'"], "seed \(seed)")
    #expect(try exchange.database.conflicts().count == outcome.conflicts || outcome.state == .rejected, "seed \(seed)")
  }
}
