import Buckia
import BuckiaDiff
import SQLiteSchemas
import Testing
import TestSupport

@testable import SQLiteConnections

/// The receiver adopts the author's schema, and loses only rows that the author has deleted.
@Suite struct AdoptTests {
  /// The statements of a database's schema.
  private static func statements(of path: String) throws -> [SchemaStatement] {
    let connection = try SQLiteConnection(opening: path, as: .readOnly)
    return try SchemaReader(connection).statements()
  }

  /// The statements that only one of the two schemas has, ignoring white space.
  static func differences(_ first: String, _ second: String) throws -> [String] {
    let (one, two) = (try statements(of: first), try statements(of: second))
    return one.filter { statement in !two.contains { $0.equalsIgnoringWhiteSpace(statement) } }.map { "- \($0.sql)" }
      + two.filter { statement in !one.contains { $0.equalsIgnoringWhiteSpace(statement) } }.map { "+ \($0.sql)" }
  }

  /// A release of an app: SQL that makes the old database, and SQL that upgrades it.
  struct Migration: Sendable, CustomTestStringConvertible {
    let name: String
    let base: String
    let upgrade: String
    var testDescription: String { name }

    init(_ name: String, _ base: String, _ upgrade: String) {
      self.name = name
      self.base = base
      self.upgrade = upgrade
    }
  }

  private static let notes = """
    CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT, kind TEXT CHECK (kind IN ('a', 'b')));
    INSERT INTO notes VALUES (1, 'one', 'a'), (2, 'two', 'b'), (3, 'three', NULL)
    """

  /// Returns SQL that rebuilds a table as applications do.
  private static func rebuilding(_ table: String, _ definition: String, _ columns: String = "*", options: String = "")
    -> String
  {
    """
    ALTER TABLE \(table) RENAME TO before_\(table); CREATE TABLE \(table)(\(definition)) \(options);
    INSERT INTO \(table) SELECT \(columns) FROM before_\(table); DROP TABLE before_\(table);
    """
  }

