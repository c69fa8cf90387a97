import Buckia
import BuckiaApply
import SQLiteConnections
import Testing
import TestSupport

/// `doctor` names the parts of a database that are not replicated.
@Suite struct DoctorTests {
  private static let longName = String(repeating: "n", count: 1_025)

  private static let schema = """
    CREATE TABLE plain(id INTEGER PRIMARY KEY, v TEXT NOT NULL DEFAULT 'x', u UNIQUE);
    CREATE TABLE keyless(a, b); CREATE TABLE nulls(k TEXT PRIMARY KEY); INSERT INTO nulls VALUES (NULL), ('a');
    CREATE TABLE checked(id INTEGER PRIMARY KEY, v CHECK (v > 0)); CREATE TABLE lossy(id INTEGER PRIMARY KEY ON CONFLICT REPLACE);
    CREATE TABLE expression(id INTEGER PRIMARY KEY, at DEFAULT (datetime('now')));
    CREATE TABLE computed(id INTEGER PRIMARY KEY, a, g AS (a + 1), s AS (a + 2) STORED);
    CREATE TABLE hidden(rowid, oid, _rowid_); CREATE TABLE taken(a, "_ROWID_"); CREATE TABLE \(longName)(a);
    CREATE TABLE "long column"(id INTEGER PRIMARY KEY, \(longName)); CREATE TABLE pragma_x(a);
    CREATE INDEX partial ON plain(v) WHERE v > 1; CREATE INDEX expressed ON plain(upper(v)); CREATE INDEX ordinary ON plain(v);
    CREATE UNIQUE INDEX travels ON plain(v); CREATE UNIQUE INDEX nocase ON plain(v COLLATE NOCASE);
    CREATE VIEW seen AS SELECT * FROM plain;
    CREATE TRIGGER fires AFTER INSERT ON plain BEGIN SELECT 1; END;
    CREATE TRIGGER through INSTEAD OF INSERT ON seen BEGIN SELECT 1; END;
    CREATE VIRTUAL TABLE contentless USING fts5(a, content=''); CREATE TABLE child(id INTEGER PRIMARY KEY, p REFERENCES plain);
    INSERT INTO child VALUES (1, 5)
    """

  @Test("All parts of a schema that are not replicated are named, and no others")
  func names() throws {
    let folder = try TemporaryFolder()
    let path = try TestDatabases.run(Self.schema, on: folder.file("a"))
    let report = try DatabaseManager(path).examine()
    #expect(
      Set(report.replicates.map(\.name)) == [
        "plain", "keyless", "nulls", "checked", "lossy", "expression", "computed", "child",
      ])
    let skipped = Set(report.skipped.map(\.name))
    let baselines = skipped.filter { $0.hasPrefix("contentless_") }
    #expect(
      baselines.isSuperset(of: ["contentless_data", "contentless_idx", "contentless_docsize", "contentless_config"]))
    #expect(
      skipped.subtracting(baselines) == [
        "hidden", "taken", Self.longName, "long column", "pragma_x", "partial", "expressed", "ordinary", "nocase",
        "seen", "fires",
        "through", "contentless",
      ])
    #expect(report.skipped.allSatisfy { !$0.reason.description.isEmpty })
    for part in [
      "\"keyless\" has no primary key", "\"nulls\" has 1 rows with NULL", "\"checked\" has CHECK",
      "\"lossy\" has ON CONFLICT",
      "\"expression.at\"", "\"computed.g\"", "\"computed.s\"", "\"child\" has 1 rows", "2 triggers",
      "\"plain\" has integer keys", "\"child\" has integer keys",
    ] {
      #expect(report.warnings.contains { $0.description.contains(part) }, "\(part)")
    }
    #expect(report.warnings.count == 15)
  }

  @Test("Tables whose integer keys each copy assigns are named once, referenced ones first")
  func integerKeys() throws {
    let folder = try TemporaryFolder()
    let path = try TestDatabases.run(
      """
      CREATE TABLE free(id INTEGER PRIMARY KEY); CREATE TABLE person(id INTEGER PRIMARY KEY AUTOINCREMENT);
      CREATE TABLE phone(id INTEGER PRIMARY KEY, person REFERENCES person); CREATE TABLE named(id TEXT PRIMARY KEY);
      CREATE TABLE detail(person INTEGER PRIMARY KEY REFERENCES person); CREATE TABLE down(id INTEGER PRIMARY KEY DESC);
      CREATE TABLE keyed(id INTEGER PRIMARY KEY) WITHOUT ROWID; CREATE TABLE pair(a INTEGER, b INTEGER, PRIMARY KEY (a, b))
      """, on: folder.file("a"))
    #expect(
      try DatabaseManager(path).examine().warnings == ["person", "free", "phone"].map { Warning(.integerKeys, $0) })
  }

  @Test("Counters that triggers keep in other tables are named, and updates of a trigger's own table are not")
  func counters() throws {
    let folder = try TemporaryFolder()
    let path = try TestDatabases.run(
      """
      CREATE TABLE folder(id TEXT PRIMARY KEY, notes, size, "last name"); CREATE TABLE note(id TEXT PRIMARY KEY, folder, v);
      CREATE TRIGGER a AFTER INSERT ON note BEGIN UPDATE folder SET notes = notes + 1, size = 5 WHERE id = new.folder; END;
      CREATE TRIGGER b AFTER DELETE ON note BEGIN UPDATE folder SET size = max(0, "SIZE" - 1) WHERE id = old.folder; END;
      CREATE TRIGGER c AFTER UPDATE ON note BEGIN UPDATE note SET v = v + 1 WHERE id = new.id; END;
      CREATE TRIGGER d AFTER UPDATE ON note BEGIN UPDATE folder SET "last name" = coalesce(new.v, "last name"); END;
      CREATE TABLE tally(k TEXT PRIMARY KEY, n, m);
      CREATE TRIGGER e AFTER INSERT ON note BEGIN
        INSERT INTO tally VALUES ('x', 1, 1) ON CONFLICT DO UPDATE SET n = n + 1, m = (SELECT count(*) FROM note) WHERE k = 'x';
      END
      """, on: folder.file("a"))
    let counters = try DatabaseManager(path).examine().warnings.filter { $0.code == .counters }
    #expect(
      counters
        == [("folder", "notes"), ("folder", "size"), ("tally", "n"), ("tally", "m")].map { Warning(.counters, $0, $1) })
  }

  @Test("The diff report names the parts of new tables that are not sent")
  func newTables() throws {
    let exchange = try Exchange("CREATE TABLE old(id INTEGER PRIMARY KEY)")
    let report = try exchange.send(
      """
      CREATE TABLE a(id INTEGER PRIMARY KEY, g AS (id + 1), o REFERENCES old, b REFERENCES b);
      CREATE TABLE b(id INTEGER PRIMARY KEY ON CONFLICT IGNORE, v CHECK (v > 0), d DEFAULT (1 + 1));
      ALTER TABLE old ADD COLUMN up REFERENCES old
      """)
    #expect(report.tables.map(\.name) == ["old", "a", "b"])
    for (name, word) in [
      ("a.g", "generated"), ("a", "foreign key to \"old\""), ("b", "ON CONFLICT"), ("b", "CHECK"), ("b.d", "default"),
      ("old", "foreign key"),
    ] {
      #expect(report.skipped.contains { $0.name == name && $0.reason.description.contains(word) }, "\(name): \(word)")
    }
    #expect(report.skipped.count == 6)
  }
}
