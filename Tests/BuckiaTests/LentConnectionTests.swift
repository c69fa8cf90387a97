import Buckia
import Foundation
import TestSupport
import Testing

@testable import SQLiteConnections

/// Each call leaves the app's connection as it was before.
@Suite struct LentConnectionTests {
  private static let schema = """
    CREATE TABLE album(id TEXT PRIMARY KEY, code TEXT UNIQUE, title TEXT);
    CREATE TABLE photo(
      id TEXT PRIMARY KEY, album TEXT REFERENCES album(id) ON DELETE CASCADE, code TEXT REFERENCES album(code),
      title TEXT);
    CREATE TABLE entry(day TEXT, text TEXT);
    CREATE TABLE history(number INTEGER PRIMARY KEY, photo TEXT);
    CREATE TRIGGER photo_history AFTER INSERT ON photo BEGIN INSERT INTO history(photo) VALUES (NEW.id); END;
    """

  /// The incoming changes, and how they are applied.
  private enum Kind: Int, CaseIterable {
    case parentDeleted, parentRekeyed, keylessRows, triggersOn, latestWithDeletedParent, heldPart, failing, encrypted
  }

  private struct Stop: Error {}

  private let folder: TemporaryFolder
  private let me: BuckiaHome
  private let ben: BuckiaHome
  private let app: AppConnection

  init() throws {
    folder = try TemporaryFolder()
    (me, ben) = (BuckiaHome(path: folder.file("home of me")), BuckiaHome(path: folder.file("home of ben")))
    for name in ["mine", "base", "ben"] { try TestDatabases.run(Self.schema, on: folder.file(name)) }
    for (home, name) in [(me, "me"), (ben, "ben")] { try home.makeIdentity(named: name) }
    try folder.makeFolder("inbound")
    app = try AppConnection(to: folder.file("mine"), home: me)
    try app.lend { _ = try $0.initialize() }
    try app.lend { try $0.keepClocks() }
  }

  /// Makes edits in a copy of the common base, and sends them.
  private func send(_ edits: String, keyless: KeylessIdentity = .rowid, keeping: Bool = false) throws {
    let theirs = folder.file("theirs")
    if folder.has("theirs") { try FileManager.default.removeItem(atPath: theirs) }
    _ = try folder.copy("base", to: "theirs")
    try TestDatabases.run(edits, on: theirs)
    try DatabaseManager(theirs, home: BuckiaHome(path: folder.file("home of others"))).createDatabaseDiff(
      since: folder.file("base"), output: .folder(folder.file("inbound")), options: DiffOptions(keyless: keyless))
    if keeping { try TestDatabases.run(edits, on: folder.file("base")) }
  }

  private var scope: ShareScope {
    ShareScope(name: "albums") {
      SharedTable("album").where("title <> 'private'")
      SharedTable("photo").children(of: "album")
    }
  }

  private func share(_ database: DatabaseManager) throws {
    try database.share(
      scope, to: [ShareRecipient(ben.identity().card)], output: .folder(folder.file("outbox")), signedBy: me.identity())
  }

  /// Ben shares his albums with me.
  private func shareOfBen() throws {
    try DatabaseManager(folder.file("ben"), home: ben).share(
      scope, to: [ShareRecipient(me.identity().card)], output: .folder(folder.file("inbound")),
      signedBy: ben.identity())
  }

