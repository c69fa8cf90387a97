import BuckiaBytes
@testable import BuckiaApply
@testable import BuckiaLedger
@testable import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas
import Testing
import ReplicationTestSupport
import TestSupport

/// Intended deviations from `sqlite3changeset_apply_v2`, each compared with what that does.
/// `ReferenceApplier.Deviations` has the same list for random cases; `UniqueCycleTests` is about cycles under UNIQUE.
@Suite struct DeviationTests {
  private struct Sides {
    var ours: [String] = []
    var stock: [String] = []
    var result: ApplyResult?
    var kinds: [ConflictKind] = []
  }

  /// Applies the changes that `recorded` makes after `authors` to `here`, both ways, and runs `query` on the outcomes.
  private func apply(
    _ recorded: String, after authors: String, to here: String, policy: ConflictPolicy = .takeIncoming, query: String
  ) throws -> Sides {
    let author = try SQLiteConnection(opening: ":memory:", as: .create)
    try author.execute(authors)
    let session = try SQLiteSession(on: author)
    try session.attach()
    try author.execute(recorded)
    return try apply(session.changeset(), to: here, policy: policy, query: query)
  }

  /// Applies changes to `here`, both ways, and runs `query` on the outcomes.
  private func apply(
    _ changes: [UInt8], to here: String, policy: ConflictPolicy = .takeIncoming, query: String
  ) throws -> Sides {
    var sides = Sides()
    let stock = try SQLiteConnection(opening: ":memory:", as: .create)
    try stock.execute(here)
    do {
      try StockChangesets.apply(changes, to: stock) { kind, _ in
        policy == .takeIncoming && (kind == .data || kind == .conflict) ? .replace : .omit
      }
      sides.stock = try TestDatabases.texts(query, on: stock)
    } catch {
      sides.stock = ["failed"]
    }
    let ours = try SQLiteConnection(opening: ":memory:", as: .create)
    try ours.execute(here)
    let incoming = try IncomingChanges(
      key: LedgerKey(sender: "", id: nil, digest: [UInt8](repeating: 1, count: 32), isRaw: true), file: "test",
      definitions: nil, changeset: TemporaryBuffer(changes))
    let transaction = try SQLiteTransaction(on: ours)
    sides.result = try Receiver.plan(
      incoming, on: ours, settings: ApplySettings(policies: ConflictPolicies(policy), time: 2_000_000_000_000)
    ).apply()
    try transaction.commit()
    sides.ours = try TestDatabases.texts(query, on: ours)
    sides.kinds = try ConflictRecord.all(on: ours).map(\.kind)
    return sides
  }

  @Test("Foreign-key actions do not fire even if foreign keys are enforced")
  func foreignKeyActions() throws {
    let family = """
      CREATE TABLE p(id INTEGER PRIMARY KEY); CREATE TABLE c(id INTEGER PRIMARY KEY, p REFERENCES p ON DELETE CASCADE);
      INSERT INTO p VALUES (1);
      """
    let sides = try apply(
      "DELETE FROM p", after: family, to: "\(family) INSERT INTO c VALUES (7, 1); PRAGMA foreign_keys = ON",
      query: "SELECT id FROM c")
    #expect(sides.ours == ["7"] && sides.kinds == [.foreignKey])
    #expect(sides.stock.isEmpty, "the local row is gone, and the handler was not asked")
  }

  @Test("Rows that refer to a left-out row are left out with it")
  func lostParents() throws {
    let family = "CREATE TABLE p(id INTEGER PRIMARY KEY, v); CREATE TABLE c(id INTEGER PRIMARY KEY, p REFERENCES p);"
    let sides = try apply(
      "INSERT INTO p VALUES (1, 'theirs'); INSERT INTO c VALUES (1, 1)", after: family,
      to: "\(family) INSERT INTO p VALUES (1, 'mine')", policy: .keepLocal, query: "SELECT id, p FROM c")
    #expect(sides.ours.isEmpty && sides.kinds == [.conflict, .foreignKey])
    #expect(sides.stock == ["1|1"], "it refers to another row than its author's")
  }

  @Test(
    "A column's own ON CONFLICT clause loses no row", arguments: ["REPLACE", "IGNORE", "FAIL", "ROLLBACK", "ABORT"])
  func ownConflictClause(_ clause: String) throws {
    let sides = try apply(
      "INSERT INTO t VALUES (2, 5), (3, 6)", after: "CREATE TABLE t(id INTEGER PRIMARY KEY, u)",
      to: "CREATE TABLE t(id INTEGER PRIMARY KEY, u UNIQUE ON CONFLICT \(clause)); INSERT INTO t VALUES (1, 5)",
      query: "SELECT * FROM t ORDER BY id")
    #expect(sides.ours == ["1|5", "3|6"])
    #expect(sides.kinds == [.constraint])
    switch clause {
    case "REPLACE": #expect(sides.stock == ["2|5", "3|6"], "the local row is gone, and the handler was not asked")
    case "IGNORE": #expect(sides.stock == ["1|5", "3|6"])
    default: break
    }
  }

