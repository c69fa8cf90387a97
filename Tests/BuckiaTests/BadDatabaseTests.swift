import Buckia
import BuckiaApply
import BuckiaDiff
import Foundation
import SQLiteChangesets
import SQLiteConnections
import Testing
import TestSupport

private let notes = """
  CREATE TABLE notes(id INTEGER PRIMARY KEY, text TEXT);
  WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) INSERT INTO notes SELECT i, 'note ' || i FROM n
  """

@Suite struct BadDatabaseTests {
  @Test("A locked database is reported as busy, and the next try succeeds")
  func locked() throws {
    let exchange = try Exchange(notes)
    try exchange.send("DELETE FROM notes WHERE id = 1")
    var database = exchange.database
    database.busyTimeout = 50
    let other = try SQLiteConnection(opening: exchange.mine, as: .readWrite)
    let transaction = try SQLiteTransaction(.immediate, on: other)
    let error = #expect(throws: BuckiaError.self) { try database.processInboundChanges([exchange.inbound]) }
    #expect(error?.isBusy == true)
    #expect(error?.description.contains(exchange.mine) == true)
    #expect(error?.description.contains("try again") == true)
    transaction.rollback()
    #expect(try exchange.apply().diffs.map(\.state) == [.applied])
  }

  @Test("A file that is no database is reported as such, and left unchanged", arguments: [0, 1])
  func notADatabase(_ kind: Int) throws {
    let exchange = try Exchange(notes)
    try exchange.send("DELETE FROM notes WHERE id = 1")
    let bytes = Array(String(repeating: "This is a letter, not a database. ", count: 100).utf8)
    let path = try exchange.folder.write(bytes, to: "letter.txt")
    let error =
      kind == 0
      ? #expect(throws: BuckiaError.self) { try DatabaseManager(path).processInboundChanges([exchange.inbound]) }
      : #expect(throws: BuckiaError.self) {
        try DatabaseManager(path).createDatabaseDiff(since: exchange.base, output: .folder(exchange.inbound))
      }
    #expect((error?.cause as? SQLiteError)?.isNotADatabase == true)
    #expect(error?.description.contains(path) == true)
    #expect(try fileBytes(path) == bytes)
    #expect(try exchange.folder.names(in: "inbound").count == 1)
  }

  @Test(
    "A truncated database is refused by diff, merge and snapshot, even if only part of its last page is missing",
    arguments: [5, 300, 4_096, 9_000])
  func cut(_ bytes: Int) throws {
    let exchange = try Exchange(notes)
    let (theirs, out) = (
      try exchange.folder.copy("mine.sqlite", to: "theirs.sqlite"), exchange.folder.file("out.sqlite")
    )
    try TestDatabases.run("DELETE FROM notes WHERE id = 7", on: theirs)
    let part = try exchange.folder.write(Array(fileBytes(exchange.mine).dropLast(bytes)), to: "part.sqlite")
    let tries: [() throws -> Void] = [
      { _ = try DatabaseManager(part).createDatabaseDiff(since: exchange.base, output: .folder(exchange.inbound)) },
      { _ = try DatabaseManager(theirs).createDatabaseDiff(since: part, output: .folder(exchange.inbound)) },
      { _ = try DatabaseManager(exchange.mine).merge(theirs, since: part, into: out) },
      { _ = try DatabaseManager(exchange.mine).merge(part, since: exchange.base, into: out) },
      { _ = try DatabaseManager(part).merge(theirs, since: exchange.base, into: out) },
      { _ = try DatabaseManager(part).merge(theirs, since: exchange.base) },
      { _ = try DatabaseManager(part).snapshot(to: out) },
    ]
    for (place, attempt) in tries.enumerated() {
      let error = #expect(throws: BuckiaError.self, "\(place)") { try attempt() }
      #expect((error?.cause as? SQLiteError)?.isCorrupt == true, "\(place): \(String(describing: error))")
    }
    #expect(try exchange.folder.names(in: "inbound").isEmpty)
    #expect(!FileManager.default.fileExists(atPath: out))
  }

  @Test("A WAL database whose -shm file cannot be created is an error, but can be read if its log is empty")
  func noIndex() throws {
    let exchange = try Exchange(notes)
    do {
      let writer = try SQLiteConnection(opening: exchange.mine, as: .readWrite)
      try writer.execute("PRAGMA journal_mode = wal; PRAGMA wal_autocheckpoint = 0; DELETE FROM notes WHERE id = 7")
      for name in ["mine.sqlite", "mine.sqlite-wal"] {
        try exchange.folder.write(
          fileBytes(exchange.folder.file(name)), to: name.replacingOccurrences(of: "mine", with: "other"))
      }
    }
    // As on a read-only medium, SQLite cannot create the file, because it does not follow links.
    try FileManager.default.createSymbolicLink(
      atPath: exchange.folder.file("other.sqlite-shm"), withDestinationPath: exchange.folder.file("none/shm"))
    let error = #expect(throws: BuckiaError.self) {
      try DatabaseManager(exchange.folder.file("other.sqlite")).examine()
    }
    #expect(error?.description.contains("index of its write-ahead log (-shm) cannot be made") == true)
    try exchange.folder.write([], to: "other.sqlite-wal")
    #expect(throws: Never.self) { try DatabaseManager(exchange.folder.file("other.sqlite")).examine() }
  }

  @Test("Files that change a damaged table are refused, and files for other tables are applied")
  func damagedTable() throws {
    let exchange = try Exchange(
      notes + "; CREATE TABLE sound(id INTEGER PRIMARY KEY, v); INSERT INTO sound VALUES (1, 1)")
    try exchange.send("INSERT INTO sound VALUES (2, 2)")
    try exchange.send("UPDATE notes SET text = 'x'; UPDATE sound SET v = 3 WHERE id = 1")
    try exchange.send("INSERT INTO sound VALUES (3, 3)")
    try exchange.damage("notes")
    for round in 0..<2 {
      let report = try exchange.apply()
      #expect(report.diffs.map(\.state) == (round == 0 ? [.applied, .rejected, .applied] : [.rejected]))
      let refused = try #require(report.rejected.first)
      #expect(refused.code == .damagedDatabase)
      #expect(refused.reason?.contains("the local database is damaged in table \"notes\"") == true)
    }
    #expect(try exchange.rows("SELECT id, v FROM sound ORDER BY id") == ["1|1", "2|2", "3|3"])
    #expect(try exchange.database.log().map(\.state) == [.applied, .applied])
    #expect(try exchange.folder.names(in: "inbound").count == 1)
  }

  @Test("A damaged page of another table stops a snapshot, a merge and an adoption, and nothing is written")
  func damageElsewhere() throws {
    let exchange = try Exchange(notes + "; CREATE TABLE sound(id INTEGER PRIMARY KEY, v)")
    let theirs = try exchange.folder.copy("base.sqlite", to: "theirs.sqlite")
    try TestDatabases.run("UPDATE notes SET text = 'x' WHERE id = 7", on: theirs)
    try exchange.send("CREATE TABLE added(id INTEGER PRIMARY KEY)")
    try exchange.damage("sound")
    let (out, before) = (exchange.folder.file("out.sqlite"), try fileBytes(exchange.mine))
    var options = ApplyOptions()
    options.snapshot = out
    let tries: [() throws -> Void] = [
      { _ = try exchange.database.snapshot(to: out) },
      { _ = try exchange.apply(options) },
      { _ = try exchange.database.merge(theirs, since: exchange.base, into: out) },
      { _ = try exchange.database.merge(theirs, since: exchange.base) },
    ]
    for (place, attempt) in tries.enumerated() {
      let error = #expect(throws: BuckiaError.self, "\(place)") { try attempt() }
      #expect((error?.cause as? SQLiteError)?.isCorrupt == true, "\(place): \(String(describing: error))")
      #expect(error?.description.contains(exchange.mine) == true, "\(place)")
    }
    #expect(try fileBytes(exchange.mine) == before)
    #expect(!FileManager.default.fileExists(atPath: out))
    let refused = try #require(exchange.apply(ApplyOptions(schema: .adopt)).rejected.first)
    #expect(refused.code == .damagedDatabase)
    #expect(refused.reason?.contains("the local database is damaged") == true)
    #expect(try exchange.rows("SELECT count(*) FROM sqlite_schema WHERE name = 'added'") == ["0"])
  }

  @Test("Rows that violate a constraint are no damage: a snapshot and a merge accept them")
  func brokenConstraint() throws {
    let exchange = try Exchange("CREATE TABLE t(id INTEGER PRIMARY KEY, v CHECK (v > 0)); INSERT INTO t VALUES (1, 1)")
    let theirs = try exchange.folder.copy("base.sqlite", to: "theirs.sqlite")
    try TestDatabases.run("INSERT INTO t VALUES (3, 3)", on: theirs)
    try TestDatabases.run("PRAGMA ignore_check_constraints = ON; INSERT INTO t VALUES (2, -2)", on: exchange.mine)
    try exchange.database.snapshot(to: exchange.folder.file("snapshot.sqlite"))
    #expect(try exchange.database.merge(theirs, since: exchange.base).isClean)
    #expect(try exchange.rows("SELECT id, v FROM t ORDER BY id") == ["1|1", "2|-2", "3|3"])
  }

  @Test("Adopting a schema into an empty file is an error, and the file stays empty")
  func adoptIntoNothing() throws {
    let exchange = try Exchange(notes)
    try exchange.send("CREATE TABLE added(id INTEGER PRIMARY KEY)")
    try exchange.folder.write([], to: "mine.sqlite")
    let error = #expect(throws: BuckiaError.self) { try exchange.apply(ApplyOptions(schema: .adopt)) }
    #expect(error?.code == .notADatabase)
    #expect(try fileBytes(exchange.mine).isEmpty)
    #expect(try exchange.folder.names(in: "inbound").count == 1)
  }

  @Test("A full disk is an error, and nothing is applied")
  func fullDisk() throws {
    let exchange = try Exchange(notes)
    try exchange.send("UPDATE notes SET text = text || hex(zeroblob(2000))")
    try exchange.database.initialize()
    let before = try exchange.everythingButOurs()
    let pages = try #require(try exchange.rows("PRAGMA page_count").first.flatMap { Int($0) })
    let connection = try SQLiteConnection(opening: exchange.mine, as: .readWrite)
    try connection.execute("PRAGMA max_page_count = \(pages + 5)")
    // The limit belongs to a connection, so the engine uses this one.
    let changes = try exchange.changes()
    let error = #expect(throws: SQLiteError.self) {
      let transaction = try SQLiteTransaction(on: connection)
      let plan = try Receiver.plan(changes, on: connection, settings: ApplySettings(time: 2_000_000_000_000))
      _ = try plan.apply(in: transaction)
      try transaction.commit()
    }
    #expect(error?.isFullDisk == true)
    #expect(error?.description.contains("free some space") == true)
    #expect(try connection.triggersEnabled)
    #expect(try exchange.everythingButOurs() == before)
    #expect(try exchange.database.log().isEmpty)
  }

  @Test("A clock of ids that cannot be saved causes a warning")
  func noHome() throws {
    let exchange = try Exchange(notes)
    try TestDatabases.run("DELETE FROM notes WHERE id = 7", on: exchange.mine)
    let report = try DatabaseManager(exchange.mine, home: BuckiaHome(path: "/proc/none")).createDatabaseDiff(
      since: exchange.base, output: .folder(exchange.folder.path))
    #expect(report.tables.map(\.deleted) == [1])
    #expect(report.warnings == [Warning(.clockNotKept, "/proc/none/clock")])
  }

  @Test("A WAL database is read from one commit while another connection writes")
  func liveWAL() throws {
    let exchange = try Exchange(notes)
    try TestDatabases.run(
      "PRAGMA journal_mode = WAL; CREATE TABLE a(id INTEGER PRIMARY KEY, n); CREATE TABLE b(id INTEGER PRIMARY KEY, n);"
        + "INSERT INTO a VALUES (1, 0); INSERT INTO b VALUES (1, 0)", on: exchange.mine)
    let path = exchange.mine
    let stop = Stop()
    let writer = Thread {
      do {
        let connection = try SQLiteConnection(opening: path, as: .readWrite)
        var round = 0
        // Readers keep the log from being reused. The limit keeps it from filling the disk.
        while !stop.isSet, round < 20_000 {
          round += 1
          try connection.execute("BEGIN; UPDATE a SET n = \(round); UPDATE b SET n = \(round); COMMIT")
        }
      } catch {
        Issue.record(error)
      }
      stop.end()
    }
    writer.start()
    defer {
      stop.set()
      stop.waitForEnd()
    }
    for _ in 0..<30 {
      let difference = try DatabaseComparison.run(older: exchange.base, newer: path)
      var values: [Set<String>] = []
      try difference.changeset.allBytes().withRawSpan { bytes in
        var reader = ChangesetReader()
        while try reader.next(in: bytes) != nil {
          if let value = ChangesetValue(reader.new[1], in: bytes) { values.append(["\(value)"]) }
        }
      }
      #expect(values.count == 2)
      #expect(Set(values).count == 1, "both tables were read from one commit: \(values)")
    }
  }

  @Test("Applying leaves the trigger setting of the connection unchanged", arguments: [true, false])
  func triggersRestored(_ enabled: Bool) throws {
    let exchange = try Exchange(
      """
      CREATE TABLE notes(id INTEGER PRIMARY KEY, n); CREATE TABLE log(n);
      CREATE TRIGGER t AFTER INSERT ON notes BEGIN INSERT INTO log VALUES (new.id); END
      """)
    try exchange.send("INSERT INTO notes VALUES (1, 1)")
    let changes = try exchange.changes()
    let connection = try SQLiteConnection(opening: exchange.mine, as: .readWrite)
    try connection.enableTriggers(enabled)
    let transaction = try SQLiteTransaction(on: connection)
    let plan = try Receiver.plan(changes, on: connection, settings: ApplySettings(time: 2_000_000_000_000))
    let result = try plan.apply()
    try transaction.commit()
    #expect(try connection.triggersEnabled == enabled)
    #expect(result.changedTables == ["notes", "log"])
    #expect(try connection.integer("SELECT count(*) FROM log") == 1, "the author's trigger ran, ours did not")
  }
}

/// A flag between two threads.
final class Stop: @unchecked Sendable {
  // The condition guards both flags.
  private let condition = NSCondition()
  private var stopping = false
  private var ended = false

  var isSet: Bool { condition.withLock { stopping } }
  func set() { condition.withLock { stopping = true } }
  func end() {
    condition.withLock {
      ended = true
      condition.broadcast()
    }
  }
  func waitForEnd() {
    condition.lock()
    while !ended { condition.wait() }
    condition.unlock()
  }
}
