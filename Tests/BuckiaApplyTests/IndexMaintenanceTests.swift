import ReplicationTestSupport
@testable import BuckiaApply
@testable import BuckiaLedger
@testable import SQLiteSchemas
import SQLiteConnections
import Testing

/// After applying, indexes that triggers maintain return the same results as in the author's database.
@Suite struct IndexMaintenanceTests {
  struct Example: CustomTestStringConvertible {
    let name: String
    let base: String
    var tables = ["notes"]
    var testDescription: String { name }
  }

  private static let notes = """
    CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT, body TEXT, place INT UNIQUE);
    """
  private static let rows = """
    INSERT INTO notes VALUES (1, 'quiet radio', 'in the kitchen', 1), (2, 'ship bell', 'harbour at night', 2),
      (3, 'rain', 'on the kitchen window', 3), (4, 'market', 'voices of the market', 4), (5, NULL, NULL, 5);
    """

  static let examples = [
    Example(
      name: "FTS5 with its own content",
      base: """
        \(notes)
        CREATE VIRTUAL TABLE words USING fts5(title, body);
        CREATE TRIGGER i AFTER INSERT ON notes BEGIN
          INSERT INTO words(rowid, title, body) VALUES (new.id, new.title, new.body);
        END;
        CREATE TRIGGER d AFTER DELETE ON notes BEGIN DELETE FROM words WHERE rowid = old.id; END;
        CREATE TRIGGER u AFTER UPDATE ON notes BEGIN
          UPDATE words SET rowid = new.id, title = new.title, body = new.body WHERE rowid = old.id;
        END;
        \(rows)
        """),
    Example(
      name: "FTS5 with its own content, kept by two triggers an event",
      base: """
        \(notes)
        CREATE VIRTUAL TABLE words USING fts5(title, body);
        CREATE TRIGGER i AFTER INSERT ON notes BEGIN
          INSERT INTO words(rowid, title, body) VALUES (new.id, new.title, new.body);
        END;
        CREATE TRIGGER d AFTER DELETE ON notes BEGIN DELETE FROM words WHERE rowid = old.id; END;
        -- The younger one fires first.
        CREATE TRIGGER u2 AFTER UPDATE ON notes BEGIN
          INSERT INTO words(rowid, title, body) VALUES (new.id, new.title, new.body);
        END;
        CREATE TRIGGER u1 AFTER UPDATE ON notes BEGIN DELETE FROM words WHERE rowid = old.id; END;
        \(rows)
        """),
    Example(
      name: "FTS5 over external content",
      base: """
        \(notes)
        CREATE VIRTUAL TABLE words USING fts5(title, body, content='notes', content_rowid='id');
        CREATE TRIGGER i AFTER INSERT ON notes BEGIN
          INSERT INTO words(rowid, title, body) VALUES (new.id, new.title, new.body);
        END;
        CREATE TRIGGER d AFTER DELETE ON notes BEGIN
          INSERT INTO words(words, rowid, title, body) VALUES ('delete', old.id, old.title, old.body);
        END;
        CREATE TRIGGER u AFTER UPDATE ON notes BEGIN
          INSERT INTO words(words, rowid, title, body) VALUES ('delete', old.id, old.title, old.body);
          INSERT INTO words(rowid, title, body) VALUES (new.id, new.title, new.body);
        END;
        \(rows)
        """),
    Example(
      name: "FTS5 without content",
      base: """
        \(notes)
        CREATE VIRTUAL TABLE words USING fts5(title, body, content='');
        CREATE TRIGGER i AFTER INSERT ON notes BEGIN
          INSERT INTO words(rowid, title, body) VALUES (new.id, new.title, new.body);
        END;
        CREATE TRIGGER d BEFORE DELETE ON notes BEGIN
          INSERT INTO words(words, rowid, title, body) VALUES ('delete', old.id, old.title, old.body);
        END;
        CREATE TRIGGER u1 BEFORE UPDATE ON notes BEGIN
          INSERT INTO words(words, rowid, title, body) VALUES ('delete', old.id, old.title, old.body);
        END;
        CREATE TRIGGER u2 AFTER UPDATE ON notes BEGIN
          INSERT INTO words(rowid, title, body) VALUES (new.id, new.title, new.body);
        END;
        \(rows)
        """),
    Example(
      name: "FTS4 with its own content",
      base: """
        \(notes)
        CREATE VIRTUAL TABLE words USING FTS4(title, body);
        CREATE TRIGGER i AFTER INSERT ON notes BEGIN
          INSERT INTO words(docid, title, body) VALUES (new.id, new.title, new.body);
        END;
        CREATE TRIGGER d AFTER DELETE ON notes BEGIN DELETE FROM words WHERE docid = old.id; END;
        CREATE TRIGGER u AFTER UPDATE OF id, title, body ON notes BEGIN
          DELETE FROM words WHERE docid = old.id;
          INSERT INTO words(docid, title, body) VALUES (new.id, new.title, new.body);
        END;
        \(rows)
        """),
    Example(
      name: "FTS4 over external content, which reads the row before it goes",
      base: """
        \(notes)
        CREATE VIRTUAL TABLE words USING fts4(content="notes", title, body);
        CREATE TRIGGER bu BEFORE UPDATE ON notes BEGIN DELETE FROM words WHERE docid = old.rowid; END;
        CREATE TRIGGER bd BEFORE DELETE ON notes BEGIN DELETE FROM words WHERE docid = old.rowid; END;
        CREATE TRIGGER au AFTER UPDATE ON notes BEGIN
          INSERT INTO words(docid, title, body) VALUES (new.rowid, new.title, new.body);
        END;
        CREATE TRIGGER ai AFTER INSERT ON notes BEGIN
          INSERT INTO words(docid, title, body) VALUES (new.rowid, new.title, new.body);
        END;
        \(rows)
        """),
    Example(
      name: "an R-tree with a column of its own",
      base: """
        \(notes)
        CREATE VIRTUAL TABLE spans USING rtree(id, low, high, +title);
        CREATE TRIGGER i AFTER INSERT ON notes BEGIN
          REPLACE INTO spans VALUES (new.id, new.place, new.place + 10, new.title);
        END;
        CREATE TRIGGER u AFTER UPDATE ON notes BEGIN
          DELETE FROM spans WHERE id = old.id;
          INSERT OR REPLACE INTO spans VALUES (new.id, new.place, new.place + 10, new.title);
        END;
        CREATE TRIGGER d AFTER DELETE ON notes BEGIN DELETE FROM spans WHERE id = old.id; END;
        \(rows)
        """),
    Example(
      name: "an R-tree of integers, of some of the rows",
      base: """
        \(notes)
        CREATE VIRTUAL TABLE "spa ns" USING rtree_i32(id, low, high);
        CREATE TRIGGER i AFTER INSERT ON notes WHEN new.title NOTNULL BEGIN
          INSERT INTO [spa ns] VALUES (new.id, new.place, new.place + 10);
        END;
        CREATE TRIGGER u1 AFTER UPDATE ON notes WHEN old.title NOTNULL AND new.title NOTNULL BEGIN
          UPDATE `spa ns` SET id = new.id, low = new.place, high = new.place + 10 WHERE id = old.id;
        END;
        CREATE TRIGGER u2 AFTER UPDATE ON notes WHEN old.title ISNULL AND new.title NOTNULL BEGIN
          INSERT INTO 'spa ns' VALUES (new.id, new.place, new.place + 10);
        END;
        CREATE TRIGGER u3 AFTER UPDATE ON notes WHEN old.title NOTNULL AND new.title ISNULL BEGIN
          DELETE FROM "spa ns" WHERE id = old.id;
        END;
        CREATE TRIGGER d AFTER DELETE ON notes BEGIN DELETE FROM "spa ns" WHERE id = old.id; END;
        \(rows)
        """),
    Example(
      name: "two indexes and a log, kept by the same triggers",
      base: """
        \(notes)
        CREATE TABLE log(line TEXT);
        CREATE VIRTUAL TABLE words USING fts5(title);
        CREATE VIRTUAL TABLE spans USING rtree(id, low, high);
        CREATE TRIGGER i AFTER INSERT ON notes BEGIN
          SELECT CASE WHEN new.place < 0 THEN RAISE(ABORT, 'no; END') END;
          INSERT INTO log VALUES ('new; ' || new.id);
          INSERT INTO words(rowid, title) VALUES (new.id, new.title);
          INSERT INTO spans VALUES (new.id, new.place, CASE WHEN new.place > 100 THEN new.place ELSE new.place + 1 END);
        END;
        CREATE TRIGGER d AFTER DELETE ON notes BEGIN
          DELETE FROM words WHERE rowid = old.id;
          DELETE FROM spans WHERE id = old.id;
          INSERT INTO log VALUES ('gone ' || old.id);
        END;
        CREATE TRIGGER u AFTER UPDATE ON notes BEGIN
          UPDATE words SET rowid = new.id, title = new.title WHERE rowid = old.id;
          UPDATE spans SET id = new.id, low = new.place, high = new.place + 1 WHERE id = old.id;
        END;
        \(rows)
        """, tables: ["notes", "log"]),
  ]

