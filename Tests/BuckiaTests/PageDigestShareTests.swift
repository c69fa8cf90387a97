import Buckia
import BuckiaLedger
import SQLiteConnections
import TestSupport
import Testing

/// A share finds the same changes by page digests as by comparing each row.
@Suite struct PageDigestShareTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private static let scope = ShareScope(name: "rows") { SharedTable("t") }
  private static let integerTable = "t(id INTEGER PRIMARY KEY, owner INTEGER, v)"
  /// Tables with other kinds of keys.
  private static let keyedTables = [
    "t(id TEXT PRIMARY KEY, owner INTEGER, v)", "t(id INT PRIMARY KEY, owner INTEGER, v)",
    "t(id TEXT PRIMARY KEY, owner INTEGER, v) WITHOUT ROWID", "t(id REAL PRIMARY KEY, owner INTEGER, v)",
    "t(id TEXT COLLATE NOCASE, owner INTEGER, v, PRIMARY KEY (owner, id)) WITHOUT ROWID",
    "t(id, owner INTEGER, v, PRIMARY KEY (id, owner))",
  ]

  @discardableResult
  private func share(_ path: String, _ scope: ShareScope = scope, isDryRun: Bool = false) throws -> ShareReport {
    var options = ShareOptions()
    options.isUnencrypted = true
    options.isDryRun = isDryRun
    return try DatabaseManager(path, home: BuckiaHome(path: path + ".home")).share(
      scope, to: [ShareRecipient("ben")], output: .folder(path + ".outbox"), options: options)
  }

  /// A database with many small pages.
  private func database(
    _ name: String = "anna.sqlite", _ settings: String = "", rows: Int = 400, of table: String = integerTable
  ) throws -> String {
    try TestDatabases.run(
      """
      PRAGMA page_size = 512; \(settings); CREATE TABLE chosen(id INTEGER PRIMARY KEY);
      CREATE TABLE \(table);
      WITH s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < \(rows))
      INSERT INTO t SELECT n * 3, n % 3, 'row ' || n FROM s
      """, on: folder.file(name))
  }

  private func run(_ sql: String, on path: String) throws { try TestDatabases.run(sql, on: path) }

  private func counts(_ report: ShareReport) -> [[Int]] {
    report.tables.map { [$0.inserted, $0.updated, $0.deleted, $0.withdrawn] }
  }

  @Test func `rows on unchanged pages are not compared`() throws {
    let path = try database()
    #expect(try counts(share(path)) == [[400, 0, 0, 0]])
    // Comparing these rows would find differences.
    try run("UPDATE buckia_baseline_1 SET v = 'other' WHERE id < 900", on: path)
    try run("UPDATE t SET v = 'new' WHERE id = 1197", on: path)
    #expect(try counts(share(path)) == [[0, 1, 0, 0]])
    #expect(try share(path).id == nil)
    try run("DELETE FROM buckia_settings WHERE name = 'page-digest-1'", on: path)
    #expect(try counts(share(path)) == [[0, 299, 0, 0]])
  }

  @Test(arguments: keyedTables)
  func `rows with other kinds of keys on unchanged pages are not compared`(table: String) throws {
    let path = try database(of: table)
    #expect(try counts(share(path)) == [[400, 0, 0, 0]])
    // Comparing these rows would find differences.
    try run("UPDATE buckia_baseline_1 SET v = 'other' WHERE CAST(id AS INTEGER) NOT IN (600, 603)", on: path)
    #expect(try share(path).id == nil)
    try run("UPDATE t SET v = 'new' WHERE CAST(id AS INTEGER) = 600", on: path)
    let found = try #require(try counts(share(path)).first)
    #expect(found[0] == 0 && (1..<60).contains(found[1]) && found[2] == 0, "\(found)")
    #expect(
      try TestDatabases.rows("SELECT v FROM buckia_baseline_1 WHERE CAST(id AS INTEGER) = 600", on: path) == [
        "'110.101.119'"
      ])
    try run("DELETE FROM t WHERE CAST(id AS INTEGER) = 603; INSERT INTO t VALUES (602, 2, 'more')", on: path)
    let more = try #require(try counts(share(path)).first)
    #expect(more[0] == 1 && more[1] < 60 && more[2] == 1, "\(more)")
    #expect(
      try TestDatabases.rows("SELECT id FROM buckia_baseline_1 WHERE CAST(id AS INTEGER) IN (602, 603)", on: path).count
        == 1)
    try run("DELETE FROM buckia_settings WHERE name = 'page-digest-1'", on: path)
    #expect(try counts(share(path)).contains { $0[1] > 300 })
  }

  @Test(arguments: ["id INT", "id INTEGER PRIMARY KEY DESC"])
  func `a table without usable key ranges is compared as a whole once any page has changed`(key: String) throws {
    let path = try database()
    try run("CREATE TABLE u(\(key), v); INSERT INTO u SELECT id, v FROM t", on: path)
    let scope = ShareScope(name: "other") { SharedTable("u") }
    try share(path, scope)
    try run("UPDATE buckia_baseline_1 SET v = 'other' WHERE id = 900", on: path)
    #expect(try share(path, scope).id == nil)
    try run("UPDATE u SET v = 'new' WHERE id = 3", on: path)
    #expect(try counts(share(path, scope)).map { $0[0] + $0[1] } == [2])
    #expect(
      try TestDatabases.rows("SELECT v FROM buckia_baseline_1 WHERE id = 900", on: path) == [
        "'114.111.119.32.51.48.48'"
      ])
  }

  @Test func `after a change of the table's definition all rows are compared`() throws {
    let path = try database()
    try share(path)
    try run("UPDATE buckia_baseline_1 SET v = 'other' WHERE id < 900", on: path)
    #expect(try share(path).id == nil)
    try run("ALTER TABLE t ADD COLUMN more TEXT DEFAULT 'filled'", on: path)
    #expect(try counts(share(path)) == [[0, 299, 0, 0]])
    #expect(try TestDatabases.rows("SELECT count(*) FROM buckia_baseline_1 WHERE more = 'filled'", on: path) == ["400"])
  }

  @Test func `a changed condition, parameter or column of the scope is applied to rows on unchanged pages`() throws {
    let path = try database()
    func scope(_ owner: Int64, _ change: (SharedTable) -> SharedTable = { $0 }) -> ShareScope {
      ShareScope(name: "mine") { change(SharedTable("t").where("owner = :o", ["o": .integer(owner)])) }
    }
    #expect(try counts(share(path, scope(1))) == [[134, 0, 0, 0]])
    #expect(try share(path, scope(1)).id == nil)
    #expect(try counts(share(path, scope(2))) == [[133, 0, 0, 134]])
    #expect(try counts(share(path, scope(2) { $0.rewriting("v", to: "hidden") })) == [[0, 133, 0, 0]])
  }

  @Test func `a condition with a subquery of another table is evaluated again`() throws {
    let path = try database()
    let scope = ShareScope(name: "chosen") { SharedTable("t").where("owner IN (SELECT id FROM chosen)") }
    try share(path, scope)
    try run("INSERT INTO chosen VALUES (1)", on: path)
    #expect(try counts(share(path, scope)) == [[134, 0, 0, 0]])
    try run("DELETE FROM chosen", on: path)
    #expect(try counts(share(path, scope)) == [[0, 0, 0, 134]])
  }

  @Test func `page digests from before the last share are not used`() throws {
    let path = try database("anna.sqlite", "PRAGMA auto_vacuum = NONE")
    try run("CREATE TABLE kept AS SELECT * FROM t; VACUUM", on: path)
    try share(path)
    // A table of one page has no page digests.
    try run("DELETE FROM t WHERE id > 3", on: path)
    #expect(try counts(share(path)) == [[0, 0, 399, 0]])
    // The pages are the same as at first, but the baseline is not.
    try run("INSERT INTO t SELECT * FROM kept WHERE id > 3; VACUUM", on: path)
    #expect(try counts(share(path)) == [[399, 0, 0, 0]])
  }

  @Test func `a share that is rolled back stores no page digests`() throws {
    let path = try database()
    try share(path)
    try run("UPDATE t SET v = 'new' WHERE id = 600", on: path)
    #expect(try counts(share(path, isDryRun: true)) == [[0, 1, 0, 0]])
    #expect(try counts(share(path)) == [[0, 1, 0, 0]])
  }

  /// Ben shares some of his rows, and receives a row from Anna that he has, too, but does not share.
  @Test(arguments: [integerTable] + keyedTables)
  func `baseline rows that a received diff has changed are compared even on unchanged pages`(table: String) throws {
    let (anna, ben) = (try database("anna.sqlite", of: table), try database("ben.sqlite", of: table))
    try run("DELETE FROM t WHERE owner = 2", on: anna)
    let mine = ShareScope(name: "mine") { SharedTable("t").where("owner < 2") }
    let all = ShareScope(name: "rows") { SharedTable("t") }
    func receive(_ path: String, from other: String) throws {
      var options = ApplyOptions()
      options.keepsFiles = true
      let report = try DatabaseManager(path, home: BuckiaHome(path: path + ".home")).processInboundChanges(
        [other + ".outbox"], options: options)
      #expect(report.rejected.isEmpty)
    }
    func exchange(_ path: String, _ scope: ShareScope, with other: String, named name: String) throws -> [[Int]] {
      var options = ShareOptions()
      options.isUnencrypted = true
      let report = try DatabaseManager(path, home: BuckiaHome(path: path + ".home")).share(
        scope, to: [ShareRecipient(name)], output: .folder(path + ".outbox"), options: options)
      if report.id != nil { try receive(other, from: path) }
      return counts(report)
    }
    #expect(try exchange(ben, mine, with: anna, named: "anna") == [[267, 0, 0, 0]])
    _ = try exchange(anna, all, with: ben, named: "ben")
    // Anna adds a row that Ben has, too, but does not share. It gets into his baseline, and his page stays unchanged.
    try run("INSERT INTO t VALUES (600, 2, 'row 200')", on: anna)
    #expect(try exchange(anna, all, with: ben, named: "ben") == [[1, 0, 0, 0]])
    func inBaseline() throws -> [String] {
      try TestDatabases.rows("SELECT CAST(id AS INTEGER) FROM buckia_baseline_1 WHERE owner = 2", on: ben)
    }
    #expect(try inBaseline() == ["600"])
    // Rows that no diff has touched are not compared.
    try run("UPDATE buckia_baseline_1 SET v = 'other' WHERE CAST(id AS INTEGER) = 1198", on: ben)
    let found = try exchange(ben, mine, with: anna, named: "anna")
    #expect(try inBaseline().isEmpty)
    #expect(found.count <= 1)
  }

  // MARK: Random edits

  private static func condition(_ random: inout SeededGenerator) -> String? {
    [nil, "owner = 1", "owner <> 1 AND length(v) < 300", "id % 7 < 5", "v > 'row 2'", "typeof(v) = 'text'"]
      .randomElement(
        using: &random) ?? nil
  }

  private static func edit(_ random: inout SeededGenerator) -> String {
    let id = Int.random(in: -20...1_300, using: &random)
    let other = Int.random(in: -20...1_300, using: &random)
    switch Int.random(in: 0..<16, using: &random) {
    case 0: return "DELETE FROM t WHERE id = \(id)"
    case 1: return "DELETE FROM t WHERE id BETWEEN \(id) AND \(id + Int.random(in: 0...60, using: &random))"
    case 2: return "INSERT OR REPLACE INTO t VALUES (\(id), \(Int.random(in: 0...2, using: &random)), 'new')"
    case 3: return "UPDATE t SET v = 'v' || v WHERE id BETWEEN \(id) AND \(id + 2)"
    case 4: return "UPDATE OR REPLACE t SET id = \(other) WHERE id = \(id)"
    case 5: return "UPDATE t SET v = zeroblob(\(1_000 + abs(other))) WHERE id >= \(id) AND id < \(id + 9)"
    case 6:
      return
        "UPDATE t SET v = printf('%.*c', 900 + abs(\(id)) % 5, 'x') WHERE id = (SELECT max(id) FROM t WHERE id <= \(id))"
    case 7: return "UPDATE t SET owner = \(Int.random(in: 0...2, using: &random)) WHERE id % 50 = \(abs(id) % 50)"
    case 8: return "VACUUM"
    case 9: return "UPDATE t SET v = 1.0 WHERE id = \(id); UPDATE t SET v = 1 WHERE id = \(other)"
    case 10:
      return
        "INSERT INTO t SELECT id + 1, owner, v FROM t WHERE id % 3 = 0 AND id > \(id) LIMIT 5 ON CONFLICT DO NOTHING"
    case 11:
      return "DELETE FROM t; INSERT INTO t VALUES (9223372036854775807, 1, 'last'), (-9223372036854775808, 1, 'first')"
    case 12: return "CREATE TABLE IF NOT EXISTS filler(x); INSERT INTO filler VALUES (zeroblob(\(3_000 + abs(id))))"
    case 13:
      // SQLite would choose an INTEGER PRIMARY KEY, at random if the greatest is in use.
      return """
        INSERT OR IGNORE INTO t SELECT NULL, \(id % 3), 'without' WHERE (SELECT pk FROM pragma_table_info('t') WHERE type = 'INTEGER' AND name = 'id') IS NULL
        """
    case 14:
      return """
        UPDATE OR IGNORE t SET id = CASE typeof(id) WHEN 'text' THEN 'a' || id ELSE id + 100000 END, v = 'named'
        WHERE CAST(id AS INTEGER) = \(id / 3 * 3)
        """
    default: return "UPDATE t SET v = v WHERE id < 0"
    }
  }

  @Test(arguments: Seeds.shards)
  func `page digests find the same changes as comparing row by row`(shard: Int) throws {
    try Seeds.tryEach(12, shard: shard) { seed in
      var random = SeededGenerator(seed: seed)
      let settings =
        [
          "PRAGMA journal_mode = WAL", "PRAGMA auto_vacuum = FULL", "PRAGMA encoding = 'UTF-16le'",
          "PRAGMA secure_delete = 1", "",
        ].randomElement(using: &random) ?? ""
      let table =
        random.oneIn(3) ? Self.integerTable : Self.keyedTables.randomElement(using: &random) ?? Self.integerTable
      let printed = try database("printed \(seed).sqlite", settings, of: table)
      let plain = try database("plain \(seed).sqlite", settings, of: table)
      let condition = Self.condition(&random)
      let scope = ShareScope(name: "some") {
        condition.map { SharedTable("t").where($0) } ?? SharedTable("t")
      }
      for round in 0..<6 {
        let edits = (0..<Int.random(in: 0...4, using: &random)).map { _ in Self.edit(&random) }
        for path in [printed, plain] {
          for edit in edits where round > 0 { try run(edit, on: path) }
        }
        if round > 0 { try run("DELETE FROM buckia_settings WHERE name LIKE 'page-digest-%'", on: plain) }
        let note = Comment(
          rawValue: "round \(round), \(table), \(settings), \(condition ?? "all"): \(edits); \(Seeds.replay(seed))")
        #expect(
          try share(printed, scope, isDryRun: true).tables == share(plain, scope, isDryRun: true).tables, note)
        #expect(try share(printed, scope).tables == share(plain, scope).tables, note)
        let order = "ORDER BY typeof(id), id, owner, typeof(v), v"
        let sent = try TestDatabases.rows("SELECT * FROM t WHERE \(condition ?? "true") \(order)", on: printed)
        #expect(try TestDatabases.rows("SELECT * FROM buckia_baseline_1 \(order)", on: printed) == sent, note)
      }
    }
  }
}
