import BuckiaDiff
import SQLiteConnections
import Testing
import ReplicationTestSupport
import TestSupport

/// Comparing pages and comparing rows find the same changes.
@Suite struct PageDiffTests {
  private static func compare(_ older: String, _ newer: String, _ note: @autoclosure () -> String) throws -> Int {
    let rows = try DatabaseComparison.run(older: older, newer: newer, options: DiffOptions(method: .rows))
    let pages = try DatabaseComparison.run(older: older, newer: newer, options: DiffOptions(method: .pages))
    let (wanted, found) = (try rows.changes(), try pages.changes())
    if wanted != found {
      Issue.record("\(wanted.count) changes by rows, \(found.count) by pages\n\(note())")
    }
    #expect(rows.tables.map(\.definition) == pages.tables.map(\.definition))
    #expect(rows.skipped == pages.skipped)
    try #require(wanted == found)
    return pages.tables.count { $0.method == .pages }
  }

  @Test("The changes equal those found by rows, for any file history", arguments: Seeds.shards)
  func likeRows(shard: Int) throws {
    var done = 0
    try Seeds.tryEach(120, shard: shard) { seed in
      let files = try RandomFiles(seed: seed)
      done += try Self.compare(files.older, files.newer, "\(Seeds.replay(seed))\n\(files.story)")
    }
    #expect(done > 0)
  }

  @Test("A row can change although its page does not: the end of a long value is elsewhere")
  func overflow() throws {
    let folder = try TemporaryFolder()
    let older = try TestDatabases.run(
      """
      CREATE TABLE t(id INTEGER PRIMARY KEY, v); CREATE TABLE w(k TEXT PRIMARY KEY, v) WITHOUT ROWID;
      WITH s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 300)
      INSERT INTO t SELECT n, CASE n % 3 WHEN 0 THEN zeroblob(20000 + n) ELSE n END FROM s;
      INSERT INTO w SELECT 'k' || id, v FROM t
      """, on: folder.file("older"))
    let newer = try folder.copy("older", to: "newer")
    try TestDatabases.run(
      """
      UPDATE t SET v = CAST(substr(v, 1, length(v) - 1) || x'01' AS BLOB) WHERE id IN (33, 150);
      UPDATE w SET v = CAST(substr(v, 1, length(v) - 1) || x'01' AS BLOB) WHERE k IN ('k9', 'k240')
      """, on: newer)
    let difference = try DatabaseComparison.run(older: older, newer: newer)
    #expect(difference.tables.map(\.updated) == [2, 2])
    #expect(difference.tables.allSatisfy { $0.method == .pages })
    _ = try Self.compare(older, newer, "")
  }

  @Test("The changes equal those found by rows, for any tables and values", arguments: Seeds.shards)
  func likeRowsForAllTables(shard: Int) throws {
    try Seeds.tryEach(120, shard: shard) { seed in
      let pair = try RandomPair(seed: seed)
      _ = try Self.compare(pair.older, pair.newer, Seeds.replay(seed))
    }
  }
}
