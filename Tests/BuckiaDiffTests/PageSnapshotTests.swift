import BuckiaDiff
import Foundation
import SQLiteConnections
import SQLiteFiles
import Testing
import ReplicationTestSupport
import TestSupport

/// Comparing pages beside locks of this process, other writers, and interrupted transactions.
@Suite struct PageSnapshotTests {
  private let folder: TemporaryFolder
  private let older: String
  private let live: String

  init() throws {
    folder = try TemporaryFolder()
    older = try TestDatabases.run(
      """
      CREATE TABLE t(id INTEGER PRIMARY KEY, v TEXT);
      WITH s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 500)
      INSERT INTO t SELECT n, printf('%.100c', 'x') || n FROM s
      """, on: folder.file("older"))
    live = try folder.copy("older", to: "live")
    try TestDatabases.run("UPDATE t SET v = 'new' WHERE id = 7", on: live)
  }

  private static let byPages = DiffOptions(method: .pages)

  /// Makes both databases large enough for two threads to read them.
  private func enlarge() throws {
    for path in [older, live] {
      try TestDatabases.run("CREATE TABLE large(v); INSERT INTO large VALUES (zeroblob(20000000))", on: path)
    }
  }

  /// Compares the live database with another and with itself, as the newer and as the older one.
  private func diffBesideLocks() throws {
    for (one, other) in [(older, live), (live, older), (live, live)] {
      let difference = try DatabaseComparison.run(older: one, newer: other, options: Self.byPages)
      #expect(difference.tables.map(\.updated) == (one == other ? [] : [1]))
      #expect(difference.fallbacks == [])
    }
  }

  // MARK: Locks

  // Before Swift 6.3, no path can be passed to an exit test.
  #if compiler(>=6.3) && (os(Linux) || os(macOS))
    /// Tries to write to a database, in a separate process.
    private static func write(_ path: String) throws -> Int32 {
      let connection = try SQLiteConnection(opening: path, as: .readWrite, busyTimeout: 0)
      do {
        try connection.execute("BEGIN; INSERT INTO t(v) VALUES ('of another process'); COMMIT")
        return 0
      } catch {
        return error.primaryCode
      }
    }

    /// `SQLITE_BUSY`.
    private static let busy: Int32 = 5

