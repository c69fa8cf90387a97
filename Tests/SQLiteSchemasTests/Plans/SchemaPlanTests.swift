import BuckiaBytes
@testable import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas
import Testing

/// Matching tables of a diff with local ones, and the resulting plan.
@Suite struct SchemaPlanTests {
  /// The expected steps as text, or the code of a refusal.
  enum Expected: Sendable {
    case steps([String])
    case refused(BuckiaErrorCode)
  }

  struct Case: Sendable, CustomTestStringConvertible {
    let name: String
    /// The author's tables.
    let incoming: String
    /// The receiver's tables.
    let local: String
    var mode = SchemaMode.additive
    let expected: Expected
    var testDescription: String { name }

    init(_ name: String, _ incoming: String, on local: String, mode: SchemaMode = .additive, _ expected: Expected) {
      self.name = name
      self.incoming = incoming
      self.local = local
      self.mode = mode
      self.expected = expected
    }
  }

  static let key = "CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT)"
  static let cases: [Case] = [
    Case("equal", key, on: key, .steps([])),
    Case("equal, exactly", key, on: key, mode: .exact, .steps([])),
    Case("a missing table", key, on: "", .steps(["create table t (2 columns)"])),
    Case("a missing table, exactly", key, on: "", mode: .exact, .refused(.schemaDiffers)),
    Case("other case of letters", "CREATE TABLE T(ID INTEGER PRIMARY KEY, A TEXT)", on: key, mode: .exact, .steps([])),
    Case("another order", "CREATE TABLE t(a TEXT, id INTEGER PRIMARY KEY)", on: key, .steps([])),
    Case(
      "another order, exactly", "CREATE TABLE t(a TEXT, id INTEGER PRIMARY KEY)", on: key, mode: .exact,
      .refused(.schemaDiffers)),
    Case("more columns here", "CREATE TABLE t(id INTEGER PRIMARY KEY)", on: key, .steps([])),
    Case(
      "more columns here, exactly", "CREATE TABLE t(id INTEGER PRIMARY KEY)", on: key, mode: .exact,
      .refused(.schemaDiffers)),
    Case(
      "a new column", "CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, b INT NOT NULL DEFAULT 5)", on: key,
      .steps(["add column t.b"])),
    Case(
      "a new column, exactly", "CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, b)", on: key, mode: .exact,
      .refused(.schemaDiffers)),
    Case(
      "columns that ALTER TABLE adds only in part",
      "CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, n NOT NULL, t DEFAULT CURRENT_TIME, e DEFAULT (random()), u UNIQUE, g REAL DEFAULT -1.5)",
      on: key, .steps(["add column t.n", "add column t.t", "add column t.e", "add column t.u", "add column t.g"])),
    Case(
      "a column named rowid", "CREATE TABLE t(id INTEGER PRIMARY KEY, rowid)", on: key, .refused(.refusedDefinition)),
    Case(
      "a table with a column named oid", "CREATE TABLE t(id INTEGER PRIMARY KEY, oid)", on: "",
      .refused(.refusedDefinition)),
    Case("another key", "CREATE TABLE t(id INTEGER, a TEXT PRIMARY KEY)", on: key, .refused(.keyDiffers)),
    Case("no key there", "CREATE TABLE t(id INTEGER, a TEXT)", on: key, .refused(.keyDiffers)),
    Case("no key here", key, on: "CREATE TABLE t(id INTEGER, a TEXT)", .refused(.keyDiffers)),
    Case("no key on both sides", "CREATE TABLE t(a, b)", on: "CREATE TABLE t(b, a, c)", .steps([])),
    Case(
      "no key, and the rowid hidden here", "CREATE TABLE t(a)", on: "CREATE TABLE t(a, rowid, oid, _rowid_)",
      .refused(.keyDiffers)),
    Case(
      "no key, and most of the rowid's names taken", "CREATE TABLE t(a)", on: "CREATE TABLE t(a, rowid, _rowid_)",
      .steps([])),
    Case(
      "the key in another order", "CREATE TABLE t(a, b, PRIMARY KEY (a, b))",
      on: "CREATE TABLE t(a, b, PRIMARY KEY (b, a))",
      .refused(.keyDiffers)),
    Case(
      "part of the key", "CREATE TABLE t(a, b, PRIMARY KEY (a))", on: "CREATE TABLE t(a, b, PRIMARY KEY (a, b))",
      .refused(.keyDiffers)),
    Case("text and numbers", "CREATE TABLE t(id INTEGER PRIMARY KEY, a INT)", on: key, .steps([])),
    Case("a wider number", "CREATE TABLE t(id INT PRIMARY KEY, a VARCHAR(9))", on: key, .steps([])),
    Case("no type there", "CREATE TABLE t(id INTEGER PRIMARY KEY, a)", on: key, .steps([])),
    Case("no type here", key, on: "CREATE TABLE t(id INTEGER PRIMARY KEY, a)", .steps([])),
    Case("WITHOUT ROWID there", key + " WITHOUT ROWID", on: key, .steps([])),
    Case("WITHOUT ROWID there, exactly", key + " WITHOUT ROWID", on: key, mode: .exact, .refused(.schemaDiffers)),
    Case("STRICT here", key, on: key + " STRICT", .steps([])),
    Case("STRICT here, exactly", key, on: key + " STRICT", mode: .exact, .refused(.schemaDiffers)),
    Case(
      "a generated column here", "CREATE TABLE t(id INTEGER PRIMARY KEY, g)",
      on: "CREATE TABLE t(id INTEGER PRIMARY KEY, g AS (id + 1))", .refused(.columnsDiffer)),
    Case(
      "a generated column there", "CREATE TABLE t(id INTEGER PRIMARY KEY, g AS (id + 1))",
      on: "CREATE TABLE t(id INTEGER PRIMARY KEY, g)", .steps([])),
    Case("a view here", key, on: "CREATE VIEW t AS SELECT 1 AS id, 2 AS a", .refused(.refusedTable)),
    Case("a virtual table here", key, on: "CREATE VIRTUAL TABLE t USING fts5(id, a)", .refused(.refusedTable)),
    Case(
      "a shadow table here", "CREATE TABLE f_data(id INTEGER PRIMARY KEY, block BLOB)",
      on: "CREATE VIRTUAL TABLE f USING fts5(a)", .refused(.refusedTable)),
    Case("a module's name", "CREATE TABLE FTS5(id INTEGER PRIMARY KEY)", on: "", .refused(.refusedDefinition)),
    Case("our own table", "CREATE TABLE buckia_ledger(id INTEGER PRIMARY KEY)", on: "", .refused(.refusedTable)),
    Case("a pragma's name", "CREATE TABLE pragma_table_info(id INTEGER PRIMARY KEY)", on: "", .refused(.refusedTable)),
    Case(
      "letters that only look alike", "CREATE TABLE \"e\u{301}\"(id PRIMARY KEY)",
      on: "CREATE TABLE \"é\"(id PRIMARY KEY)", .steps(["create table e\u{301} (1 column)"])),
    Case(
      "64 tables", (0..<64).map { "CREATE TABLE n\($0)(id INTEGER PRIMARY KEY)" }.joined(separator: ";"), on: "",
      .steps((0..<64).map { "create table n\($0) (1 column)" })),
    Case(
      "65 tables", (0..<65).map { "CREATE TABLE n\($0)(id INTEGER PRIMARY KEY)" }.joined(separator: ";"), on: "",
      .refused(.refusedDefinition)),
    Case(
      "65 columns", "CREATE TABLE t(id INTEGER PRIMARY KEY, \((0..<65).map { "c\($0)" }.joined(separator: ",")))",
      on: key,
      .refused(.refusedDefinition)),
  ]

