import BuckiaDiff
import SQLiteConnections
import Testing
import ReplicationTestSupport
import TestSupport

/// A comparison may read a connection that the application has open, with or without a transaction, or nothing.
@Suite struct RowSourceTests {
  private let folder: TemporaryFolder
  private let older: String
  private let newer: String

  init() throws {
    folder = try TemporaryFolder()
    older = try TestDatabases.run(
      """
      CREATE TABLE t(id INTEGER PRIMARY KEY, v TEXT); CREATE TABLE k(k TEXT PRIMARY KEY, v) WITHOUT ROWID;
      WITH s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 500)
      INSERT INTO t SELECT n, 'row ' || n FROM s;
      INSERT INTO k SELECT v, id FROM t
      """, on: folder.file("older"))
    newer = try folder.copy("older", to: "newer")
    try TestDatabases.run("UPDATE t SET v = 'new' WHERE id = 7; DELETE FROM k WHERE v = 9", on: newer)
  }

  private func connection(to path: String, _ sql: String) throws -> SQLiteConnection {
    let connection = try SQLiteConnection(opening: path, as: .readWrite)
    try connection.execute(sql)
    return connection
  }

  // MARK: Connections of the application

  struct State: CustomTestStringConvertible, Sendable {
    let testDescription: String
    /// The application's statements on its connection.
    let sql: String
    var isLogged = false
    /// The reason why pages are not read; nil if they are.
    var refusal: String?
  }

  private static let states = [
    State(testDescription: "no transaction", sql: "SELECT 1"),
    State(testDescription: "no transaction, with a log", sql: "UPDATE t SET v = v", isLogged: true),
    State(testDescription: "a transaction that has read nothing", sql: "BEGIN"),
    State(testDescription: "a transaction that has read nothing, with a log", sql: "BEGIN", isLogged: true),
    State(testDescription: "a transaction that has read", sql: "BEGIN; SELECT * FROM t"),
    State(
      testDescription: "a transaction that has read, with a log", sql: "BEGIN; SELECT * FROM t", isLogged: true,
      refusal: "a transaction has begun on it before"),
    State(
      testDescription: "a transaction that has written", sql: "BEGIN; UPDATE t SET v = v",
      refusal: "it has changes that are not committed"),
    State(
      testDescription: "a transaction that has written, with a log", sql: "BEGIN; SAVEPOINT s; UPDATE t SET v = v",
      isLogged: true, refusal: "it has changes that are not committed"),
    State(
      testDescription: "an exclusive log", sql: "PRAGMA locking_mode = EXCLUSIVE; UPDATE t SET v = v", isLogged: true,
      refusal: "its connection keeps the log's index to itself"),
  ]