    @Test(
      "A read lock of this process keeps other writers out, also after the file was compared",
      arguments: [false, true])
    func sharedLock(isLarge: Bool) async throws {
      if isLarge { try enlarge() }
      let holder = try Holder(live, "BEGIN; SELECT count(*) FROM t")
      try diffBesideLocks()
      #expect(try holder.difference(from: older).tables.map(\.method) == [.pages])
      await #expect(processExitsWith: .exitCode(Self.busy)) { [path = live as String] in
        exit(try Self.write(path))
      }
      // Shows that the test detects it: opening and closing a file by its path drops the lock.
      do { _ = try FileBytes(opening: live).byteCount() }
      await #expect(processExitsWith: .success) { [path = live as String] in
        exit(try Self.write(path))
      }
      try holder.execute("ROLLBACK")
    }

    @Test(
      "In WAL mode a write transaction of this process keeps its lock, and its changes are committed",
      arguments: [false, true])
    func logLock(isLarge: Bool) async throws {
      if isLarge { try enlarge() }
      try TestDatabases.run("PRAGMA journal_mode = WAL", on: live)
      let keeper = try Holder(live, "SELECT 1")
      let holder = try Holder(live, "BEGIN IMMEDIATE; INSERT INTO t VALUES (1000, 'of this process')")
      try diffBesideLocks()
      #expect(try holder.difference(from: older).tables.map(\.inserted) == [1])
      await #expect(processExitsWith: .exitCode(Self.busy)) { [path = live as String] in
        exit(try Self.write(path))
      }
      try holder.execute("COMMIT")
      try diffAfterCommit()
      await #expect(processExitsWith: .success) { [path = live as String] in
        exit(try Self.write(path))
      }
      #expect(try TestDatabases.rows("SELECT count(*) FROM t", on: live) == ["502"])
      try keeper.execute("SELECT 1")
    }

    private func diffAfterCommit() throws {
      let difference = try DatabaseComparison.run(older: older, newer: live, options: Self.byPages)
      #expect(difference.tables.map(\.inserted) == [1])
      #expect(difference.tables.map(\.method) == [.pages])
    }
  #endif

  // MARK: Other writers

  @Test("Each comparison sees one state, however fast others write and restart the log")
  func besideWriters() throws {
    let tables = ["a", "b", "c"]
    try FileManager.default.removeItem(atPath: live)
    try TestDatabases.run(
      """
      PRAGMA page_size = 1024; PRAGMA journal_mode = WAL;
      CREATE TABLE a(id INTEGER PRIMARY KEY, amount INT, round INT, pad TEXT);
      CREATE TABLE b(id TEXT PRIMARY KEY, amount INT, round INT, pad TEXT) WITHOUT ROWID;
      CREATE TABLE c(id TEXT PRIMARY KEY, amount INT, round INT, pad TEXT);
      WITH s(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM s WHERE n < 199)
      INSERT INTO a SELECT n, 1000, 0, printf('%.*c', n % 7 * 90, 'x') FROM s;
      INSERT INTO b SELECT * FROM a; INSERT INTO c SELECT * FROM a
      """, on: live)
    let before = try folder.copy("live", to: "before")
    let sum = tables.map { "(SELECT sum(amount) FROM \($0))" }.joined(separator: " + ")
    let rounds = tables.map { "(SELECT round FROM \($0) WHERE id = '0')" }.joined(separator: ", ")
    #expect(try TestDatabases.rows("SELECT \(sum)", on: before) == ["600000"])

    let path = live
    let throng = Throng()
    throng.begin { round in
      let connection = try SQLiteConnection(opening: path, as: .readWrite)
      var random = SeededGenerator(seed: 1)
      while let number = round() {
        var sql = "BEGIN IMMEDIATE;"
        for table in tables { sql += "UPDATE \(table) SET round = \(number) WHERE id = '0';" }
        for _ in 0..<4 {
          let (amount, one) = (Int.random(in: 1...50, using: &random), Int.random(in: 1..<200, using: &random))
          sql += "UPDATE \(random.pick(tables)) SET amount = amount - \(amount) WHERE id = '\(one)';"
          sql += "UPDATE \(random.pick(tables)) SET amount = amount + \(amount) WHERE id = '\(200 - one)';"
        }
        // A row moves from one table to another, so that pages are added and freed.
        let moving = Int.random(in: 1..<200, using: &random)
        sql += """
          CREATE TEMP TABLE IF NOT EXISTS moved AS SELECT * FROM a LIMIT 0; DELETE FROM moved;
          INSERT INTO moved SELECT * FROM a WHERE id = \(moving); DELETE FROM a WHERE id = \(moving);
          INSERT INTO a SELECT id, amount, round, printf('%.*c', \(number % 1_500), 'y') FROM moved;
          """
        try connection.execute(sql + "COMMIT")
        // On a busy machine the comparisons take long, and the log must not fill the disk meanwhile.
        if number > 20_000 { Thread.sleep(forTimeInterval: 0.01) }
      }
    }
    throng.begin { round in
      let connection = try SQLiteConnection(opening: path, as: .readWrite, busyTimeout: 20)
      while let number = round() {
        let kind = ["RESTART", "TRUNCATE", "PASSIVE"][number % 3]
        do { try connection.execute("PRAGMA wal_checkpoint(\(kind))") } catch let error as SQLiteError
          where error.isBusy
        {}
      }
    }
    defer { throng.end() }

    var byPages = 0
    var seen: Set<String> = []
    for number in 0..<100 {
      let difference = try DatabaseComparison.run(older: before, newer: live, options: Self.byPages)
      byPages += difference.tables.count { $0.method == .pages }
      let copy = try folder.copy(before, to: "copy\(number)")
      _ = try Shipping.apply(difference, to: copy)
      try #require(try TestDatabases.rows("SELECT \(sum)", on: copy) == ["600000"])
      let found = try TestDatabases.rows("SELECT \(rounds)", on: copy)[0].split(separator: "|").map(String.init)
      try #require(Set(found).count == 1, "\(found)")
      seen.formUnion(found)
    }
    throng.end()
    #expect(throng.failures == [])
    // Otherwise nothing was written meanwhile, or no pages were compared.
    #expect(seen.count > 10)
    #expect(byPages > 50)
  }

  @Test("If the log is restarted during a comparison, the comparison is repeated")
  func newBeginning() throws {
    try TestDatabases.run("PRAGMA journal_mode = WAL", on: live)
    let writer = try Holder(
      live,
      """
      UPDATE t SET v = printf('%.400c', 'x') || id WHERE id % 2 = 0; UPDATE t SET v = 'first' WHERE id % 3 = 0;
      PRAGMA wal_checkpoint(PASSIVE)
      """)
    // The whole log is in the file, so the comparison holds nothing that prevents others from restarting it; and they
    // write where the comparison expects other pages.
    var attempts = 0
    let difference = try DatabaseComparison.run(older: older, newer: live, options: Self.byPages) { _ in
      attempts += 1
      guard attempts == 1 else { return }
      try writer.execute("DELETE FROM t WHERE id > 400; UPDATE t SET v = 'second'")
    }
    #expect(attempts == 2)
    #expect(difference.tables.map(\.updated) == [400])
    #expect(difference.tables.map(\.deleted) == [100])
    #expect(difference.tables.map(\.method) == [.pages])
    _ = try Shipping.apply(difference, to: older)
    #expect(
      try TestDatabases.rows("SELECT count(*), min(v) = 'second', max(v) = 'second' FROM t", on: older) == ["400|1|1"])
  }

  // MARK: Interrupted transactions

  @Test("An interrupted transaction is not read: a hot journal needs a writer to roll it back")
  func hotJournal() throws {
    let writer = try Holder(
      live,
      """
      PRAGMA cache_size = 5; PRAGMA cache_spill = 1; BEGIN;
      UPDATE t SET v = 'half-written' WHERE id > 20; INSERT INTO t(v) SELECT v FROM t
      """)
    let original = try folder.copy("older", to: "before")
    try TestDatabases.run("UPDATE t SET v = 'new' WHERE id = 7", on: original)
    let copy = try folder.copy("live", to: "copy")
    _ = try folder.copy("live-journal", to: "copy-journal")
    // Otherwise nothing of the transaction has reached the file, and the test shows nothing.
    try #require(try fileBytes(copy) != fileBytes(original))
    for (one, other) in [(original, copy), (copy, original)] {
      let error = #expect(throws: SQLiteError.self) {
        try DatabaseComparison.run(older: one, newer: other, options: Self.byPages)
      }
      #expect(error?.needsRecovery == true)
    }
    // A connection that may write rolls it back at its first read.
    #expect(try TestDatabases.run("BEGIN IMMEDIATE; COMMIT", on: copy) == copy)
    let difference = try DatabaseComparison.run(older: original, newer: copy, options: Self.byPages)
    #expect(difference.isEmpty)
    try writer.execute("ROLLBACK")
  }
}