  @Test("A local row stays if its replacement is refused")
  func refusedReplacement() throws {
    let sides = try apply(
      "INSERT INTO t VALUES (1, 7, 'theirs')", after: "CREATE TABLE t(id INTEGER PRIMARY KEY, u, x)",
      to: """
        CREATE TABLE t(id INTEGER PRIMARY KEY, u UNIQUE, x);
        INSERT INTO t VALUES (1, 5, 'mine'), (2, 7, 'in the way')
        """, query: "SELECT * FROM t ORDER BY id")
    #expect(sides.ours == ["1|5|mine", "2|7|in the way"])
    #expect(sides.stock == ["2|7|in the way"])
    #expect(sides.kinds == [.constraint])
    #expect(sides.result?.counts.omitted == 1)
  }

  @Test("Columns that only exist here keep their values when their row is replaced")
  func localColumns() throws {
    let sides = try apply(
      "INSERT INTO t VALUES (1, 'theirs')", after: "CREATE TABLE t(id INTEGER PRIMARY KEY, x)",
      to: "CREATE TABLE t(id INTEGER PRIMARY KEY, x, l DEFAULT 'd'); INSERT INTO t VALUES (1, 'mine', 'mine')",
      query: "SELECT * FROM t")
    #expect(sides.ours == ["1|theirs|mine"])
    #expect(sides.stock == ["1|theirs|d"])
  }

  @Test("A value that cannot be a rowid is a conflict, not an error")
  func mismatch() throws {
    let sides = try apply(
      "INSERT INTO t VALUES ('a', 1), (2, 2)", after: "CREATE TABLE t(id PRIMARY KEY, x)",
      to: "CREATE TABLE t(id INTEGER PRIMARY KEY, x)", query: "SELECT * FROM t")
    #expect(sides.ours == ["2|2"])
    #expect(sides.stock == ["failed"])
    #expect(sides.kinds == [.constraint])
  }

  @Test(
    "An INSERT whose key compares equal to a local row's, without being the same, waits for its DELETE",
    arguments: [ConflictPolicy.keepLocal, .takeIncoming, .abort])
  func deleteBehindInsert(_ policy: ConflictPolicy) throws {
    var writer = ChangesetWriter()
    writer.beginTable(ChangesetTable(name: "t", keyFlags: [1, 0]))
    for (operation, key) in [(ChangeOperation.insert, "Apple"), (.insert, "fig"), (.delete, "apple")] {
      writer.beginChange(operation)
      writer.append(text: key)
      writer.append(integer: 1)
    }
    let table = "CREATE TABLE t(k TEXT PRIMARY KEY COLLATE NOCASE, n)"
    let found = "SELECT k, n FROM t ORDER BY k"
    let sides = try apply(writer.bytes, to: "\(table); INSERT INTO t VALUES ('apple', 1)", policy: policy, query: found)
    #expect(sides.ours == ["Apple|1", "fig|1"])
    #expect(sides.kinds == [])
    #expect(sides.stock == ["fig|1"], "the row is gone")

    // If the row is already gone, the DELETE leaves the inserted row.
    let gone = try apply(writer.bytes, to: table, policy: policy, query: found)
    #expect(gone.ours == ["Apple|1", "fig|1"])
    #expect(gone.kinds == [])
    #expect(gone.stock == ["fig|1"])

    // A local row that nothing deletes is a conflict, as usual.
    if policy == .abort { return }
    let other = try apply(writer.bytes, to: "\(table); INSERT INTO t VALUES ('apple', 2)", policy: policy, query: found)
    #expect(other.ours == [policy == .keepLocal ? "apple|2" : "Apple|1", "fig|1"])
    #expect(other.kinds.contains(.data))
  }

  struct Merging: Sendable, CustomTestStringConvertible {
    /// The definition of the key column here, and the row that has the key.
    let key: String
    let local: String
    /// The author's keys, which the column makes equal.
    let inserted: ChangesetValue
    let deleted: ChangesetValue
    var testDescription: String { "\(key): \(inserted), \(deleted)" }
  }

  static let merging = [
    Merging(key: "INTEGER", local: "1", inserted: .text("1"), deleted: .text("01")),
    Merging(key: "INT", local: "1", inserted: .text("01"), deleted: .text("1.0")),
    Merging(key: "NUMERIC", local: "7", inserted: .integer(7), deleted: .text("7")),
    Merging(key: "TEXT", local: "7", inserted: .text("7"), deleted: .integer(7)),
    Merging(key: "REAL", local: "0.5", inserted: .text("0.50"), deleted: .text(".5")),
    Merging(key: "TEXT COLLATE NOCASE", local: "'Apple'", inserted: .text("Apple"), deleted: .text("apple")),
    Merging(key: "TEXT COLLATE RTRIM", local: "'a'", inserted: .text("a"), deleted: .text("a  ")),
  ]