  private static let edits = [
    "INSERT INTO notes VALUES (6, 'new kitchen', 'radio', 6), (7, 'empty', '', 70)",
    "UPDATE notes SET title = 'loud radio' WHERE id = 1; UPDATE notes SET body = 'dawn', place = 22 WHERE id = 2",
    "UPDATE notes SET title = NULL WHERE id = 3; UPDATE notes SET title = 'no longer nothing' WHERE id = 5",
    "DELETE FROM notes WHERE id IN (1, 3, 5)",
    "UPDATE notes SET id = 40 WHERE id = 4; DELETE FROM notes WHERE id = 1; UPDATE notes SET id = 1 WHERE id = 2",
    // Values swapped under UNIQUE: rows are deleted and inserted again.
    "UPDATE notes SET place = -place; UPDATE notes SET place = CASE -place WHEN 5 THEN 1 ELSE 1 - place END",
    """
    UPDATE notes SET place = 100 WHERE id = 1; UPDATE notes SET place = 1 WHERE id = 2;
    UPDATE notes SET place = 2, title = 'bell', body = 'radio radio' WHERE id = 1; DELETE FROM notes WHERE id = 4;
    INSERT INTO notes VALUES (8, 'tower', 'clock', 4)
    """,
  ]

  @Test("Each word and each range finds the same rows as in the author's database", arguments: examples, edits)
  func asTheAuthor(_ example: Example, _ edit: String) throws {
    let scenario = IndexScenario(base: example.base, tables: example.tables)
    let outcome = try scenario.ship(edit)
    #expect(outcome.receiver == outcome.author)
    #expect(outcome.result.warnings == [])
    #expect(outcome.result.counts.conflicts == 0)
  }

