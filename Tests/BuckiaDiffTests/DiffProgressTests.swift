import BuckiaDiff
import SQLiteConnections
import Testing
import ReplicationTestSupport
import TestSupport

/// A comparison reports its progress, and can be stopped between rows.
@Suite struct DiffProgressTests {
  private let folder: TemporaryFolder
  private let older: String
  private let newer: String

  /// All rows of the newer database are on different pages than in the older one.
  init() throws {
    folder = try TemporaryFolder()
    older = try TestDatabases.run(
      """
      CREATE TABLE a(id INTEGER PRIMARY KEY, v TEXT); CREATE TABLE b(k TEXT PRIMARY KEY, v);
      WITH s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 20000)
      INSERT INTO a SELECT n, 'row ' || n FROM s;
      INSERT INTO b SELECT v, id FROM a
      """, on: folder.file("older"))
    newer = try folder.copy("older", to: "newer")
    try TestDatabases.run(
      "UPDATE a SET v = v || '!'; UPDATE b SET v = -v; CREATE TABLE c AS SELECT * FROM a", on: newer)
  }

  @Test("Rows are counted across all tables", arguments: [DiffMethod.pages, .rows])
  func rows(method: DiffMethod) throws {
    var seen: [DiffProgress] = []
    let difference = try DatabaseComparison.run(older: older, newer: newer, options: DiffOptions(method: method)) {
      seen.append($0)
    }
    #expect(difference.tables.map { $0.inserted + $0.updated } == [20_000, 20_000, 20_000])
    #expect(seen.map(\.table).first == "a" && seen.map(\.table).last == "c")
    #expect(seen.first?.rows == 0)
    #expect(zip(seen, seen.dropFirst()).allSatisfy { $0.rows <= $1.rows })
    #expect(seen.first { $0.table == "b" }.map { (20_000...40_000).contains($0.rows) } == true)
    #expect(seen.count { $0.table == "b" } > 3)
    #expect((50_000...120_000).contains(seen.last?.rows ?? 0))
    #expect((seen.last.map { $0.bytes > 0 } == true) == (method == .pages))
  }

  private struct Stop: Error {}

  @Test(
    "A comparison stops if the caller throws, and leaves the connection free", arguments: [DiffMethod.pages, .rows],
    ["a", "b", "c"])
  func stop(method: DiffMethod, table: String) throws {
    let connection = try SQLiteConnection(opening: newer, as: .readWrite)
    #expect(throws: Stop.self) {
      try DatabaseComparison.run(
        from: RowSource(opening: older), to: RowSource(on: connection), options: DiffOptions(method: method)
      ) { if $0.table == table, $0.rows > 5_000 { throw Stop() } }
    }
    let isOpen = connection.isInTransaction
    #expect(!isOpen)
    try connection.execute("DELETE FROM a")
    #expect(try TestDatabases.rows("SELECT count(*) FROM a", on: newer) == ["0"])
  }
}