  static func definitions(_ sql: String) throws -> [TableDefinition] {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute(sql)
    let schema = try SchemaReader(connection)
    return try schema.entries.map { try schema.definition(of: $0) }
  }

  @Test("The local table decides the plan for a table of a diff", arguments: cases)
  func plan(_ test: Case) throws {
    let incoming = try Self.definitions(test.incoming)
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute(test.local)
    do {
      let plan = try SchemaPlan(
        definitions: incoming, mode: test.mode, local: SchemaReader(connection))
      guard case .steps(let steps) = test.expected else {
        Issue.record("not refused: \(plan.steps)")
        return
      }
      #expect(plan.steps.map(\.description) == steps)
      for step in plan.steps { try connection.execute(step.sql) }
      // Afterwards no steps are left, and every column is where the plan says.
      let after = try SchemaReader(connection)
      let rest = try SchemaPlan(definitions: incoming, mode: .additive, local: after)
      #expect(rest.steps.isEmpty)
      for definition in incoming {
        let match = try #require(plan.matches[TableName(definition.name)])
        let found = after.entry(named: TableName(definition.name))
        let entry = try #require(found)
        let local = try after.definition(of: entry)
        let reached = match.columns.map { ASCIIName.folded(local.changesetColumns[$0]) }
        #expect(reached == definition.changesetColumns.map(ASCIIName.folded))
      }
    } catch let error as ReplicationError {
      guard case .refused(let code) = test.expected else {
        Issue.record(error)
        return
      }
      #expect(error.code == code)
      #expect(error.table != nil || code == .refusedDefinition)
      #expect(error.message.count > 20)
    }
  }

  @Test("A definition that names a table or a column twice is refused")
  func twice() throws {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute(Self.key)
    var table = try Self.definitions(Self.key)[0]
    for doubled in ["a", "A", "new"] {
      var broken = table
      broken.columns.append(ColumnDefinition(name: doubled))
      broken.columns.append(ColumnDefinition(name: doubled.uppercased()))
      #expect(throws: ReplicationError.self) {
        _ = try SchemaPlan(
          definitions: [broken], mode: .additive, local: SchemaReader(connection))
      }
    }
    let first = table
    table.name = "T"
    #expect(throws: ReplicationError.self) {
      _ = try SchemaPlan(
        definitions: [first, table], mode: .additive, local: SchemaReader(connection))
    }
  }

  @Test("Columns that only exist here are named up to a limit, first those that new rows need a value for")
  func boundedNotes() throws {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    let columns = (0..<300).map { "c\($0)\($0 == 250 ? " TEXT NOT NULL" : "")" }
    try connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, \(columns.joined(separator: ", ")))")
    let incoming = TableDefinition(
      name: "t", columns: [ColumnDefinition(name: "id", declaredType: "INTEGER")], primaryKey: [0])
    let plan = try SchemaPlan(definitions: [incoming], mode: .additive, local: SchemaReader(connection))
    #expect(plan.notes.count == 65)
    #expect(plan.notes.first?.column == "c250")
    #expect(plan.notes.dropFirst().prefix(2).map(\.column) == ["c0", "c1"])
    #expect(plan.notes.last?.description == "keep t: 236 more columns are only here")
  }
}
