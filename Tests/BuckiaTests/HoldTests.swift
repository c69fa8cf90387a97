import Buckia
import BuckiaApply
import BuckiaDiff
import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas
import TestSupport
import Testing

/// In the mode `hold` nothing is created. Unknown parts of diffs are held until the app upgrades its schema.
@Suite struct HoldTests {
  /// An author whose schema changes, and receivers that get every diff.
  private struct Chain {
    let folder: TemporaryFolder
    let author: String
    private var sent: String
    private let home: BuckiaHome
    private var count = 0
    private let keyless: KeylessIdentity

    init(_ schema: String, receivers: [String], keyless: KeylessIdentity = .rowid) throws {
      self.keyless = keyless
      folder = try TemporaryFolder()
      home = BuckiaHome(path: folder.file("home"))
      author = try TestDatabases.run(schema, on: folder.file("author"))
      sent = try folder.copy("author", to: "sent-0")
      for name in receivers {
        _ = try folder.copy("author", to: name)
        try folder.makeFolder("\(name)-inbound")
      }
    }

    /// Makes edits, and sends the changes since the last diff.
    mutating func send(_ edits: String, to receivers: [String]) throws {
      try TestDatabases.run(edits, on: author)
      let output = folder.file("out")
      let report = try DatabaseManager(author, home: home).createDatabaseDiff(
        since: sent, output: .file(output, replacing: true),
        options: DiffOptions(keyless: keyless))
      count += 1
      sent = try folder.copy("author", to: "sent-\(count)")
      guard let path = report.path, let id = report.id else { return }
      for name in receivers { _ = try folder.copy(path, to: "\(name)-inbound/\(id).bdiff") }
    }

    func run(_ sql: String, on name: String) throws { try TestDatabases.run(sql, on: folder.file(name)) }

    func rows(_ sql: String, of name: String) throws -> [String] {
      try TestDatabases.rows(sql, on: folder.file(name))
    }

    @discardableResult
    func apply(_ name: String, _ schema: SchemaMode = .hold, _ policy: ConflictPolicy = .keepLocal) throws
      -> ApplyReport
    {
      try DatabaseManager(folder.file(name)).processInboundChanges(
        [folder.file("\(name)-inbound")], options: ApplyOptions(conflicts: ConflictPolicies(policy), schema: schema))
    }
  }

  private static let schema = """
    CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT);
    INSERT INTO notes VALUES (1, 'one'), (2, 'two'), (3, 'three')
    """

  @Test("Known columns are applied at once, unknown columns and tables once the app has created them")
  func upgrade() throws {
    var chain = try Chain(Self.schema, receivers: ["me"])
    try chain.send(
      """
      ALTER TABLE notes ADD COLUMN stars INTEGER DEFAULT 3;
      CREATE TABLE photo(id INTEGER PRIMARY KEY, path TEXT);
      INSERT INTO notes VALUES (4, 'four', 5); UPDATE notes SET stars = 1 WHERE id = 1;
      UPDATE notes SET title = 'TWO', stars = 2 WHERE id = 2;
      INSERT INTO photo VALUES (1, 'a.jpg'), (2, 'b.jpg')
      """, to: ["me"])
    try chain.send(
      "UPDATE notes SET stars = 9 WHERE id = 4; DELETE FROM photo WHERE id = 1; UPDATE photo SET path = 'B.jpg'",
      to: ["me"])
    let first = try chain.apply("me")
    #expect(first.diffs.map(\.state) == [.held, .held])
    #expect(first.diffs.map(\.heldParts) == [2, 2])
    #expect(first.diffs[0].inserted == 1 && first.diffs[0].updated == 1)
    #expect(first.diffs[0].reason?.contains("column \"stars\" is missing here") == true)
    #expect(first.diffs[0].plan.map(\.action) == [.hold, .hold])
    #expect(try chain.rows("SELECT * FROM notes", of: "me").count == 4)
    #expect(try chain.rows("SELECT title FROM notes WHERE id = 2", of: "me") == ["'84.87.79'"])
    #expect(try chain.folder.names(in: "me-inbound").isEmpty)
    let warnings = try DatabaseManager(chain.folder.file("me")).examine().warnings
    #expect(warnings.filter { $0.code == .heldChanges }.count == 4)
    // Half of the upgrade, then the rest.
    #expect(try chain.apply("me").diffs.isEmpty)
    try chain.run("ALTER TABLE notes ADD COLUMN stars INTEGER DEFAULT 3", on: "me")
    let second = try chain.apply("me")
    #expect(second.diffs.map(\.state) == [.held, .held])
    #expect(try chain.rows("SELECT stars FROM notes ORDER BY id", of: "me") == ["1", "2", "3", "9"])
    try chain.run("CREATE TABLE photo(id INTEGER PRIMARY KEY, path TEXT, extra DEFAULT 'mine')", on: "me")
    let third = try chain.apply("me")
    #expect(third.diffs.map(\.state) == [.applied, .applied])
    #expect(try chain.rows("SELECT id, path FROM photo", of: "me") == ["2|'66.46.106.112.103'"])
    #expect(try chain.rows("SELECT count(*) FROM buckia_conflict", of: "me") == ["0"])
    #expect(try chain.rows("SELECT DISTINCT state FROM buckia_ledger", of: "me") == ["'97.112.112.108.105.101.100'"])
    for table in ["part", "column", "change"] {
      #expect(try chain.rows("SELECT * FROM buckia_held_\(table)", of: "me") == [])
    }
  }

