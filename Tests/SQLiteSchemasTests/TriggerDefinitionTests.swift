import SQLiteConnections
import SQLiteSchemas
import Testing

@Suite struct TriggerDefinitionTests {
  @Test("Event, columns, condition and statements are found in any spelling")
  func parts() throws {
    let sql = """
      CREATE /* BEGIN */ TRIGGER main."after; ""x" -- ON t
      AFTER UPDATE OF a, "b ""c", [d e], `f` ON main.[t (1)] FOR EACH ROW
      WHEN (SELECT begin FROM x WHERE begin) OR new.begin < CASE WHEN old."end" THEN 1 ELSE 'BEGIN' END
      BEGIN
        INSERT OR REPLACE INTO "r t" VALUES (new.a, 'a; END', CASE WHEN 1 THEN 2 END); -- ;
        /* ; */ DELETE FROM [f t] WHERE id IN (SELECT id FROM y, z JOIN main.w);
        REPLACE INTO 'q' SELECT 1;;
        UPDATE OR IGNORE `u` SET a = [;];
        update v set b = 1;
        SELECT RAISE(ABORT, 'no');
      END
      """
    let trigger = try #require(TriggerDefinition(parsing: sql))
    #expect(trigger.timing == .after && trigger.event == .update)
    #expect(trigger.columns == ["a", "b \"c", "d e", "f"])
    #expect(trigger.condition?.hasPrefix("(SELECT begin") == true)
    #expect(trigger.condition?.hasSuffix("ELSE 'BEGIN' END") == true)
    #expect(trigger.conditionReferences.sources.contains("x"))
    #expect(trigger.statements.map(\.target) == ["r t", "f t", "q", "u", "v", nil])
    #expect(trigger.statements.map(\.hasConflictClause) == [true, false, true, true, false, false])
    #expect(trigger.statements[0].text.hasSuffix("THEN 2 END)"))
    #expect(trigger.statements[1].text == "DELETE FROM [f t] WHERE id IN (SELECT id FROM y, z JOIN main.w)")
    #expect(trigger.statements[1].references.sources.isSuperset(of: ["y", "z", "w"]))
    #expect(!trigger.statements[1].references.sources.contains("f t"))
    #expect(trigger.statements.map(\.references.raises) == [false, false, false, false, false, true])
  }

  static let heads: [(sql: String, timing: TriggerDefinition.Timing, event: TriggerDefinition.Event)] = [
    ("CREATE TRIGGER t INSERT ON a BEGIN SELECT 1; END", .before, .insert),
    ("create temp trigger if not exists x.t before delete on a begin select 1; end;", .before, .delete),
    ("CREATE TRIGGER after AFTER INSERT ON before BEGIN SELECT 1; END", .after, .insert),
    ("CREATE TRIGGER 'when' INSTEAD OF UPDATE ON \"begin\" BEGIN SELECT 1; END", .insteadOf, .update),
    ("CREATE TEMPORARY TRIGGER t AFTER DELETE ON a WHEN 1 BEGIN SELECT 1; END", .after, .delete),
  ]

  @Test("Every form of the statement that SQLite accepts is parsed", arguments: heads)
  func forms(_ example: (sql: String, timing: TriggerDefinition.Timing, event: TriggerDefinition.Event))
    throws
  {
    let trigger = try #require(TriggerDefinition(parsing: example.sql))
    #expect(trigger.timing == example.timing && trigger.event == example.event)
    #expect(trigger.statements.count == 1 && trigger.statements[0].target == nil)
  }

  static let others = [
    "", ";", "CREATE", "CREATE TRIGGER", "CREATE TABLE t(a)", "CREATE TRIGGER t AFTER INSERT ON a",
    "CREATE TRIGGER t AFTER INSERT ON a BEGIN", "CREATE TRIGGER t AFTER INSERT ON a BEGIN END",
    "CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1 END", "CREATE TRIGGER t AFTER INSERT ON a WHEN 1; END",
    "CREATE TRIGGER t AFTER INSERT ON a WHEN new.begin SELECT 1; END",
    "CREATE TRIGGER t AFTER TRUNCATE ON a BEGIN SELECT 1; END",
    "CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT '; END", "CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT ?1; END",
    "CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1; END DROP",
    "CREATE TRIGGER (t) AFTER INSERT ON a BEGIN SELECT 1; END",
    "CREATE TRIGGER t AFTER UPDATE OF ON a BEGIN SELECT 1; END",
    "CREATE TRIGGER t AFTER INSERT ON a WHEN ((1) BEGIN SELECT 1; END",
  ]

