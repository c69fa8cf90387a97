import Buckia
import BuckiaApply
import Foundation
import TestSupport
import Testing
@testable import SQLiteConnections

@Suite("A database on a connection that the app has lent")
struct BorrowedDatabaseTests {
  private static let schema =
    "CREATE TABLE notes(id INTEGER PRIMARY KEY, n INTEGER UNIQUE); INSERT INTO notes VALUES (1, 1)"

  /// Lends the handle of a connection as an app would.
  private func lend<Result>(
    _ connection: borrowing SQLiteConnection, home: BuckiaHome = .standard,
    _ body: (DatabaseManager) throws -> Result
  ) throws -> Result {
    try DatabaseManager.borrowing(connection.handle.pointer, home: home, body)
  }

  @Test(
    "Files are applied inside the app's transaction, and stay in their folder until it is over",
    arguments: [true, false])
  func insideATransaction(commits: Bool) throws {
    let exchange = try Exchange(Self.schema)
    try exchange.send("INSERT INTO notes VALUES (2, 2)")
    let connection = try SQLiteConnection(opening: exchange.mine, as: .readWrite)
    try connection.execute("BEGIN; INSERT INTO notes VALUES (9, 9)")
    let report = try lend(connection) { try $0.processInboundChanges([exchange.inbound]) }
    #expect(report.diffs.map(\.state) == [.applied])
    #expect(report.changedTables == ["notes"])
    let isOpen = connection.isInTransaction
    #expect(isOpen)
    #expect(try exchange.folder.names(in: "inbound").count == 1)
    try connection.execute(commits ? "COMMIT" : "ROLLBACK")
    #expect(try exchange.rows("SELECT id FROM notes ORDER BY id") == (commits ? ["1", "2", "9"] : ["1"]))
    let later = try exchange.apply()
    #expect(later.diffs.map(\.state) == [commits ? .alreadyApplied : .applied])
    #expect(try exchange.folder.names(in: "inbound").isEmpty)
    #expect(try exchange.rows("SELECT count(*) FROM notes WHERE id = 2") == ["1"])
  }

  @Test("A borrowed connection applies no untrusted file, and no file twice")
  func gate() throws {
    let exchange = try Exchange(Self.schema)
    try exchange.send("INSERT INTO notes VALUES (2, 2)")
    let connection = try SQLiteConnection(opening: exchange.mine, as: .readWrite)
    var options = ApplyOptions(trust: .known, keepsFiles: true)
    let untrusted = try lend(connection) { try $0.processInboundChanges([exchange.inbound], options: options) }
    #expect(untrusted.diffs.map(\.state) == [.quarantined])
    #expect(try exchange.rows("SELECT id FROM notes") == ["1"])
    options.trust = .any
    let states = try (0..<2).map { _ in
      try lend(connection) { try $0.processInboundChanges([exchange.inbound], options: options).diffs.map(\.state) }
    }
    #expect(states == [[.applied], [.alreadyApplied]])
  }

  @Test("On a borrowed connection, a stranger's signed file is quarantined until the stranger is trusted")
  func strangersFile() throws {
    let exchange = try Exchange(Self.schema)
    let anna = try BuckiaHome(path: exchange.folder.file("home of Anna")).makeIdentity(named: "Anna")
    try exchange.send("INSERT INTO notes VALUES (2, 2)", signedBy: anna)
    let connection = try SQLiteConnection(opening: exchange.mine, as: .readWrite)
    func apply() throws -> [DiffOutcome] {
      try DatabaseManager.borrowing(connection.handle.pointer, home: exchange.home) {
        try $0.processInboundChanges(
          [exchange.inbound], options: ApplyOptions(trust: .known)
        ).diffs
      }
    }
    let stranger = try #require(try apply().first)
    #expect(stranger.state == .quarantined && stranger.code == .untrusted)
    #expect(stranger.sender == "key \(anna.card.key)")
    #expect(stranger.reason?.contains("`buckia contact add CARD`") == true)
    try exchange.home.addContact(anna.card.text)
    #expect(try apply().map(\.state) == [.quarantined], "being seen is not enough")
    #expect(try exchange.rows("SELECT id FROM notes") == ["1"])
    #expect(try exchange.folder.names(in: "inbound").count == 1)
    try exchange.home.trustContact("Anna", fingerprint: anna.fingerprint)
    #expect(try apply().map(\.state) == [.applied])
    #expect(try exchange.rows("SELECT id FROM notes ORDER BY id") == ["1", "2"])
    #expect(try exchange.folder.names(in: "inbound").isEmpty)
  }