  @Test("The unknown columns of a row that a conflict leaves out are in the conflict record")
  func conflict() throws {
    var chain = try Chain(Self.schema, receivers: ["me"])
    try chain.run("INSERT INTO notes VALUES (4, 'mine')", on: "me")
    try chain.send(
      "ALTER TABLE notes ADD COLUMN stars; INSERT INTO notes VALUES (4, 'theirs', 5), (5, 'five', 6)", to: ["me"])
    let report = try chain.apply("me")
    #expect(report.diffs.map(\.conflicts) == [1])
    try chain.run("ALTER TABLE notes ADD COLUMN stars", on: "me")
    try chain.apply("me")
    #expect(try chain.rows("SELECT id, stars FROM notes WHERE id > 3", of: "me") == ["4|NULL", "5|6"])
    let conflicts = try DatabaseManager(chain.folder.file("me")).conflicts()
    #expect(conflicts.map { $0.incoming?.map(\.column) } == [["id", "title"], ["id", "stars"]])
    #expect(conflicts.last?.reason == "these columns are unknown here")
    #expect(conflicts.last?.key.map(\.column) == ["id"])
  }

  @Test("A held change of a row that a later diff deletes is not applied to a new row with its key")
  func deletedRow() throws {
    var chain = try Chain(Self.schema, receivers: ["me"])
    try chain.send("ALTER TABLE notes ADD COLUMN stars; UPDATE notes SET stars = 7 WHERE id < 3", to: ["me"])
    try chain.send("DELETE FROM notes WHERE id = 1", to: ["me"])
    try chain.apply("me")
    try chain.run("INSERT INTO notes VALUES (1, 'another'); ALTER TABLE notes ADD COLUMN stars", on: "me")
    let report = try chain.apply("me")
    #expect(report.diffs.map(\.updated) == [1])
    #expect(try chain.rows("SELECT id, stars FROM notes", of: "me") == ["1|NULL", "2|7", "3|NULL"])
    #expect(try chain.rows("SELECT count(*) FROM buckia_conflict", of: "me") == ["0"])
  }

  @Test("A held change of a deleted row is not applied to a new row, even if the deletion was held, too")
  func deletedRowOfHeldTable() throws {
    var chain = try Chain(Self.schema, receivers: ["me"])
    try chain.send(
      "CREATE TABLE photo(id INTEGER PRIMARY KEY, path TEXT); INSERT INTO photo VALUES (1, 'a'), (2, 'b')", to: ["me"])
    try chain.send("ALTER TABLE photo ADD COLUMN size; UPDATE photo SET size = id, path = path || '.'", to: ["me"])
    try chain.send("DELETE FROM photo", to: ["me"])
    try chain.send("INSERT INTO photo(id, path) VALUES (1, 'c')", to: ["me"])
    try chain.apply("me")
    try chain.run("CREATE TABLE photo(id INTEGER PRIMARY KEY, path TEXT)", on: "me")
    #expect(try chain.apply("me").diffs.map(\.state) == [.applied, .applied, .applied, .held])
    #expect(try chain.rows("SELECT * FROM photo", of: "me") == ["1|'99'"])
    try chain.run("ALTER TABLE photo ADD COLUMN size", on: "me")
    #expect(try chain.apply("me").diffs.map(\.state) == [.applied])
    #expect(try chain.rows("SELECT id, size FROM photo", of: "me") == ["1|NULL"])
    #expect(try chain.rows("SELECT count(*) FROM buckia_conflict", of: "me") == ["0"])
  }

