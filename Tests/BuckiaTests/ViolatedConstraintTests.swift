import Buckia
import SQLiteChangesets
import TestSupport
import Testing

@Suite("The constraint that a conflict is about")
struct ViolatedConstraintTests {
  /// A table with an index or a constraint, local rows, and an incoming row.
  struct Case: Sendable, CustomTestStringConvertible {
    let testDescription: String
    var columns = "id INTEGER PRIMARY KEY, a TEXT, b INTEGER"
    var index = ""
    let local: String
    let incoming: String
    let kind: ViolatedConstraint.Kind
    var name: String?
    var constrained: [String] = []
    var expression: String?
    /// The keys of the rows that have the UNIQUE value.
    var others: [String] = []

    static let all = [
      Case(
        testDescription: "UNIQUE columns", columns: "id INTEGER PRIMARY KEY, a TEXT, b INTEGER, UNIQUE (b, a)",
        local: "(7, 'x', 1), (8, 'x', 2)", incoming: "(9, 'x', 2)", kind: .unique, constrained: ["b", "a"],
        others: ["8"]),
      Case(
        testDescription: "a named index with a collating sequence",
        index: "CREATE UNIQUE INDEX by_a ON t(a COLLATE NOCASE DESC)", local: "(7, 'X', 1)", incoming: "(9, 'x', 2)",
        kind: .unique, name: "by_a", constrained: ["a"], others: ["7"]),
      Case(
        testDescription: "a partial index", index: "CREATE UNIQUE INDEX some ON t(a) WHERE b > 1",
        local: "(6, 'x', 1), (7, 'x', 2)", incoming: "(9, 'x', 3)", kind: .unique, name: "some", constrained: ["a"],
        expression: "a WHERE b > 1", others: ["7"]),
      Case(
        testDescription: "an index on expressions", index: "CREATE UNIQUE INDEX \"the lower\" ON t(lower(a), b % 10)",
        local: "(6, 'X', 2), (7, 'X', 11)", incoming: "(9, 'x', 1)", kind: .unique, name: "the lower",
        expression: "lower(a), b % 10", others: ["7"]),
      Case(
        testDescription: "a partial index on an expression",
        index: "CREATE UNIQUE INDEX p ON t(substr(a, 1, 1)) WHERE b IS NOT NULL",
        local: "(6, 'xa', NULL), (7, 'xb', 1)",
        incoming: "(9, 'xc', 1)", kind: .unique, name: "p", expression: "substr(a, 1, 1) WHERE b IS NOT NULL",
        others: ["7"]),
      Case(
        testDescription: "a CHECK with a name",
        columns: "id INTEGER PRIMARY KEY, a TEXT, b INTEGER CONSTRAINT small CHECK (b < 10)", local: "(7, 'x', 1)",
        incoming: "(9, 'x', 20)", kind: .check, name: "small", expression: "b < 10"),
      Case(
        testDescription: "a CHECK without a name", columns: "id INTEGER PRIMARY KEY, a TEXT, b INTEGER CHECK (b < 10)",
        local: "(7, 'x', 1)", incoming: "(9, 'x', 20)", kind: .check, expression: "b < 10"),
      Case(
        testDescription: "NOT NULL", columns: "id INTEGER PRIMARY KEY, a TEXT NOT NULL, b INTEGER",
        local: "(7, 'x', 1)",
        incoming: "(9, NULL, 20)", kind: .notNull, constrained: ["a"]),
    ]
  }

  @Test("A conflict names the violated constraint, and the rows that have the UNIQUE value", arguments: Case.all)
  func inserted(_ item: Case) throws {
    let record = try record(item, send: "INSERT INTO t VALUES \(item.incoming)")
    try expect(record, item)
  }

  @Test("A refused UPDATE names the same rows, and never its own row", arguments: Case.all)
  func updated(_ item: Case) throws {
    let record = try record(
      item, base: "(9, 'own', 5)", send: "UPDATE t SET (id, a, b) = (SELECT * FROM (VALUES \(item.incoming)))")
    try expect(record, item)
  }