  @Test("A refused diff leaves the app's transaction unchanged")
  func refused() throws {
    let exchange = try Exchange(Self.schema)
    try exchange.send("INSERT INTO notes VALUES (2, 2); UPDATE notes SET n = 5 WHERE id = 1")
    let connection = try SQLiteConnection(opening: exchange.mine, as: .readWrite)
    try connection.execute("BEGIN; UPDATE notes SET n = 7; INSERT INTO notes VALUES (8, 8)")
    let report = try lend(connection) {
      try $0.processInboundChanges([exchange.inbound], options: ApplyOptions(conflicts: .abort))
    }
    #expect(report.diffs.map(\.state) == [.rejected])
    try connection.execute("COMMIT")
    #expect(try exchange.rows("SELECT id, n FROM notes ORDER BY id") == ["1|7", "8|8"])
    #expect(try exchange.database.log().map(\.state) == [.rejected])
  }

  @Test("A borrowed connection can be one to a database in memory")
  func everyCall() throws {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute(Self.schema)
    try lend(connection) { (database: DatabaseManager) throws -> Void in
      #expect(try database.log().isEmpty)
      #expect(try database.initialize().created)
      #expect(try database.examine().replicates.map(\.name) == ["notes"])
      #expect(try database.conflicts().isEmpty)
    }
  }

  @Test(
    "A diff of a borrowed database has the changes of the app's open transaction, and leaves it open",
    arguments: [nil, DiffMethod.pages, .rows, .session])
  func diff(method: DiffMethod?) throws {
    let exchange = try Exchange(Self.schema)
    let connection = try SQLiteConnection(opening: exchange.mine, as: .readWrite)
    try connection.execute("INSERT INTO notes VALUES (2, 2); BEGIN; UPDATE notes SET n = 5 WHERE id = 1")
    let report = try lend(connection, home: exchange.home) {
      try $0.createDatabaseDiff(
        since: exchange.base, output: .folder(exchange.inbound), options: DiffOptions(method: method))
    }
    #expect(report.tables.map { [$0.inserted, $0.updated, $0.deleted] } == [[1, 1, 0]])
    #expect(report.method == method)
    let isOpen = connection.isInTransaction
    #expect(isOpen)
    try connection.execute("ROLLBACK")
    let other = DatabaseManager(exchange.base)
    #expect(try other.processInboundChanges([exchange.inbound]).applied.count == 1)
    #expect(try TestDatabases.rows("SELECT id, n FROM notes ORDER BY id", on: exchange.base) == ["1|5", "2|2"])
  }

  @Test("All rows of a borrowed database in memory can be sent")
  func diffOfMemory() throws {
    let exchange = try Exchange(Self.schema)
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute("\(Self.schema), (7, 7)")
    let report = try lend(connection, home: exchange.home) {
      try $0.createDatabaseDiff(since: nil, output: .folder(exchange.inbound))
    }
    #expect(report.tables.map(\.inserted) == [2])
    #expect(report.tables.map(\.isNew) == [true])
  }

  @Test("A dry run in the app's transaction changes nothing")
  func dryRun() throws {
    let exchange = try Exchange(Self.schema)
    try exchange.send("INSERT INTO notes VALUES (2, 2)")
    let connection = try SQLiteConnection(opening: exchange.mine, as: .readWrite)
    try connection.execute("BEGIN; INSERT INTO notes VALUES (9, 9)")
    let report = try lend(connection) {
      try $0.processInboundChanges([exchange.inbound], options: ApplyOptions(isDryRun: true))
    }
    #expect(report.diffs.first?.inserted == 1)
    try connection.execute("COMMIT")
    #expect(try exchange.rows("SELECT id FROM notes ORDER BY id") == ["1", "9"])
  }

  @Test("Using a borrowed database outside its closure, or on another thread, is an error")
  func misuse() throws {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    let kept = try lend(connection) { $0 }
    #expect(throws: BuckiaError.self) { try kept.log() }
    try lend(connection) { (database: DatabaseManager) throws -> Void in
      let code = Recorded<BuckiaErrorCode?>(nil)
      let isDone = DispatchSemaphore(value: 0)
      Thread.detachNewThread {
        do { _ = try database.log() } catch { code.value = (error as? BuckiaError)?.code }
        isDone.signal()
      }
      isDone.wait()
      #expect(code.value == .misuse)
    }
  }

  @Test("The report lists the keys of changed rows, up to a limit")
  func changedRows() throws {
    func changedRows(upTo limit: Int) throws -> [ChangedRows] {
      let exchange = try Exchange(Self.schema)
      try exchange.send("INSERT INTO notes VALUES (2, 2), (3, 3); UPDATE notes SET n = 5 WHERE id = 1")
      var options = ApplyOptions()
      options.changedRowLimit = limit
      return try exchange.apply(options).changedRows
    }
    #expect(try changedRows(upTo: 0).isEmpty)
    let listed = try changedRows(upTo: 10)
    #expect(listed.map(\.table) == ["notes"])
    let keys: [[ChangesetValue]] = listed.first?.keys ?? []
    #expect(keys.count == 3)
    for number in 1...3 { #expect(keys.contains([.integer(Int64(number))])) }
    #expect(try changedRows(upTo: 2).map(\.keys) == [nil])
  }
}

@Suite("Asynchronous calls")
struct AsynchronousCallTests {
  @Test("An async call does what the synchronous one does, and reports its progress")
  func applies() async throws {
    let exchange = try Exchange("CREATE TABLE notes(id INTEGER PRIMARY KEY, n INTEGER)")
    for number in 1...3 { try exchange.send("INSERT INTO notes VALUES (\(number), \(number))") }
    let steps = Recorded<[ApplyProgress]>([])
    let report = try await exchange.database.processInboundChanges(
      [exchange.inbound], progress: { steps.value.append($0) })
    #expect(report.diffs.map(\.state) == [.applied, .applied, .applied])
    // A file that takes long to open is reported more than once.
    let files = steps.value.map(\.files)
    #expect(files == files.sorted())
    #expect(Set(files) == [0, 1, 2])
    #expect(steps.value.allSatisfy { $0.fileCount == 3 && $0.byteCount > 0 })
    #expect(steps.value.map(\.bytes) == steps.value.map(\.bytes).sorted())
  }

