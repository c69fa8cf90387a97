#if GRDB
  import Buckia
  import BuckiaGRDB
  import GRDB
  import TestSupport
  import Testing

  @Suite("Sending through a GRDB connection")
  struct SendingTests {
    private let mailbox: Mailbox
    private let outbox: String
    private let home: BuckiaHome

    init() throws {
      mailbox = try Mailbox()
      outbox = mailbox.folder.file("outbox")
      home = BuckiaHome(path: mailbox.folder.file("home of the receiver"))
    }

    @Test("A diff contains the changes of the open transaction")
    func diff() throws {
      let before = try mailbox.folder.copy("receiver.sqlite", to: "before.sqlite")
      let report = try mailbox.writer.write { db in
        try db.execute(sql: "INSERT INTO notes VALUES (3, 'Harbour')")
        return try db.buckia(home: home).createDatabaseDiff(since: before, output: .folder(outbox))
      }
      #expect(report.tables.map(\.name) == ["notes"] && report.tables.map(\.inserted) == [1])
      #expect(try mailbox.folder.names(in: "outbox").count == 1)
    }

    @Test("A share begins and commits its own transaction, and is refused in one of the app's")
    func share() throws {
      var options = ShareOptions()
      options.isUnencrypted = true
      let scope = ShareScope(name: "notes") { SharedTable("notes") }
      let ben = [ShareRecipient("Ben")]
      let error = #expect(throws: BuckiaError.self) {
        try mailbox.writer.write { db in
          _ = try db.buckia(home: home).share(scope, to: ben, output: .folder(outbox), options: options)
        }
      }
      #expect(error?.code == .misuse)
      let counter = RegionCounter("notes", "buckia_share", in: mailbox.writer)
      let report = try mailbox.writer.withBuckia(home: home) {
        try $0.share(scope, to: ben, output: .folder(outbox), options: options)
      }
      #expect(report.tables.map(\.inserted) == [2])
      #expect(counter.take()["notes"] == nil)
      let shared = try mailbox.texts("SELECT DISTINCT table_name FROM buckia_shared")
      #expect(shared == ["notes"])
    }

    @Test("Calls without a counterpart can be made, and observations notified of the tables that they change")
    func anyCall() throws {
      try mailbox.makeLedger()
      let counter = RegionCounter("notes", "tags", "buckia_ledger", in: mailbox.writer)
      let replicating = try mailbox.writer.write { db in
        try db.buckia.withDatabase(changing: ["notes"]) { try $0.examine().replicates.map(\.name) }
      }
      #expect(replicating.sorted() == ["drafts", "notes", "tags"])
      #expect(counter.take() == ["notes": 1, "buckia_ledger": 1])
    }

    @Test("Excluded tables are not compared, and nothing else is left out")
    func excludedTables() throws {
      var options = DiffOptions()
      options.excludedTables = ["tags", "nowhere"]
      let report = try DatabaseManager(mailbox.path, home: home).createDatabaseDiff(
        since: nil, output: .folder(outbox), options: options)
      #expect(report.tables.map(\.name).sorted() == ["drafts", "notes"])
    }
  }
#endif
