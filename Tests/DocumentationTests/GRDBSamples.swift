#if GRDB
  import Buckia
  import BuckiaGRDB
  import GRDB
  import TestSupport
  import Testing

  /// Applies files in a transaction of the app.
  private func applyInTransaction(queue: DatabaseQueue, inbound: String) throws -> Set<String> {
    let changed = try queue.write { db in
      try db.execute(sql: "UPDATE notes SET draft = NULL")
      return try db.buckia.processInboundChanges([inbound]).changedTables
    }
    return changed
  }

  /// Applies files in transactions of their own.
  private func apply(queue: DatabaseQueue, inbound: String) throws {
    let report = try queue.withBuckia { buckia in
      try buckia.processInboundChanges([inbound], options: ApplyOptions(conflicts: .latest))
    }
    for diff in report.rejected { print(diff.path, diff.reason ?? "") }
  }

  /// Records a change, and undoes it.
  private func renameAndUndo(queue: DatabaseQueue) throws {
    try queue.write { db in
      try db.buckia.record("Rename album") { db in
        try db.execute(sql: "UPDATE notes SET title = 'Summer' WHERE id = 1")
      }
    }
    try queue.write { db in _ = try db.buckia.undoRecorded() }
  }

  /// What stands for a list of the app's.
  private actor TitleList {
    private(set) var shown: [[String]] = []

    func show(_ titles: [String]) { shown.append(titles) }
  }

  /// Shows titles, and shows them again when they have changed.
  private func show(queue: DatabaseQueue, in list: TitleList) async throws {
    let observation = ValueObservation.tracking { db in
      try String.fetchAll(db, sql: "SELECT title FROM notes ORDER BY id")
    }
    for try await titles in observation.values(in: queue) {
      await list.show(titles)
    }
  }

  /// Lists what has come.
  private func list(queue: DatabaseQueue) throws {
    try queue.read { db in
      for diff in try LoggedDiff.filter({ $0.conflicts > 0 }).fetchAll(db) { print(diff.file, diff.recordedAt) }
      for conflict in try LoggedConflict.all().open().inTable("notes").fetchAll(db) { print(conflict.kind) }
      for refused in try LoggedRefusal.fetchAll(db) { print(refused.file, refused.reason) }
    }
  }

  /// Resolves conflicts.
  private func resolve(queue: DatabaseQueue) throws {
    try queue.write { db in
      let open = try LoggedConflict.all().open().inTable("notes").fetchAll(db)
      try db.buckia.resolve(open.map(\.id), taking: .incoming)
    }
  }

  @Suite("Samples about GRDB")
  struct GRDBSamples {
    private let files: SampleFiles
    private let queue: DatabaseQueue

    init() throws {
      files = try SampleFiles(ours: "UPDATE notes SET title = 'Raft' WHERE id = 1")
      queue = try DatabaseQueue(path: files.mine)
    }

    @Test("Files are applied in the app's transaction, and stay in their folder")
    func transaction() throws {
      try files.deliver()
      #expect(try applyInTransaction(queue: queue, inbound: files.inbound) == ["notes", "tags"])
      #expect(try files.titles() == ["Raft", "Radio", "Harbour"])
      #expect(try files.folder.names(in: "inbound").count == 1)
    }

    @Test("Files are applied in transactions of their own, and go")
    func ownTransactions() throws {
      try files.deliver()
      #expect(try Printed.lines { try apply(queue: queue, inbound: files.inbound) }.isEmpty)
      #expect(try files.folder.names(in: "inbound").isEmpty)
      #expect(try files.titles().count == 3)
    }

    @Test("A change is recorded and undone")
    func recordedChange() throws {
      try renameAndUndo(queue: queue)
      #expect(try files.titles() == ["Raft", "Radio"])
      #expect(try queue.read { try $0.buckia.log() }.map(\.file).first == "change: Rename album")
    }

    @Test("What is shown is fetched again", .timeLimit(.minutes(1)))
    func observed() async throws {
      try files.deliver()
      let list = TitleList()
      let showing = Task { [queue] in try await show(queue: queue, in: list) }
      while await list.shown.isEmpty { try await Task.sleep(for: .milliseconds(5)) }
      try await queue.write { [inbound = files.inbound] db in _ = try db.buckia.processInboundChanges([inbound]) }
      while await list.shown.count == 1 { try await Task.sleep(for: .milliseconds(5)) }
      showing.cancel()
      #expect(await list.shown == [["Raft", "Radio"], ["Raft", "Radio", "Harbour"]])
    }

    @Test("What has come is listed, and conflicts are resolved")
    func recorded() throws {
      try files.deliver()
      _ = try applyInTransaction(queue: queue, inbound: files.inbound)
      let printed = try Printed.lines { try list(queue: queue) }
      #expect(printed.count == 2 && printed.last == "data")
      try resolve(queue: queue)
      #expect(try files.titles() == ["Ship", "Radio", "Harbour"])
    }
  }
#endif
