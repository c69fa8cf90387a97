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

/// Applying inside a transaction that the application has opened on its own connection.
@Suite struct OwnTransactionTests {
  private struct Enough: Error {}

  /// Everything that a connection can see, and its settings.
  private func state(of connection: borrowing SQLiteConnection) throws -> [String] {
    var lines: [String] = []
    for schema in ["main", "temp"] {
      var tables: [String] = []
      let query = "SELECT type, name, tbl_name, sql FROM \(schema).sqlite_schema ORDER BY rowid"
      try connection.forEachRow(of: query) { row in
        lines.append("\(schema) \((0..<4).map { row.text(at: $0) ?? "NULL" })")
        if row.text(at: 0) == "table" { tables.append(row.text(at: 1) ?? "") }
      }
      for table in tables where schema == "main" {
        try connection.forEachRow(of: "SELECT * FROM \(SQLText.identifier(table))") { row in
          lines.append("\(table): \((0..<row.columnCount).map { Rows.text(of: row, at: $0) })")
        }
      }
    }
    for pragma in ["defer_foreign_keys", "foreign_keys", "recursive_triggers"] {
      lines.append("\(pragma) \(try connection.integer("PRAGMA \(pragma)") ?? -1)")
    }
    lines.append("triggers \(try connection.triggersEnabled)")
    return lines
  }

  @Test("After any failure the state is restored, and the application's transaction continues", arguments: Seeds.shards)
  func failure(_ shard: Int) throws {
    var failures = 0
    try Seeds.tryEach(300, shard: shard) { seed in
      let scenario = try ApplyScenario(seed: seed)
      guard !scenario.changes.isEmpty else { throw Seeds.Unsuitable() }
      let connection = try scenario.makeReceiver(forStock: false)
      var random = SeededGenerator(seed: seed)
      if random.oneIn(2) { try connection.enableTriggers(false) }
      try connection.execute("BEGIN; INSERT INTO log VALUES (500, 'the application''s own')")
      if random.oneIn(4) { try connection.execute("PRAGMA defer_foreign_keys = ON") }
      let before = try state(of: connection)
      let last = Int.random(in: 1...6, using: &random)
      var asked = 0
      let settings = ApplySettings(
        resolver: { _ in
          asked += 1
          if asked == last { throw Enough() }
          return asked % 2 == 0 ? .takeIncoming : .keepLocal
        }, firesTriggers: scenario.firesTriggers, time: 2_000_000_000_000,
        progress: { if $0 % 3 == last % 3 { throw Enough() } })
      do {
        _ = try Receiver.plan(scenario.incoming(), on: connection, settings: settings).apply()
      } catch {
        failures += 1
        let isOpen = connection.isInTransaction
        #expect(isOpen)
        #expect(try state(of: connection) == before, "\(Seeds.replay(seed)): \(error)\n\(scenario.description)")
        try connection.execute("ROLLBACK")
        #expect(try connection.integer("SELECT count(*) FROM log WHERE id = 500") == 0)
      }
    }
    if Seeds.range(300).count > 100 { #expect(failures > 20) }
  }

  private static let schema = "CREATE TABLE t(id INTEGER PRIMARY KEY, a)"

  private func changes(_ recorded: String, after schema: String = schema) throws -> IncomingChanges {
    let author = try SQLiteConnection(opening: ":memory:", as: .create)
    try author.execute(schema)
    let session = try SQLiteSession(on: author)
    try session.attach()
    try author.execute(recorded)
    return try IncomingChanges(
      key: LedgerKey(sender: "", id: nil, digest: [UInt8](repeating: 3, count: 32), isRaw: true), file: "test",
      definitions: nil, changeset: TemporaryBuffer(try session.changeset()))
  }

  @Test("If the disk is full and SQLite rolls back the whole transaction, the error says so")
  func fullDisk() throws {
    let folder = try TemporaryFolder()
    let connection = try SQLiteConnection(opening: folder.file("db"), as: .create)
    try connection.execute("\(Self.schema); INSERT INTO t VALUES (1, 1); BEGIN")
    try Ledger.prepare(on: connection)
    try connection.execute("COMMIT")
    let pages = try #require(try connection.integer("PRAGMA page_count"))
    let before = try state(of: connection)
    try connection.execute(
      "PRAGMA max_page_count = \(pages + 8); BEGIN; INSERT INTO t VALUES (2, 'the application''s own')")
    // Few enough to be inserted one by one: of a statement with several rows SQLite only rolls back the statement.
    let changes = try changes(
      "WITH n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 15) INSERT INTO t SELECT i, zeroblob(9000) FROM n"
    )
    let error = #expect(throws: ReplicationError.self) {
      _ = try Receiver.plan(changes, on: connection, settings: ApplySettings(time: 2_000_000_000_000)).apply()
    }
    #expect(error?.code == .transactionLost)
    #expect((error?.cause as? SQLiteError)?.isFullDisk == true)
    #expect(error?.description.contains("what the application did in it before") == true)
    let isOpen = connection.isInTransaction
    #expect(!isOpen)
    #expect(try state(of: connection) == before)
    // The application continues.
    try connection.execute("BEGIN; INSERT INTO t VALUES (2, 2); COMMIT")
  }

