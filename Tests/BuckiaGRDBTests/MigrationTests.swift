#if GRDB
  import Buckia
  import BuckiaGRDB
  import GRDB
  import TestSupport
  import Testing

  /// Only the app's migrator changes the schema; changes from newer versions of the app wait for it.
  @Suite("Migrations")
  struct MigrationTests {
    /// The app's migrations up to a version.
    private static func migrator(_ version: Int) -> DatabaseMigrator {
      var migrator = DatabaseMigrator()
      migrator.registerMigration("ledger") { db in try db.buckia.initialize() }
      migrator.registerMigration("v1") { db in
        try db.create(table: "notes") { table in
          table.primaryKey("id", .text)
          table.column("title", .text).notNull()
        }
      }
      guard version > 1 else { return migrator }
      migrator.registerMigration("v2") { db in
        try db.alter(table: "notes") { $0.add(column: "colour", .text) }
        try db.create(table: "places") { table in
          table.primaryKey("id", .text)
          table.column("name", .text)
        }
      }
      return migrator
    }

    private let folder: TemporaryFolder
    private let inbound: String
    private let home: BuckiaHome

    init() throws {
      folder = try TemporaryFolder()
      inbound = folder.file("inbound")
      home = BuckiaHome(path: folder.file("home"))
    }

    /// A copy of the app, with a version.
    private func app(_ name: String, _ version: Int) throws -> DatabaseQueue {
      let queue = try DatabaseQueue(path: folder.file("\(name).sqlite"))
      try Self.migrator(version).migrate(queue)
      return queue
    }

    /// A newer version of the app makes changes, and sends everything.
    private func deliver() throws {
      let newer = try app("newer", 2)
      try newer.write { db in
        try db.execute(
          sql: """
            INSERT INTO notes VALUES ('a', 'Boat', 'red'), ('b', 'Radio', 'blue');
            INSERT INTO places VALUES ('p', 'Harbour');
            """)
      }
      try newer.withBuckia(home: home) {
        _ = try $0.createDatabaseDiff(since: nil, output: .folder(inbound))
      }
    }

    @Test(
      "Changes from a newer version are held until the migration has run, and then applied", arguments: [true, false])
    func hold(settles: Bool) throws {
      try deliver()
      let options = ApplyOptions(schema: .hold)
      let queue = try app("older", 1)
      let report = try queue.withBuckia { try $0.processInboundChanges([inbound], options: options) }
      #expect(report.diffs.map(\.state) == [.held])
      try queue.read { (db: Database) throws in
        #expect(try db.columns(in: "notes").map(\.name) == ["id", "title"])
        #expect(try String.fetchAll(db, sql: "SELECT title FROM notes ORDER BY id") == ["Boat", "Radio"])
        #expect(try LoggedDiff.fetchAll(db).map(\.state) == [.held])
      }
      // The next version of the app. Only its own migrations are recorded as done.
      try Self.migrator(2).migrate(queue)
      let counter = RegionCounter("notes", "places", "buckia_ledger", in: queue)
      let later = try queue.withBuckia { buckia in
        settles
          ? try buckia.applyHeldChanges() : try buckia.processInboundChanges([inbound], options: options)
      }
      #expect(later.diffs.first?.state == .applied)
      #expect(counter.take() == ["notes": 1, "places": 1, "buckia_ledger": 1])
      try queue.read { (db: Database) throws in
        #expect(try String.fetchAll(db, sql: "SELECT colour FROM notes ORDER BY id") == ["red", "blue"])
        #expect(try String.fetchAll(db, sql: "SELECT name FROM places") == ["Harbour"])
        #expect(try LoggedDiff.fetchAll(db).map(\.state) == [.applied])
      }
    }

    @Test("Held changes can be applied by the migration that creates their table")
    func insideMigration() throws {
      try deliver()
      let queue = try app("older", 1)
      try queue.withBuckia { _ = try $0.processInboundChanges([inbound], options: ApplyOptions(schema: .hold)) }
      var migrator = Self.migrator(2)
      migrator.registerMigration("held") { db in try db.buckia.applyHeldChanges() }
      try migrator.migrate(queue)
      #expect(try queue.read { try String.fetchAll($0, sql: "SELECT name FROM places") } == ["Harbour"])
    }

    @Test("The record of migrations is not sent")
    func migrationsStay() throws {
      let newer = try app("newer", 2)
      try newer.withBuckia(home: home) { buckia in
        let report = try buckia.createDatabaseDiff(since: nil, output: .folder(inbound))
        #expect(report.tables.map(\.name).sorted() == ["notes", "places"])
      }
      let older = try app("older", 1)
      try older.withBuckia { _ = try $0.processInboundChanges([inbound], options: ApplyOptions(schema: .hold)) }
      #expect(try older.read { try Self.migrator(2).appliedIdentifiers($0) } == ["ledger", "v1"])
    }

    @Test("In the mode hold, a file from a newer version adds no column, and observers are notified once")
    func observedMigration() throws {
      let queue = try app("older", 1)
      let counter = RegionCounter("notes", in: queue)
      try deliver()
      try queue.write { db in
        _ = try db.buckia.processInboundChanges([inbound], options: ApplyOptions(schema: .hold))
        #expect(try db.columns(in: "notes").count == 2)
      }
      #expect(counter.take() == ["notes": 1])
    }
  }
#endif
