#if GRDB
  import Buckia
  import BuckiaGRDB
  import Dispatch
  import Foundation
  import GRDB
  import TestSupport
  import Testing

  @Suite("Applying files through a GRDB connection")
  struct ReceivingTests {
    private struct Stop: Error {}

    @Test("Inside write, files are part of the app's transaction", arguments: Opening.allCases, [true, false])
    func insideWrite(opening: Opening, commits: Bool) throws {
      let mailbox = try Mailbox(opening)
      try mailbox.deliver("INSERT INTO notes VALUES (3, 'Harbour')")
      do {
        try mailbox.writer.write { db in
          try db.execute(sql: "UPDATE drafts SET body = 'done'")
          let report = try db.buckia.processInboundChanges([mailbox.inbound])
          #expect(report.changedTables == ["notes"])
          #expect(try String.fetchAll(db, sql: "SELECT title FROM notes ORDER BY id") == ["Boat", "Radio", "Harbour"])
          if !commits { throw Stop() }
        }
      } catch is Stop {}
      #expect(try mailbox.texts("SELECT title FROM notes WHERE id = 3") == (commits ? ["Harbour"] : []))
      #expect(try mailbox.texts("SELECT body FROM drafts") == [commits ? "done" : "unfinished"])
      #expect(try mailbox.files().count == 1)
      let later = try mailbox.writer.withBuckia { try $0.processInboundChanges([mailbox.inbound]) }
      #expect(later.diffs.map(\.state) == [commits ? .alreadyApplied : .applied])
      #expect(try mailbox.files().isEmpty)
      #expect(try mailbox.texts("SELECT title FROM notes WHERE id = 3") == ["Harbour"])
    }

    @Test("Recorded changes are part of the app's transaction", arguments: Opening.allCases, [true, false])
    func recorded(opening: Opening, commits: Bool) throws {
      let mailbox = try Mailbox(opening)
      do {
        try mailbox.writer.write { db in
          let count = try db.buckia.record("Rename") { db in
            try db.execute(sql: "UPDATE notes SET title = title || '!'")
            return db.changesCount
          }
          #expect(count == 2)
          if !commits { throw Stop() }
        }
      } catch is Stop {}
      #expect(
        try mailbox.texts("SELECT title FROM notes ORDER BY id")
          == (commits ? ["Boat!", "Radio!"] : ["Boat", "Radio"]))
      #expect(try mailbox.writer.write { try $0.buckia.undoRecorded() }?.undone.count == (commits ? 1 : nil))
      #expect(try mailbox.texts("SELECT title FROM notes ORDER BY id") == ["Boat", "Radio"])
      #expect(try mailbox.writer.write { try $0.buckia.redoRecorded() }?.undone.count == (commits ? 1 : nil))
    }

    @Test("Outside a transaction, files are applied in a separate one and removed", arguments: Opening.allCases)
    func outside(opening: Opening) throws {
      let mailbox = try Mailbox(opening)
      try mailbox.deliver("INSERT INTO notes VALUES (3, 'Harbour')")
      let report = try mailbox.writer.withBuckia { try $0.processInboundChanges([mailbox.inbound]) }
      #expect(report.applied.map(\.isRemoved) == [true])
      #expect(try mailbox.files().isEmpty)
      #expect(try mailbox.texts("SELECT title FROM notes WHERE id = 3") == ["Harbour"])
    }

    @Test("The calls can be awaited", arguments: Opening.allCases)
    func awaited(opening: Opening) async throws {
      let mailbox = try Mailbox(opening)
      try mailbox.deliver("INSERT INTO notes VALUES (3, 'Harbour')")
      let report = try await mailbox.writer.withBuckia { try $0.processInboundChanges([mailbox.inbound]) }
      #expect(report.applied.count == 1)
      try mailbox.deliver("INSERT INTO notes VALUES (4, 'Pier')")
      let tables = try await mailbox.writer.write { db in
        try db.buckia.processInboundChanges([mailbox.inbound]).changedTables
      }
      #expect(tables == ["notes"])
    }

    @Test("A cancelled call stops and changes nothing", .timeLimit(.minutes(1)), arguments: Opening.allCases)
    func cancelled(opening: Opening) async throws {
      let mailbox = try Mailbox(opening)
      try mailbox.makeLedger()
      try mailbox.deliver("INSERT INTO notes VALUES (3, 'Harbour')")
      let counter = RegionCounter("notes", "buckia_ledger", in: mailbox.writer)
      let (begun, hasBegun) = AsyncStream.makeStream(of: Void.self)
      let goesOn = DispatchSemaphore(value: 0)
      let call = Task { [writer = mailbox.writer, inbound = mailbox.inbound] in
        try await writer.withBuckia { buckia in
          try buckia.processInboundChanges(
            [inbound],
            progress: { _ in
              hasBegun.finish()
              goesOn.wait()
              goesOn.signal()
            })
        }
      }
      for await _ in begun {}
      call.cancel()
      goesOn.signal()
      await #expect(throws: CancellationError.self) { _ = try await call.value }
      #expect(try mailbox.files().count == 1)
      #expect(counter.take() == [:])
      #expect(try mailbox.texts("SELECT title FROM notes WHERE id = 3").isEmpty)
    }

    @Test("GRDB's enforcement of foreign keys is restored afterwards")
    func foreignKeys() throws {
      let mailbox = try Mailbox()
      try mailbox.deliver("INSERT INTO notes VALUES (3, 'Harbour')")
      _ = try mailbox.writer.write { db in try db.buckia.processInboundChanges([mailbox.inbound]) }
      #expect(try mailbox.writer.read { try Bool.fetchOne($0, sql: "PRAGMA foreign_keys") } == true)
    }

    @Test("GRDB sees columns and tables that a file has added", arguments: Opening.allCases)
    func addedColumns(opening: Opening) throws {
      let mailbox = try Mailbox(opening)
      #expect(try mailbox.writer.read { try $0.columns(in: "notes").map(\.name) } == ["id", "title"])
      try mailbox.writer.write { db in
        #expect(try Row.fetchOne(db, sql: "SELECT * FROM notes")?.count == 2)
        #expect(try db.columns(in: "notes").count == 2)
        #expect(try !db.tableExists("places"))
        try mailbox.deliver(
          """
          ALTER TABLE notes ADD COLUMN edited INTEGER; UPDATE notes SET edited = 5;
          CREATE TABLE places(id INTEGER PRIMARY KEY, name TEXT);
          """)
        try db.buckia.processInboundChanges([mailbox.inbound])
        #expect(try db.columns(in: "notes").map(\.name) == ["id", "title", "edited"])
        #expect(try db.tableExists("places"))
        #expect(try Row.fetchOne(db, sql: "SELECT * FROM notes")?["edited"] == 5)
      }
      #expect(try mailbox.writer.read { try $0.columns(in: "notes").count } == 3)
    }

    @Test("A handle of another copy of SQLite is refused, and named", .enabled(if: LoadedSQLite.obstacle == nil))
    func otherCopy() throws {
      let mailbox = try Mailbox()
      let library = try LoadedSQLite.second.get()
      let copy = try SQLiteCopy(resolving: { library.address(of: $0) })
      let error = #expect(throws: BuckiaError.self) {
        try mailbox.writer.write { db in try db.buckia(of: copy).processInboundChanges([mailbox.inbound]) }
      }
      #expect(error?.message.contains("copy of SQLite") == true, "\(error?.message ?? "")")
    }

    @Test("Triggers can tell that Buckia is writing")
    func applyingFunction() throws {
      var configuration = Configuration()
      configuration.prepareDatabase { db in try db.buckia.addApplyingFunction() }
      let folder = try TemporaryFolder()
      let queue = try DatabaseQueue(path: folder.file("notes.sqlite"), configuration: configuration)
      #expect(try queue.read { try Int.fetchOne($0, sql: "SELECT buckia_applying()") } == 0)
    }

    @Test("A suspended database is not written to")
    func suspended() throws {
      var configuration = Configuration()
      configuration.observesSuspensionNotifications = true
      // The notification reaches all databases of the process that listen to it, so they are tested in turn.
      for opening in Opening.allCases {
        let mailbox = try Mailbox(opening)
        let writer: any DatabaseWriter =
          opening == .queue
          ? try DatabaseQueue(path: mailbox.path, configuration: configuration)
          : try DatabasePool(path: mailbox.path, configuration: configuration)
        try mailbox.deliver("INSERT INTO notes VALUES (3, 'Harbour')")
        NotificationCenter.default.post(name: GRDB.Database.suspendNotification, object: nil)
        let error = #expect(throws: DatabaseError.self) {
          try writer.withBuckia { try $0.processInboundChanges([mailbox.inbound]) }
        }
        #expect(error?.resultCode == .SQLITE_ABORT || error?.resultCode == .SQLITE_INTERRUPT)
        NotificationCenter.default.post(name: GRDB.Database.resumeNotification, object: nil)
        #expect(try mailbox.texts("SELECT title FROM notes WHERE id = 3") == [])
        #expect(try writer.withBuckia { try $0.processInboundChanges([mailbox.inbound]) }.applied.count == 1)
      }
      try suspendedMeanwhile(configuration)
      try suspendedWhileEmpty(configuration)
    }

    /// A WAL-mode database without any table.
    private func suspendedWhileEmpty(_ configuration: Configuration) throws {
      let folder = try TemporaryFolder()
      let writer = try DatabasePool(path: folder.file("new.sqlite"), configuration: configuration)
      NotificationCenter.default.post(name: GRDB.Database.suspendNotification, object: nil)
      let error = #expect(throws: DatabaseError.self) { try writer.withBuckia { try $0.initialize() } }
      #expect(error?.resultCode == .SQLITE_ABORT || error?.resultCode == .SQLITE_INTERRUPT)
      NotificationCenter.default.post(name: GRDB.Database.resumeNotification, object: nil)
      #expect(try writer.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM sqlite_master") } == 0)
      try writer.withBuckia { _ = try $0.initialize() }
    }

    /// A running call stops, and writes nothing more.
    private func suspendedMeanwhile(_ configuration: Configuration) throws {
      let mailbox = try Mailbox(.pool)
      let writer = try DatabasePool(path: mailbox.path, configuration: configuration)
      try mailbox.deliver(
        "WITH RECURSIVE n (i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 9000) INSERT INTO notes SELECT i, 'x' FROM n"
      )
      var isSuspended = false
      let error = #expect(throws: DatabaseError.self) {
        try writer.withBuckia { buckia in
          try buckia.processInboundChanges(
            [mailbox.inbound],
            progress: { progress in
              guard progress.rows > 0, !isSuspended else { return }
              isSuspended = true
              NotificationCenter.default.post(name: GRDB.Database.suspendNotification, object: nil)
            })
        }
      }
      #expect(isSuspended)
      #expect(error?.resultCode == .SQLITE_INTERRUPT || error?.resultCode == .SQLITE_ABORT)
      NotificationCenter.default.post(name: GRDB.Database.resumeNotification, object: nil)
      #expect(try mailbox.texts("SELECT title FROM notes WHERE id >= 100") == [])
      let again = try writer.withBuckia { try $0.processInboundChanges([mailbox.inbound]) }.applied
      #expect(again.map(\.inserted) == [8_901])
      #expect(try mailbox.texts("SELECT count(*) FROM buckia_ledger") == ["1"])
    }

    @Test("The calls of the database manager have counterparts, which observations notice")
    func counterparts() throws {
      let mailbox = try Mailbox(.queue)
      let snapshot = mailbox.folder.file("snapshot.sqlite")
      try mailbox.writer.withBuckia { buckia in
        #expect(try buckia.keepClocks(of: ["notes"]) == ["notes"])
        #expect(try buckia.examine().replicates.contains { $0.name == "notes" })
        #expect(try buckia.snapshot(to: snapshot).path == snapshot)
        let report = try buckia.merge(snapshot, since: snapshot)
        #expect(report.isClean && report.changedTables.isEmpty)
      }
    }
  }
#endif