  @Test(
    "A local edit since the upgrade and a held change of the same value are a conflict",
    arguments: [ConflictPolicy.keepLocal, .takeIncoming, .abort])
  func editedSince(policy: ConflictPolicy) throws {
    var chain = try Chain(Self.schema, receivers: ["me"])
    try chain.send(
      "ALTER TABLE notes ADD COLUMN stars DEFAULT 3; INSERT INTO notes VALUES (4, 'four', 5), (5, 'five', 5)",
      to: ["me"])
    try chain.apply("me")
    try chain.run("ALTER TABLE notes ADD COLUMN stars DEFAULT 3; UPDATE notes SET stars = 1 WHERE id = 4", on: "me")
    let report = try chain.apply("me", .hold, policy)
    let stars = try chain.rows("SELECT stars FROM notes WHERE id > 3", of: "me")
    switch policy {
    case .keepLocal: #expect(stars == ["1", "5"])
    case .takeIncoming, .latest: #expect(stars == ["5", "5"])
    case .abort:
      #expect(stars == ["1", "3"])
      #expect(try chain.rows("SELECT count(*) FROM buckia_held_change", of: "me") == ["2"])
      #expect(report.diffs.map(\.state) == [.held])
      #expect(report.diffs.first?.reason?.contains("under the policy \"abort\"") == true)
      // A later call with another policy applies the change.
      try chain.apply("me", .hold, .takeIncoming)
      #expect(try chain.rows("SELECT stars FROM notes WHERE id > 3", of: "me") == ["5", "5"])
      return
    }
    #expect(report.diffs.map(\.conflicts) == [1])
    #expect(try chain.rows("SELECT count(*) FROM buckia_held_change", of: "me") == ["0"])
  }

  @Test("A diff that creates a missing table applies the held changes before its own")
  func additiveAfterwards() throws {
    var chain = try Chain(Self.schema, receivers: ["me"])
    try chain.send(
      """
      CREATE TABLE photo(id INTEGER PRIMARY KEY, path TEXT); INSERT INTO photo VALUES (1, 'a'), (2, 'b');
      ALTER TABLE notes ADD COLUMN stars; UPDATE notes SET stars = 1
      """, to: ["me"])
    try chain.apply("me")
    try chain.send(
      "UPDATE photo SET path = 'A' WHERE id = 1; UPDATE notes SET stars = 2 WHERE id = 2 AND stars = 1", to: ["me"])
    let report = try chain.apply("me", .additive)
    #expect(report.diffs.map(\.state) == [.applied])
    #expect(report.diffs.first?.conflicts == 0)
    #expect(report.diffs.first?.warnings.map(\.code).contains(.heldAppliedFirst) == true)
    #expect(try chain.rows("SELECT path FROM photo", of: "me") == ["'65'", "'98'"])
    #expect(try chain.rows("SELECT stars FROM notes", of: "me") == ["1", "2", "1"])
  }