  @Test("An index matches its table however a conflict is resolved", arguments: examples)
  func conflicts(_ example: Example) throws {
    let scenario = IndexScenario(base: example.base, tables: example.tables)
    let edit = """
      UPDATE notes SET title = 'from the author', body = 'a' WHERE id = 1; DELETE FROM notes WHERE id = 2;
      UPDATE notes SET body = 'b' WHERE id = 3; INSERT INTO notes VALUES (6, 'sixth', 'theirs', 60);
      UPDATE notes SET title = 'free' WHERE id = 4
      """
    let local = """
      UPDATE notes SET title = 'from here', body = 'h' WHERE id = 1; UPDATE notes SET title = 'mine' WHERE id = 2;
      DELETE FROM notes WHERE id = 3; INSERT INTO notes VALUES (6, 'sixth', 'mine', 61), (9, 'only', 'here', 90)
      """
    for policy in [ConflictPolicy.keepLocal, .takeIncoming] {
      let author = try scenario.author(edit)
      let receiver = try scenario.database()
      try receiver.execute(local)
      let result = try IndexScenario.apply(
        author.changes, to: receiver,
        settings: ApplySettings(policies: ConflictPolicies(policy), time: 2_000_000_000_000))
      #expect(result.counts.conflicts >= 4)
      #expect(result.warnings == [])
      let expected = try scenario.database(withNotesOf: receiver)
      let answers = try IndexScenario.answers(of: receiver)
      #expect(try answers == IndexScenario.answers(of: expected), "\(policy)")
      try IndexScenario.expectNothingLeft(on: receiver)
    }
  }

  @Test("With triggers on, the indexes are written once", arguments: examples)
  func firing(_ example: Example) throws {
    let scenario = IndexScenario(base: example.base, tables: ["notes"])
    let outcome = try scenario.ship(
      "INSERT INTO notes VALUES (6, 'new kitchen', 'radio', 6); UPDATE notes SET title = 'x' WHERE id = 2",
      settings: ApplySettings(firesTriggers: true, time: 2_000_000_000_000))
    #expect(outcome.receiver == outcome.author)
    #expect(outcome.result.warnings == [])
  }

  @Test("The statements of the same triggers on ordinary tables are not run")
  func notTwice() throws {
    let example = try #require(Self.examples.first { $0.tables.contains("log") })
    let scenario = IndexScenario(base: example.base, tables: example.tables)
    let author = try scenario.author("INSERT INTO notes VALUES (6, 'six', '', 6); DELETE FROM notes WHERE id = 1")
    let receiver = try scenario.database()
    // A session does not record tables without a key, so the log contains only the receiver's own lines.
    let before = try receiver.integer("SELECT count(*) FROM log")
    _ = try IndexScenario.apply(author.changes, to: receiver)
    #expect(try receiver.integer("SELECT count(*) FROM log") == before)
    #expect(try IndexScenario.answers(of: receiver) == IndexScenario.answers(of: author.connection))
  }

