import SQLiteConnections
import SQLiteSchemas
import Testing
import TestSupport

/// A CREATE statement is what it claims to be, or is refused.
@Suite struct SchemaStatementTests {
  private typealias Kind = SchemaStatement.Kind

  private static func statement(
    _ kind: SchemaStatement.Kind, _ name: String, _ table: String? = nil, _ sql: String
  ) -> SchemaStatement {
    SchemaStatement(kind, name: name, table: table ?? name, sql: sql)
  }

  @Test(
    "The form in which SQLite stores ordinary statements is accepted",
    arguments: [
      "CREATE TABLE t(a, b TEXT NOT NULL DEFAULT (lower('X')), CHECK (a > 0 AND b <> ';'))",
      "CREATE TABLE t(id INTEGER PRIMARY KEY AUTOINCREMENT, \"a;b\" TEXT COLLATE NOCASE) STRICT",
      "CREATE TABLE t(a TEXT PRIMARY KEY, b TEXT AS (a || '/*') STORED) WITHOUT ROWID, STRICT",
      "CREATE TABLE [a b](x -- a comment; with a semicolon\n, y)",
      "CREATE TABLE \"if\"(a REFERENCES other(b) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED)",
      "CREATE TABLE t(a); CREATE UNIQUE INDEX i ON t(a COLLATE NOCASE DESC) WHERE a IS NOT NULL",
      "CREATE TABLE t(a); CREATE INDEX \"on\" ON t(json_extract(a, '$.x'), abs(a))",
      "CREATE TABLE t(a); CREATE VIEW v(x, y) AS WITH c AS (SELECT a FROM t) SELECT c.a, count(*) FROM c GROUP BY 1",
      "CREATE TABLE t(a, b); CREATE TRIGGER tr AFTER UPDATE OF a, b ON t WHEN new.a IS NOT old.a BEGIN UPDATE t SET b = CASE WHEN new.a THEN 1 END; SELECT RAISE(ABORT, 'x;y'); END",
      "CREATE TABLE t(a); CREATE VIEW v AS SELECT a FROM t; CREATE TRIGGER tr INSTEAD OF INSERT ON v BEGIN INSERT INTO t VALUES (new.a); END",
      "CREATE VIRTUAL TABLE f USING fts5(a, b UNINDEXED, tokenize = 'porter unicode61')",
    ])
  func accepted(sql: String) throws {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute(sql)
    let shadows =
      "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'f\\__%' ESCAPE '\\'"
    var seen = 0
    try connection.forEachRow(of: shadows + " AND name NOT LIKE 'sqlite%'") { row in
      let kind = try #require(SchemaStatement.Kind(rawValue: row.text(at: 0) ?? ""))
      let statement = SchemaStatement(
        kind, name: row.text(at: 1) ?? "", table: row.text(at: 2) ?? "", sql: row.text(at: 3) ?? "")
      #expect(statement.refusal == nil, "\(statement.sql): \(statement.refusal ?? "")")
      seen += 1
    }
    #expect(seen > 0)
  }

  /// A statement that is not what it claims to be.
  struct Claim: Sendable, CustomTestStringConvertible {
    let statement: SchemaStatement
    /// A part of the reason.
    let reason: String
    var testDescription: String { statement.sql }

    init(_ kind: SchemaStatement.Kind, _ name: String, on table: String? = nil, _ sql: String, _ reason: String) {
      statement = SchemaStatement(kind, name: name, table: table ?? name, sql: sql)
      self.reason = reason
    }
  }

  private static let trigger = "CREATE TRIGGER tr AFTER INSERT ON t BEGIN"