  @Test(
    "A change that does not fit the local table is held like a change of a missing one",
    arguments: [
      ("CREATE TABLE t(a TEXT PRIMARY KEY, b)", "column \"a\" of the primary key has an incompatible type"),
      ("CREATE TABLE t(a INTEGER, b PRIMARY KEY)", "another primary key"),
      ("CREATE VIEW t AS SELECT 1 AS a", "stands for something else"),
      ("CREATE TABLE t(a INTEGER PRIMARY KEY, c AS (a + 1))", "\"b\" is missing here"),
      ("CREATE TABLE t(a INTEGER PRIMARY KEY, b AS (a + 1))", "\"b\" is a generated column here"),
      ("CREATE TABLE t(a INTEGER PRIMARY KEY, b INTEGER)", "\"b\" is of type INTEGER here, which would alter"),
    ])
  func misfits(local: String, reason: String) throws {
    var chain = try Chain("CREATE TABLE other(x)", receivers: ["me"])
    try chain.send("CREATE TABLE t(a INTEGER PRIMARY KEY, b); INSERT INTO t VALUES (1, '12'), (2, NULL)", to: ["me"])
    try chain.run(local, on: "me")
    let report = try chain.apply("me")
    #expect(report.diffs.map(\.state) == [.held])
    let given = try #require(report.diffs.first?.reason)
    #expect(given.contains(reason), "\(given)")
    // Nothing happens before the app changes its schema.
    #expect(try chain.apply("me").diffs.isEmpty)
    // The app changes its schema, and keeps the rows that were applied already.
    let isTable = local.hasPrefix("CREATE TABLE")
    try chain.run(
      isTable
        ? """
        CREATE TABLE u(a INTEGER PRIMARY KEY, b); INSERT INTO u(a) SELECT a FROM t; DROP TABLE t;
        ALTER TABLE u RENAME TO t
        """ : "DROP VIEW t; CREATE TABLE t(a INTEGER PRIMARY KEY, b)", on: "me")
    #expect(try chain.apply("me").diffs.map(\.state) == [.applied])
    #expect(try chain.rows("SELECT * FROM t", of: "me") == ["1|'49.50'", "2|NULL"])
  }

  @Test("A damaged held change stays held with the reason, and all else is applied")
  func damage() throws {
    var chain = try Chain(Self.schema, receivers: ["me"])
    try chain.send(
      "ALTER TABLE notes ADD COLUMN stars; UPDATE notes SET stars = 1; CREATE TABLE t(a INTEGER PRIMARY KEY); INSERT INTO t VALUES (1)",
      to: ["me"])
    try chain.apply("me")
    try chain.run(
      "UPDATE buckia_held_change SET bytes = substr(bytes, 1, 9) WHERE change = 1; ALTER TABLE notes ADD COLUMN stars; CREATE TABLE t(a INTEGER PRIMARY KEY)",
      on: "me")
    for _ in 0..<2 {
      try chain.send("INSERT INTO notes(title) VALUES ('more')", to: ["me"])
      let report = try chain.apply("me")
      #expect(report.diffs.map(\.state) == [.held, .applied])
      #expect(report.diffs.first?.reason?.contains("for table \"notes\" cannot be applied: ") == true)
    }
    #expect(try chain.rows("SELECT count(*) FROM t", of: "me") == ["1"])
    #expect(try chain.rows("SELECT count(*) FROM notes", of: "me") == ["5"])
  }

  @Test("Rows that are identified by their content are held as a whole", arguments: [KeylessIdentity.rowid, .content])
  func rowsWithoutKey(identity: KeylessIdentity) throws {
    var chain = try Chain(
      """
      CREATE TABLE t(k TEXT PRIMARY KEY, v); INSERT INTO t VALUES ('a', 1), (NULL, 1), (NULL, 1), (NULL, 2);
      CREATE TABLE log(v); INSERT INTO log VALUES (1), (1), (2)
      """, receivers: ["me", "early"], keyless: identity)
    let upgrade = "ALTER TABLE t ADD COLUMN c DEFAULT 5; ALTER TABLE log ADD COLUMN c"
    try chain.run(upgrade, on: "early")
    let both = ["me", "early"]
    try chain.send(
      """
      \(upgrade); INSERT INTO t VALUES (NULL, 1, 7), (NULL, 3, 8), ('b', 1, 9); INSERT INTO log VALUES (1, 7), (3, NULL);
      UPDATE t SET c = 6 WHERE k IS NULL AND v = 2
      """, to: both)
    try chain.send("DELETE FROM t WHERE c = 7; DELETE FROM log WHERE c = 7; UPDATE log SET c = 1 WHERE v = 2", to: both)
    for name in both { try chain.apply(name) }
    #expect(try chain.rows("SELECT k FROM t WHERE k > ''", of: "me").count == 2)
    try chain.run(upgrade, on: "me")
    #expect(try chain.apply("me").diffs.map(\.state) == [.applied, .applied])
    for query in ["SELECT k, v, c FROM t", "SELECT v, c FROM log"] {
      #expect(try chain.rows(query, of: "me").sorted() == chain.rows(query, of: "early").sorted())
    }
    #expect(try chain.rows("SELECT count(*) FROM buckia_conflict", of: "me") == ["0"])
  }

