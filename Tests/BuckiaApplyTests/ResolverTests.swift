import BuckiaBytes
@testable import BuckiaApply
@testable import BuckiaLedger
@testable import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections
import Testing
import TestSupport

/// The conflicts that a resolver sees, and the effect of its answers.
@Suite struct ResolverTests {
  /// Applies the changes that `recorded` makes after `base` to `local` after `base`, or after another schema.
  @discardableResult
  private func apply(
    _ recorded: String, after base: String, into schema: String? = nil, local: String = "",
    enforcesForeignKeys: Bool = false,
    settings: ApplySettings, check: String = "SELECT 1"
  ) throws -> (result: ApplyResult, check: String?) {
    let author = try SQLiteConnection(opening: ":memory:", as: .create)
    try author.execute(base)
    let session = try SQLiteSession(on: author)
    try session.attach()
    try author.execute(recorded)
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute("\(schema ?? base); \(local); PRAGMA foreign_keys = \(enforcesForeignKeys ? "ON" : "OFF")")
    let incoming = try IncomingChanges(
      key: LedgerKey(sender: "", id: nil, digest: [UInt8](repeating: 1, count: 32), isRaw: true), file: "test",
      definitions: nil, changeset: TemporaryBuffer(try session.changeset()))
    let transaction = try SQLiteTransaction(on: connection)
    let result = try Receiver.plan(incoming, on: connection, settings: settings).apply()
    try transaction.commit()
    return (result, try connection.text(check))
  }

  private let notes = """
    CREATE TABLE notes(id INTEGER PRIMARY KEY, Title TEXT, size REAL, data BLOB, edited INTEGER);
    INSERT INTO notes VALUES (1, 'one', 1.5, x'01', 10), (2, 'two', 2.5, x'02', 20)
    """

  @Test("Rows that refer to a taken row are also asked about if a constraint then refuses that row")
  func refusedAfterTaken() throws {
    var asked: [String] = []
    let outcome = try apply(
      """
      INSERT INTO a VALUES (10, 'theirs'); UPDATE b SET u = 9, a = 10 WHERE id = 1;
      INSERT INTO b VALUES (2, 5, 10); INSERT INTO c VALUES (3, 2)
      """,
      after: """
        CREATE TABLE a(id INTEGER PRIMARY KEY, v);
        CREATE TABLE b(id INTEGER PRIMARY KEY, u UNIQUE, a REFERENCES a); INSERT INTO b VALUES (1, 5, NULL);
        CREATE TABLE c(id INTEGER PRIMARY KEY, b REFERENCES b)
        """,
      local: "INSERT INTO a VALUES (10, 'mine')",
      settings: ApplySettings(
        resolver: { conflict in
          asked.append("\(conflict.kind) \(conflict.table) \(conflict.operation?.name ?? "")")
          // The update is left out, and so keeps the value that the taken row needs.
          return conflict.table == "b" && conflict.operation == .insert ? .takeIncoming : .keepLocal
        }, time: 2_000_000_000_000),
      check: "SELECT (SELECT group_concat(id || '=' || u) FROM b) || ' ' || (SELECT count(*) FROM c)")
    #expect(outcome.check == "1=5 0")
    #expect(asked.contains("constraint b INSERT") && asked.contains("foreignKey c INSERT"), "\(asked)")
  }

