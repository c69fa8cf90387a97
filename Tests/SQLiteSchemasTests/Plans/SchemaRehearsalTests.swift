import SQLiteSchemas
import SQLiteConnections
import Testing

/// The effects of an author's statements are checked before the statements run.
@Suite struct SchemaRehearsalTests {
  /// The statements of a database created by SQL.
  private static func statements(_ sql: String) throws -> [SchemaStatement] {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute(sql)
    return try SchemaReader(connection).statements()
  }

  private static func rehearse(_ statements: [SchemaStatement], allowing functions: Set<String> = []) throws
    -> SchemaRehearsal
  {
    try SchemaRehearsal(of: statements, allowing: functions, with: SQLiteLibrary.standard)
  }

  @Test("An ordinary schema passes, with everything that its parts use")
  func ordinary() throws {
    let sql = """
      CREATE TABLE folder(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT COLLATE NOCASE UNIQUE, made DEFAULT CURRENT_TIMESTAMP);
      CREATE TABLE note(id INTEGER PRIMARY KEY, folder REFERENCES folder(id) ON DELETE CASCADE, body TEXT NOT NULL,
        size AS (length(body)) STORED, kind TEXT CHECK (kind IN ('a', 'b') OR kind LIKE 'x%'), made DEFAULT (datetime('now')));
      CREATE TABLE log(line ANY) STRICT;
      CREATE TABLE pair(a, b, PRIMARY KEY (a, b DESC)) WITHOUT ROWID;
      CREATE INDEX note_lower ON note(lower(body), json_extract(body, '$.a')) WHERE kind = 'a';
      CREATE VIEW recent AS WITH c AS (SELECT count(*) AS n FROM note) SELECT note.*, n, rank() OVER (ORDER BY size) FROM note, c;
      CREATE VIEW counted AS WITH c AS (SELECT 1) SELECT count(*) AS c FROM c;
      CREATE VIEW parts AS SELECT value FROM note, json_each(note.body);
      CREATE TRIGGER logged AFTER UPDATE OF body ON note WHEN old.body <> new.body BEGIN
        INSERT INTO log VALUES (new.body); UPDATE note SET kind = 'b' WHERE id = new.id; SELECT RAISE(IGNORE) WHERE 0;
      END;
      CREATE TRIGGER through INSTEAD OF DELETE ON recent BEGIN DELETE FROM note WHERE id = old.id; END;
      CREATE VIRTUAL TABLE words USING fts5(body, content='note', content_rowid='id');
      CREATE TRIGGER indexed AFTER INSERT ON note BEGIN INSERT INTO words(rowid, body) VALUES (new.id, new.body); END;
      CREATE VIRTUAL TABLE places USING rtree(id, x0, x1)
      """
    let statements = try Self.statements(sql)
    #expect(AuthorSchema(statements: statements, replaced: []).refusal == nil)
    let rehearsal = try Self.rehearse(statements)
    #expect(rehearsal.definitions["note"]?.columns.map(\.name) == ["id", "folder", "body", "kind", "made"])
    #expect(rehearsal.definitions["pair"]?.isWithoutRowID == true)
    #expect(rehearsal.definitions["recent"] == nil)
  }

  @Test("A function of the application is allowed only where the local schema uses it already")
  func functions() throws {
    let statements = [
      SchemaStatement(.table, name: "t", table: "t", sql: "CREATE TABLE t(a)"),
      SchemaStatement(.view, name: "v", table: "v", sql: "CREATE VIEW v AS SELECT soundalike(a) FROM t"),
    ]
    let error = #expect(throws: ReplicationError.self) { try Self.rehearse(statements) }
    #expect(error?.message.contains("soundalike") == true, "\(error?.message ?? "")")
    _ = try Self.rehearse(statements, allowing: ["soundalike"])
  }

  private static let table = SchemaStatement(.table, name: "t", table: "t", sql: "CREATE TABLE t(a)")