  @Test("Any other statement is refused", arguments: others)
  func refused(_ sql: String) { #expect(TriggerDefinition(parsing: sql) == nil) }

  @Test("Any prefix and any suffix of a trigger can be parsed")
  func hostile() {
    let sql = "CREATE TRIGGER t AFTER UPDATE OF a ON b WHEN (new.c) BEGIN INSERT OR FAIL INTO \"d\" VALUES ('e;'); END"
    for index in sql.indices {
      _ = TriggerDefinition(parsing: String(sql[..<index]))
      _ = TriggerDefinition(parsing: String(sql[index...]))
      _ = VirtualTableDefinition(parsing: String(sql[index...]))
    }
    let deep = String(repeating: "(", count: 20_000)
    #expect(TriggerDefinition(parsing: "CREATE TRIGGER t AFTER INSERT ON a WHEN \(deep) BEGIN SELECT 1; END") == nil)
  }

  @Test("A trigger built from the parsed parts has the same effect")
  func rebuilt() throws {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute(
      """
      CREATE TABLE t(id INTEGER PRIMARY KEY, "begin" INT, "end" TEXT); CREATE TABLE log(line);
      CREATE TRIGGER [a ; b] AFTER UPDATE OF "begin", [end] ON main.t FOR EACH ROW
      WHEN new.begin > 1 AND CASE new.end WHEN 'BEGIN; END' THEN 0 ELSE 1 END
      BEGIN INSERT INTO log VALUES ('a;' || new.begin /* ; */ || CASE WHEN 1 THEN 'END;' END); END
      """)
    let stored = try #require(try connection.text("SELECT sql FROM sqlite_schema WHERE type = 'trigger'"))
    let trigger = try #require(TriggerDefinition(parsing: stored))
    let columns = trigger.columns.map(SQLText.identifier).joined(separator: ", ")
    try connection.execute(
      """
      DROP TRIGGER [a ; b];
      CREATE TEMP TRIGGER again \(trigger.timing.rawValue) \(trigger.event.rawValue) OF \(columns) ON main.t
      WHEN (\(trigger.condition ?? "")) BEGIN \(trigger.statements.map(\.text).joined(separator: "; ")); END;
      INSERT INTO t VALUES (1, 1, 'x');
      UPDATE t SET "begin" = 1; UPDATE t SET "begin" = 2; UPDATE t SET id = 5; UPDATE t SET "end" = 'BEGIN; END';
      """)
    #expect(try connection.text("SELECT group_concat(line) FROM log") == "a;2END;")
  }
}

@Suite struct SQLReferencesTests {
  @Test("Functions, operators that call functions, and tables that are read are found")
  func references() {
    let references = SQLReferences(
      of: "INSERT INTO f(a) SELECT Lower(x), \"Upper\" (y), 'no'(1) FROM a, (b) LEFT JOIN c ON x LIKE y WHERE z IN d")
    #expect(references.functions.isSuperset(of: ["lower", "upper", "like"]))
    #expect(!references.functions.contains("no"))
    #expect(references.sources.isSuperset(of: ["a", "B", "c", "d"]))
    #expect(!references.sources.contains("f"))
    #expect(references.names.contains("no") && !references.raises)
  }

  @Test("OLD and NEW are not tables that are read")
  func noSources() {
    #expect(SQLReferences(of: "INSERT INTO f(f, tags, b) VALUES ('delete', old.tags, new.b)").sources.isEmpty)
    #expect(SQLReferences(of: "DELETE FROM f WHERE id = old.id").sources.isEmpty)
  }

  @Test("An ON CONFLICT clause is found, quoted text and comments are not one")
  func conflictClauses() {
    #expect(CreateTableParts.hasConflictClause(in: "CREATE TABLE t(a UNIQUE ON /* x */ conflict REPLACE)"))
    #expect(
      !CreateTableParts.hasConflictClause(in: "CREATE TABLE t(a REFERENCES b ON DELETE CASCADE, \"on\" \"conflict\")"))
    #expect(!CreateTableParts.hasConflictClause(in: "CREATE TABLE t(a DEFAULT 'ON CONFLICT' /* ON CONFLICT */)"))
    #expect(!CreateTableParts.hasConflictClause(in: ""))
  }
}

@Suite struct VirtualTableDefinitionTests {
  static let examples: [(sql: String, module: String?, content: String?)] = [
    ("CREATE VIRTUAL TABLE f USING fts5(a, b)", "fts5", nil),
    ("CREATE VIRTUAL TABLE f USING fts5(a, content='n', content_rowid='id')", "fts5", "n"),
    ("CREATE VIRTUAL TABLE f USING FTS4 (content=\"my notes\", a)", "FTS4", "my notes"),
    ("create virtual table if not exists main.\"a using b\" using 'fts5'( a , content = [n] )", "fts5", "n"),
    ("CREATE VIRTUAL TABLE f USING fts5(a, content=)", "fts5", ""),
    ("CREATE VIRTUAL TABLE f USING fts5(a, content='')", "fts5", ""),
    ("CREATE VIRTUAL TABLE f USING fts5(a, tokenize = \"unicode61 tokenchars '(,)'\", content=n)", "fts5", "n"),
    ("CREATE VIRTUAL TABLE r USING rtree(id, x, y, +content)", "rtree", nil),
    ("CREATE VIRTUAL TABLE v USING thing", "thing", nil),
    ("CREATE VIRTUAL TABLE v USING fts5(a, content=n", "fts5", "n"),
    ("CREATE TABLE f(a)", nil, nil), ("CREATE VIRTUAL TABLE f", nil, nil), ("", nil, nil),
  ]

  @Test("The module and the content option of a virtual table are found", arguments: examples)
  func parts(_ example: (sql: String, module: String?, content: String?)) {
    let definition = VirtualTableDefinition(parsing: example.sql)
    #expect(definition?.module == example.module)
    #expect(definition?.option("content") == example.content)
  }
}