  @Test("Progress distinguishes verifying a file from applying it")
  func activities() throws {
    let exchange = try Exchange("CREATE TABLE notes(id INTEGER PRIMARY KEY, n INTEGER)")
    try exchange.send(
      "INSERT INTO notes WITH RECURSIVE c(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM c WHERE i < 40000) SELECT i, i FROM c"
    )
    var steps: [ApplyProgress] = []
    try exchange.database.processInboundChanges([exchange.inbound], progress: { steps.append($0) })
    #expect(steps.first?.activity == .verifying)
    #expect(steps.filter { $0.rows > 0 }.allSatisfy { $0.activity == .applying })
    #expect(steps.last?.activity == .applying)
  }

  @Test("A cancelled task stops in the middle of a file, and the next call applies the file")
  func cancels() async throws {
    let exchange = try Exchange("CREATE TABLE notes(id INTEGER PRIMARY KEY, n INTEGER)")
    try exchange.send(
      "INSERT INTO notes WITH RECURSIVE c(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM c WHERE i < 40000) SELECT i, i FROM c"
    )
    // Applying pauses between rows until the task is cancelled.
    let (amongRows, cancelled) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let task = Task {
      try await exchange.database.processInboundChanges(
        [exchange.inbound],
        progress: { step in
          guard step.rows == 4_096 else { return }
          amongRows.signal()
          cancelled.wait()
        })
    }
    await Self.waitOutsideThePool(for: amongRows)
    task.cancel()
    cancelled.signal()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(try exchange.rows("SELECT count(*) FROM notes") == ["0"])
    #expect(try exchange.database.log().isEmpty)
    #expect(try exchange.apply().diffs.map(\.state) == [.applied])
  }

  private static func waitOutsideThePool(for semaphore: DispatchSemaphore) async {
    await withCheckedContinuation { continuation in
      DispatchQueue.global().async {
        semaphore.wait()
        continuation.resume()
      }
    }
  }

  @Test("A cancelled comparison leaves no file, and the next one writes the diff")
  func comparison() async throws {
    let exchange = try Exchange("CREATE TABLE notes(id INTEGER PRIMARY KEY); CREATE TABLE tags(id INTEGER PRIMARY KEY)")
    try TestDatabases.run("INSERT INTO notes VALUES (1); INSERT INTO tags VALUES (1)", on: exchange.mine)
    // The comparison pauses before the first table until the task is cancelled.
    let (begun, cancelled) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let task = Task {
      try await exchange.database.createDatabaseDiff(
        since: exchange.base, output: .folder(exchange.inbound),
        progress: { _ in
          begun.signal()
          cancelled.wait()
        })
    }
    await Self.waitOutsideThePool(for: begun)
    task.cancel()
    cancelled.signal()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(try exchange.folder.names(in: "inbound").isEmpty)
    let report = try await exchange.database.createDatabaseDiff(since: exchange.base, output: .folder(exchange.inbound))
    #expect(report.tables.map(\.inserted) == [1, 1])
    #expect(try exchange.folder.names(in: "inbound").count == 1)
  }

  @Test("Files can be verified asynchronously, and a cancelled verification throws", arguments: [true, false])
  func verification(isRaw: Bool) async throws {
    let exchange = try Exchange("CREATE TABLE notes(id INTEGER PRIMARY KEY, n INTEGER)")
    try exchange.send("INSERT INTO notes VALUES (1, 1)", raw: isRaw)
    #expect(try await DiffInspection.verify([exchange.inbound]).files.map(\.isGood) == [true])
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await DiffInspection.verify([exchange.inbound])
    }
    await #expect(throws: CancellationError.self) { try await task.value }
  }

  @Test("A task that is cancelled before it begins does nothing")
  func cancelledBefore() async throws {
    let exchange = try Exchange("CREATE TABLE notes(id INTEGER PRIMARY KEY, n INTEGER)")
    try exchange.send("INSERT INTO notes VALUES (1, 1)")
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await exchange.database.processInboundChanges([exchange.inbound])
    }
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(try exchange.rows("SELECT count(*) FROM notes") == ["0"])
  }
}