  @Test(
    "An INSERT waits for the DELETE of another key that the local column makes equal", arguments: merging,
    [true, false])
  func mergedKeys(_ keys: Merging, hasRowID: Bool) throws {
    var writer = ChangesetWriter()
    writer.beginTable(ChangesetTable(name: "t", keyFlags: [1, 0]))
    for (operation, key) in [(ChangeOperation.insert, keys.inserted), (.delete, keys.deleted)] {
      writer.beginChange(operation)
      switch key {
      case .text(let text): writer.append(text: text)
      case .integer(let number): writer.append(integer: number)
      case .null, .real, .blob: Issue.record("no key of this test is of this kind")
      }
      writer.append(integer: 1)
    }
    let table = "CREATE TABLE t(k \(keys.key) PRIMARY KEY, n)\(hasRowID ? "" : " WITHOUT ROWID")"
    let here = "\(table); INSERT INTO t VALUES (\(keys.local), 1)"
    let count = "SELECT count(*), sum(n) FROM t"
    for policy in [ConflictPolicy.keepLocal, .takeIncoming, .abort] {
      let sides = try apply(writer.bytes, to: here, policy: policy, query: count)
      #expect(sides.ours == ["1|1"])
      #expect(sides.kinds == [])
      #expect(sides.stock == ["0|NULL"], "the row is gone")
      let gone = try apply(writer.bytes, to: table, policy: policy, query: count)
      #expect(gone.ours == ["1|1"])
      #expect(gone.kinds == [])
    }
    // A local edit of the row is a conflict, and stays under `keep-local`.
    let edited = try apply(
      writer.bytes, to: "\(here); UPDATE t SET n = 5", policy: .keepLocal, query: count)
    #expect(edited.ours == ["1|5"])
    #expect(edited.kinds.sorted { $0.rawValue < $1.rawValue } == [.conflict, .data])
  }

  @Test("An INSERT does not wait if its row is changed again")
  func changedBehindInsert() throws {
    var writer = ChangesetWriter()
    writer.beginTable(ChangesetTable(name: "t", keyFlags: [1, 0]))
    writer.beginChange(.insert)
    writer.append(text: "Apple")
    writer.append(integer: 1)
    writer.beginChange(.update)
    writer.append(text: "Apple")
    writer.append(integer: 1)
    writer.appendUndefined()
    writer.append(integer: 2)
    writer.beginChange(.delete)
    writer.append(text: "fig")
    writer.append(integer: 1)
    let sides = try apply(
      writer.bytes,
      to: "CREATE TABLE t(k TEXT PRIMARY KEY COLLATE NOCASE, n); INSERT INTO t VALUES ('apple', 7), ('fig', 1)",
      query: "SELECT k, n FROM t")
    #expect(sides.ours == ["Apple|2"])
    #expect(sides.ours == sides.stock)
    #expect(sides.kinds == [.conflict])
  }

  @Test("SQLite's own tables are left out and named")
  func tablesOfSQLite() throws {
    let sides = try apply(
      "INSERT INTO t VALUES (2, 5); ANALYZE",
      after: "CREATE TABLE t(id INTEGER PRIMARY KEY, u); CREATE INDEX i ON t(u)",
      to: "CREATE TABLE t(id INTEGER PRIMARY KEY, u); CREATE INDEX i ON t(u); INSERT INTO t VALUES (1, 1); ANALYZE",
      query: "SELECT id FROM t UNION ALL SELECT stat FROM sqlite_stat1")
    #expect(sides.ours == ["1", "2", "1 1"])
    #expect(sides.result?.warnings == [Warning(.rowsOfSQLite, "sqlite_stat1")])
  }