  @Test("If the disk is full and SQLite rolls back one statement, the application's transaction continues")
  func fullDiskForOneStatement() throws {
    let folder = try TemporaryFolder()
    let connection = try SQLiteConnection(opening: folder.file("db"), as: .create)
    // The trigger makes SQLite keep a statement journal, which allows it to roll back the statement.
    let schema = """
      \(Self.schema); CREATE TABLE log(id INTEGER PRIMARY KEY, b);
      CREATE TRIGGER r AFTER INSERT ON t BEGIN INSERT INTO log(b) VALUES (new.a); END
      """
    try connection.execute(schema)
    let pages = try #require(try connection.integer("PRAGMA page_count"))
    try connection.execute("PRAGMA max_page_count = \(pages + 40); BEGIN; INSERT INTO t VALUES (2, 'own')")
    let before = try state(of: connection)
    let changes = try changes(
      "WITH n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 90) INSERT INTO t SELECT i, zeroblob(3000) FROM n"
    )
    let error = #expect(throws: SQLiteError.self) {
      let settings = ApplySettings(firesTriggers: true, time: 2_000_000_000_000)
      _ = try Receiver.plan(changes, on: connection, settings: settings).apply()
    }
    #expect(error?.isFullDisk == true)
    let isOpen = connection.isInTransaction
    #expect(isOpen)
    #expect(try state(of: connection) == before)
    try connection.execute("COMMIT")
    #expect(try connection.integer("SELECT count(*) FROM t") == 1)
  }

  @Test("If a trigger rolls back the whole transaction, nothing is written after its end", arguments: [false, true])
  func trigger(_ isOwn: Bool) throws {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute(
      """
      \(Self.schema); INSERT INTO t VALUES (1, 1);
      CREATE TRIGGER r AFTER INSERT ON t WHEN new.a = 5 BEGIN SELECT RAISE(ROLLBACK, 'all of it'); END
      """)
    let changes = try changes("INSERT INTO t VALUES (10, 4), (11, 5), (12, 6), (13, 7), (14, 8)")
    let settings = ApplySettings(firesTriggers: true, time: 2_000_000_000_000)
    if isOwn {
      try connection.execute("BEGIN; INSERT INTO t VALUES (2, 2)")
      let error = #expect(throws: ReplicationError.self) {
        _ = try Receiver.plan(changes, on: connection, settings: settings).apply()
      }
      #expect(error?.code == .transactionLost && (error?.cause as? SQLiteError)?.message == "all of it")
    } else {
      let error = #expect(throws: SQLiteError.self) {
        let transaction = try SQLiteTransaction(on: connection)
        _ = try Receiver.plan(changes, on: connection, settings: settings).apply(in: transaction)
        try transaction.commit()
      }
      #expect(error?.message == "all of it")
    }
    let isOpen = connection.isInTransaction
    #expect(!isOpen)
    #expect(try connection.integer("SELECT count(*) FROM t") == 1)
    #expect(try connection.triggersEnabled)
  }

  @Test("Applied changes are committed or rolled back with the application's transaction", arguments: [true, false])
  func success(_ commits: Bool) throws {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute("\(Self.schema); BEGIN; INSERT INTO t VALUES (1, 1)")
    let changes = try changes("INSERT INTO t VALUES (2, 2)")
    let result = try Receiver.plan(changes, on: connection, settings: ApplySettings(time: 2_000_000_000_000)).apply()
    #expect(result.changedTables == ["t"])
    try connection.execute(commits ? "COMMIT" : "ROLLBACK")
    #expect(try connection.integer("SELECT count(*) FROM t") == (commits ? 2 : 0))
    #expect(try Ledger.exists(on: connection) == commits)
  }
}