  /// Statements that the parser accepts, and SQLite must not run.
  static let hostile: [(statement: SchemaStatement, reason: String)] = [
    (
      SchemaStatement(.table, name: "h", table: "h", sql: "CREATE TABLE h(a DEFAULT (load_extension('x')))"),
      "load_extension"
    ),
    (
      SchemaStatement(.table, name: "h", table: "h", sql: "CREATE TABLE h(a CHECK (fts3_tokenizer(a) IS NULL))"),
      "fts3_tokenizer"
    ),
    (
      SchemaStatement(.view, name: "h", table: "h", sql: "CREATE VIEW h AS SELECT * FROM 'sqlite_master'"), "prohibited"
    ),
    (SchemaStatement(.view, name: "h", table: "h", sql: "CREATE VIEW h AS SELECT * FROM 'pragma_table_info'('t')"), ""),
    (
      SchemaStatement(
        .view, name: "h", table: "h",
        sql: "CREATE VIEW h AS WITH c(x) AS (SELECT 1 UNION ALL SELECT x FROM c) SELECT x FROM c"),
      "not authorized"
    ),
    (SchemaStatement(.view, name: "h", table: "h", sql: "CREATE VIEW h AS SELECT * FROM h"), "circularly"),
    (SchemaStatement(.view, name: "h", table: "h", sql: "CREATE VIEW h AS SELECT * FROM elsewhere"), "elsewhere"),
    (SchemaStatement(.view, name: "h", table: "h", sql: "CREATE VIEW h AS SELECT * FROM temp.t"), "temp"),
    (
      SchemaStatement(
        .trigger, name: "h", table: "t",
        sql: "CREATE TRIGGER h AFTER INSERT ON t BEGIN DELETE FROM 'sqlite_sequence'; END"),
      ""
    ),
    (
      SchemaStatement(
        .trigger, name: "h", table: "t",
        sql: "CREATE TRIGGER h AFTER DELETE ON t BEGIN INSERT INTO elsewhere VALUES (1); END"),
      "elsewhere"
    ),
    (
      SchemaStatement(
        .trigger, name: "h", table: "t",
        sql: "CREATE TRIGGER h BEFORE UPDATE ON t BEGIN SELECT load_extension(new.a); END"),
      "load_extension"
    ),
    (
      SchemaStatement(
        .table, name: "h", table: "h", sql: "CREATE VIRTUAL TABLE h USING fts5(a, content='buckia_ledger')"), "reserved"
    ),
    (SchemaStatement(.table, name: "h", table: "h", sql: "CREATE table  h(a)"), "something else"),
  ]

  @Test("Statements forbidden to authors are refused, even if the parser accepts them", arguments: hostile.indices)
  func refusals(index: Int) throws {
    let item = Self.hostile[index]
    let error = #expect(throws: ReplicationError.self, "\(item.statement.sql)") {
      try Self.rehearse([Self.table, item.statement])
    }
    #expect(error?.code == .refusedDefinition)
    #expect(error?.message.contains("h") == true)
    if !item.reason.isEmpty { #expect(error?.message.contains(item.reason) == true, "\(error?.message ?? "")") }
  }

  @Test("A table in place of a virtual table's shadow table is refused")
  func shadows() throws {
    let clash = [
      SchemaStatement(.table, name: "f", table: "f", sql: "CREATE VIRTUAL TABLE f USING fts5(a)"),
      SchemaStatement(.table, name: "f_data", table: "f_data", sql: "CREATE TABLE f_data(a)"),
    ]
    #expect(throws: ReplicationError.self) { try Self.rehearse(clash) }
  }

  @Test("Views that expand to billions of terms are refused before SQLite expands them")
  func nesting() throws {
    let views = (0..<40).map {
      SchemaStatement(
        .view, name: "v\($0)", table: "v\($0)",
        sql: $0 == 0
          ? "CREATE VIEW v0 AS SELECT a FROM t" : "CREATE VIEW v\($0) AS SELECT x.a FROM v\($0 - 1) x, v\($0 - 1) y")
    }
    let error = #expect(throws: ReplicationError.self) { try Self.rehearse([Self.table] + views) }
    #expect(error?.message.contains("more than") == true)
  }
}