  @Test("A connection is compared in its current state, and left unchanged", arguments: states)
  func borrowed(_ state: State) throws {
    if state.isLogged { try TestDatabases.run("PRAGMA journal_mode = WAL", on: newer) }
    let connection = try connection(to: newer, state.sql)
    let wasInTransaction = connection.isInTransaction
    let isOlder = state.sql.utf8.count % 2 == 0
    let other = try RowSource(opening: older)
    let mine = RowSource(on: connection)
    let difference =
      isOlder
      ? try DatabaseComparison.run(from: mine, to: other) : try DatabaseComparison.run(from: other, to: mine)
    #expect(difference.tables.map(\.updated) == [1, 0])
    #expect(difference.tables.map { isOlder ? $0.inserted : $0.deleted } == [0, 1])
    #expect(difference.tables.map(\.method) == (state.refusal == nil ? [.pages, .pages] : [.rows, .rows]))
    #expect(difference.fallbacks.allSatisfy { $0.reason.code == .pagesUnavailable })
    #expect(
      Set(difference.fallbacks.map(\.reason.arguments))
        == Set([state.refusal.map { [isOlder ? "older" : "newer", $0] }].compactMap { $0 }))
    #expect(connection.isInTransaction == wasInTransaction)
    try connection.execute(
      wasInTransaction ? "UPDATE t SET v = 'more' WHERE id = 1; COMMIT" : "UPDATE t SET v = 'more' WHERE id = 1")
    #expect(try connection.text("SELECT v FROM t WHERE id = 1") == "more")
  }

  @Test(
    "Uncommitted changes are compared, and are gone after the application's rollback", arguments: [false, true])
  func uncommitted(isLogged: Bool) throws {
    if isLogged { try TestDatabases.run("PRAGMA journal_mode = WAL", on: newer) }
    let connection = try connection(
      to: newer,
      """
      PRAGMA cache_size = 5; BEGIN; DELETE FROM t WHERE id > 100; CREATE TABLE made(a); INSERT INTO made VALUES (1);
      UPDATE k SET v = zeroblob(3000) WHERE v % 2
      """)
    let found = try DatabaseComparison.run(from: RowSource(opening: older), to: RowSource(on: connection))
    #expect(found.tables.map(\.definition.name) == ["t", "k", "made"])
    #expect(found.tables.map(\.deleted) == [400, 1, 0])
    #expect(found.tables.map(\.updated) == [1, 249, 0])
    let copy = try folder.copy("older", to: "copy")
    _ = try Shipping.apply(found, to: copy)
    try connection.execute("ROLLBACK")
    let rest = try DatabaseComparison.run(from: RowSource(opening: older), to: RowSource(on: connection))
    #expect(rest.tables.map(\.updated) == [1, 0])
    try connection.execute(
      """
      DELETE FROM t WHERE id > 100; CREATE TABLE made(a); INSERT INTO made VALUES (1);
      UPDATE k SET v = zeroblob(3000) WHERE v % 2
      """)
    #expect(try TestDatabases.content(of: copy) == TestDatabases.content(of: newer))
  }

  @Test("A database in memory can be compared, and one connection with two selections")
  func inMemory() throws {
    let connection = try connection(
      to: newer,
      "CREATE TABLE shared(id INTEGER PRIMARY KEY, was INT, isNow INT); INSERT INTO shared VALUES (1, 1, 0), (2, 1, 1), (3, 0, 1)"
    )
    let difference = try DatabaseComparison.run(
      from: RowSource(on: connection, selecting: ["shared": RowSelection(where: "was")]),
      to: RowSource(on: connection, selecting: ["shared": RowSelection(where: "isNow")]))
    #expect(difference.tables.map(\.definition.name) == ["shared"])
    #expect(difference.tables.map(\.inserted) == [1])
    #expect(difference.tables.map(\.deleted) == [1])
    let isOpen = connection.isInTransaction
    #expect(!isOpen)
    let memory = try SQLiteConnection(opening: ":memory:", as: .create)
    try memory.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v TEXT); INSERT INTO t VALUES (7, 'row 7')")
    let found = try DatabaseComparison.run(from: RowSource(opening: newer), to: RowSource(on: memory))
    #expect(found.tables.map(\.updated) == [1])
    #expect(found.tables.map(\.deleted) == [499])
  }

  @Test("A running query of the application continues")
  func runningQuery() throws {
    let connection = try connection(to: newer, "SELECT 1")
    let query = try connection.prepare("SELECT id FROM t ORDER BY id")
    #expect(try query.step())
    #expect(query.integer(at: 0) == 1)
    let difference = try DatabaseComparison.run(from: RowSource(opening: older), to: RowSource(on: connection))
    #expect(difference.tables.map(\.updated) == [1, 0])
    var rest = 0
    while try query.step() { rest += 1 }
    #expect(rest == 499)
  }

  @Test("Text is ordered by its bytes on a connection to a UTF-16 database, repeatedly")
  func utf16() throws {
    let path = try TestDatabases.run(
      "PRAGMA encoding = 'UTF-16'; CREATE TABLE k(k TEXT PRIMARY KEY, v) WITHOUT ROWID; INSERT INTO k VALUES ('row 1', 1)",
      on: folder.file("utf16"))
    let connection = try connection(to: path, "SELECT 1")
    let query = try connection.prepare("SELECT k FROM k ORDER BY k")
    for _ in 0..<2 {
      let difference = try DatabaseComparison.run(from: RowSource(on: connection), to: RowSource(opening: newer))
      #expect(difference.tables.map(\.inserted) == [500, 498])
      #expect(try query.step())
      query.reset()
    }
  }

  @Test("If the log is restarted during an open transaction, the rows of the transaction are compared")
  func newBeginning() throws {
    try TestDatabases.run("PRAGMA journal_mode = WAL", on: newer)
    let writer = try connection(to: newer, "UPDATE t SET v = 'first' WHERE id % 3 = 0; PRAGMA wal_checkpoint(PASSIVE)")
    let shared = Shared(writer)
    let connection = try connection(to: newer, "SELECT 1; BEGIN")
    var calls = 0
    let difference = try DatabaseComparison.run(from: RowSource(opening: older), to: RowSource(on: connection)) { _ in
      calls += 1
      if calls == 1 { try shared.connection.execute("DELETE FROM t WHERE id > 400; UPDATE t SET v = 'second'") }
    }
    #expect(difference.tables.map(\.method) == [.rows, .rows])
    #expect(Set(difference.fallbacks.map(\.reason.code)) == [.logRestarted])
    #expect(difference.tables.map(\.updated) == [167, 0])
    #expect(difference.tables.map(\.deleted) == [0, 1])
    try connection.execute("COMMIT")
  }

  /// A connection that a closure can capture.
  private final class Shared {
    let connection: SQLiteConnection
    init(_ connection: consuming SQLiteConnection) { self.connection = connection }
  }

  @Test("A transaction's changes are found as if they were committed", arguments: Seeds.shards)
  func likeCommitted(shard: Int) throws {
    try Seeds.tryEach(40, shard: shard) { seed in
      let pair = try RandomPair(seed: seed)
      let copy = try pair.folder.copy("newer", to: "copy")
      let connection = try connection(to: copy, "PRAGMA synchronous = OFF; BEGIN")
      for table in try TestDatabases.tables(of: pair.newer) {
        let column = try connection.text("SELECT name FROM pragma_table_info(?1) LIMIT 1", binding: [table]) ?? ""
        try connection.execute("DELETE FROM \"\(table)\" WHERE length(\"\(column)\") % 2 = \(seed % 2)")
      }
      let open = try DatabaseComparison.run(from: RowSource(opening: pair.older), to: RowSource(on: connection))
      try connection.execute("COMMIT")
      let committed = try DatabaseComparison.run(older: pair.older, newer: copy)
      #expect(try open.changes() == committed.changes(), "\(Seeds.replay(seed))")
      #expect(open.tables.map(\.definition) == committed.tables.map(\.definition), "\(Seeds.replay(seed))")
    }
  }

  // MARK: Nothing

  @Test("Compared with nothing, every row is an INSERT, as compared with an empty file", arguments: Seeds.shards)
  func nothing(shard: Int) throws {
    let empty = try TestDatabases.run("PRAGMA user_version = 1", on: folder.file("empty"))
    try Seeds.tryEach(40, shard: shard) { seed in
      let pair = try RandomPair(seed: seed)
      let found = try DatabaseComparison.run(from: RowSource.empty(), to: RowSource(opening: pair.newer))
      #expect(found.tables.allSatisfy { $0.isNew && $0.updated == 0 && $0.deleted == 0 })
      #expect(found.fallbacks == [])
      #expect(try found.changes() == DatabaseComparison.run(older: empty, newer: pair.newer).changes())
    }
  }
}
