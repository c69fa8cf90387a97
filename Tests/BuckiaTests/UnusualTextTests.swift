import Buckia
import BuckiaDiff
import BuckiaBytes
import SQLiteConnections
import Testing
import TestSupport

/// Text and names that are invalid in their encoding. Those that cannot be sent unchanged are named.
@Suite struct UnusualTextTests {
  private static let table = "CREATE TABLE t(id INTEGER PRIMARY KEY, v TEXT, w);"
  /// In a UTF-8 database: a byte that is no UTF-8, half a surrogate pair, a code point that is no character, and valid
  /// text.
  private static let broken = """
    INSERT INTO t VALUES (1, CAST(x'61ff62' AS TEXT), 1), (2, CAST(x'eda080' AS TEXT), 1), (3, CAST(x'efbfbf' AS TEXT), 1),
      (4, char(65533), 1), (5, 'Ünï' || char(0) || char(128512), 1)
    """

  private func receive(encoding: String, edits: String, files: Int = 1) throws -> (
    exchange: Exchange, report: ApplyReport
  ) {
    let exchange = try Exchange(Self.table)
    try TestDatabases.run("PRAGMA encoding = '\(encoding)'; \(Self.table)", on: exchange.folder.file("other"))
    try exchange.send(edits)
    for index in 1..<files { try exchange.send("INSERT INTO t VALUES (\(index + 100), 'good', 1)") }
    let report = try DatabaseManager(exchange.folder.file("other")).processInboundChanges([exchange.inbound])
    return (exchange, report)
  }

  @Test("Text that is no UTF-8 is sent byte for byte between databases that store UTF-8")
  func bytes() throws {
    let (exchange, report) = try receive(encoding: "UTF-8", edits: Self.broken)
    let warnings = report.diffs.flatMap(\.warnings)
    #expect(warnings == [])
    let rows = try TestDatabases.rows("SELECT v FROM t ORDER BY id", on: exchange.folder.file("other"))
    #expect(Array(rows.prefix(3)) == ["'97.255.98'", "'237.160.128'", "'239.191.191'"])
  }

  @Test("Text that UTF-16 cannot store causes a warning with the column", arguments: ["UTF-16le", "UTF-16be"], [1, 5])
  func intoUTF16(encoding: String, files: Int) throws {
    let (exchange, report) = try receive(encoding: encoding, edits: Self.broken, files: files)
    #expect(report.diffs.count == files)
    #expect(report.diffs.allSatisfy { $0.state == .applied && $0.conflicts == 0 })
    let warnings = report.diffs.map(\.warnings)
    #expect(warnings[0].map(\.code) == [.alteredText] && warnings[0][0].arguments == ["t", "v"])
    #expect(warnings.dropFirst().allSatisfy { $0.isEmpty })
    let rows = try TestDatabases.rows("SELECT v FROM t ORDER BY id", on: exchange.folder.file("other"))
    #expect(rows[3] == "'239.191.189'" && rows[4] == "'195.156.110.195.175.0.240.159.152.128'")
  }

  @Test("Valid text is stored as UTF-16 without a warning")
  func good() throws {
    let edits = "INSERT INTO t VALUES (4, char(65533, 65532), 1), (5, 'Ünï' || char(0) || char(128512, 1114109), x'ff')"
    let (_, report) = try receive(encoding: "UTF-16le", edits: edits)
    #expect(report.diffs.map(\.warnings) == [[]])
  }

  @Test("Half a surrogate pair in UTF-16 is named only in columns that are sent", arguments: ["le", "be"])
  func fromUTF16(order: String) throws {
    let folder = try TemporaryFolder()
    let (lone, good) = order == "le" ? ("3dd86100", "3dd800de") : ("d83d0061", "d83dde00")
    let older = try TestDatabases.run(
      "PRAGMA encoding = 'UTF-16\(order)'; \(Self.table) INSERT INTO t VALUES (1, CAST(x'\(lone)' AS TEXT), 1), (2, 'x', 1)",
      on: folder.file("older"))
    let newer = try folder.copy("older", to: "newer")
    try TestDatabases.run("UPDATE t SET v = CAST(x'\(good)' AS TEXT), w = 2 WHERE id = 2", on: newer)
    #expect(try DatabaseComparison.run(older: older, newer: newer).skipped == [])
    try TestDatabases.run("UPDATE t SET w = CAST(x'\(lone)' AS TEXT) WHERE id = 2", on: newer)
    let difference = try DatabaseComparison.run(older: older, newer: newer)
    #expect(difference.skipped.map(\.name) == ["t.w"])
    #expect(difference.skipped.allSatisfy { $0.reason.description.contains("UTF-16") })
    try TestDatabases.run("DELETE FROM t WHERE id = 1", on: newer)
    #expect(try DatabaseComparison.run(older: older, newer: newer).skipped.map(\.name) == ["t.v", "t.w"])
  }

  // MARK: Names

  /// Changes a letter of the schema into a byte that is no UTF-8.
  private func spoil(_ path: String) throws {
    try TestDatabases.run(
      """
      PRAGMA writable_schema = ON;
      UPDATE sqlite_schema SET sql = CAST(replace(CAST(sql AS BLOB), CAST('Q' AS BLOB), x'e9') AS TEXT),
        name = CAST(replace(CAST(name AS BLOB), CAST('Q' AS BLOB), x'e9') AS TEXT),
        tbl_name = CAST(replace(CAST(tbl_name AS BLOB), CAST('Q' AS BLOB), x'e9') AS TEXT)
      """, on: path)
  }

