import SQLiteConnections
import TestSupport
import Testing

@Suite struct LongStatementTests {
  private struct Stop: Error {}
  private static let numbers = "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000)"

  @Test("A long statement polls, and is stopped by an error")
  func polling() throws {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute("CREATE TABLE t(a)")
    var polls = 0
    try connection.execute("\(Self.numbers) INSERT INTO t SELECT i FROM n", polling: { polls += 1 })
    #expect(polls > 10)
    #expect(try connection.integer("SELECT count(*) FROM t") == 1_000_000)
    polls = 0
    #expect(throws: Stop.self) {
      try connection.execute("BEGIN; \(Self.numbers) INSERT INTO t SELECT i FROM n") {
        polls += 1
        if polls == 3 { throw Stop() }
      }
    }
    #expect(polls == 3)
    let isOpen = connection.isInTransaction
    #expect(!isOpen)
    // The closure is not called any more.
    #expect(try connection.integer("\(Self.numbers) SELECT count(*) FROM n") == 1_000_000)
    #expect(polls == 3)
  }

  @Test("SQLite's own error is rethrown")
  func errors() throws {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    #expect(throws: SQLiteError.self) { try connection.execute("CREATE INDEX i ON missing(a)", polling: {}) }
  }

  @Test("Pages flushed from the cache are still part of the transaction")
  func flush() throws {
    let folder = try TemporaryFolder()
    let connection = try SQLiteConnection(opening: folder.file("db"), as: .create)
    try connection.execute("PRAGMA journal_mode = WAL; CREATE TABLE t(a); PRAGMA cache_size = -65536; BEGIN")
    try connection.execute("\(Self.numbers) INSERT INTO t SELECT i FROM n")
    #expect(connection.cacheBytes > 8 << 20)
    try connection.flushCache()
    try connection.execute("PRAGMA cache_size = -1024")
    #expect(connection.cacheBytes < 4 << 20)
    #expect(try connection.integer("SELECT count(*) FROM t") == 1_000_000)
    try connection.execute("ROLLBACK")
    #expect(try connection.integer("SELECT count(*) FROM t") == 0)
  }

  @Test("A connection knows whether sorts use memory alone", arguments: [(0, false), (1, false), (2, true)])
  func temporaryFiles(setting: Int, isInMemory: Bool) throws {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute("PRAGMA temp_store = \(setting)")
    let compiled = try connection.integer(
      "SELECT 1 FROM pragma_compile_options WHERE compile_options IN ('TEMP_STORE=2', 'TEMP_STORE=3')")
    guard compiled == nil else { return }
    #expect(try connection.keepsTemporaryFilesInMemory == isInMemory)
  }
}