  @Test("The three versions are read by column name, in any case, and by position")
  func values() throws {
    var asked = 0
    try apply(
      "UPDATE notes SET title = 'theirs', size = NULL WHERE id = 1", after: notes,
      local: "UPDATE notes SET title = 'mine', data = x'0203' WHERE id = 1",
      settings: ApplySettings(
        resolver: { conflict in
          asked += 1
          #expect(conflict.table == "NOTES" && conflict.kind == .data && conflict.operation == .update)
          #expect(conflict.columns == ["id", "Title", "size", "data", "edited"])
          #expect(conflict.key.map(\.column) == ["id"] && conflict.key.map(\.value) == [.integer(1)])
          #expect(conflict.base["title"] == .text("one") && conflict.base["size"] == .real(1.5))
          #expect(conflict.base["data"] == nil && conflict.base[0] == .integer(1))
          #expect(conflict.local.text("TITLE") == "mine" && conflict.local.blob("data") == [2, 3])
          #expect(conflict.local.integer("edited") == 10 && conflict.local.real("edited") == 10)
          #expect(conflict.local.values.count == 5 && conflict.local[5] == nil && conflict.local["nothing"] == nil)
          #expect(conflict.incoming["title"] == .text("theirs") && conflict.incoming["size"] == .null)
          #expect(conflict.incoming["id"] == .integer(1) && conflict.incoming["data"] == nil)
          #expect(conflict.incoming.text("size") == nil && conflict.incoming.integer("title") == nil)
          let exist = (conflict.base.exists, conflict.local.exists, conflict.incoming.exists)
          #expect(exist == (true, true, true))
          #expect(conflict.reason == nil)
          #expect(conflict.violations == 0)
          return .useDefault
        }, time: 2_000_000_000_000))
    #expect(asked == 1)
  }