  @Test("Rows stay in the index with the table when the row that they refer to is deleted")
  func foreignKeyActions() throws {
    let scenario = IndexScenario(
      base: """
        PRAGMA foreign_keys = ON;
        CREATE TABLE people(id INTEGER PRIMARY KEY);
        CREATE TABLE notes(id INTEGER PRIMARY KEY, person REFERENCES people ON DELETE CASCADE, title TEXT);
        CREATE VIRTUAL TABLE words USING fts5(title);
        CREATE TRIGGER i AFTER INSERT ON notes BEGIN INSERT INTO words(rowid, title) VALUES (new.id, new.title); END;
        CREATE TRIGGER d AFTER DELETE ON notes BEGIN DELETE FROM words WHERE rowid = old.id; END;
        INSERT INTO people VALUES (1), (2); INSERT INTO notes VALUES (1, 1, 'one'), (2, 2, 'two');
        """, tables: ["people"])
    let outcome = try scenario.ship(
      "DELETE FROM people WHERE id = 1", after: "INSERT INTO notes VALUES (3, 1, 'three')")
    #expect(outcome.receiver == ["words": ["one: 1", "three: 3", "two: 2"]])
  }

  @Test("A TEMP trigger of the application stays, and the rows that it writes are indexed")
  func temporaryTriggers() throws {
    let scenario = IndexScenario(
      base: """
        CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT); CREATE TABLE copies(id INTEGER PRIMARY KEY, title TEXT);
        CREATE VIRTUAL TABLE words USING fts5(title);
        CREATE TRIGGER i AFTER INSERT ON copies BEGIN INSERT INTO words(rowid, title) VALUES (new.id, new.title); END;
        """, tables: ["notes"])
    let author = try scenario.author("INSERT INTO notes VALUES (1, 'one')")
    let receiver = try scenario.database()
    try receiver.execute(
      "CREATE TEMP TRIGGER mine AFTER INSERT ON main.notes BEGIN INSERT INTO copies VALUES (new.id + 10, new.title); END"
    )
    _ = try IndexScenario.apply(author.changes, to: receiver)
    #expect(try IndexScenario.answers(of: receiver) == ["words": ["one: 11"]])
    #expect(try receiver.text("SELECT group_concat(name) FROM temp.sqlite_schema WHERE type = 'trigger'") == "mine")
  }

  @Test("A trigger can index a column that the diff adds")
  func addedColumn() throws {
    let old = """
      CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT);
      CREATE VIRTUAL TABLE words USING fts5(title);
      CREATE TRIGGER i AFTER INSERT ON notes BEGIN INSERT INTO words(rowid, title) VALUES (new.id, new.title); END;
      """
    let author = try IndexScenario(
      base: "CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT, extra TEXT)", tables: ["notes"]
    )
    .author("INSERT INTO notes VALUES (1, 'one', 'more')")
    let schema = try SchemaReader(author.connection)
    let definitions = try schema.entries.map { try schema.definition(of: $0) }
    let raw = try IndexScenario.incoming(author.changes)
    let incoming = try IncomingChanges(key: raw.key, file: "test", definitions: definitions, changeset: raw.changeset)
    let receiver = try SQLiteConnection(opening: ":memory:", as: .create)
    try receiver.execute("\(old); BEGIN")
    let result = try Receiver.plan(incoming, on: receiver, settings: ApplySettings(time: 2_000_000_000_000)).apply()
    try receiver.execute("COMMIT")
    #expect(result.schemaChanges.count == 1)
    #expect(try IndexScenario.answers(of: receiver) == ["words": ["one: 1"]])
  }

  @Test("Several triggers for one event fire in their order")
  func manyTriggers() throws {
    let indexes = (1...6).map { number in
      """
      CREATE VIRTUAL TABLE w\(number) USING fts5(title);
      CREATE TRIGGER i\(number) AFTER INSERT ON notes BEGIN
        INSERT INTO w\(number)(rowid, title) VALUES (new.id, new.title);
      END;
      CREATE TRIGGER y\(number) AFTER UPDATE ON notes BEGIN
        INSERT INTO w\(number)(rowid, title) VALUES (new.id, new.title);
      END;
      CREATE TRIGGER x\(number) AFTER UPDATE ON notes BEGIN DELETE FROM w\(number) WHERE rowid = old.id; END;
      """
    }
    let scenario = IndexScenario(
      base: """
        CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT); \(indexes.joined()) INSERT INTO notes VALUES (1, 'a');
        """, tables: ["notes"])
    let outcome = try scenario.ship("UPDATE notes SET title = 'b'; INSERT INTO notes VALUES (2, 'c')")
    #expect(outcome.result.warnings == [])
    #expect(outcome.receiver == outcome.author)
    #expect(outcome.receiver.count == 6 && outcome.receiver["w3"] == ["b: 1", "c: 2"])
  }
}