  @Test("Unknown virtual tables are held like other tables")
  func virtualTables() throws {
    var chain = try Chain(Self.schema, receivers: ["me"])
    let tables = "CREATE VIRTUAL TABLE area USING rtree(id, a, b, +name); CREATE VIRTUAL TABLE words USING fts5(a, b)"
    try chain.send(
      "\(tables); INSERT INTO area VALUES (1, 0.5, 1.5, 'here'), (2, 3, 4, NULL); INSERT INTO words VALUES ('x', 'one two')",
      to: ["me"])
    try chain.send("UPDATE area SET name = 'there' WHERE id = 2; UPDATE words SET b = 'two three'", to: ["me"])
    #expect(try chain.apply("me").diffs.map(\.heldParts) == [2, 2])
    // An ordinary table with the same name does not receive their rows.
    try chain.run("CREATE TABLE area(id INTEGER PRIMARY KEY, a, b, name)", on: "me")
    #expect(try chain.apply("me").diffs.isEmpty)
    try chain.run("DROP TABLE area; \(tables)", on: "me")
    #expect(try chain.apply("me").diffs.map(\.state) == [.applied, .applied])
    #expect(try chain.rows("SELECT id, name FROM area WHERE b > 1.4", of: "me").count == 2)
    #expect(try chain.rows("SELECT rowid FROM words WHERE words MATCH 'three'", of: "me") == ["1"])
    #expect(try chain.rows("SELECT rowid FROM words WHERE words MATCH 'one'", of: "me") == [])
  }

  @Test("A dry run reports what would be held, and holds nothing")
  func dryRun() throws {
    var chain = try Chain(Self.schema, receivers: ["me"])
    try chain.send("ALTER TABLE notes ADD COLUMN stars; INSERT INTO notes VALUES (4, 'four', 5)", to: ["me"])
    let path = chain.folder.file("me")
    let report = try DatabaseManager(path).processInboundChanges(
      [chain.folder.file("me-inbound")], options: ApplyOptions(schema: .hold, isDryRun: true))
    #expect(report.diffs.map(\.state) == [.held])
    #expect(report.diffs.first?.plan.map(\.description) == ["hold notes.stars: it is missing here"])
    #expect(try TestDatabases.rows("SELECT * FROM notes", on: path).count == 3)
    #expect(try TestDatabases.rows("SELECT 1 FROM sqlite_schema WHERE name LIKE 'buckia%'", on: path) == [])
  }

  // MARK: Any number of upgrades

  private static let base = """
    CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT);
    CREATE TABLE tags(name TEXT PRIMARY KEY, n INTEGER) WITHOUT ROWID;
    CREATE TABLE log(line TEXT);
    WITH s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 12)
    INSERT INTO notes SELECT i, 'title ' || i FROM s;
    INSERT INTO tags SELECT 'tag' || id, id FROM notes; INSERT INTO log SELECT title FROM notes
    """

  private static let upgrades = [
    "ALTER TABLE notes ADD COLUMN stars INTEGER DEFAULT 3",
    "CREATE TABLE photo(id INTEGER PRIMARY KEY, note INTEGER, path TEXT)",
    "ALTER TABLE tags ADD COLUMN color TEXT NOT NULL DEFAULT 'red'",
    "ALTER TABLE photo ADD COLUMN size REAL",
    "CREATE TABLE words(a, b, n, PRIMARY KEY (b, a)) WITHOUT ROWID",
    "ALTER TABLE notes ADD COLUMN author TEXT COLLATE NOCASE",
    "ALTER TABLE log ADD COLUMN level INTEGER",
    "CREATE TABLE \"two words\"(x TEXT UNIQUE, y)",
    "ALTER TABLE words ADD COLUMN \"odd \"\" name\" BLOB DEFAULT x'00'",
  ]