  @Test func `hundreds of calls of every kind, even failing ones, leave a connection as it was`() throws {
    try TestDatabases.run(
      """
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500)
      INSERT INTO entry SELECT i, 'entry ' || i FROM n
      """, on: folder.file("base"))
    try app.connection.execute(
      "ATTACH '\(folder.file("base"))' AS base; INSERT INTO entry SELECT * FROM base.entry; DETACH base")
    let before = try app.state()
    var done: [String: Int] = [:]
    var refused = 0
    func call(_ name: String, _ body: (DatabaseManager) throws -> Void) throws {
      do {
        try app.lend(body)
        done[name, default: 0] += 1
      } catch { done["\(name) failed", default: 0] += 1 }
      let after = try app.state()
      try #require(after == before, "\(name): \(after.filter { !before.contains($0) })")
    }
    for round in 0..<80 {
      let kind = Kind.allCases[round % Kind.allCases.count]
      let rows = """
        INSERT INTO album VALUES ('a\(round)', 'c\(round)', 'Summer'), ('b\(round)', 'd\(round)', 'Winter');
        INSERT INTO photo VALUES ('p\(round)', 'a\(round)', 'c\(round)', 'Boat'),
          ('q\(round)', 'b\(round)', 'd\(round)', 'Snow');
        """
      try app.connection.execute(rows)
      try TestDatabases.run(rows, on: folder.file("base"))
      try app.connection.execute(
        """
        INSERT INTO photo VALUES ('l\(round)', 'a\(round)', 'c\(round)', 'Mine');
        UPDATE photo SET title = 'My boat' WHERE id = 'p\(round)'
        """
      )
      var options = ApplyOptions()
      options.snapshot = kind == .latestWithDeletedParent ? folder.file("snapshot") : nil
      let deletion = "DELETE FROM photo WHERE id = 'p\(round)'; DELETE FROM album WHERE id = 'a\(round)'"
      switch kind {
      case .parentDeleted: try send(deletion)
      case .parentRekeyed:
        options.conflicts = .takeIncoming
        try send(
          """
          UPDATE album SET id = 'x\(round)', code = 'y\(round)' WHERE id = 'a\(round)';
          UPDATE photo SET album = 'x\(round)', code = 'y\(round)' WHERE id = 'p\(round)'
          """
        )
      case .keylessRows:
        try send("UPDATE entry SET text = text || 'x' WHERE day % 10 = 0", keyless: .content, keeping: true)
      case .triggersOn:
        options.triggers = true
        options.conflicts = .takeIncoming
        try send("\(deletion); INSERT INTO photo VALUES ('n\(round)', 'b\(round)', 'd\(round)', 'New')")
      case .latestWithDeletedParent:
        options.conflicts = .latest
        try send(deletion)
      case .heldPart:
        options.schema = .hold
        try send("ALTER TABLE photo ADD COLUMN stars; UPDATE photo SET stars = 5 WHERE id = 'q\(round)'")
      case .failing:
        options.conflicts = .abort
        try send("UPDATE photo SET title = 'Their boat' WHERE id = 'p\(round)'")
      case .encrypted:
        try TestDatabases.run(
          """
          INSERT INTO album VALUES ('e\(round)', 'f\(round)', 'Of Ben');
          DELETE FROM album WHERE id = 'e\(round - Kind.allCases.count)'
          """, on: folder.file("ben"))
        try shareOfBen()
      }
      func apply(_ database: DatabaseManager) throws {
        let report = try database.processInboundChanges([folder.file("inbound")], options: options)
        refused += report.rejected.count
      }
      if kind != .encrypted, kind != .latestWithDeletedParent, round % 3 == 0 {
        try app.connection.execute("BEGIN")
        try app.lend(apply)
        try app.connection.execute("ROLLBACK")
      }
      if round % 5 == 0 {
        try call("stop") {
          try $0.processInboundChanges([folder.file("inbound")], options: options, progress: { _ in throw Stop() })
        }
      }
      try call("apply \(kind)", apply)
      if kind == .encrypted {
        try app.connection.execute("INSERT INTO photo VALUES ('k\(round)', 'e\(round)', 'f\(round)', 'Of mine')")
      }
      try call("undo") { database in
        guard let newest = try database.log().last(where: { $0.state == .applied })?.diff else { return }
        try database.undo([.diff("\(newest)")])
      }
      try call("share", share)
      try call("resolve") { database in
        var filter = ConflictFilter()
        filter.isOpen = true
        try database.resolve(matching: filter, taking: round % 2 == 0 ? .incoming : .local)
      }
      try call("status") { _ = try $0.status(includesWords: true) }
      try call("apply again", apply)
      for name in try folder.names(in: "inbound") {
        try FileManager.default.removeItem(atPath: folder.file("inbound/\(name)"))
      }
    }
    #expect(refused >= 10)
    for name in Kind.allCases.map({ "apply \($0)" }) + ["stop failed", "undo", "share", "resolve", "status"] {
      #expect(done[name, default: 0] >= 8, "\(name): \(done)")
    }
  }

  private func makeAlbums() throws {
    let rows = """
      INSERT INTO album VALUES ('a', 'c', 'Summer'), ('b', 'd', 'Winter');
      INSERT INTO photo VALUES ('p', 'a', 'c', 'Boat')
      """
    try app.connection.execute(rows)
    try TestDatabases.run(rows, on: folder.file("base"))
    try app.connection.execute("INSERT INTO photo VALUES ('l', 'a', 'c', 'Mine')")
    try send("DELETE FROM photo WHERE id = 'p'; DELETE FROM album WHERE id = 'a'")
  }

  private func apply(_ body: @escaping () throws -> Void = {}) throws {
    try app.lend { database in
      let report = try database.processInboundChanges([folder.file("inbound")], progress: { _ in try body() })
      #expect(report.diffs.map(\.state) == [.applied])
    }
  }

  @Test func `an encrypted file after a deleted parent is applied without temporary files of SQLite`() throws {
    try makeAlbums()
    try apply()
    try TestDatabases.run("INSERT INTO album VALUES ('e', 'f', 'Of Ben')", on: folder.file("ben"))
    try shareOfBen()
    var found: Set<Int64?> = []
    try apply { found.insert(try app.connection.integer("PRAGMA temp_store")) }
    #expect(found == [2])
    #expect(try app.connection.integer("PRAGMA temp_store") == 0)
    try app.lend(share)
  }