  static let claims = [
    Claim(.table, "t", "", "no CREATE"),
    Claim(.table, "t", "DROP TABLE t", "no CREATE"),
    Claim(.table, "t", "CREATE TABLE t(a); DROP TABLE t", "more than one"),
    Claim(.table, "t", "CREATE TABLE t(a);", "more than one"),
    Claim(.table, "t", "CREATE TABLE t(a) AS SELECT 1", "behind"),
    Claim(.table, "t", "CREATE TABLE t AS SELECT 1 AS a", "columns"),
    Claim(.table, "t", "CREATE TEMP TABLE t(a)", "does not make"),
    Claim(.table, "t", "CREATE TABLE temp.t(a)", "does not make"),
    Claim(.table, "t", "CREATE TABLE IF NOT EXISTS t(a)", "does not make"),
    Claim(.table, "if", "CREATE TABLE if NOT EXISTS t(a)", "columns"),
    Claim(.table, "t", "CREATE TABLE u(a)", "does not make"),
    Claim(.table, "t", "CREATE TABLE t(a) STRICT WITHOUT ROWID", "behind"),
    Claim(.table, "t", "CREATE TABLE t(a) STRICT,", "behind"),
    Claim(.table, "t", "CREATE TABLE t(a", "parentheses"),
    Claim(.table, "t", "CREATE VIEW t AS SELECT 1", "does not make"),
    Claim(.table, "t", on: "u", "CREATE TABLE t(a)", "does not make"),
    Claim(.table, "sqlite_stat1", "CREATE TABLE sqlite_stat1(a)", "reserved"),
    Claim(.table, "Buckia_ledger", "CREATE TABLE Buckia_ledger(a)", "reserved"),
    Claim(.table, "pragma_x", "CREATE TABLE pragma_x(a)", "reserved"),
    Claim(.table, "t", "CREATE TABLE t(a CHECK (load_extension('x')))", "load_extension"),
    Claim(.table, "t", "CREATE TABLE t(a DEFAULT (WRITEFILE('x', 'y')))", "writefile"),
    Claim(.table, "t", "CREATE TABLE t(a AS (\"edit\" ('x')))", "edit"),
    Claim(.table, "t", "CREATE TABLE t(a DEFAULT 'x)", "quote"),
    Claim(.table, "t", "CREATE TABLE t(a DEFAULT (:x))", "parameter"),
    Claim(.table, "t", "CREATE TABLE t(a \u{0})", "byte"),
    Claim(.table, "t", "CREATE TABLE t(a, \u{feff}b)", "byte order mark"),
    Claim(.table, "t", "CREATE TABLE t(a REFERENCES [sqlite_schema])", "sqlite_"),
    Claim(.table, "m", "CREATE VIRTUAL TABLE m USING csv(filename = '/etc/passwd')", "csv"),
    Claim(.table, "m", "CREATE VIRTUAL TABLE m USING fts5(a) x", "behind"),
    Claim(.index, "i", on: "t", "CREATE INDEX i ON u(a)", "not an index of"),
    Claim(.index, "i", on: "t", "CREATE INDEX main.i ON t(a)", "does not make"),
    Claim(.index, "i", on: "t", "CREATE INDEX i ON main.t(a)", "not an index of"),
    Claim(.index, "i", on: "t", "CREATE INDEX i ON t(a) WHERE", "behind"),
    Claim(.index, "i", on: "t", "CREATE INDEX i ON t(a); PRAGMA writable_schema=1", "writable_schema"),
    Claim(.index, "i", on: "t", "CREATE INDEX i ON t(a); VACUUM", "more than one"),
    Claim(.index, "sqlite_autoindex_t_1", on: "t", "CREATE INDEX sqlite_autoindex_t_1 ON t(a)", "reserved"),
    Claim(.view, "v", "CREATE VIEW v AS PRAGMA table_info(t)", "query"),
    Claim(.view, "v", "CREATE VIEW v AS SELECT * FROM PRAGMA_TABLE_INFO('t')", "pragma_"),
    Claim(.view, "v", "CREATE VIEW v AS SELECT sql FROM sqlite_master", "sqlite_"),
    Claim(.view, "v", "CREATE VIEW v AS SELECT * FROM `buckia_setting`", "buckia_"),
    Claim(.view, "v", "CREATE VIEW v AS SELECT fts3_tokenizer('x')", "fts3_tokenizer"),
    Claim(
      .view, "v", "CREATE VIEW v AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c",
      "recurses"),
    Claim(.trigger, "tr", on: "t", trigger + " SELECT 1; END; DROP TABLE t", "not one trigger"),
    Claim(.trigger, "tr", on: "t", trigger + " SELECT 1; END;", "not one trigger"),
    Claim(.trigger, "tr", on: "t", trigger + " ATTACH 'x' AS y; END", "more than read and write"),
    Claim(.trigger, "tr", on: "t", trigger + " PRAGMA foreign_keys = 0; END", "more than read and write"),
    Claim(.trigger, "tr", on: "t", trigger + " DELETE FROM sqlite_sequence; END", "sqlite_"),
    Claim(.trigger, "tr", on: "t", trigger + " UPDATE buckia_setting SET value = 1; END", "buckia_"),
    Claim(.trigger, "tr", on: "u", trigger + " SELECT 1; END", "not a trigger of"),
    Claim(.trigger, "tr", on: "t", "CREATE TEMP TRIGGER tr AFTER INSERT ON t BEGIN SELECT 1; END", "does not make"),
  ]

  @Test("A statement that is not what it claims to be is refused, and the reason says why", arguments: claims)
  func refused(claim: Claim) throws {
    let reason = try #require(claim.statement.refusal, "it was accepted")
    #expect(reason.contains(claim.reason), "\(reason)")
  }