  @Test("A raw changeset for a missing table is refused with its name, where SQLite skips it silently")
  func missingTable() throws {
    let error = #expect(throws: ReplicationError.self) {
      try apply(
        "INSERT INTO t VALUES (1); INSERT INTO u VALUES (1)",
        after: "CREATE TABLE t(id INTEGER PRIMARY KEY); CREATE TABLE u(id INTEGER PRIMARY KEY)",
        to: "CREATE TABLE t(id INTEGER PRIMARY KEY)", query: "SELECT * FROM t")
    }
    #expect(error?.code == .missingTable && error?.table == "u")
  }

  @Test("Rows with NULL in the key are inserted and deleted one by one, beside any other rows")
  func nullKeys() throws {
    for seed in Seeds.range(120) {
      var random = SeededGenerator(seed: seed)
      let folder = try TemporaryFolder()
      let isComposite = random.oneIn(2)
      let definition =
        isComposite
        ? "CREATE TABLE t(a, k TEXT, b, PRIMARY KEY (k, a))" : "CREATE TABLE t(k TEXT COLLATE NOCASE PRIMARY KEY, a, b)"
      func fill(_ file: String, copying original: String? = nil, _ random: inout SeededGenerator) throws {
        if let original { _ = try folder.copy(original, to: file) }
        let connection = try SQLiteConnection(opening: folder.file(file), as: .create)
        try connection.execute("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; BEGIN")
        if original == nil { try connection.execute(definition) }
        for _ in 0..<Int.random(in: 0...9, using: &random) {
          let key = random.pick(["NULL", "NULL", "'a'", "'b'"])
          let a = random.pick(["NULL", "1", "2"])
          switch random.oneIn(3) {
          case true:
            try connection.execute(
              "DELETE FROM t WHERE rowid = (SELECT rowid FROM t WHERE k IS \(key) AND a IS \(a) LIMIT 1)")
          case false:
            try connection.execute(
              "INSERT OR IGNORE INTO t(k, a, b) VALUES (\(key), \(a), \(random.pick(["x'00'", "1.0", "1"])))")
          }
        }
        try connection.execute("COMMIT")
      }
      try fill("older", &random)
      try fill("newer", copying: "older", &random)
      try fill("mine", copying: "older", &random)
      func nulls(_ file: String) throws -> [String: Int] {
        let connection = try SQLiteConnection(opening: folder.file(file), as: .readOnly)
        let rows = try Rows.all(of: "t", columns: ["k", "a", "b"], on: connection)
        let lines = rows.filter { $0["k"] == "NULL" || (isComposite && $0["a"] == "NULL") }
          .map { "\($0["k"] ?? "") \($0["a"] ?? "") \($0["b"] ?? "")" }
        return Dictionary(lines.map { ($0, 1) }, uniquingKeysWith: +)
      }
      let (older, newer) = (try nulls("older"), try nulls("newer"))
      var expected = try nulls("mine")
      var missing = 0
      for row in Set(older.keys).union(newer.keys) {
        let difference = newer[row, default: 0] - older[row, default: 0]
        let here = expected[row, default: 0]
        if here + difference < 0 { missing -= here + difference }
        expected[row] = max(0, here + difference)
      }
      var asked = 0
      let settings = ApplySettings(
        policies: random.oneIn(2) ? .keepLocal : .takeIncoming,
        resolver: { conflict in
          let isNull = conflict.key.contains { $0.value == .null }
          if isNull {
            asked += 1
            #expect(conflict.kind == .notFound && conflict.operation == .delete)
          }
          return .useDefault
        }, time: 2_000_000_000_000)
      try Shipping.ship(
        from: folder.file("older"), to: folder.file("newer"), onto: folder.file("mine"), settings: settings)
      #expect(try nulls("mine") == expected.filter { $0.value > 0 }, "\(Seeds.replay(seed))")
      #expect(asked == missing, "\(Seeds.replay(seed))")
    }
  }

  static let computed = [
    "CREATE INDEX i ON t(lower(b))", "CREATE INDEX i ON t(CAST(b AS TEXT), id)", "CREATE INDEX i ON t(b || 'x')",
    "CREATE INDEX i ON t(id) WHERE CAST(b AS TEXT) > 'b'",
    "ALTER TABLE t ADD COLUMN g AS (b || 'x'); CREATE INDEX i ON t(g)",
  ]

  @Test(
    "A blob in a UTF-16 database does not damage the index on an expression", arguments: computed,
    ["UTF-16le", "UTF-16be"])
  func blobsUnderExpressions(index: String, encoding: String) throws {
    let table = "CREATE TABLE t(id INTEGER PRIMARY KEY, b)"
    let sides = try apply(
      """
      INSERT INTO t VALUES (1, x'616263'), (2, x'61626364'), (3, 'text'), (4, NULL), (5, x'');
      UPDATE t SET b = x'7a7a7a' WHERE id = 11; UPDATE t SET b = x'79' WHERE id = 12; DELETE FROM t WHERE id = 13
      """, after: "\(table); INSERT INTO t VALUES (11, 'a'), (12, x'62'), (13, x'63')",
      to: """
        PRAGMA encoding = '\(encoding)'; \(table); \(index); INSERT INTO t(id, b) VALUES (2, 'mine'), (11, 'a'), (12, x'62'),
          (13, x'63')
        """, query: "SELECT group_concat(integrity_check) FROM pragma_integrity_check")
    #expect(sides.ours == ["ok"])
    if index.contains("t(lower") || index.contains("t(CAST") {
      #expect(sides.stock != ["ok"], "SQLite binds blobs otherwise now: nothing has to be done about them any more")
    }
  }
}