  @Test("Missing versions are reported as missing")
  func missing() throws {
    var seen: [String] = []
    try apply(
      "DELETE FROM notes; INSERT INTO notes(id, title) VALUES (3, 'new')", after: notes,
      local: "DELETE FROM notes WHERE id = 2; UPDATE notes SET size = 9; INSERT INTO notes(id) VALUES (3)",
      settings: ApplySettings(
        resolver: { conflict in
          let exist = [conflict.base.exists, conflict.local.exists, conflict.incoming.exists]
          seen.append("\(conflict.kind) \(exist.map { $0 ? "1" : "0" }.joined())")
          if !conflict.local.exists { #expect(conflict.local.values.isEmpty && conflict.local["id"] == nil) }
          return conflict.table == "tags" ? .takeIncoming : .useDefault
        }, time: 2_000_000_000_000))
    #expect(seen.sorted() == ["conflict 011", "data 110", "notFound 100"])
  }

  @Test("The text about a constraint is SQLite's")
  func constraint() throws {
    var reasons: [String?] = []
    try apply(
      "UPDATE t SET u = u + 5", after: "CREATE TABLE t(id INTEGER PRIMARY KEY, u UNIQUE); INSERT INTO t VALUES (1, 1)",
      local: "INSERT INTO t VALUES (2, 6)",
      settings: ApplySettings(
        resolver: { conflict in
          reasons.append(conflict.reason)
          #expect(conflict.kind == .constraint && conflict.local["u"] == .integer(1))
          return .takeIncoming
        }, time: 2_000_000_000_000))
    #expect(reasons == ["UNIQUE constraint failed: t.u"])
  }

  @Test("If a constraint refuses a taken row, the resolver is asked again, and may refuse the diff")
  func constraintAfterTaking() throws {
    var asked: [ConflictKind] = []
    func outcome(_ decision: ConflictDecision) throws -> String? {
      try apply(
        "INSERT INTO t VALUES (5, 'theirs', 'no')", after: "CREATE TABLE t(id INTEGER PRIMARY KEY, v, extra)",
        into: "CREATE TABLE t(id INTEGER PRIMARY KEY, v, extra CHECK (extra <> 'no'))",
        local: "INSERT INTO t VALUES (5, 'mine', 'yes')",
        settings: ApplySettings(
          resolver: { conflict in
            asked.append(conflict.kind)
            return conflict.kind == .conflict ? .takeIncoming : decision
          }, time: 2_000_000_000_000),
        check: "SELECT group_concat(v) || (SELECT group_concat(kind || ' ' || outcome) FROM buckia_conflict) FROM t"
      ).check
    }
    #expect(try outcome(.takeIncoming) == "mineconstraint omitted")
    #expect(throws: ReplicationError.self) { try outcome(.abort) }
    #expect(asked == [.conflict, .constraint, .conflict, .constraint])
  }

  @Test("An unwritten conflict record leaves the number of conflicts in the ledger", arguments: [true, false])
  func recording(_ isOn: Bool) throws {
    let (result, count) = try apply(
      "UPDATE notes SET title = 'theirs'", after: notes, local: "UPDATE notes SET title = 'mine'",
      settings: ApplySettings(recordsConflicts: isOn, time: 2_000_000_000_000),
      check: "SELECT (SELECT count(*) FROM buckia_conflict) || ' ' || conflicts FROM buckia_ledger")
    #expect(result.counts.conflicts == 2)
    #expect(count == (isOn ? "2 2" : "0 2"))
  }

  @Test("Any number of conflicts is recorded completely, in order", arguments: [1, 15, 16, 17, 100])
  func batches(_ count: Int) throws {
    let rows = "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count))"
    let (result, check) = try apply(
      "\(rows) INSERT INTO t SELECT i, zeroblob(i * 40) FROM n", after: "CREATE TABLE t(id INTEGER PRIMARY KEY, b)",
      local: "\(rows) INSERT INTO t SELECT i, 'local ' || i FROM n", settings: ApplySettings(time: 2_000_000_000_000),
      check: """
        SELECT count(*) || ' ' || sum(length(incoming)) || ' ' || group_concat(hex(substr(local, 9, 1)), '')
        FROM (SELECT * FROM buckia_conflict ORDER BY conflict)
        """)
    #expect(result.counts.conflicts == count)
    // A larger value is stored as a reference of nine bytes.
    let sizes = (1...count).map { 9 + ($0 * 40 > 256 ? 9 : $0 * 40 + 1 + ($0 * 40 < 128 ? 1 : 2)) }
    let ids = (1...count).map { String(0x100 + $0, radix: 16, uppercase: true).dropFirst() }.joined()
    #expect(check == "\(count) \(sizes.reduce(0, +)) \(ids)")
  }

  private let family = """
    CREATE TABLE p(id INTEGER PRIMARY KEY); CREATE TABLE c(id INTEGER PRIMARY KEY, p REFERENCES p);
    INSERT INTO p VALUES (1), (2)
    """

  @Test(
    "Dangling references are asked about once per file, with their number", arguments: [true, false])
  func foreignKeys(_ areEnforced: Bool) throws {
    var asked: [String] = []
    for decision in [ConflictDecision.useDefault, .keepLocal, .takeIncoming] {
      let (result, check) = try apply(
        "PRAGMA foreign_keys = OFF; INSERT INTO c VALUES (1, 1), (2, 2), (3, 9)", after: family,
        local: "DELETE FROM p", enforcesForeignKeys: areEnforced,
        settings: ApplySettings(
          resolver: { conflict in
            #expect(conflict.operation == nil && conflict.key.isEmpty)
            asked.append("\(conflict.kind) '\(conflict.table)' \(conflict.violations)")
            return decision
          }, time: 2_000_000_000_000),
        check: "SELECT (SELECT count(*) FROM c) || ' ' || count(*) FROM buckia_conflict WHERE kind = 'foreign-key'")
      #expect(result.counts.conflicts == 3)
      #expect(check == "0 3")
    }
    #expect(asked == [String](repeating: "foreignKey '' 3", count: 3))
  }

  @Test("A resolver can refuse dangling references, or have them repaired", arguments: [true, false])
  func refusedForeignKeys(_ areEnforced: Bool) throws {
    let recorded = "PRAGMA foreign_keys = OFF; INSERT INTO c VALUES (1, 7)"
    #expect(throws: ReplicationError.self) {
      try apply(
        recorded, after: family, enforcesForeignKeys: areEnforced,
        settings: ApplySettings(resolver: { _ in .abort }, time: 2_000_000_000_000))
    }
    #expect(throws: ReplicationError.self) {
      try apply(
        recorded, after: family, enforcesForeignKeys: areEnforced,
        settings: ApplySettings(policies: .abort, time: 2_000_000_000_000))
    }
    let settings = ApplySettings(policies: .abort, resolver: { _ in .keepLocal }, time: 2_000_000_000_000)
    let stood = try apply(recorded, after: family, enforcesForeignKeys: areEnforced, settings: settings)
    #expect(stood.result.counts.conflicts == 1 && stood.result.counts.inserted == 0)
  }
}