  static let migrations = [
    Migration(
      "a CHECK with more values", notes,
      rebuilding("notes", "id INTEGER PRIMARY KEY, title TEXT, kind TEXT CHECK (kind IN ('a', 'b', 'c'))")
        + "INSERT INTO notes VALUES (4, 'four', 'c'); UPDATE notes SET kind = 'c' WHERE id = 1"),
    Migration(
      "a CHECK that old rows break until they are changed", notes,
      rebuilding("notes", "id INTEGER PRIMARY KEY, title TEXT, kind TEXT")
        + "UPDATE notes SET kind = 'A' WHERE kind = 'a';"
        + "UPDATE notes SET kind = 'B' WHERE kind = 'b'; UPDATE notes SET kind = '' WHERE kind IS NULL;"
        + rebuilding("notes", "id INTEGER PRIMARY KEY, title TEXT, kind TEXT NOT NULL CHECK (kind IN ('A', 'B', ''))")),
    Migration(
      "TEXT becomes INTEGER_OR_TEXT",
      "CREATE TABLE t(id INTEGER PRIMARY KEY, size TEXT); INSERT INTO t VALUES (1, '12'), (2, 'large'), (3, NULL), (4, '7')",
      rebuilding("t", "id INTEGER PRIMARY KEY, size INTEGER_OR_TEXT")
        + "UPDATE t SET size = 13 WHERE id = 1; DELETE FROM t WHERE id = 4; INSERT INTO t VALUES (5, 5)"),
    Migration(
      "the key's type changes",
      "CREATE TABLE t(id TEXT PRIMARY KEY, v); INSERT INTO t VALUES ('1', 'a'), ('x', 'b'), ('03', 'c')",
      rebuilding("t", "id INTEGER_OR_TEXT PRIMARY KEY, v")
        + "UPDATE t SET v = 'A' WHERE v = 'a'; INSERT INTO t VALUES (9, 'n')"),
    Migration(
      "the key gets one column more",
      "CREATE TABLE t(id INTEGER PRIMARY KEY, lang TEXT, v); INSERT INTO t VALUES (1, 'en', 'a'), (2, 'de', 'b'), (3, 'de', 'c')",
      rebuilding("t", "id INTEGER, lang TEXT, v, PRIMARY KEY (lang, id)", options: "WITHOUT ROWID")
        + "INSERT INTO t VALUES (1, 'de', 'A'); UPDATE t SET v = 'B' WHERE id = 2; DELETE FROM t WHERE id = 3"),
    Migration(
      "a table gets a key", "CREATE TABLE t(id INTEGER, v); INSERT INTO t VALUES (10, 'a'), (20, 'b'), (NULL, 'c')",
      "UPDATE t SET id = 30 WHERE id IS NULL;" + rebuilding("t", "id INTEGER PRIMARY KEY, v")
        + "DELETE FROM t WHERE id = 10"),
    Migration(
      "a table loses its key", "CREATE TABLE t(id INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (10, 'a'), (20, 'b')",
      "CREATE TABLE m(id INTEGER, v); INSERT INTO m(rowid, id, v) SELECT id, id, v FROM t; DROP TABLE t; ALTER TABLE m RENAME TO t; UPDATE t SET v = 'B' WHERE id = 20; INSERT INTO t VALUES (20, 'twice')"
    ),
    Migration(
      "a column is dropped", notes, "ALTER TABLE notes DROP COLUMN kind; UPDATE notes SET title = 'ONE' WHERE id = 1"),
    Migration(
      "a column is dropped and made again with another type", notes,
      "ALTER TABLE notes DROP COLUMN kind; ALTER TABLE notes ADD COLUMN kind INTEGER NOT NULL DEFAULT 4; UPDATE notes SET kind = id"
    ),
    Migration(
      "a column is added", notes,
      "ALTER TABLE notes ADD COLUMN stars INTEGER NOT NULL DEFAULT 3; UPDATE notes SET stars = 5 WHERE id = 2"),
    Migration(
      "a column with an expression as default", notes,
      rebuilding(
        "notes", "id INTEGER PRIMARY KEY, title TEXT, made TEXT DEFAULT (datetime('now'))", "id, title, 'once'")),
    Migration(
      "a NOT NULL column without a default", notes,
      rebuilding("notes", "id INTEGER PRIMARY KEY, title TEXT, kind TEXT, more TEXT NOT NULL", "*, title || '!'")),
    Migration(
      "columns in another order", notes,
      rebuilding("notes", "kind TEXT, title TEXT, id INTEGER PRIMARY KEY", "kind, title, id")
        + "DELETE FROM notes WHERE id = 2"),
    Migration(
      "a table is split",
      "CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT, street TEXT, town TEXT); INSERT INTO person VALUES (1, 'A', 's', 't'), (2, 'B', NULL, 'u')",
      """
      CREATE TABLE address(person INTEGER PRIMARY KEY REFERENCES person(id), street TEXT, town TEXT);
      INSERT INTO address SELECT id, street, town FROM person; ALTER TABLE person DROP COLUMN street; ALTER TABLE person DROP COLUMN town
      """),
    Migration(
      "a table gets another name", notes + "; CREATE TABLE kinds(kind TEXT PRIMARY KEY)",
      "ALTER TABLE notes RENAME TO entries; INSERT INTO entries VALUES (9, 'x', 'a')"),
    Migration(
      "WITHOUT ROWID becomes an ordinary table",
      "CREATE TABLE t(k TEXT PRIMARY KEY, v) WITHOUT ROWID; INSERT INTO t VALUES ('a', 1), ('b', 2)",
      rebuilding("t", "k TEXT PRIMARY KEY, v") + "UPDATE t SET v = 3 WHERE k = 'a'; DELETE FROM t WHERE k = 'b'"),
    Migration(
      "an ordinary table becomes WITHOUT ROWID and STRICT",
      "CREATE TABLE t(k TEXT PRIMARY KEY, v INT); INSERT INTO t VALUES ('a', 1), ('b', 2)",
      rebuilding("t", "k TEXT NOT NULL PRIMARY KEY, v INT", options: "STRICT, WITHOUT ROWID")
        + "INSERT INTO t VALUES ('c', 3)"),
    Migration(
      "STRICT, once a row has been mended",
      "CREATE TABLE t(id INTEGER PRIMARY KEY, n INTEGER); INSERT INTO t VALUES (1, 1), (2, 'two')",
      "UPDATE t SET n = 2 WHERE id = 2;" + rebuilding("t", "id INTEGER PRIMARY KEY, n INTEGER", options: "STRICT")),
    Migration(
      "generated columns", notes,
      """
      ALTER TABLE notes ADD COLUMN upper_title TEXT AS (upper(title)); CREATE INDEX upper_notes ON notes(upper_title);
      UPDATE notes SET title = 'drei' WHERE id = 3
      """),
    Migration(
      "a stored generated column, and one that becomes ordinary",
      "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b AS (a * 2)); INSERT INTO t(id, a) VALUES (1, 10), (2, 20)",
      rebuilding("t", "id INTEGER PRIMARY KEY, a, b, c AS (a + 1) STORED", "id, a, b").replacing(
        "INSERT INTO t ", with: "INSERT INTO t(id, a, b) ")),
    Migration(
      "another collating sequence, once duplicates are gone",
      "CREATE TABLE t(name TEXT PRIMARY KEY, v); INSERT INTO t VALUES ('a', 1), ('A', 2), ('b', 3)",
      "DELETE FROM t WHERE name = 'A';" + rebuilding("t", "name TEXT COLLATE NOCASE PRIMARY KEY, v")),
    Migration(
      "UNIQUE, once duplicates are gone",
      "CREATE TABLE t(id INTEGER PRIMARY KEY, v TEXT); INSERT INTO t VALUES (1, 'a'), (2, 'a'), (3, 'b'); CREATE INDEX plain ON t(v)",
      "DELETE FROM t WHERE id = 2; CREATE UNIQUE INDEX single ON t(v); " + "UPDATE t SET v = 'c' WHERE id = 3"),
    Migration(
      "UNIQUE in the table, once duplicates are gone",
      "CREATE TABLE t(id INTEGER PRIMARY KEY, v TEXT); INSERT INTO t VALUES (1, 'a'), (2, 'a'), (3, 'b'); CREATE INDEX plain ON t(v)",
      "DELETE FROM t WHERE id = 2;" + rebuilding("t", "id INTEGER PRIMARY KEY, v TEXT UNIQUE ON CONFLICT REPLACE")
        + "CREATE INDEX plain ON t(v)"),
    Migration(
      "views and triggers over a table that is made again",
      notes + """
        ; CREATE VIEW titles AS SELECT title FROM notes; CREATE TABLE log(line);
        CREATE TRIGGER logged AFTER INSERT ON notes BEGIN INSERT INTO log VALUES (new.title); END
        """,
      """
      DROP TRIGGER logged; DROP VIEW titles;
      CREATE TABLE made(id INTEGER PRIMARY KEY, title TEXT NOT NULL, kind TEXT, rank INT DEFAULT 0);
      INSERT INTO made(id, title, kind) SELECT * FROM notes; DROP TABLE notes; ALTER TABLE made RENAME TO notes;
      CREATE VIEW titles AS SELECT title, rank FROM notes;
      CREATE TRIGGER logged AFTER UPDATE ON notes BEGIN INSERT INTO log VALUES (old.title || new.title); END;
      CREATE VIEW more AS SELECT * FROM titles; CREATE TRIGGER through INSTEAD OF INSERT ON titles BEGIN SELECT 1; END;
      UPDATE notes SET rank = 1 WHERE id = 3
      """),
    Migration(
      "indexes on expressions and parts",
      notes + "; CREATE INDEX i ON notes(title); CREATE INDEX gone ON notes(kind)",
      "DROP INDEX i; DROP INDEX gone; CREATE INDEX i ON notes(lower(title), id DESC) WHERE kind = 'a'; CREATE INDEX j ON notes(kind)"
    ),
    Migration(
      "keys and foreign keys of several columns",
      """
      CREATE TABLE album(artist TEXT, title TEXT, PRIMARY KEY (artist, title)); INSERT INTO album VALUES ('x', 'y'), ('x', 'z');
      CREATE TABLE song(id INTEGER PRIMARY KEY, artist TEXT, title TEXT); INSERT INTO song VALUES (1, 'x', 'y'), (2, 'x', 'z')
      """,
      rebuilding(
        "song",
        "id INTEGER PRIMARY KEY, artist TEXT, title TEXT, FOREIGN KEY (artist, title) REFERENCES album(artist, title) ON DELETE CASCADE"
      )
        + rebuilding(
          "album", "artist TEXT NOT NULL, title TEXT NOT NULL, year INT, PRIMARY KEY (artist, title)",
          "artist, title, 1999"
        )
        .replacing("ALTER TABLE album", with: "PRAGMA legacy_alter_table = ON; ALTER TABLE album")),
    Migration(
      "AUTOINCREMENT keeps its counter",
      "CREATE TABLE t(id INTEGER PRIMARY KEY AUTOINCREMENT, v); INSERT INTO t VALUES (5, 'a'), (90, 'b'); DELETE FROM t WHERE id = 90",
      """
      CREATE TABLE made(id INTEGER PRIMARY KEY AUTOINCREMENT, v TEXT); INSERT INTO made SELECT * FROM t; DROP TABLE t;
      ALTER TABLE made RENAME TO t; UPDATE sqlite_sequence SET seq = 90 WHERE name = 't'
      """),
    Migration(
      "a table without a key gets other columns",
      "CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 2), (1, 2), (NULL, 'x'); DELETE FROM t WHERE rowid = 2",
      "ALTER TABLE t DROP COLUMN a; ALTER TABLE t ADD COLUMN c TEXT; UPDATE t SET c = 'new' WHERE rowid = 3"),
    Migration(
      "tables, indexes, views and triggers are dropped",
      notes + """
        ; CREATE TABLE old(a, b); INSERT INTO old VALUES (1, 2), (3, x'00'), (NULL, 2.5); CREATE INDEX old_a ON old(a);
        CREATE VIEW all_old AS SELECT * FROM old; CREATE TRIGGER t_old AFTER INSERT ON old BEGIN SELECT 1; END
        """,
      "DROP VIEW all_old; DROP TABLE old"),
    Migration(
      "a table becomes a view, and a view a table",
      notes + "; CREATE TABLE one(a); CREATE VIEW two AS SELECT 1 AS a",
      "DROP TABLE one; DROP VIEW two; CREATE VIEW one AS SELECT title AS a FROM notes; CREATE TABLE two(a PRIMARY KEY)"),
    Migration(
      "an external full-text index over a table that is made again", notes,
      """
      CREATE VIRTUAL TABLE words USING fts5(title, content='notes', content_rowid='id');
      INSERT INTO words(words) VALUES ('rebuild');
      CREATE TRIGGER notes_ai AFTER INSERT ON notes BEGIN INSERT INTO words(rowid, title) VALUES (new.id, new.title); END;
      INSERT INTO notes VALUES (8, 'eight', 'a')
      """),
    Migration(
      "comments change", "CREATE TABLE t(id INTEGER PRIMARY KEY, -- the key\n v); INSERT INTO t VALUES (1, 2)",
      rebuilding("t", "id INTEGER PRIMARY KEY, -- the only key\n v /* any value */")),
    Migration(
      "a column is added with a comment",
      "CREATE TABLE t(id INTEGER PRIMARY KEY, -- the key\n v); INSERT INTO t VALUES (1, 2)",
      rebuilding("t", "id INTEGER PRIMARY KEY, -- the key\n v, -- any value\n w", "*, 3")),
    Migration(
      "names in odd quotes",
      "CREATE TABLE \"a\"\"b\"([x y] TEXT, `z` INT, PRIMARY KEY ([x y])); INSERT INTO \"a\"\"b\" VALUES ('1', 1)",
      """
      CREATE TABLE m([x y] TEXT, `z` REAL, "é" TEXT DEFAULT 'ü', PRIMARY KEY ([x y])); INSERT INTO m([x y], z) SELECT * FROM "a""b";
      DROP TABLE "a""b"; ALTER TABLE m RENAME TO "a""b"; CREATE INDEX "i;" ON "a""b"("é"); UPDATE "a""b" SET "é" = 'e'
      """),
  ]

