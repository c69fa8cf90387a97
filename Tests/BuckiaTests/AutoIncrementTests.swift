import Buckia
import BuckiaApply
import BuckiaLedger
import SQLiteConnections
import TestSupport
import Testing

/// The receiver of an AUTOINCREMENT table assigns no id that the author has used for a sent row.
@Suite struct AutoIncrementTests {
  private static let table = "CREATE TABLE t(id INTEGER PRIMARY KEY AUTOINCREMENT, u UNIQUE, v);"

  /// The id of the next row that is inserted here.
  private func nextID(_ exchange: Exchange, in table: String = "t") throws -> Int {
    try TestDatabases.run("DELETE FROM \(table)", on: exchange.mine)
    try TestDatabases.run("INSERT INTO \(table) DEFAULT VALUES", on: exchange.mine)
    return try #require(try exchange.rows("SELECT id FROM \(table)").first.flatMap { Int($0) })
  }

  struct Case: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let base: String
    /// SQL that the receiver runs before applying.
    var here = ""
    let edits: String
    let next: Int
  }

  static let cases = [
    Case(testDescription: "rows inserted", base: table, edits: "INSERT INTO t VALUES (7, 1, 1), (20, 2, 2)", next: 21),
    Case(
      testDescription: "a row inserted and deleted again does not travel", base: table,
      edits: "INSERT INTO t VALUES (10, 1, 1); DELETE FROM t", next: 1),
    Case(
      testDescription: "an update that meets no row", base: "\(table) INSERT INTO t VALUES (30, 1, 1)",
      here: "DELETE FROM t; DELETE FROM sqlite_sequence", edits: "UPDATE t SET v = 2", next: 1),
    Case(
      testDescription: "a deletion that meets no row",
      base: "\(table) INSERT INTO t VALUES (9223372036854775807, 1, 1)",
      here: "DELETE FROM t; DELETE FROM sqlite_sequence", edits: "DELETE FROM t", next: 1),
    Case(
      testDescription: "a deletion of a row whose id came by an UPDATE",
      base: "\(table) INSERT INTO t VALUES (1, 1, 1); UPDATE t SET id = 30", edits: "DELETE FROM t", next: 31),
    Case(
      testDescription: "the greatest id there is", base: table,
      edits: "INSERT INTO t VALUES (9223372036854775807, 1, 1)", next: 1),
    Case(
      testDescription: "an id behind which too few are left", base: table,
      edits: "INSERT INTO t VALUES (9223372036854775800, 1, 1)", next: 1),
    Case(
      testDescription: "the greatest id at the end of a batch", base: table,
      edits: """
        WITH n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 200) INSERT INTO t SELECT i, i, i FROM n;
        INSERT INTO t VALUES (9223372036854775807, 'x', 0)
        """, next: 201),
    Case(
      testDescription: "a row that is refused here", base: table, here: "INSERT INTO t VALUES (1, 'x', 1)",
      edits: "INSERT INTO t VALUES (40, 'x', 2)", next: 41),
    Case(
      testDescription: "a row that replaces one whose id came by an UPDATE", base: table,
      here: "INSERT INTO t VALUES (1, 1, 1); UPDATE t SET id = 50", edits: "INSERT INTO t VALUES (50, 2, 2)", next: 51),
    Case(
      testDescription: "a batch whose last row is refused", base: table, here: "INSERT INTO t VALUES (1, 'x', 1)",
      edits: """
        WITH n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 200) INSERT INTO t SELECT i, i, i FROM n;
        INSERT INTO t VALUES (300, 'x', 0)
        """, next: 301),
    Case(
      testDescription: "a row whose id the author changed", base: "\(table) INSERT INTO t VALUES (1, 1, 1)",
      edits: "UPDATE t SET id = 60", next: 61),
    Case(
      testDescription: "the counter is further here", base: table,
      here: "INSERT INTO t VALUES (500, 0, 0)", edits: "INSERT INTO t VALUES (7, 1, 1)", next: 501),
    Case(
      testDescription: "an application has written text into the counter",
      base: "\(table) INSERT INTO t VALUES (1, 1, 1)",
      here: "UPDATE sqlite_sequence SET seq = 'none'", edits: "INSERT INTO t VALUES (8, 2, 2)", next: 9),
    Case(
      testDescription: "a table made just now", base: "CREATE TABLE other(a)",
      edits: "\(table) INSERT INTO t VALUES (70, 1, 1); DELETE FROM t; INSERT INTO t VALUES (65, 1, 1)", next: 66),
    Case(
      testDescription: "ids below zero", base: table, edits: "INSERT INTO t VALUES (-9, 1, 1)", next: 1),
  ]

  @Test("The counter follows the ids of received changes", arguments: cases, [ConflictPolicy.keepLocal, .takeIncoming])
  func follows(_ found: Case, policy: ConflictPolicy) throws {
    let exchange = try Exchange(found.base)
    if !found.here.isEmpty { try TestDatabases.run(found.here, on: exchange.mine) }
    try exchange.send(found.edits)
    let report = try exchange.apply(ApplyOptions(conflicts: ConflictPolicies(policy)))
    #expect(report.diffs.allSatisfy { $0.state == .applied })
    #expect(try nextID(exchange) == found.next)
    #expect(try exchange.rows("PRAGMA integrity_check") == ["'111.107'"])
  }

  @Test func `an INSERT that would use up the ids of a table is a constraint conflict with that reason`() throws {
    let exchange = try Exchange(Self.table)
    try exchange.send("INSERT INTO t VALUES (9223372036854775807, 'x', 1)")
    try exchange.apply()
    let conflicts = try exchange.database.conflicts()
    #expect(conflicts.map(\.kind) == [.constraint])
    #expect(conflicts.first?.reason?.contains("would use up the ids of table t") == true, "\(conflicts)")
    #expect(try exchange.rows("SELECT count(*) FROM t") == ["0"])
  }

  @Test func `a table without AUTOINCREMENT takes a row with one of the greatest keys, with a warning`() throws {
    let exchange = try Exchange("CREATE TABLE t(id INTEGER PRIMARY KEY, v)")
    try exchange.send("INSERT INTO t VALUES (9223372036854775806, 1)")
    try exchange.send("INSERT INTO t VALUES (7, 2)")
    let report = try exchange.apply()
    #expect(report.diffs.map(\.warnings) == [[Warning(.lastKeys, "t", "9223372036854775806")], []])
    #expect(try exchange.rows("SELECT count(*) FROM t") == ["2"])
  }

  @Test("The counter follows all files of a folder, even if a row in them is refused")
  func manyFiles() throws {
    let exchange = try Exchange(Self.table)
    for index in 1...40 { try exchange.send("INSERT INTO t VALUES (\(index * 10), \(index), 0)") }
    try TestDatabases.run("INSERT INTO t VALUES (1, 40, 'mine')", on: exchange.mine)
    #expect(try exchange.apply().diffs.count == 40)
    #expect(try nextID(exchange) == 401)
  }

  @Test("A table that was renamed and renamed back has one counter")
  func name() throws {
    let exchange = try Exchange("CREATE TABLE \"Tä ble\"(id INTEGER PRIMARY KEY AUTOINCREMENT, v); CREATE TABLE old(a)")
    try TestDatabases.run(
      "ALTER TABLE \"Tä ble\" RENAME TO 'TÄ BLE'; ALTER TABLE 'TÄ BLE' RENAME TO \"Tä ble\"", on: exchange.mine)
    try exchange.send("INSERT INTO \"tä BLE\" VALUES (5, 1)")
    try exchange.apply()
    #expect(try exchange.rows("SELECT count(*), max(seq) FROM sqlite_sequence") == ["1|5"])
  }
}