  @Test(arguments: ["CREATE TEMP TABLE of_the_app(x)", "CREATE TEMP VIEW of_the_app AS SELECT 1", "BEGIN"])
  func `an encrypted file is not applied if SQLite would write plaintext to temporary files`(_ obstacle: String)
    throws
  {
    try TestDatabases.run("INSERT INTO album VALUES ('e', 'f', 'Of Ben')", on: folder.file("ben"))
    try shareOfBen()
    try app.connection.execute(obstacle)
    let before = try app.state()
    #expect { try apply() } throws: { ($0 as? BuckiaError)?.code == .cannotEncrypt }
    #expect(try app.state() == before)
    #expect(try app.connection.integer("SELECT count(*) FROM album") == 0)
    if obstacle == "BEGIN" {
      try app.connection.execute("COMMIT")
    } else {
      try app.connection.execute("DROP \(obstacle.contains("VIEW") ? "VIEW" : "TABLE") of_the_app")
    }
    try app.connection.execute("PRAGMA temp_store = MEMORY; \(obstacle)")
    try apply()
    #expect(try app.connection.integer("SELECT count(*) FROM album") == 1)
  }

  @Test func `a TEMP table that cannot be dropped while the app reads is empty, and dropped by the next call`() throws {
    try makeAlbums()
    do {
      let reading = try app.connection.prepare("SELECT * FROM album")
      #expect(try reading.step())
      try apply()
      let left = try TestDatabases.texts("SELECT name FROM temp.sqlite_schema WHERE type = 'table'", on: app.connection)
      #expect(!left.isEmpty)
      for name in left {
        #expect(name.hasPrefix("buckia_temp_"))
        #expect(try app.connection.integer("SELECT count(*) FROM temp.\(name)") == 0)
      }
    }
    try app.lend { _ = try $0.status() }
    #expect(try app.connection.integer("SELECT count(*) FROM temp.sqlite_schema") == 0)
  }

  @Test func `a nested call keeps the TEMP tables that the outer call needs`() throws {
    try makeAlbums()
    // Safe: the resolver is called on this thread.
    nonisolated(unsafe) let connection = app
    nonisolated(unsafe) var count: Int64?
    try app.lend { database in
      var options = ApplyOptions()
      options.triggers = true
      let resolver: ConflictResolver = { _ in
        _ = try database.log()
        count = try connection.connection.integer("SELECT count(*) FROM temp.sqlite_schema WHERE type = 'table'")
        return .useDefault
      }
      try database.processInboundChanges([folder.file("inbound")], options: options, resolver: resolver)
    }
    #expect(count.map { $0 > 0 } == true)
    #expect(try app.connection.integer("SELECT count(*) FROM temp.sqlite_schema") == 0)
  }

  @Test func `the app's TEMP tables stay, whatever their names`() throws {
    try app.connection.execute("CREATE TEMP TABLE buckia_results AS SELECT 7 AS x")
    try makeAlbums()
    try apply()
    #expect(try TestDatabases.texts("SELECT name FROM temp.sqlite_schema", on: app.connection) == ["buckia_results"])
    #expect(try app.connection.integer("SELECT x FROM buckia_results") == 7)
  }

  @Test func `comparing a UTF-16 database leaves no collating sequence on its connection`() throws {
    let sql = "PRAGMA encoding = 'UTF-16le'; CREATE TABLE note(id TEXT PRIMARY KEY) WITHOUT ROWID"
    try TestDatabases.run(sql, on: folder.file("before"))
    let connection = try SQLiteConnection(
      opening: TestDatabases.run("\(sql); INSERT INTO note VALUES ('x')", on: folder.file("now")), as: .readWrite)
    let report = try DatabaseManager.borrowing(connection.handle.pointer, home: me) {
      try $0.createDatabaseDiff(since: folder.file("before"), output: .folder(folder.file("outbox")))
    }
    #expect(report.id != nil)
    #expect(throws: SQLiteError.self) { _ = try connection.prepare("SELECT 'a' < 'b' COLLATE buckia_bytes") }
  }
}

/// A connection with hooks, as an app may have set it up.
private final class AppConnection {
  let connection: SQLiteConnection
  private let sqlite: LoadedSQLite
  private let home: BuckiaHome
  /// The context of the hooks: the number of authorizer calls, and of progress handler calls.
  private let context = UnsafeMutablePointer<Int>.allocate(capacity: 2)

