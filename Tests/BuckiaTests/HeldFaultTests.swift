import Buckia
import BuckiaApply
import SQLiteSchemas
import TestSupport
import Testing

/// Held changes that cannot be applied, although their table or column exists now, do not stop other files.
@Suite struct HeldFaultTests {
  private static let base = """
    CREATE TABLE log(id INTEGER PRIMARY KEY AUTOINCREMENT, n);
    CREATE TABLE notes(id INTEGER PRIMARY KEY, n);
    INSERT INTO notes VALUES (1, 1), (2, 2), (3, 3)
    """

  struct Case: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// SQL that the receiver runs before the held changes are applied.
    let here: String
    let code: BuckiaErrorCode
  }

  private static func trigger(_ body: String) -> String {
    "CREATE TRIGGER fault AFTER UPDATE ON notes WHEN new.id = 2 BEGIN \(body); END"
  }

  static let cases = [
    Case(
      testDescription: "a trigger refuses the row", here: trigger("SELECT RAISE(ABORT, 'not here')"),
      code: BuckiaErrorCode(rawValue: "conflict")),
    Case(
      testDescription: "a trigger rolls everything back", here: trigger("SELECT RAISE(ROLLBACK, 'not here')"),
      code: BuckiaErrorCode(rawValue: "sqlite-1811")),
    Case(
      testDescription: "a trigger calls a function that is not here", here: trigger("SELECT no_such_function(1)"),
      code: BuckiaErrorCode(rawValue: "sqlite-1")),
    Case(
      testDescription: "a trigger adds to a table whose counter is at its end",
      here: """
        INSERT INTO log VALUES (9223372036854775807, 0); DELETE FROM log;
        \(trigger("INSERT INTO log(n) VALUES (new.n)"))
        """, code: .noIDsLeft),
    Case(
      testDescription: "a trigger writes into a full-text index that is damaged",
      here: """
        CREATE VIRTUAL TABLE words USING fts5(word); INSERT INTO words VALUES ('one'); DELETE FROM words_data;
        \(trigger("INSERT INTO words VALUES ('two')"))
        """, code: .damagedDatabase),
  ]

  /// A database that holds a column of one file and a table of another.
  private func holding() throws -> Exchange {
    let exchange = try Exchange(Self.base)
    try exchange.send("ALTER TABLE notes ADD COLUMN stars; UPDATE notes SET stars = 0 WHERE id = 2")
    try exchange.send("CREATE TABLE t(a INTEGER PRIMARY KEY); INSERT INTO t VALUES (7)")
    #expect(try exchange.apply(ApplyOptions(schema: .hold)).diffs.map(\.state) == [.held, .held])
    return exchange
  }

  @Test("A held change that cannot be applied stays held with the reason, and all else is applied", arguments: cases)
  func othersGoOn(_ found: Case) throws {
    let exchange = try holding()
    try TestDatabases.run(
      "ALTER TABLE notes ADD COLUMN stars; CREATE TABLE t(a INTEGER PRIMARY KEY)", on: exchange.mine)
    try TestDatabases.run(found.here, on: exchange.mine)
    try exchange.send("INSERT INTO notes VALUES (30, 1)")
    let options = ApplyOptions(conflicts: .abort, triggers: true)
    let first = try exchange.apply(options)
    #expect(first.diffs.map(\.state) == [.held, .applied, .applied], "\(first.diffs.map(\.reason))")
    #expect(first.diffs[0].code == found.code, "\(first.diffs[0].reason ?? "")")
    #expect(first.diffs[0].reason?.contains("table \"notes\" cannot be applied") == true)
    #expect(first.diffs[0].heldParts == 1)
    #expect(first.diffs[2].warnings.isEmpty, "it is told of once")
    let again = try exchange.apply(options)
    #expect(again.diffs.map(\.state) == [.held])
    #expect(again.diffs[0].code == found.code)
    #expect(
      try exchange.rows("SELECT id, n, stars FROM notes ORDER BY id") == [
        "1|1|NULL", "2|2|NULL", "3|3|NULL", "30|1|NULL",
      ])
    #expect(try exchange.rows("SELECT a FROM t") == ["7"])
    // Once the cause is gone, the held change is applied.
    try TestDatabases.run("DROP TRIGGER fault", on: exchange.mine)
    #expect(try exchange.apply(options).diffs.map(\.state) == [.applied])
    #expect(try exchange.rows("SELECT stars FROM notes WHERE id = 2") == ["0"])
    #expect(try exchange.rows("SELECT count(*) FROM buckia_held_change") == ["0"])
  }

  @Test("A file that creates the missing column is applied, with a warning about the held change", arguments: cases)
  func placeMadeByFile(_ found: Case) throws {
    let exchange = try holding()
    try TestDatabases.run(found.here, on: exchange.mine)
    try exchange.send("INSERT INTO notes VALUES (30, 1)")
    try exchange.send("ALTER TABLE notes ADD COLUMN stars; INSERT INTO notes VALUES (31, 1, 5)")
    try exchange.send("INSERT INTO notes VALUES (32, 1)")
    let report = try exchange.apply(ApplyOptions(conflicts: .abort, schema: .additive, triggers: true))
    #expect(report.diffs.map(\.state) == [.applied, .applied, .applied], "\(report.diffs.map(\.reason))")
    let warnings = report.diffs.flatMap(\.warnings).filter { $0.code == .heldNotApplied }
    #expect(Set(warnings.map { $0.arguments[1] }) == ["notes"])
    #expect(report.diffs[1].warnings.contains { $0.code == .heldNotApplied })
    #expect(try exchange.rows("SELECT id FROM notes WHERE id > 3 ORDER BY id") == ["30", "31", "32"])
    #expect(try exchange.rows("SELECT count(*) FROM buckia_held_part WHERE table_name = 'notes'") == ["1"])
  }

  @Test("A trigger that rolls back the transaction of a dry run is an error")
  func ownTransaction() throws {
    let exchange = try holding()
    try TestDatabases.run(
      "ALTER TABLE notes ADD COLUMN stars; \(Self.trigger("SELECT RAISE(ROLLBACK, 'not here')"))", on: exchange.mine)
    let error = #expect(throws: BuckiaError.self) {
      try exchange.apply(ApplyOptions(triggers: true, isDryRun: true))
    }
    #expect(error?.code == .transactionLost)
    #expect(try exchange.rows("SELECT count(*) FROM buckia_held_part") == ["2"])
  }
}
