import Buckia
import BuckiaApply
import BuckiaDiff
import BuckiaBytes
import BuckiaLedger
import SQLiteConnections
import TestSupport
import Testing

/// Data as large as SQLite allows.
@Suite struct LargeDataTests {
  /// Writes the differences between two databases to a file, and applies it.
  private func ship(
    _ folder: TemporaryFolder, _ older: String, _ newer: String, method: DiffMethod? = nil, onto target: String,
    options: ApplyOptions = ApplyOptions()
  ) throws -> (sent: DiffReport, outcome: DiffOutcome) {
    let sent = try DatabaseManager(newer, home: BuckiaHome(path: folder.file("home"))).createDatabaseDiff(
      since: older, output: .file(folder.file("\(UInt64.random(in: 0...(.max))).bdiff"), replacing: false),
      options: DiffOptions(method: method))
    let report = try DatabaseManager(target).processInboundChanges([try #require(sent.path)], options: options)
    let outcome = try #require(report.diffs.first)
    #expect(outcome.state == .applied, "\(outcome.reason ?? "")")
    return (sent, outcome)
  }

  // MARK: Columns

  private static let names = (0..<1_999).map { "c\($0)" }.joined(separator: ", ")

  struct Wide: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let table: String
    let key: String
  }

  /// Each has 2,000 columns.
  static let wide = [
    Wide(testDescription: "a rowid", table: "(k, \(names))", key: "rowid"),
    Wide(testDescription: "an INTEGER key", table: "(k INTEGER PRIMARY KEY, \(names))", key: "k"),
    Wide(testDescription: "a TEXT key beside a rowid", table: "(\(names), k TEXT PRIMARY KEY)", key: "k"),
    Wide(testDescription: "a key without rowid", table: "(\(names), k TEXT PRIMARY KEY) WITHOUT ROWID", key: "k"),
  ]

  private static func columns(_ value: (Int) -> String) -> String { (0..<1_999).map(value).joined(separator: ", ") }

  @Test("Changes of tables of 2,000 columns are found by all methods and applied", arguments: wide)
  func columns(_ wide: Wide) throws {
    let folder = try TemporaryFolder()
    let insert: (Int) -> String = { row in
      "INSERT INTO t(k, \(Self.names)) VALUES (\(row), \(Self.columns { "\(row * $0)" }));"
    }
    let older = try TestDatabases.run(
      "CREATE TABLE t\(wide.table); \((1...5).map(insert).joined())", on: folder.file("older"))
    let newer = try folder.copy("older", to: "newer")
    try TestDatabases.run(
      """
      UPDATE t SET c0 = 'first', c1998 = NULL WHERE k = 2; UPDATE t SET k = 50 WHERE k = 3; DELETE FROM t WHERE k = 4;
      UPDATE t SET \((0..<1_999).map { "c\($0) = -c\($0)" }.joined(separator: ", ")) WHERE k = 5; \(insert(9))
      """, on: newer)
    for method in DiffMethod.allCases {
      let target = try folder.copy("older", to: "target-\(method)")
      let (sent, outcome) = try ship(folder, older, newer, method: method, onto: target)
      #expect(sent.tables.map(\.method) == [method == .session ? .rows : method])
      #expect(outcome.conflicts == 0)
      #expect(try WholeContent(of: target) == WholeContent(of: newer))
    }
    let empty = try TestDatabases.run("PRAGMA user_version = 1", on: folder.file("empty"))
    let made = try folder.copy("empty", to: "made")
    _ = try ship(folder, empty, newer, onto: made)
    #expect(try WholeContent(of: made) == WholeContent(of: newer))
  }

  @Test(
    "Conflicts in tables of 2,000 columns have all columns", arguments: wide, [ConflictPolicy.keepLocal, .takeIncoming])
  func conflicts(_ wide: Wide, policy: ConflictPolicy) throws {
    let folder = try TemporaryFolder()
    let older = try TestDatabases.run(
      "CREATE TABLE t\(wide.table); INSERT INTO t(k, c5, c1998) VALUES (1, 'a', 'b'), (2, 'c', 'd'), (3, 'e', 'f')",
      on: folder.file("older"))
    let newer = try folder.copy("older", to: "newer")
    try TestDatabases.run(
      "UPDATE t SET c1998 = 'theirs' WHERE k = 1; DELETE FROM t WHERE k = 2; INSERT INTO t(k, c1998) VALUES (4, 'new')",
      on: newer)
    let target = try folder.copy("older", to: "target")
    try TestDatabases.run(
      "UPDATE t SET c1998 = 'mine' WHERE k < 3; INSERT INTO t(k, c1998) VALUES (4, 'here')", on: target)
    let (_, outcome) = try ship(
      folder, older, newer, onto: target, options: ApplyOptions(conflicts: ConflictPolicies(policy)))
    #expect(outcome.conflicts == 3)
    let rows = try TestDatabases.rows("SELECT k, c1998 FROM t ORDER BY k", on: target).map {
      $0.split(separator: "|").last
    }
    let texts = (policy == .keepLocal ? ["mine", "mine", "f", "here"] : ["theirs", "f", "new"])
    #expect(rows == texts.map { "'\($0.utf8.map(String.init).joined(separator: "."))'" })
    let records = try DatabaseManager(target).conflicts()
    #expect(records.allSatisfy { $0.local?.count == (wide.key == "rowid" ? 2_001 : 2_000) })
  }

  @Test("UNIQUE values are swapped in a table of 2,000 columns", arguments: wide)
  func circle(_ wide: Wide) throws {
    let folder = try TemporaryFolder()
    let table = wide.table.replacing("c7,", with: "c7 UNIQUE,")
    let older = try TestDatabases.run(
      "CREATE TABLE t\(table); INSERT INTO t(k, c7, c1998) VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)",
      on: folder.file("older"))
    let newer = try folder.copy("older", to: "newer")
    try TestDatabases.run(
      "UPDATE t SET c7 = c7 || '-'; UPDATE t SET c7 = CASE k WHEN 1 THEN 'b' WHEN 2 THEN 'c' ELSE 'a' END", on: newer)
    let target = try folder.copy("older", to: "target")
    let (_, outcome) = try ship(folder, older, newer, onto: target)
    #expect(outcome.conflicts == 0)
    #expect(try WholeContent(of: target) == WholeContent(of: newer))
  }

  @Test("A broken reference in a table of 2,000 columns is a conflict", arguments: wide)
  func brokenReference(_ wide: Wide) throws {
    let folder = try TemporaryFolder()
    let table = wide.table.replacing("c7,", with: "c7 REFERENCES p,")
    let older = try TestDatabases.run(
      "CREATE TABLE p(id INTEGER PRIMARY KEY); INSERT INTO p VALUES (1); CREATE TABLE t\(table)",
      on: folder.file("older"))
    let newer = try folder.copy("older", to: "newer")
    try TestDatabases.run("INSERT INTO t(k, c7) VALUES (1, 99)", on: newer)
    let target = try folder.copy("older", to: "target")
    let (_, outcome) = try ship(folder, older, newer, onto: target)
    #expect(outcome.conflicts == 1)
    #expect(try DatabaseManager(target).conflicts().map(\.kind) == [.foreignKey])
  }

  @Test("Tables that exceed one diff file are named, and the next diff sends them")
  func room() throws {
    let folder = try TemporaryFolder()
    // A line feed takes two bytes in a document, and a control character six.
    let names = (0..<700).map { "t\($0)\n\u{1}\(String(repeating: "\u{2}", count: 300))" }
    let older = try TestDatabases.run(
      names.map { "CREATE TABLE \"\($0)\"(id INTEGER PRIMARY KEY, \"\(String(repeating: "x", count: 1_000))\");" }
        .joined(),
      on: folder.file("older"))
    let newer = try folder.copy("older", to: "newer")
    try TestDatabases.run(names.map { "INSERT INTO \"\($0)\"(id) VALUES (1);" }.joined(), on: newer)
    let target = try folder.copy("older", to: "target")
    let (first, _) = try ship(folder, older, newer, onto: target)
    #expect(first.tables.count > 500 && first.tables.count + first.skipped.count == 700)
    #expect(first.skipped.allSatisfy { $0.reason.description.contains("diff again") })
    let (second, _) = try ship(folder, target, newer, onto: target)
    #expect(second.tables.count == first.skipped.count && second.skipped.isEmpty)
    #expect(try DatabaseComparison.run(older: target, newer: newer).isEmpty)
  }

  // MARK: Bytes

  @Test("A blob of 100 MB is sent and applied")
  func blob() throws {
    let folder = try TemporaryFolder()
    let older = try TestDatabases.run(
      "CREATE TABLE t(id INTEGER PRIMARY KEY, v BLOB); INSERT INTO t VALUES (1, zeroblob(100000000)), (2, x'01')",
      on: folder.file("older"))
    let newer = try folder.copy("older", to: "newer")
    try TestDatabases.run(
      """
      UPDATE t SET v = CAST(substr(v, 1, 99999999) || x'07' AS BLOB) WHERE id = 1;
      INSERT INTO t SELECT 3, CAST(x'aa' || zeroblob(99999998) || x'bb' AS BLOB)
      """, on: newer)
    let (_, outcome) = try ship(folder, older, newer, onto: older)
    #expect((outcome.updated, outcome.inserted, outcome.conflicts) == (1, 1, 0))
    let ends = "SELECT id, length(v), typeof(v), substr(v, 1, 1), substr(v, -1) FROM t ORDER BY id"
    #expect(try TestDatabases.rows(ends, on: older) == TestDatabases.rows(ends, on: newer))
    #expect(try DatabaseComparison.run(older: older, newer: newer).isEmpty)
  }

  // MARK: Tables

  @Test("Of 10,000 tables, only the ten changed ones are sent")
  func tables() throws {
    let folder = try TemporaryFolder()
    let older = folder.file("older")
    do {
      let connection = try SQLiteConnection(opening: older, as: .create)
      try connection.execute("BEGIN")
      for index in 0..<10_000 {
        let definition =
          switch index % 5 {
          case 0: "(id INTEGER PRIMARY KEY AUTOINCREMENT, a TEXT, b)"
          case 1: "(k TEXT PRIMARY KEY COLLATE NOCASE, v, UNIQUE (v))"
          case 2: "(a, b)"
          case 3: "(k TEXT, n INT, v, PRIMARY KEY (n, k)) WITHOUT ROWID"
          // SQLite searches all tables with foreign keys whenever it creates another.
          default: "(id INTEGER PRIMARY KEY, up\(index < 100 ? " REFERENCES t0" : ""), g AS (up + 1))"
          }
        try connection.execute("CREATE TABLE t\(index)\(definition)")
      }
      try connection.execute("COMMIT")
    }
    let newer = try folder.copy("older", to: "newer")
    let edits = (0..<10).map { index in
      let table = "t\(index * 1_001)"
      return switch index * 1_001 % 5 {
      case 0: "INSERT INTO \(table)(a) VALUES ('x'), ('y')"
      case 1: "INSERT INTO \(table) VALUES ('k', \(index))"
      case 2: "INSERT INTO \(table) VALUES (1, 2), (1, 2)"
      case 3: "INSERT INTO \(table) VALUES ('k', \(index), x'00')"
      default: "INSERT INTO \(table)(up) VALUES (NULL)"
      }
    }
    try TestDatabases.run(edits.joined(separator: ";"), on: newer)
    for method in DiffMethod.allCases {
      let target = try folder.copy("older", to: "target-\(method)")
      let (sent, outcome) = try ship(folder, older, newer, method: method, onto: target)
      #expect(sent.tables.count == 10)
      #expect(sent.skipped.isEmpty)
      #expect((outcome.inserted, outcome.conflicts) == (14, 0))
      let rest = try DatabaseComparison.run(older: target, newer: newer)
      #expect(rest.isEmpty)
    }
  }
}