  init(to path: String, home: BuckiaHome) throws {
    self.home = home
    connection = try SQLiteConnection(opening: path, as: .readWrite)
    sqlite = try LoadedSQLite.linked.get()
    context.initialize(repeating: 0, count: 2)
    try connection.execute("PRAGMA foreign_keys = ON; PRAGMA cache_size = 321; PRAGMA synchronous = NORMAL")
    try connection.execute("CREATE TEMP TABLE of_the_app(x); DROP TABLE of_the_app")
    _ = try setHooks()
    typealias Authorize =
      @convention(c) (
        UnsafeMutableRawPointer?, Int32, UnsafePointer<CChar>?, UnsafePointer<CChar>?, UnsafePointer<CChar>?,
        UnsafePointer<CChar>?
      ) -> Int32
    typealias SetAuthorizer = @convention(c) (OpaquePointer, Authorize, UnsafeMutableRawPointer?) -> Int32
    _ = try sqlite.function("sqlite3_set_authorizer", as: SetAuthorizer.self)(
      pointer,
      { context, _, _, _, _, _ in
        context?.assumingMemoryBound(to: Int.self)[0] += 1
        return 0
      }, context)
    typealias Progress = @convention(c) (UnsafeMutableRawPointer?) -> Int32
    typealias SetProgress = @convention(c) (OpaquePointer, Int32, Progress, UnsafeMutableRawPointer?) -> Void
    try sqlite.function("sqlite3_progress_handler", as: SetProgress.self)(
      pointer, 100,
      { context in
        context?.assumingMemoryBound(to: Int.self)[1] += 1
        return 0
      }, context)
  }

  deinit { context.deallocate() }

  private var pointer: OpaquePointer { connection.handle.pointer }

  func lend(_ body: (DatabaseManager) throws -> Void) throws {
    try DatabaseManager.borrowing(pointer, home: home, body)
  }

  /// Sets the commit, rollback and update hooks, of which each connection has one.
  ///
  /// - Returns: For each hook, true if it was set before.
  private func setHooks() throws -> [Bool] {
    typealias Context = UnsafeMutableRawPointer?
    typealias Text = UnsafePointer<CChar>?
    typealias Commit = @convention(c) (Context) -> Int32
    typealias Rollback = @convention(c) (Context) -> Void
    typealias Update = @convention(c) (Context, Int32, Text, Text, Int64) -> Void
    func set<Hook>(_ name: String, _ hook: Hook) throws -> Bool {
      let set = try sqlite.function(
        name, as: (@convention(c) (OpaquePointer, UnsafeRawPointer, Context) -> Context).self)
      return set(pointer, unsafeBitCast(hook, to: UnsafeRawPointer.self), context) == UnsafeMutableRawPointer(context)
    }
    let commit: Commit = { _ in 0 }
    let rollback: Rollback = { _ in }
    let update: Update = { _, _, _, _, _ in }
    return [
      try set("sqlite3_commit_hook", commit), try set("sqlite3_rollback_hook", rollback),
      try set("sqlite3_update_hook", update),
    ]
  }

  /// All that a call could change.
  func state() throws -> [String] {
    var state = ["statements left: \(connection.handle.routines.next_stmt(pointer, nil) != nil)"]
    state.append("in a transaction: \(connection.isInTransaction)")
    state.append("triggers: \(try connection.triggersEnabled)")
    state.append("hooks: \(try setHooks())")
    for name in [
      "foreign_keys", "temp_store", "cache_size", "cache_spill", "synchronous", "journal_mode", "locking_mode",
      "recursive_triggers", "defer_foreign_keys", "ignore_check_constraints", "legacy_alter_table", "trusted_schema",
      "writable_schema", "query_only", "reverse_unordered_selects", "secure_delete", "automatic_index", "busy_timeout",
      "wal_autocheckpoint", "cell_size_check", "read_uncommitted", "threads", "analysis_limit", "mmap_size",
      "journal_size_limit", "page_size", "encoding", "user_version", "application_id",
    ] {
      state.append("\(name): \(try TestDatabases.texts("PRAGMA \(name)", on: connection))")
    }
    for query in [
      "SELECT 'temp', type, name FROM temp.sqlite_schema ORDER BY 2, 3",
      """
      SELECT 'main', type, name, sql FROM main.sqlite_schema
      WHERE tbl_name NOT LIKE 'buckia\\_%' ESCAPE '\\' ORDER BY 2, 3
      """,
      "SELECT 'database', name FROM pragma_database_list",
      "SELECT 'function', name, narg FROM pragma_function_list ORDER BY 2, 3",
      "SELECT 'collation', name FROM pragma_collation_list ORDER BY 2",
      "SELECT 'module', name FROM pragma_module_list WHERE name NOT LIKE 'pragma%' ORDER BY 2",
    ] {
      state += try TestDatabases.texts(query, on: connection)
    }
    let asked = (context[0], context[1])
    _ = try connection.integer(
      "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT count(*) FROM n")
    state.append("authorizer: \(context[0] > asked.0), progress handler: \(context[1] > asked.1)")
    return state
  }
}
