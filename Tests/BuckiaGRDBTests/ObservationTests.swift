#if GRDB
  import Buckia
  import BuckiaGRDB
  import GRDB
  import TestSupport
  import Testing

  @Suite("Observations of tables that Buckia writes to")
  struct ObservationTests {
    /// Applies the files in the folder, inside or outside a transaction of the app.
    @discardableResult
    private func apply(
      _ mailbox: Mailbox, inTransaction: Bool, _ options: ApplyOptions = ApplyOptions()
    ) throws -> ApplyReport {
      if inTransaction {
        return try mailbox.writer.write { try $0.buckia.processInboundChanges([mailbox.inbound], options: options) }
      }
      return try mailbox.writer.withBuckia { try $0.processInboundChanges([mailbox.inbound], options: options) }
    }

    /// Ways of writing, some of which SQLite's update hook does not report.
    struct Edit: CustomTestStringConvertible, Sendable {
      let testDescription: String
      let sql: String
      let tables: Set<String>
    }

    private static let edits = [
      Edit(testDescription: "an insert", sql: "INSERT INTO notes VALUES (3, 'Harbour')", tables: ["notes"]),
      Edit(testDescription: "an update", sql: "UPDATE notes SET title = 'Ship' WHERE id = 1", tables: ["notes"]),
      Edit(testDescription: "all rows gone", sql: "DELETE FROM notes", tables: ["notes"]),
      Edit(testDescription: "a table without rowids", sql: "UPDATE tags SET colour = 'green'", tables: ["tags"]),
      Edit(
        testDescription: "two tables", sql: "DELETE FROM tags; INSERT INTO notes VALUES (3, 'Harbour')",
        tables: ["notes", "tags"]),
      Edit(
        testDescription: "many rows",
        sql: """
          WITH s(n) AS (SELECT 10 UNION ALL SELECT n + 1 FROM s WHERE n < 3000) INSERT INTO notes SELECT n, 'x' FROM s
          """,
        tables: ["notes"]),
    ]

    @Test(
      "Observations of changed tables fire once, and no others",
      arguments: Opening.allCases.flatMap { opening in
        edits.map { (opening, $0) }
      }, [true, false])
    func changedTables(_ case: (opening: Opening, edit: Edit), inTransaction: Bool) throws {
      let mailbox = try Mailbox(`case`.opening)
      try mailbox.makeLedger()
      let counter = RegionCounter("notes", "tags", "drafts", "buckia_ledger", "buckia_conflict", in: mailbox.writer)
      try mailbox.deliver(`case`.edit.sql)
      try apply(mailbox, inTransaction: inTransaction)
      var expected = Dictionary(uniqueKeysWithValues: `case`.edit.tables.map { ($0, 1) })
      expected["buckia_ledger"] = 1
      #expect(counter.take() == expected)
    }

    @Test("No observation fires without a change: the same file again, a dry run, a rolled-back transaction")
    func nothingChanged() throws {
      struct Stop: Error {}
      let mailbox = try Mailbox()
      try mailbox.makeLedger()
      let counter = RegionCounter("notes", "buckia_ledger", "buckia_conflict", in: mailbox.writer)
      try mailbox.deliver("INSERT INTO notes VALUES (3, 'Harbour')")
      try apply(mailbox, inTransaction: false, ApplyOptions(isDryRun: true))
      #expect(counter.take() == [:])
      do {
        try mailbox.writer.write { db in
          try db.buckia.processInboundChanges([mailbox.inbound])
          throw Stop()
        }
      } catch is Stop {}
      #expect(counter.take() == [:])
      try apply(mailbox, inTransaction: true)
      #expect(counter.take() == ["notes": 1, "buckia_ledger": 1])
      try apply(mailbox, inTransaction: false)
      #expect(counter.take() == [:])
    }

    @Test("A refused file only fires observations of the log", arguments: [true, false])
    func refused(inTransaction: Bool) throws {
      let mailbox = try Mailbox()
      try mailbox.makeLedger()
      try mailbox.writer.write { db in try db.execute(sql: "UPDATE notes SET title = 'Raft' WHERE id = 1") }
      try mailbox.deliver("UPDATE notes SET title = 'Ship' WHERE id = 1")
      let counter = RegionCounter("notes", "buckia_refused", in: mailbox.writer)
      let report = try apply(mailbox, inTransaction: inTransaction, ApplyOptions(conflicts: .abort))
      #expect(report.rejected.count == 1)
      #expect(counter.take() == ["buckia_refused": 1])
    }

    @Test("Observations of tables that triggers write to fire, if triggers do", arguments: [true, false])
    func triggers(firesTriggers: Bool) throws {
      let mailbox = try Mailbox(
        receiver: """
          CREATE TRIGGER note_added AFTER INSERT ON notes BEGIN INSERT INTO drafts(body) VALUES (new.title); END;
          """)
      try mailbox.makeLedger()
      let counter = RegionCounter("notes", "tags", "drafts", in: mailbox.writer)
      try mailbox.deliver("INSERT INTO notes VALUES (3, 'Harbour')")
      try apply(mailbox, inTransaction: true, ApplyOptions(triggers: firesTriggers))
      #expect(counter.take() == (firesTriggers ? ["notes": 1, "drafts": 1] : ["notes": 1]))
      #expect(try mailbox.texts("SELECT body FROM drafts").contains("Harbour") == firesTriggers)
    }

    @Test("Undoing and resolving fire observations of the changed tables", arguments: [true, false])
    func undoAndResolve(inTransaction: Bool) throws {
      let mailbox = try Mailbox()
      try mailbox.writer.write { db in
        try db.execute(sql: "UPDATE notes SET title = 'Raft' WHERE id = 1")
        try db.buckia.initialize()
      }
      try mailbox.deliver("UPDATE notes SET title = 'Ship' WHERE id = 1; UPDATE tags SET colour = 'green'")
      let counter = RegionCounter("notes", "tags", "drafts", "buckia_conflict", "buckia_ledger", in: mailbox.writer)
      let report = try apply(mailbox, inTransaction: inTransaction)
      #expect(counter.take() == ["tags": 1, "buckia_conflict": 1, "buckia_ledger": 1])
      func run(_ body: (ReplicatedDatabase) throws -> Void) throws {
        if inTransaction {
          try mailbox.writer.write { try body($0.buckia) }
        } else {
          try mailbox.writer.withBuckia(body)
        }
      }
      try run { try $0.resolve(matching: ConflictFilter(), taking: .incoming) }
      #expect(counter.take() == ["notes": 1, "buckia_conflict": 1])
      let id = try #require(report.applied.first?.id)
      try run { try $0.undo([.diff("\(id)")]) }
      #expect(try mailbox.texts("SELECT colour FROM tags") == ["blue"])
      let fired = counter.take()
      #expect(fired["tags"] == 1 && fired["buckia_ledger"] == 1 && fired["drafts"] == nil)
    }

    @Test("A tracked value is fetched again", .timeLimit(.minutes(1)), arguments: Opening.allCases)
    func values(opening: Opening) async throws {
      let mailbox = try Mailbox(opening)
      let observation = ValueObservation.tracking { db in
        try String.fetchAll(db, sql: "SELECT title FROM notes ORDER BY id")
      }
      var seen: [[String]] = []
      for try await titles in observation.values(in: mailbox.writer) {
        seen.append(titles)
        if seen.count == 1 {
          try mailbox.deliver("INSERT INTO notes VALUES (3, 'Harbour')")
          try await mailbox.writer.write { db in _ = try db.buckia.processInboundChanges([mailbox.inbound]) }
        } else if titles.count == 3 {
          break
        }
      }
      #expect(seen.first == ["Boat", "Radio"])
      #expect(seen.last == ["Boat", "Radio", "Harbour"])
    }

    @Test(
      "The log can be tracked before there is a ledger", .timeLimit(.minutes(1)), arguments: Opening.allCases)
    func log(opening: Opening) async throws {
      let mailbox = try Mailbox(opening)
      let observation = ValueObservation.tracking { db in try db.buckia.log().map(\.state) }
      for try await states in observation.values(in: mailbox.writer) {
        if states == [.applied] { break }
        #expect(states.isEmpty)
        // A pool may return the first value twice.
        guard try await !mailbox.writer.read({ try $0.tableExists("buckia_ledger") }) else { continue }
        try mailbox.deliver("INSERT INTO notes VALUES (3, 'Harbour')")
        try await mailbox.writer.withBuckia { try $0.processInboundChanges([mailbox.inbound]) }
      }
      #expect(try await mailbox.writer.read { try $0.buckia.status().ledger?.applied } == 1)
    }

    private struct Refused: Error {}
    private struct NotCommitted: Error {}

    /// Refuses each commit.
    private final class RefusingObserver: TransactionObserver {
      func observes(eventsOfKind eventKind: DatabaseEventKind) -> Bool { true }
      func databaseDidChange(with event: DatabaseEvent) {}
      func databaseWillCommit() throws { throw NotCommitted() }
      func databaseDidCommit(_ db: Database) {}
      func databaseDidRollback(_ db: Database) {}
    }

    @Test("The error of a call is thrown, even if observers cannot be notified of its earlier changes")
    func failure() throws {
      let mailbox = try Mailbox()
      try mailbox.makeLedger()
      mailbox.writer.add(transactionObserver: RefusingObserver(), extent: .databaseLifetime)
      #expect(throws: Refused.self) {
        try mailbox.writer.withBuckia { try $0.withDatabase(changing: ["notes"]) { _ -> Void in throw Refused() } }
      }
      #expect(throws: NotCommitted.self) {
        try mailbox.writer.withBuckia { try $0.withDatabase(changing: ["notes"]) { _ in } }
      }
    }
  }
#endif
