import BuckiaDiff
import SQLiteSchemas
import SQLiteConnections
import TestSupport
import Testing

/// The pages of a database as seen by a write transaction.
@Suite struct CommittedPagesTests {
  private static let key = [UInt8](1...16)
  private let table = TableName("t")

  /// A database with its last changes in the log, large enough for two threads to read it.
  private func database(in folder: TemporaryFolder) throws -> SQLiteConnection {
    let path = try TestDatabases.run(
      """
      PRAGMA journal_mode = WAL; CREATE TABLE t(id TEXT PRIMARY KEY, v);
      WITH s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 30000)
      INSERT INTO t SELECT printf('%.8x-%d', n * 2654435761 & 0xffffffff, n), printf('%.300c', 'x') || n FROM s
      """, on: folder.file("database"))
    let connection = try SQLiteConnection(opening: path, as: .readWrite)
    try connection.execute(
      "PRAGMA wal_checkpoint(TRUNCATE); UPDATE t SET v = 'new' WHERE rowid % 700 = 0; DELETE FROM t WHERE rowid % 900 = 1"
    )
    return connection
  }

  @Test func `two threads find the same pages as one, in the log, too`() throws {
    let folder = try TemporaryFolder()
    let connection = try database(in: folder)
    try connection.execute("BEGIN IMMEDIATE")
    defer { try? connection.execute("ROLLBACK") }
    let schema = try SchemaReader(connection)
    let entry = try #require(schema.entry(named: table))
    let index = try #require(try KeyIndex(of: schema.definition(of: entry), on: connection))
    for _ in 0..<20 {
      let pages = try #require(try CommittedPages(on: connection))
      let both = try pages.digests(of: table, index, key: Self.key)
      let leaves = try pages.digests(of: table, nil, key: Self.key)
      let keys = try pages.digests(of: nil, index, key: Self.key)
      #expect(leaves.keys == nil && keys.leaves == nil)
      #expect(try #require(both.leaves).count > 1_000)
      #expect(try #require(both.keys).count > 100)
      #expect(both.leaves == leaves.leaves)
      #expect(both.keys?.map(\.hash) == keys.keys?.map(\.hash))
      #expect(both.keys?.map(\.span.lower) == keys.keys?.map(\.span.lower))
    }
  }
}