  private func expect(_ record: ConflictRecord, _ item: Case) throws {
    let constraint = try #require(record.constraint)
    #expect(constraint.kind == item.kind)
    #expect(constraint.name == item.name)
    #expect(constraint.columns == item.constrained)
    #expect(constraint.expression == item.expression)
    let others = record.others.map { key in
      key.map { "\($0.value ?? .null)" }.joined(separator: "|")
    }
    #expect(others == item.others)
    #expect(record.others.allSatisfy { $0.map(\.column) == ["id"] })
  }

  /// The only conflict of a table whose constraint exists only here.
  private func record(_ item: Case, base: String? = nil, send edit: String) throws -> ConflictRecord {
    let rows = base.map { "; INSERT INTO t VALUES \($0)" } ?? ""
    let exchange = try Exchange("CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, b INTEGER)\(rows)")
    try TestDatabases.run(
      """
      DROP TABLE t; CREATE TABLE t(\(item.columns))\(rows); \(item.index); INSERT INTO t VALUES \(item.local)
      """, on: exchange.mine)
    try exchange.send(edit)
    try exchange.apply()
    let records = try exchange.database.conflicts()
    #expect(records.map(\.kind) == [.constraint])
    return try #require(records.first)
  }

  @Test("In a table with a composite key and no rowid, the row that has the UNIQUE value is named by its key")
  func compositeKey() throws {
    let exchange = try Exchange("CREATE TABLE t(k TEXT, n INTEGER, v UNIQUE, PRIMARY KEY (n, k)) WITHOUT ROWID")
    try TestDatabases.run("INSERT INTO t VALUES ('here', 1, 'x')", on: exchange.mine)
    try exchange.send("INSERT INTO t VALUES ('there', 2, 'x')")
    try exchange.apply()
    let other = try #require(try exchange.database.conflicts().first?.others.first)
    #expect(Set(other.map { "\($0.column)=\($0.value ?? .null)" }) == ["n=1", "k='here'"])
  }

  @Test("A foreign-key conflict names the columns, and the parent with its key")
  func foreignKey() throws {
    let exchange = try Exchange(
      "CREATE TABLE p(id INTEGER PRIMARY KEY); CREATE TABLE c(id INTEGER PRIMARY KEY, p REFERENCES p(id)); INSERT INTO p VALUES (5)"
    )
    try TestDatabases.run("DELETE FROM p", on: exchange.mine)
    try exchange.send("INSERT INTO c VALUES (1, 5)")
    try exchange.apply()
    let record = try #require(try exchange.database.conflicts().first)
    #expect(record.constraint?.kind == .foreignKey)
    #expect(record.constraint?.columns == ["p"])
    #expect(record.constraint?.parentTable == "p" && record.constraint?.parentColumns == ["id"])
    #expect(record.parent?.key.first?.value == 5)
  }

  @Test("An UPDATE that makes a row refer to a left-out row names that row, not its present parent")
  func updatedReference() throws {
    let exchange = try Exchange(
      """
      CREATE TABLE p(id INTEGER PRIMARY KEY, n); CREATE TABLE c(id INTEGER PRIMARY KEY, p REFERENCES p(id));
      INSERT INTO p VALUES (1, 'both'); INSERT INTO c VALUES (7, 1)
      """)
    try TestDatabases.run("INSERT INTO p VALUES (2, 'mine')", on: exchange.mine)
    try exchange.send("INSERT INTO p VALUES (2, 'theirs'); UPDATE c SET p = 2")
    try exchange.apply()
    let conflicts = try exchange.database.conflicts()
    let cause = try #require(conflicts.first { $0.table == "p" })
    let record = try #require(conflicts.first { $0.table == "c" })
    #expect(record.parent?.key.first?.value == 2)
    #expect(record.parent?.conflict == cause.id)
    let early = try exchange.database.resolve([record.id], taking: .incoming)
    #expect(early.refused.first?.refusal?.code == .brokenReference)
  }

  @Test("Messages of triggers and unusual names are not misread")
  func oddMessages() throws {
    #expect(ViolatedConstraint(message: "no more notes today", table: "t") == nil)
    let odd = ViolatedConstraint(message: "UNIQUE constraint failed: a, b.c, a, b.d.e", table: "a, b")
    #expect(odd?.columns == ["c", "d.e"])
    #expect(ViolatedConstraint(message: "UNIQUE constraint failed: other.c", table: "t")?.columns == [])
  }
}
