import Buckia
import BuckiaApply
import BuckiaLedger
import SQLiteChangesets
import TestSupport
import Testing

private let notes = """
  CREATE TABLE notes(id INTEGER PRIMARY KEY, text TEXT, stars INTEGER, code TEXT UNIQUE);
  INSERT INTO notes VALUES (1, 'one', 1, 'a'), (2, 'two', 2, 'b'), (3, 'three', 3, 'c')
  """

@Suite struct ConflictTests {
  @Test func `a conflict closes when the local row equals the incoming row`() throws {
    let exchange = try Exchange(notes)
    try TestDatabases.run("UPDATE notes SET stars = stars + 10; DELETE FROM notes WHERE id = 3", on: exchange.mine)
    try exchange.send(
      "UPDATE notes SET stars = 21 WHERE id = 1; DELETE FROM notes WHERE id = 2; UPDATE notes SET text = 'x' WHERE id = 3"
    )
    try exchange.apply()
    #expect(try exchange.database.conflicts().filter(\.isOpen).count == 3)
    try TestDatabases.run("UPDATE notes SET stars = 21 WHERE id = 1", on: exchange.mine)
    try exchange.send("INSERT INTO notes VALUES (5, 'five', 5, 'e')")
    try exchange.apply()
    #expect(
      try exchange.database.conflicts().filter(\.isOpen).map { $0.key.map(\.value) } == [[.integer(2)], [.integer(3)]])
    #expect(try exchange.database.conflicts().compactMap { $0.resolution?.answer } == [.equal])
    #expect(try exchange.database.status().openConflicts == 2)
    try TestDatabases.run("DELETE FROM notes WHERE id = 2", on: exchange.mine)
    try exchange.send("INSERT INTO notes VALUES (6, 'six', 6, 'f')")
    try exchange.apply()
    #expect(try exchange.database.conflicts().filter(\.isOpen).map { $0.key.map(\.value) } == [[.integer(3)]])
    #expect(try exchange.rows("SELECT id, stars FROM notes ORDER BY id") == ["1|21", "5|5", "6|6"])
  }

  @Test(arguments: [ConflictPolicy.keepLocal, .takeIncoming])
  func `a conflict closes when its sender later sends the local value`(policy: ConflictPolicy) throws {
    let exchange = try Exchange(notes)
    let options = ApplyOptions(conflicts: ConflictPolicies(policy))
    try TestDatabases.run("UPDATE notes SET stars = 10", on: exchange.mine)
    try exchange.send("UPDATE notes SET stars = 21 WHERE id < 3")
    try exchange.apply(options)
    try exchange.send("UPDATE notes SET stars = 10 WHERE id = 1")
    try exchange.send("UPDATE notes SET text = 'x' WHERE id = 2")
    try exchange.apply(options)
    #expect(try exchange.database.conflicts().filter { $0.isOpen && $0.key.first?.value == .integer(2) }.count == 1)
    let decided = try exchange.database.conflicts().filter { $0.key.first?.value == .integer(1) }
    #expect(policy == .takeIncoming || decided.map { $0.resolution?.answer } == [.equal])
  }

  @Test(arguments: [ConflictPolicy.keepLocal, .takeIncoming, .abort])
  func `an ignored column keeps its value in existing rows, and is never a conflict`(
    policy: ConflictPolicy
  ) throws {
    let exchange = try Exchange(notes)
    var options = ApplyOptions(conflicts: ConflictPolicies(policy))
    options.ignoredColumns = ["NOTES": ["Stars"]]
    try TestDatabases.run(
      "UPDATE notes SET stars = 10; INSERT INTO notes VALUES (8, 'eight', 10, 'h')", on: exchange.mine)
    try exchange.send(
      """
      UPDATE notes SET stars = 21; UPDATE notes SET text = 'new' WHERE id = 1; DELETE FROM notes WHERE id = 2;
      INSERT INTO notes VALUES (8, 'eight', 21, 'h'), (9, 'nine', 21, 'i')
      """)
    let report = try exchange.apply(options)
    #expect(report.diffs.map(\.state) == [.applied])
    #expect(try exchange.database.conflicts().isEmpty)
    #expect(try exchange.rows("SELECT count(*) FROM notes WHERE id IN (1, 2) AND text = 'new'") == ["1"])
    #expect(try exchange.rows("SELECT id, stars FROM notes WHERE stars <> 10 OR id IN (2, 8)") == ["8|10", "9|21"])
    options.ignoredColumns = ["notes": ["typo"]]
    #expect(throws: BuckiaError.self) { try exchange.apply(options) }
  }

  @Test func `resolving one of two equal conflicts about a row closes the other`() throws {
    let exchange = try Exchange(notes)
    try TestDatabases.run("UPDATE notes SET stars = 10 WHERE id = 1", on: exchange.mine)
    for _ in 0..<2 { try exchange.send("UPDATE notes SET stars = 21 WHERE id = 1") }
    try exchange.apply()
    let numbers = try exchange.database.conflicts().map(\.id)
    #expect(numbers.count == 2)
    try exchange.database.resolve([numbers[0]], taking: .incoming)
    #expect(try exchange.database.conflicts().map { $0.resolution?.answer } == [.incoming, .equal])
  }

  /// Local and incoming edits, and the rows that they result in under each policy.
  struct Case: Sendable, CustomTestStringConvertible {
    let name: String
    let local: String
    let incoming: String
    /// The rows with the ids 1 and 4 afterwards, under `keep-local` and under `take-incoming`.
    let kept: [String]
    let taken: [String]
    let kind: ConflictKind?
    var outcomes: [ConflictOutcome] = [.keptLocal, .tookIncoming]
    var testDescription: String { name }

    static let all = [
      Case(
        name: "the same cell", local: "UPDATE notes SET stars = 10 WHERE id = 1",
        incoming: "UPDATE notes SET stars = 20 WHERE id = 1", kept: ["1|10"], taken: ["1|20"], kind: .data),
      Case(
        name: "another cell of the row", local: "UPDATE notes SET text = 'mine' WHERE id = 1",
        incoming: "UPDATE notes SET stars = 20 WHERE id = 1", kept: ["1|20"], taken: ["1|20"], kind: nil),
      Case(
        name: "equal edits", local: "UPDATE notes SET stars = 20 WHERE id = 1",
        incoming: "UPDATE notes SET stars = 20 WHERE id = 1", kept: ["1|20"], taken: ["1|20"], kind: nil),
      Case(
        name: "changed here, deleted there", local: "UPDATE notes SET stars = 10 WHERE id = 1",
        incoming: "DELETE FROM notes WHERE id = 1", kept: ["1|10"], taken: [], kind: .data),
      Case(
        name: "deleted here, changed there", local: "DELETE FROM notes WHERE id = 1",
        incoming: "UPDATE notes SET stars = 20 WHERE id = 1", kept: [], taken: [], kind: .notFound,
        outcomes: [.omitted, .omitted]),
      Case(
        name: "deleted on both sides", local: "DELETE FROM notes WHERE id = 1",
        incoming: "DELETE FROM notes WHERE id = 1", kept: [], taken: [], kind: nil),
      Case(
        name: "two rows with one key", local: "INSERT INTO notes VALUES (4, 'mine', 10, 'm')",
        incoming: "INSERT INTO notes VALUES (4, 'theirs', 20, 't')", kept: ["1|1", "4|10"], taken: ["1|1", "4|20"],
        kind: .conflict),
      Case(
        name: "equal rows with one key", local: "INSERT INTO notes VALUES (4, 'both', 10, 'm')",
        incoming: "INSERT INTO notes VALUES (4, 'both', 10, 'm')", kept: ["1|1", "4|10"], taken: ["1|1", "4|10"],
        kind: nil),
      Case(
        name: "a value that is taken", local: "INSERT INTO notes VALUES (5, 'mine', 10, 'x')",
        incoming: "INSERT INTO notes VALUES (4, 'theirs', 20, 'x')", kept: ["1|1"], taken: ["1|1"], kind: .constraint,
        outcomes: [.omitted, .omitted]),
    ]
  }

  @Test(
    "Every conflict is decided, and recorded with both versions", arguments: Case.all,
    [ConflictPolicy.keepLocal, .takeIncoming])
  func decidedAndRecorded(_ item: Case, _ policy: ConflictPolicy) throws {
    let exchange = try Exchange(notes)
    try TestDatabases.run(item.local, on: exchange.mine)
    try exchange.send(item.incoming)
    let report = try exchange.apply(ApplyOptions(conflicts: ConflictPolicies(policy)))
    #expect(report.diffs.map(\.state) == [.applied])
    let rows = try exchange.rows("SELECT id, stars FROM notes WHERE id IN (1, 4) ORDER BY id")
    #expect(rows == (policy == .keepLocal ? item.kept : item.taken))
    let records = try exchange.database.conflicts()
    #expect(report.diffs.first?.conflicts == records.count)
    guard let kind = item.kind else {
      #expect(records.isEmpty)
      return
    }
    let record = try #require(records.first)
    #expect(records.count == 1)
    #expect(record.kind == kind)
    #expect(record.outcome == item.outcomes[policy == .keepLocal ? 0 : 1])
    #expect(record.diff == report.diffs.first?.id?.description)
    #expect(record.key.map(\.column) == ["id"])
    #expect((record.incoming == nil) == item.incoming.hasPrefix("DELETE"))
    #expect((record.base == nil) == item.incoming.hasPrefix("INSERT"))
    #expect(kind == .constraint ? record.reason?.contains("UNIQUE") == true : record.reason == nil)
    if kind == .data || kind == .conflict {
      #expect(record.local?.first { $0.column == "stars" }?.value == .integer(10))
    }
    #expect(record.incoming?.first { $0.column == "stars" }.map { $0.value == .integer(20) } ?? true)
  }

  @Test("Under the policy \"abort\" a conflict refuses the whole file", arguments: Case.all.filter { $0.kind != nil })
  func abort(_ item: Case) throws {
    let exchange = try Exchange(notes)
    try TestDatabases.run(item.local, on: exchange.mine)
    let before = try exchange.everythingButOurs()
    try exchange.send("\(item.incoming); INSERT INTO notes VALUES (99, 'along', 1, 'z'); CREATE TABLE t(x PRIMARY KEY)")
    let report = try exchange.apply(ApplyOptions(conflicts: .abort))
    #expect(report.diffs.map(\.state) == [.rejected])
    #expect(report.diffs.first?.code == .conflict)
    #expect(try exchange.everythingButOurs() == before)
    #expect(try exchange.database.conflicts().isEmpty)
  }

  @Test("A resolver sees all three versions, and decides each conflict")
  func resolver() throws {
    let exchange = try Exchange(notes)
    try TestDatabases.run("UPDATE notes SET stars = 10", on: exchange.mine)
    try exchange.send("UPDATE notes SET stars = stars + 20")
    let seen = Recorded<[ChangesetValue?]>([])
    let report = try exchange.apply { conflict in
      seen.value += [conflict.base["stars"], conflict.local["stars"], conflict.incoming["stars"]]
      return conflict.key.map(\.value) == [.integer(2)] ? .takeIncoming : .useDefault
    }
    #expect(seen.value == [1, 10, 21, 2, 10, 22, 3, 10, 23].map { .integer($0) })
    #expect(report.diffs.first?.conflicts == 3)
    #expect(try exchange.rows("SELECT stars FROM notes ORDER BY id") == ["10", "22", "10"])
  }

  @Test("An error that a resolver throws reaches the caller, and nothing of the file is applied")
  func resolverThrows() throws {
    struct Enough: Error {}
    let exchange = try Exchange(notes)
    try TestDatabases.run("UPDATE notes SET stars = 10", on: exchange.mine)
    let before = try exchange.everythingButOurs()
    try exchange.send("UPDATE notes SET stars = stars + 20; INSERT INTO notes VALUES (0, '', 0, '')")
    #expect(throws: Enough.self) { try exchange.apply { _ in throw Enough() } }
    #expect(try exchange.everythingButOurs() == before)
  }

  @Test("Columns that exist only locally keep their values in a conflict")
  func localColumns() throws {
    let exchange = try Exchange(notes)
    try TestDatabases.run(
      "ALTER TABLE notes ADD COLUMN private TEXT DEFAULT 'p'; INSERT INTO notes VALUES (4, 'm', 1, 'm', 'secret')",
      on: exchange.mine)
    try exchange.send("INSERT INTO notes VALUES (4, 'theirs', 20, 't'), (5, 'new', 1, 'n')")
    try exchange.apply(ApplyOptions(conflicts: .takeIncoming))
    #expect(
      try exchange.rows("SELECT id, stars, private = 'secret', private = 'p' FROM notes WHERE id > 3 ORDER BY id")
        == ["4|20|1|0", "5|1|0|1"])
    let local = try #require(try exchange.database.conflicts().first?.local)
    #expect(local.last?.column == "private")
    #expect(local.last?.value == .text("secret"))
  }

  @Test("A row without its parent waits, a parent with local rows stays, and old violations are left alone")
  func foreignKeys() throws {
    let exchange = try Exchange(
      """
      CREATE TABLE p(id INTEGER PRIMARY KEY); CREATE TABLE c(id INTEGER PRIMARY KEY, p REFERENCES p(id) ON DELETE CASCADE);
      INSERT INTO p VALUES (1), (2), (3); INSERT INTO c VALUES (1, 1), (50, 777)
      """)
    try TestDatabases.run("DELETE FROM p WHERE id = 2; INSERT INTO c VALUES (9, 3)", on: exchange.mine)
    try exchange.send("INSERT INTO c VALUES (2, 2); DELETE FROM p WHERE id = 3")
    let report = try exchange.apply()
    #expect(report.diffs.map(\.state) == [.applied])
    let records = try exchange.database.conflicts()
    #expect(records.map(\.kind) == [.foreignKey, .foreignKey])
    #expect(Set(records.compactMap { $0.key.first?.value }.map { "\($0)" }) == ["2", "3"])
    #expect(
      try exchange.rows("SELECT id FROM c ORDER BY id") == ["1", "9", "50"], "no cascade took the local row")
    let other = try Exchange(
      "CREATE TABLE p(id INTEGER PRIMARY KEY); CREATE TABLE c(id INTEGER PRIMARY KEY, p REFERENCES p(id))")
    try other.send("INSERT INTO c VALUES (2, 2)")
    #expect(try other.apply(ApplyOptions(conflicts: .abort)).diffs.map(\.state) == [.rejected])
    #expect(try other.rows("SELECT count(*) FROM c") == ["0"])
  }

  @Test("A foreign key that SQLite cannot enforce does not stop applying")
  func unenforceableForeignKeys() throws {
    let exchange = try Exchange(
      """
      CREATE TABLE p(a, b); CREATE TABLE c(id INTEGER PRIMARY KEY, x REFERENCES p(a));
      CREATE TABLE d(id INTEGER PRIMARY KEY, x REFERENCES nowhere(a)); CREATE TABLE e(id INTEGER PRIMARY KEY, x REFERENCES p);
      INSERT INTO p VALUES (1, 1)
      """)
    try exchange.send(
      "INSERT INTO c VALUES (2, 2); INSERT INTO d VALUES (2, 2); INSERT INTO e VALUES (2, 2); DELETE FROM p")
    #expect(try exchange.apply().diffs.map(\.state) == [.applied])
    #expect(
      try exchange.rows("SELECT (SELECT count(*) FROM c), (SELECT count(*) FROM d), (SELECT count(*) FROM e)") == [
        "1|1|1"
      ])
    #expect(try exchange.database.examine().warnings.map(\.code).contains(.unenforceableForeignKey))
  }

  @Test("Composite foreign keys and changed parent keys are checked, too")
  func compositeForeignKeys() throws {
    let exchange = try Exchange(
      """
      CREATE TABLE p(id INTEGER PRIMARY KEY, a TEXT COLLATE NOCASE, b, UNIQUE (a, b));
      CREATE TABLE c(k TEXT PRIMARY KEY, a, b, FOREIGN KEY (a, b) REFERENCES p(a, b)) WITHOUT ROWID;
      INSERT INTO p VALUES (1, 'x', 1), (2, 'y', 2), (3, 'z', 3); INSERT INTO c VALUES ('kept', 'X', 1)
      """)
    try TestDatabases.run("INSERT INTO c VALUES ('orphan', 'y', 2), ('half', 'nothing', NULL)", on: exchange.mine)
    try exchange.send("UPDATE p SET b = 22 WHERE id = 2; INSERT INTO c VALUES ('new', 'z', 4), ('fine', 'Z', 3)")
    try exchange.apply()
    let keys = try exchange.database.conflicts().map {
      "\($0.kind) \($0.key.map { "\(String(describing: $0.value))" })"
    }
    #expect(keys.count == 2)
    #expect(keys.contains { $0.contains("(2)") } && keys.contains { $0.contains("new") })
  }
}
