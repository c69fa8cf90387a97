import Buckia
import TestSupport
import Testing

/// How much space clocks take.
///
/// Sizes are file sizes, in whole pages. No undo records are kept, because they would take space as well.
@Suite struct ClockSizeTests {
  /// 20,000 rows of about 200 bytes.
  private static let items = """
    CREATE TABLE item(
      id INTEGER PRIMARY KEY, name TEXT, street TEXT, town TEXT, price REAL, stock INTEGER, note TEXT, changed INTEGER);
    WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
    INSERT INTO item SELECT i, printf('item number %08d', i), printf('%040d', i * 7919), printf('town %015d', i % 97),
      i * 1.25, i % 500, printf('%090d', i * 104729), 1700000000 + i FROM n
    """

  @Test("If one diff has set each row once, clocks enlarge the database by at most 3 percent")
  func allRows() throws {
    let exchange = try Exchange(Self.items)
    try exchange.send("UPDATE item SET changed = changed + 1")
    let other = try exchange.folder.copy("base.sqlite", to: "other.sqlite")
    let policies: [(path: String, policy: ConflictPolicies)] = [(exchange.mine, .latest), (other, .keepLocal)]
    for (path, policy) in policies {
      let database = DatabaseManager(path)
      try database.setUndoRetention(bytes: 0)
      let report = try database.processInboundChanges(
        [exchange.inbound], options: ApplyOptions(conflicts: policy, keepsFiles: true))
      #expect(report.diffs.map(\.updated) == [20_000])
      #expect(report.diffs.map(\.conflicts) == [0])
    }
    #expect(try TestDatabases.rows("SELECT count(*) FROM buckia_clock", on: other) == ["0"])
    let (with, without) = (try TestDatabases.size(of: exchange.mine), try TestDatabases.size(of: other))
    #expect(with * 100 <= without * 103, "\(with) bytes instead of \(without)")
    // One run covers all rows.
    #expect(try exchange.rows("SELECT f0, l0 FROM buckia_clock_1_run") == ["1|20000"])
    #expect(try exchange.rows("SELECT count(*) FROM buckia_clock_1") == ["0"])
  }

  @Test("If every seventh row was set, each takes at most 8 bytes beside its key")
  func singleRows() throws {
    let exchange = try Exchange(Self.items)
    // The new values take as much space as the old ones.
    try exchange.send("UPDATE item SET changed = changed + 1 WHERE id % 7 = 0")
    try exchange.database.setUndoRetention(bytes: 0)
    #expect(try exchange.database.keepClocks() == ["item"])
    let before = try TestDatabases.size(of: exchange.mine)
    #expect(try exchange.apply(ApplyOptions(conflicts: .latest)).diffs.map(\.updated) == [2_857])
    let growth = try TestDatabases.size(of: exchange.mine) - before
    // No two rows are adjacent, so each has an entry. All entries refer to the same diff, which is stored once.
    let rowVersions =
      "SELECT count(*), count(DISTINCT row_versions), sum(typeof(row_versions) = 'integer') FROM buckia_clock_1"
    #expect(try exchange.rows(rowVersions) == ["2857|1|2857"])
    #expect(try exchange.rows("SELECT count(*) FROM buckia_clock_1_run") == ["0"])
    #expect(try exchange.rows("SELECT count(*) FROM buckia_row_version") == ["1"])
    // SQLite stores a rowid in a byte for each seven bits. Each of a clock's three tables may have begun another page.
    let keys = try exchange.rows(
      "SELECT sum(CASE WHEN id < 128 THEN 1 WHEN id < 16384 THEN 2 ELSE 3 END) FROM item WHERE id % 7 = 0")
    let keyBytes = try #require(keys.first.flatMap { Int64($0) })
    let room = 8 * 2_857 + keyBytes + 3 * 4_096
    #expect(growth <= room, "\(growth) bytes, and not \(room)")
  }

  @Test("The clock of a table that no diff has changed is empty")
  func untouched() throws {
    let exchange = try Exchange("CREATE TABLE a(id INTEGER PRIMARY KEY, v); CREATE TABLE b(id INTEGER PRIMARY KEY, v)")
    #expect(try exchange.database.keepClocks().sorted() == ["a", "b"])
    try exchange.send("INSERT INTO a VALUES (1, 1)")
    #expect(try exchange.apply(ApplyOptions(conflicts: .latest)).diffs.map(\.inserted) == [1])
    for (table, count) in [("a", 1), ("b", 0)] {
      let clock = try #require(try exchange.rows("SELECT clock FROM buckia_clock WHERE table_name = '\(table)'").first)
      #expect(
        try exchange.rows(
          """
          SELECT (SELECT count(*) FROM buckia_clock_\(clock)) + (SELECT count(*) FROM buckia_clock_\(clock)_run),
            (SELECT count(*) FROM buckia_row_version WHERE clock = \(clock)),
            (SELECT count(*) FROM buckia_clock_\(clock)_pending)
          """) == ["\(count)|\(count)|0"])
    }
  }

  @Test("If clocks are kept for chosen tables, no other table gets one")
  func chosenTables() throws {
    let exchange = try Exchange("CREATE TABLE a(id INTEGER PRIMARY KEY, v); CREATE TABLE b(id INTEGER PRIMARY KEY, v)")
    #expect(try exchange.database.keepClocks(of: ["a"]) == ["a"])
    let sent = try exchange.send("INSERT INTO a VALUES (1, 1); INSERT INTO b VALUES (1, 1)")
    #expect(try exchange.apply(ApplyOptions(conflicts: [.table("a"): .latest])).diffs.map(\.inserted) == [2])
    #expect(try exchange.texts("SELECT table_name FROM buckia_clock") == ["a"])
    #expect(try exchange.rows("SELECT count(*) FROM sqlite_schema WHERE name GLOB 'buckia_clock_[2-9]*'") == ["0"])
    let origin = try exchange.database.origin(ofRowIn: "a", key: ["id": .integer(1)])
    #expect(origin.source?.diff == sent.id)
    let error = #expect(throws: BuckiaError.self) {
      try exchange.database.origin(ofRowIn: "b", key: ["id": .integer(1)])
    }
    #expect(error?.code == .noClock)
  }
}