  /// Returns a random edit of the tables that the author has in this version.
  private static func edit(version: Int, _ random: inout SeededGenerator) -> String {
    let id = Int.random(in: 1...16, using: &random)
    let n = Int.random(in: 0...4, using: &random)
    var choices = [
      "INSERT OR REPLACE INTO notes(id, title) VALUES (\(id), 't\(n)')", "DELETE FROM notes WHERE id = \(id)",
      "UPDATE notes SET title = 'u\(n)' WHERE id % 5 = \(n)", "UPDATE tags SET n = n + 1 WHERE n % 5 = \(n)",
      "INSERT OR REPLACE INTO tags(name, n) VALUES ('tag\(id)', \(n))", "DELETE FROM tags WHERE name = 'tag\(id)'",
      "INSERT INTO log(line) VALUES ('line \(n)')", "DELETE FROM log WHERE rowid = \(id)",
    ]
    if version > 0 {
      choices += [
        "UPDATE notes SET stars = \(n) WHERE id % 4 = 1",
        "INSERT OR REPLACE INTO notes(id, stars) VALUES (\(id), \(n))",
      ]
    }
    if version > 1 {
      choices += [
        "INSERT OR REPLACE INTO photo(id, note, path) VALUES (\(id), \(n), 'p\(n)')",
        "DELETE FROM photo WHERE id > \(id)",
        "UPDATE photo SET path = path || '.' WHERE id % 2 = 0",
      ]
    }
    if version > 2 { choices += ["UPDATE tags SET color = 'c\(n)' WHERE n % 3 = 1"] }
    if version > 3 { choices += ["UPDATE photo SET size = \(n).5, note = 0 WHERE id % 3 = 0"] }
    if version > 4 {
      choices += [
        "INSERT OR REPLACE INTO words(a, b, n) VALUES (\(id), 'b\(n)', \(n))", "UPDATE words SET n = n + 1",
        "DELETE FROM words WHERE a > \(id)",
      ]
    }
    if version > 5 { choices += ["UPDATE notes SET author = 'A\(n)', stars = 0 WHERE id > \(id)"] }
    if version > 6 { choices += ["UPDATE log SET level = \(n) WHERE rowid > \(id)"] }
    if version > 7 {
      choices += ["INSERT OR IGNORE INTO \"two words\" VALUES ('x\(id)', \(n))", "UPDATE \"two words\" SET y = y + 1"]
    }
    if version > 8 { choices += ["UPDATE words SET \"odd \"\" name\" = x'0\(n)' WHERE a % 2 = 0"] }
    return random.pick(choices)
  }

  @Test(
    "However late and in how many steps the app is upgraded, it has the same rows as after an early upgrade",
    arguments: Seeds.shards)
  func asIfUpgradedBefore(shard: Int) throws {
    try Seeds.tryEach(40, shard: shard) { seed in
      var random = SeededGenerator(seed: seed)
      var chain = try Chain(Self.base, receivers: ["late", "early"])
      try chain.run(Self.upgrades.joined(separator: ";"), on: "early")
      var (author, late) = (0, 0)
      for _ in 0..<Int.random(in: 3...14, using: &random) {
        var edits: [String] = []
        if author < Self.upgrades.count, random.oneIn(2) {
          edits.append(Self.upgrades[author])
          author += 1
        }
        for _ in 0..<Int.random(in: 0...5, using: &random) { edits.append(Self.edit(version: author, &random)) }
        try chain.send(edits.joined(separator: ";"), to: ["late", "early"])
        if late < Self.upgrades.count, random.oneIn(3) {
          let steps = Int.random(in: 1...3, using: &random)
          for upgrade in Self.upgrades[late...].prefix(steps) { try chain.run(upgrade, on: "late") }
          late = min(Self.upgrades.count, late + steps)
        }
        if random.oneIn(2) { try chain.apply("late") }
      }
      try chain.apply("late")
      for upgrade in Self.upgrades[late...] {
        try chain.run(upgrade, on: "late")
        if random.oneIn(3) { try chain.apply("late") }
      }
      try chain.apply("late")
      let early = try chain.apply("early")
      let replay = Seeds.replay(seed)
      #expect(early.diffs.allSatisfy { $0.state == .applied }, "\(replay)")
      #expect(
        try TestDatabases.content(of: chain.folder.file("late"))
          == TestDatabases.content(of: chain.folder.file("early")),
        "\(replay)")
      #expect(try chain.rows("SELECT count(*) FROM buckia_held_change", of: "late") == ["0"], "\(replay)")
      #expect(try chain.rows("SELECT count(*) FROM buckia_conflict", of: "late") == ["0"], "\(replay)")
      #expect(
        try chain.rows("SELECT DISTINCT state FROM buckia_ledger WHERE state <> 'applied'", of: "late") == [],
        "\(replay)")
    }
  }
}