  @Test("After a migration has been adopted, schema and rows are the author's", arguments: migrations)
  func adopted(migration: Migration) throws {
    let exchange = try Exchange(migration.base)
    let theirs = try exchange.folder.copy("base.sqlite", to: "theirs.sqlite")
    try TestDatabases.run(migration.upgrade, on: theirs)
    let made = try DatabaseManager(theirs, home: BuckiaHome(path: exchange.folder.file("home"))).createDatabaseDiff(
      since: exchange.base, output: .folder(exchange.inbound))
    #expect(made.path != nil)
    let before = try exchange.everythingButOurs()
    let dry = try exchange.apply(ApplyOptions(schema: .adopt, isDryRun: true))
    #expect(dry.diffs.map(\.state) == [.applied], "\(dry.diffs.first?.reason ?? "")")
    #expect(dry.diffs.first?.plan.isEmpty == false)
    #expect(try exchange.everythingButOurs() == before)

    let report = try exchange.apply(ApplyOptions(conflicts: .abort, schema: .adopt))
    #expect(report.diffs.map(\.state) == [.applied], "\(report.diffs.first?.reason ?? "")")
    #expect(try Self.differences(exchange.mine, theirs) == [])
    // The internal tables of a full-text index depend on how it was filled.
    let ours = try [exchange.mine, theirs].map { path in
      try TestDatabases.content(of: path).filter { !$0.key.hasPrefix("buckia_") && !$0.key.hasPrefix("words_") }
    }
    #expect(ours[0] == ours[1])
    #expect(try exchange.rows("PRAGMA integrity_check") == ["'111.107'"])
    #expect(try exchange.rows("PRAGMA foreign_key_check") == [])
    #expect(
      try TestDatabases.rows("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'buckia_replaced%'", on: exchange.mine)
        == ["0"])
    // No differences are left.
    let again = try DatabaseManager(theirs, home: BuckiaHome(path: exchange.folder.file("home"))).createDatabaseDiff(
      since: exchange.mine, output: .folder(exchange.folder.path))
    #expect(again.path == nil, "\(again.tables) \(again.skipped)")
  }

  // MARK: Hostile files

  static let hostile = [
    "CREATE VIEW h AS SELECT * FROM 'sqlite_master'",
    "CREATE VIEW h AS WITH c(x) AS (SELECT 1 UNION ALL SELECT x FROM c) SELECT x FROM c",
    "CREATE VIEW h AS SELECT * FROM mine",
    "CREATE TRIGGER h AFTER INSERT ON notes BEGIN DELETE FROM mine; END",
    "CREATE TRIGGER h AFTER INSERT ON notes BEGIN DELETE FROM 'buckia_ledger'; END",
    "CREATE TRIGGER h AFTER INSERT ON notes BEGIN SELECT application_function(1); END",
    "CREATE TABLE h(a DEFAULT (application_function(1)))",
    "CREATE TABLE h(a, b AS (application_function(a)))",
    "CREATE TABLE json_each(a)",
  ]

  @Test(
    "A hostile schema statement is refused, and nothing changes",
    arguments: hostile)
  func hostileStatements(sql: String) throws {
    let exchange = try Exchange(Self.notes + "; CREATE TABLE mine(a); INSERT INTO mine VALUES (1)")
    let before = try exchange.everythingButOurs()
    let kind: SchemaStatement.Kind =
      sql.hasPrefix("CREATE TRIGGER") ? .trigger : sql.hasPrefix("CREATE VIEW") ? .view : .table
    let name = sql.contains("json_each") ? "json_each" : "h"
    let bad = SchemaStatement(kind, name: name, table: kind == .trigger ? "notes" : name, sql: sql)
    let notes = SchemaStatement(
      .table, name: "notes", table: "notes",
      sql: "CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT, kind TEXT CHECK (kind IN ('a', 'b')))")
    try exchange.plant([], definitions: [], author: AuthorSchema(statements: [notes, bad], replaced: []))
    let report = try exchange.apply(ApplyOptions(schema: .adopt))
    #expect(report.diffs.map(\.state) == [.rejected])
    #expect(report.diffs.first?.reason?.contains(name) == true, "\(report.diffs.first?.reason ?? "")")
    #expect(try exchange.everythingButOurs() == before)
    // Without `adopt`, the statement is ignored, and the next file is applied.
    try exchange.send("UPDATE notes SET title = 'x'")
    #expect(try exchange.apply().diffs.map(\.state) == [.applied, .applied])
  }

  // MARK: Local objects and rows

  @Test("Local tables, indexes, views and triggers stay, also those of a rebuilt table")
  func localObjects() throws {
    let exchange = try Exchange(Self.notes)
    let local = """
      CREATE TABLE mine(a); INSERT INTO mine VALUES (1); CREATE INDEX mine_title ON notes(title DESC);
      CREATE VIEW mine_titles AS SELECT title FROM notes; CREATE TABLE mine_log(line);
      CREATE TRIGGER mine_logged AFTER INSERT ON notes BEGIN INSERT INTO mine_log VALUES (new.title); END
      """
    try TestDatabases.run(local, on: exchange.mine)
    let wanted = try Self.statements(of: exchange.mine).filter { $0.name.text.hasPrefix("mine") }
    try exchange.send(
      Self.rebuilding("notes", "id INTEGER PRIMARY KEY, title TEXT NOT NULL, kind INTEGER")
        + "INSERT INTO notes VALUES (4, 'x', 1)")
    let report = try exchange.apply(ApplyOptions(schema: .adopt))
    #expect(report.diffs.map(\.state) == [.applied], "\(report.diffs.first?.reason ?? "")")
    #expect(try Self.statements(of: exchange.mine).filter { $0.name.text.hasPrefix("mine") } == wanted)
    #expect(try exchange.rows("SELECT count(*) FROM mine_titles") == ["4"])
    try TestDatabases.run("INSERT INTO notes VALUES (5, 'y', 1)", on: exchange.mine)
    #expect(try exchange.rows("SELECT count(*) FROM mine_log") == ["1"])
  }

  @Test("A table that the author has dropped stays if it holds local rows, and is in the plan")
  func droppedWithLocalRows() throws {
    let exchange = try Exchange(
      Self.notes + "; CREATE TABLE old(a); INSERT INTO old VALUES (1); CREATE INDEX old_a ON old(a)")
    try TestDatabases.run("INSERT INTO old VALUES (2)", on: exchange.mine)
    try exchange.send("DROP TABLE old; UPDATE notes SET title = 'x'")
    let report = try exchange.apply(ApplyOptions(schema: .adopt))
    #expect(report.diffs.map(\.state) == [.applied])
    #expect(try exchange.rows("SELECT a FROM old ORDER BY a") == ["1", "2"])
    #expect(try exchange.rows("SELECT count(*) FROM sqlite_schema WHERE name = 'old_a'") == ["1"])
    #expect(report.diffs.first?.plan.contains { $0.action == .keep && $0.table == "old" } == true)
  }

  @Test("A file is refused if a local row violates the new schema; the reason names table, row and constraint")
  func unfit() throws {
    let exchange = try Exchange(Self.notes)
    try TestDatabases.run("INSERT INTO notes VALUES (77, NULL, 'a')", on: exchange.mine)
    let before = try exchange.everythingButOurs()
    try exchange.send(Self.rebuilding("notes", "id INTEGER PRIMARY KEY, title TEXT NOT NULL, kind TEXT"))
    let report = try exchange.apply(ApplyOptions(schema: .adopt))
    #expect(report.diffs.map(\.state) == [.rejected])
    let reason = try #require(report.diffs.first?.reason)
    for part in ["notes", "77", "NOT NULL", "title"] { #expect(reason.contains(part), "\(reason)") }
    #expect(try exchange.everythingButOurs() == before)
  }

  @Test("A file is refused if a rebuilt table would lose a local column")
  func localColumn() throws {
    let exchange = try Exchange(Self.notes)
    try TestDatabases.run(
      "ALTER TABLE notes ADD COLUMN private TEXT; UPDATE notes SET private = 'secret'", on: exchange.mine)
    try exchange.send(Self.rebuilding("notes", "id INTEGER PRIMARY KEY, title TEXT, kind INTEGER"))
    let report = try exchange.apply(ApplyOptions(schema: .adopt))
    #expect(report.diffs.map(\.state) == [.rejected])
    #expect(report.diffs.first?.reason?.contains("notes.private") == true)
    #expect(try exchange.rows("SELECT count(private) FROM notes") == ["3"])
  }

  @Test("A renamed column keeps its values, including those of local rows")
  func renamed() throws {
    let exchange = try Exchange(Self.notes)
    try TestDatabases.run("INSERT INTO notes VALUES (50, 'local', NULL)", on: exchange.mine)
    let theirs = try exchange.folder.copy("base.sqlite", to: "theirs.sqlite")
    try TestDatabases.run("ALTER TABLE notes RENAME COLUMN title TO heading", on: theirs)
    _ = try DatabaseManager(theirs, home: BuckiaHome(path: exchange.folder.file("home"))).createDatabaseDiff(
      since: exchange.base, output: .folder(exchange.inbound),
      options: DiffOptions(renames: [ColumnRename(table: "notes", from: "title", to: "heading")]))
    let report = try exchange.apply(ApplyOptions(schema: .adopt))
    #expect(report.diffs.map(\.state) == [.applied], "\(report.diffs.first?.reason ?? "")")
    #expect(try Self.differences(exchange.mine, theirs) == [])
    #expect(try exchange.rows("SELECT count(*) FROM notes WHERE heading = 'local' AND id = 50") == ["1"])
  }

  @Test("Without adopt, the author's indexes, views and CHECK constraints are not created")
  func notAdopted() throws {
    let exchange = try Exchange(Self.notes)
    try exchange.send(
      "CREATE INDEX i ON notes(title); CREATE VIEW v AS SELECT 1; CREATE TABLE more(a PRIMARY KEY CHECK (a > 0))")
    let report = try exchange.apply()
    #expect(report.diffs.map(\.state) == [.applied])
    #expect(
      try exchange.rows(
        "SELECT count(*) FROM sqlite_schema WHERE type IN ('view') AND name <> 'buckia_shared' OR name = 'i'") == ["0"])
    #expect(try exchange.rows("SELECT count(*) FROM sqlite_schema WHERE sql LIKE '%CHECK (a > 0)%'") == ["0"])
  }

  @Test("Without adopt, the changes of a table whose key has changed are left out with a warning")
  func otherKey() throws {
    let exchange = try Exchange(
      Self.notes + "; CREATE TABLE t(id INTEGER PRIMARY KEY, k TEXT); INSERT INTO t VALUES (1, 'a')")
    try exchange.send(
      Self.rebuilding("t", "id INTEGER, k TEXT PRIMARY KEY")
        + "INSERT INTO t VALUES (2, 'b'); UPDATE notes SET title = 'x'")
    let report = try exchange.apply()
    #expect(report.diffs.map(\.state) == [.applied])
    #expect(report.diffs.first?.warnings.map(\.code) == [.keyChanged])
    #expect(try exchange.rows("SELECT count(*) FROM t") == ["1"])
    #expect(try exchange.rows("SELECT count(*) FROM notes WHERE title = 'x'") == ["3"])
  }

  @Test("The diff report names statements that cannot be sent, and those that depend on them")
  func refusedStatements() throws {
    let exchange = try Exchange(Self.notes)
    let report = try exchange.send(
      "CREATE VIEW inside AS SELECT name FROM sqlite_schema; CREATE VIEW outside AS SELECT * FROM inside; CREATE INDEX i ON notes(kind)"
    )
    #expect(
      report.skipped.filter { $0.reason.code == .statementRefused }.map(\.name).sorted() == ["inside", "outside"])
    let adopted = try exchange.apply(ApplyOptions(schema: .adopt))
    #expect(adopted.diffs.map(\.state) == [.applied])
    #expect(try exchange.rows("SELECT name FROM sqlite_schema WHERE type = 'view' AND name <> 'buckia_shared'") == [])
    #expect(try exchange.rows("SELECT count(*) FROM sqlite_schema WHERE name = 'i'") == ["1"])
  }

  @Test("Views and triggers that refer to missing tables are left out and reported, and the rest is adopted")
  func brokenStatements() throws {
    let exchange = try Exchange(
      Self.notes + """
        ; CREATE TABLE gone(a); CREATE VIEW broken AS SELECT a FROM gone; CREATE TABLE log(line);
        CREATE TRIGGER lost AFTER INSERT ON notes BEGIN INSERT INTO gone VALUES (new.title); END; DROP TABLE gone
        """)
    let report = try exchange.send(
      """
      CREATE VIEW through AS SELECT * FROM broken; CREATE VIEW fine AS SELECT title FROM notes;
      CREATE TRIGGER good AFTER DELETE ON notes BEGIN INSERT INTO log VALUES (old.title); END;
      CREATE TRIGGER bad INSTEAD OF INSERT ON fine BEGIN INSERT INTO gone VALUES (new.title); END
      """)
    #expect(
      report.skipped.filter { $0.reason.code == .statementRefused }.map(\.name).sorted()
        == ["bad", "broken", "lost", "through"])
    #expect(try exchange.apply(ApplyOptions(schema: .adopt)).diffs.map(\.state) == [.applied])
    let names = "SELECT group_concat(name) = 'broken,fine,good,lost' FROM"
    let objects =
      "(SELECT name FROM sqlite_schema WHERE type IN ('view', 'trigger') AND name <> 'buckia_shared' ORDER BY name)"
    #expect(try exchange.rows("\(names) \(objects)") == ["1"])
  }

  @Test("A file is refused if its view has the name of a local table")
  func takenName() throws {
    let exchange = try Exchange(Self.notes)
    try TestDatabases.run("CREATE TABLE shown(a); INSERT INTO shown VALUES (1)", on: exchange.mine)
    try exchange.send("CREATE VIEW shown AS SELECT 1")
    let report = try exchange.apply(ApplyOptions(schema: .adopt))
    #expect(report.diffs.map(\.state) == [.rejected])
    #expect(report.diffs.first?.reason?.contains("shown") == true)
    #expect(try exchange.rows("SELECT a FROM shown") == ["1"])
  }

  @Test("With foreign keys enforced, rebuilding a parent table deletes no child rows")
  func enforcedForeignKeys() throws {
    let exchange = try Exchange(
      """
      CREATE TABLE album(id INTEGER PRIMARY KEY, title TEXT); INSERT INTO album VALUES (1, 'a'), (2, 'b');
      CREATE TABLE photo(id INTEGER PRIMARY KEY, album INTEGER REFERENCES album(id) ON DELETE CASCADE);
      INSERT INTO photo VALUES (10, 1), (11, 1), (12, 2)
      """)
    try exchange.send(
      Self.rebuilding("album", "id INTEGER PRIMARY KEY, title TEXT NOT NULL", "*").replacing(
        "ALTER TABLE", with: "PRAGMA legacy_alter_table = ON; ALTER TABLE"))
    let connection = try SQLiteConnection(opening: exchange.mine, as: .readWrite)
    try connection.execute(
      "PRAGMA foreign_keys = ON; CREATE TEMP TRIGGER seen AFTER DELETE ON album BEGIN SELECT 1; END")
    let handle = connection.handle.pointer
    try DatabaseManager.borrowing(handle) { database in
      let report = try database.processInboundChanges([exchange.inbound], options: ApplyOptions(schema: .adopt))
      #expect(report.diffs.map(\.state) == [.applied], "\(report.diffs.first?.reason ?? "")")
    }
    #expect(try connection.integer("SELECT count(*) FROM photo") == 3)
    #expect(try connection.integer("PRAGMA foreign_keys") == 1)
    #expect(
      try connection.integer("SELECT count(*) FROM temp.sqlite_schema WHERE name = 'seen' AND tbl_name = 'album'") == 1)
    #expect(try connection.integer("PRAGMA legacy_alter_table") == 0)
  }
}
