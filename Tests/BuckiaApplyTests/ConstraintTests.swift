import BuckiaBytes
@testable import BuckiaApply
@testable import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections
import Testing
import TestSupport

/// Changes that a constraint refuses, and foreign keys that the application enforces.
@Suite struct ConstraintTests {
  private func apply(
    _ recorded: String, after base: String, to connection: borrowing SQLiteConnection,
    settings: ApplySettings = ApplySettings(time: 2_000_000_000_000)
  ) throws -> ApplyResult {
    let author = try SQLiteConnection(opening: ":memory:", as: .create)
    try author.execute(base)
    let session = try SQLiteSession(on: author)
    try session.attach()
    try author.execute(recorded)
    let incoming = try IncomingChanges(
      key: LedgerKey(sender: "", id: nil, digest: [UInt8](repeating: 1, count: 32), isRaw: true), file: "test",
      definitions: nil, changeset: TemporaryBuffer(try session.changeset()))
    return try Receiver.plan(incoming, on: connection, settings: settings).apply()
  }

  @Test("Of thousands of changes, those refused by a CHECK are left out and recorded, the others applied")
  func manyRefused() throws {
    let rows = "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) INSERT INTO t SELECT i, i FROM n;"
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute(
      "CREATE TABLE t(id INTEGER PRIMARY KEY, u INT UNIQUE CHECK (u < 100000 OR u % 2)); \(rows) BEGIN")
    let result = try apply(
      "UPDATE t SET u = u + 100000", after: "CREATE TABLE t(id INTEGER PRIMARY KEY, u INT UNIQUE); \(rows)",
      to: connection)
    #expect(result.counts.updated == 1_500)
    #expect(result.counts.conflicts == 1_500 && result.counts.omitted == 1_500)
    #expect(try connection.integer("SELECT count(*) FROM t WHERE u > 100000") == 1_500)
    #expect(try connection.integer("SELECT count(*) FROM buckia_conflict WHERE kind = 'constraint'") == 1_500)
  }

  @Test("A long column is shifted under UNIQUE, except rows that cannot be")
  func longShift() throws {
    let base = """
      CREATE TABLE t(id INTEGER PRIMARY KEY, u INT UNIQUE);
      WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) INSERT INTO t SELECT i, i * 2 FROM n;
      """
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    // The receiver's own row has the number 7, so the author's row 3 cannot get it.
    try connection.execute("\(base) INSERT INTO t VALUES (5000, 7); BEGIN")
    let result = try apply(
      "UPDATE t SET u = -u; UPDATE t SET u = CASE id WHEN 3 THEN 7 ELSE -u + 4 END", after: base, to: connection)
    #expect(result.counts.conflicts == 2, "row 3, and row 1, whose place is row 3's")
    #expect(try connection.integer("SELECT count(*) FROM t WHERE u = id * 2 + 4 AND id < 5000") == 998)
    #expect(try connection.integer("SELECT u FROM t WHERE id = 3") == 6)
    #expect(try connection.integer("SELECT u FROM t WHERE id = 1") == 2)
  }

  @Test("Violations pending in the application's transaction are an error before anything is written")
  func deferredByTheApplication() throws {
    let schema = """
      CREATE TABLE p(id INTEGER PRIMARY KEY); CREATE TABLE c(id INTEGER PRIMARY KEY, p REFERENCES p);
      CREATE TABLE t(id INTEGER PRIMARY KEY);
      """
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute("\(schema) PRAGMA foreign_keys = ON; BEGIN; PRAGMA defer_foreign_keys = ON")
    try connection.execute("INSERT INTO c VALUES (1, 1)")
    // SQLite would not notice that these changes resolve the violation, and would refuse to commit.
    let error = #expect(throws: ReplicationError.self) {
      _ = try apply("INSERT INTO p VALUES (1)", after: schema, to: connection)
    }
    #expect(error?.code == .deferredViolations && error?.message.contains("write those rows first") == true)
    #expect(try connection.foreignKeysEnforced)
    #expect(try connection.triggersEnabled)
    #expect(try connection.integer("SELECT count(*) FROM p") == 0)
    #expect(throws: SQLiteError.self) { try connection.execute("COMMIT") }
    try connection.execute("INSERT INTO p VALUES (1)")
    _ = try apply("INSERT INTO t VALUES (1)", after: schema, to: connection)
    try connection.execute("COMMIT")
    #expect(try connection.integer("SELECT count(*) FROM t") == 1)
  }

  @Test("Foreign keys are enforced again immediately afterwards")
  func enforcedAgain() throws {
    let schema = """
      CREATE TABLE p(id INTEGER PRIMARY KEY); CREATE TABLE c(id INTEGER PRIMARY KEY, p REFERENCES p);
      """
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute("\(schema) PRAGMA foreign_keys = ON; BEGIN")
    // The child is inserted before its parent.
    let result = try apply(
      "PRAGMA foreign_keys = OFF; INSERT INTO c VALUES (1, 1); INSERT INTO p VALUES (1)", after: schema, to: connection)
    #expect(result.counts.conflicts == 0)
    #expect(throws: SQLiteError.self) { try connection.execute("INSERT INTO c VALUES (2, 99)") }
    try connection.execute("COMMIT")
  }

  @Test("1 and 1.0 are equal only if the column's affinity makes them equal")
  func numbers() throws {
    for (type, isEqual) in [("INTEGER", true), ("NUMERIC", true), ("REAL", true), ("", false), ("BLOB", false)] {
      let connection = try SQLiteConnection(opening: ":memory:", as: .create)
      try connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, a \(type)); INSERT INTO t VALUES (1, 1); BEGIN")
      let result = try apply(
        "UPDATE t SET a = 1.0", after: "CREATE TABLE t(id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES (1, 'x')",
        to: connection, settings: ApplySettings(policies: .takeIncoming, time: 2_000_000_000_000))
      #expect(result.counts.unchanged == (isEqual ? 1 : 0), "\(type)")
      #expect(try connection.text("SELECT typeof(a) FROM t") == (isEqual && type != "REAL" ? "integer" : "real"))
    }
  }
}