  @Test("Any text is safe to check", arguments: Seeds.shards)
  func anyText(shard: Int) throws {
    try Seeds.tryEach(400, shard: shard) { seed in
      var random = SeededGenerator(seed: seed)
      let pieces = [
        "CREATE ", "TABLE ", "VIEW ", "TRIGGER ", "INDEX ", "t", "(", ")", ",", ";", "'", "\"", "[", "]", "AS ",
        "SELECT ",
        "BEGIN ", "END", "ON ", "--", "/*", "*/", "\n", "STRICT", "WITHOUT ROWID", "USING fts5", "INSERT ", "\u{301}",
        "?", ".",
      ]
      let sql = (0..<Int.random(in: 0...24, using: &random)).map { _ in random.pick(pieces) }.joined()
      for kind in SchemaStatement.Kind.allCases {
        let statement = SchemaStatement(kind, name: "t", table: "t", sql: sql)
        guard statement.refusal == nil else { continue }
        // An accepted statement creates at most one object.
        let connection = try SQLiteConnection(opening: ":memory:", as: .create)
        if kind != .table { try connection.execute(kind == .view ? "SELECT 1" : "CREATE TABLE t(t)") }
        let before = try connection.integer("SELECT count(*) FROM sqlite_schema") ?? 0
        do { try connection.execute(sql) } catch { continue }
        let count = "SELECT count(*) FROM sqlite_schema WHERE name NOT LIKE 't\\__%' ESCAPE '\\'"
        #expect(try connection.integer(count) == before + 1, "\(Seeds.replay(seed)): \(sql)")
      }
    }
  }

  @Test("Two statements are equal if nothing but white space differs, comments included")
  func equalsIgnoringWhiteSpace() {
    let one = Self.statement(.table, "t", nil, "CREATE TABLE t(a, -- the first\n b TEXT /* c d */)")
    for other in [
      "CREATE TABLE t(a,--the first\n\n  b TEXT/*c d*/ )", "CREATE\tTABLE t (a, -- the  first\nb TEXT /*\ncd */)",
    ] {
      #expect(one.equalsIgnoringWhiteSpace(Self.statement(.table, "t", nil, other)), "\(other)")
    }
    for other in [
      "CREATE TABLE t(a, b TEXT)", "CREATE TABLE t(a, -- The first\n b TEXT /* c d */)",
      "CREATE TABLE t(a -- the first\n, b TEXT /* c d */)", "CREATE TABLE t(a, -- the first\n b TEXT) /* c d */",
      "CREATE TABLE t(a, -- the first\n b text /* c d */)",
    ] {
      #expect(!one.equalsIgnoringWhiteSpace(Self.statement(.table, "t", nil, other)), "\(other)")
    }
  }

  @Test("White space, comments and the case of a name do not change the created object; the rest does")
  func makesTheSame() {
    let one = Self.statement(.table, "t", nil, "CREATE TABLE t(a, b TEXT)")
    #expect(one.makesTheSame(as: Self.statement(.table, "T", nil, "CREATE TABLE t ( a,b  TEXT -- c\n)")))
    #expect(!one.makesTheSame(as: Self.statement(.table, "t", nil, "CREATE TABLE t(a, b text)")))
    #expect(!one.makesTheSame(as: Self.statement(.table, "t", nil, "CREATE TABLE t(a, b TEXT, c)")))
    #expect(!one.makesTheSame(as: Self.statement(.view, "t", nil, "CREATE TABLE t(a, b TEXT)")))
  }

  @Test(
    "The columns that ADD COLUMN can add are found, and none where that is not enough",
    arguments: [
      (
        "CREATE TABLE t(a, b)", "CREATE TABLE t(a, b, c TEXT DEFAULT 'x,y', d AS (a))",
        ["c TEXT DEFAULT 'x,y'", "d AS (a)"]
      ),
      ("CREATE TABLE t(a, CHECK (a > 1))", "CREATE TABLE t(a , b NUMERIC(1, 2), CHECK (a > 1))", ["b NUMERIC(1, 2)"]),
      ("CREATE TABLE t(a, b)", "CREATE TABLE t(a, c, b)", nil),
      ("CREATE TABLE t(a, b)", "CREATE TABLE t(a, b, CHECK (a))", nil),
      ("CREATE TABLE t(a, b)", "CREATE TABLE t(a, b TEXT, c)", nil),
      ("CREATE TABLE t(a, b)", "CREATE TABLE t(a, b, c) STRICT", nil),
      ("CREATE TABLE t(a, b)", "CREATE TABLE \"t\"(a, b, c)", nil),
    ] as [(String, String, [String]?)])
  func addedColumns(older: String, newer: String, columns: [String]?) throws {
    let first = try #require(CreateTableParts(parsing: older))
    #expect(first.addedColumns(in: try #require(CreateTableParts(parsing: newer))) == columns)
  }

  @Test("Views that use each other too often are refused, but columns with a view's name do not count")
  func nesting() {
    func views(_ count: Int, _ body: (Int) -> String) -> [SchemaStatement] {
      (0..<count).map { Self.statement(.view, "v\($0)", nil, "CREATE VIEW v\($0) AS \(body($0))") }
    }
    let doubling = views(40) { $0 == 0 ? "SELECT 1 AS x" : "SELECT a.x FROM v\($0 - 1) a JOIN v\($0 - 1) b" }
    #expect(ViewNesting(doubling).refusal?.contains("more than") == true)
    #expect(ViewNesting(views(2_000) { $0 == 0 ? "SELECT 1" : "SELECT * FROM v\($0 - 1)" }).refusal == nil)
    #expect(ViewNesting(views(2) { "SELECT v\(1 - $0) AS v\($0) FROM v\(1 - $0)" }).refusal == nil)
  }
}