/// A connection that several closures can use.
private final class Holder {
  private let connection: SQLiteConnection

  init(_ path: String, _ sql: String) throws {
    connection = try SQLiteConnection(opening: path, as: .readWrite)
    try connection.execute(sql)
  }

  func execute(_ sql: String) throws { try connection.execute(sql) }

  /// The difference from a database to the one that this connection sees.
  func difference(from older: String) throws -> DatabaseDifference {
    try DatabaseComparison.run(from: RowSource(opening: older), to: RowSource(on: connection))
  }
}

/// Threads that repeat their work until they are stopped.
private final class Throng: @unchecked Sendable {
  // The condition guards all properties.
  private let condition = NSCondition()
  private var isEnding = false
  private var running = 0
  private var found: [String] = []

  /// The errors of the threads.
  var failures: [String] { condition.withLock { found } }

  /// Starts a thread.
  ///
  /// - Parameter body: Works as long as the closure returns numbers.
  func begin(_ body: @escaping @Sendable (() -> Int?) throws -> Void) {
    condition.withLock { running += 1 }
    Thread.detachNewThread { [self] in
      var number = 0
      do {
        try body {
          number += 1
          return condition.withLock { isEnding } ? nil : number
        }
      } catch {
        condition.withLock { found.append("\(error)") }
      }
      condition.withLock {
        running -= 1
        condition.broadcast()
      }
    }
  }

  /// Stops all threads, and waits until they have ended.
  func end() {
    condition.withLock {
      isEnding = true
      while running > 0 { condition.wait() }
    }
  }
}