  @Test("A table with a name or column name that is no UTF-8 is not sent, and all others are")
  func names() throws {
    let folder = try TemporaryFolder()
    let older = try TestDatabases.run(
      """
      CREATE TABLE cafQ(id INTEGER PRIMARY KEY, v); CREATE TABLE drink(id INTEGER PRIMARY KEY, "priceQ", v);
      CREATE TABLE food(id INTEGER PRIMARY KEY, v DEFAULT 'Q'); INSERT INTO food VALUES (1, 1);
      INSERT INTO cafQ VALUES (1, 1); INSERT INTO drink VALUES (1, 1, 1)
      """, on: folder.file("older"))
    try spoil(older)
    let newer = try folder.copy("older", to: "newer")
    try TestDatabases.run("UPDATE food SET v = 2; UPDATE drink SET v = 2; INSERT INTO food(id) VALUES (2)", on: newer)
    for method in DiffMethod.allCases {
      let difference = try DatabaseComparison.run(older: older, newer: newer, options: DiffOptions(method: method))
      #expect(difference.tables.map(\.definition.name) == ["food"])
      #expect(difference.skipped.map(\.name) == ["caf\u{fffd}", "drink"])
      #expect(difference.skipped.allSatisfy { $0.reason.description.contains("UTF-8") }, "\(difference.skipped)")
    }
    let doctor = try DatabaseManager(newer).examine()
    #expect(doctor.replicates.map(\.name) == ["food"])
    #expect(doctor.skipped.map(\.name) == ["caf\u{fffd}", "drink"])
    let sent = try DatabaseManager(newer, home: BuckiaHome(path: folder.file("home"))).createDatabaseDiff(
      since: older, output: .file(folder.file("a.bdiff"), replacing: false))
    let report = try DatabaseManager(older).processInboundChanges([try #require(sent.path)])
    #expect(report.diffs.map(\.state) == [.applied])
    #expect(try WholeFood.rows(of: older) == WholeFood.rows(of: newer))
  }

  private enum WholeFood {
    static func rows(of path: String) throws -> [String] {
      try TestDatabases.rows("SELECT * FROM food ORDER BY id", on: path)
    }
  }

  @Test("Tables whose names only look alike are not mistaken for each other, in a folder of many files")
  func lookalikes() throws {
    let composed = "CREATE TABLE \"caf\u{e9}\"(id INTEGER PRIMARY KEY, \"e\u{301}\");"
    let decomposed = "CREATE TABLE \"cafe\u{301}\"(id INTEGER PRIMARY KEY, \"\u{e9}\");"
    let exchange = try Exchange(composed + decomposed + "CREATE INDEX \"caf\u{e9} i\" ON \"caf\u{e9}\"(id)")
    for index in 1...4 {
      try exchange.send("INSERT INTO \"caf\u{e9}\" VALUES (\(index), 'one')")
      try exchange.send("INSERT INTO \"cafe\u{301}\" VALUES (\(index), 'two')")
    }
    #expect(try exchange.apply().diffs.allSatisfy { $0.state == .applied })
    #expect(try exchange.rows("SELECT count(\"e\u{301}\") FROM \"caf\u{e9}\"") == ["4"])
    #expect(try exchange.rows("SELECT count(\"\u{e9}\") FROM \"cafe\u{301}\"") == ["4"])
    let report = try exchange.send("CREATE INDEX \"cafe\u{301} i\" ON \"cafe\u{301}\"(id)")
    #expect(report.skipped.map(\.reason.description) == ["a new index; definitions of this kind do not travel"])
  }

  @Test("A file for a table with a column name that is no UTF-8 is refused with the reason")
  func receiving() throws {
    let exchange = try Exchange("CREATE TABLE drink(id INTEGER PRIMARY KEY, priceQ, v)")
    try spoil(exchange.mine)
    try exchange.send("INSERT INTO drink(id, v) VALUES (1, 1)")
    let report = try exchange.apply()
    #expect(report.rejected.count == 1 && report.rejected[0].reason?.contains("UTF-8") == true)
  }

  // MARK: Collating sequences

  @Test("Tables with a collating sequence that only the app knows are compared", arguments: DiffMethod.allCases)
  func collations(method: DiffMethod) throws {
    let folder = try TemporaryFolder()
    let older = folder.file("older")
    let connection = try SQLiteConnection(opening: older, as: .create)
    try connection.registerByteCollation(named: "localized")
    try connection.execute(
      """
      CREATE TABLE t(k TEXT COLLATE localized PRIMARY KEY, v); INSERT INTO t VALUES ('a', 1), ('b', 2);
      CREATE TABLE w(k TEXT COLLATE localized, n, v, PRIMARY KEY (k, n)) WITHOUT ROWID; INSERT INTO w VALUES ('a', 1, 1), ('b', 2, 2);
      CREATE TABLE x(id INTEGER PRIMARY KEY, v TEXT COLLATE localized UNIQUE); INSERT INTO x VALUES (1, 'a')
      """)
    let newer = try folder.copy("older", to: "newer")
    let other = try SQLiteConnection(opening: newer, as: .readWrite)
    try other.registerByteCollation(named: "localized")
    try other.execute(
      "UPDATE t SET v = 9 WHERE k = 'a'; DELETE FROM w WHERE k = 'a'; INSERT INTO w VALUES ('c', 3, 3); UPDATE x SET v = 'z'"
    )
    let difference = try DatabaseComparison.run(older: older, newer: newer, options: DiffOptions(method: method))
    #expect(difference.tables.map { [$0.inserted, $0.updated, $0.deleted] } == [[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    let doctor = try DatabaseManager(newer).examine()
    #expect(doctor.replicates.count == 3)
    for column in ["t.k", "w.k", "x.v"] {
      #expect(doctor.warnings.contains { $0.description.contains("\"\(column)\"") })
    }
    #expect(doctor.warnings.contains { $0.code == .notCheckable && $0.arguments[0].contains("localized") })
  }
}
