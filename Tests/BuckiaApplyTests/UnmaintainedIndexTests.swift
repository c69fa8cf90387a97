import ReplicationTestSupport
@testable import BuckiaApply
import SQLiteConnections
import Testing

/// Indexes that cannot be maintained: rows are applied, and the index is reported.
@Suite struct UnmaintainedIndexTests {
  private static let notes = "CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT, body TEXT);"
  private static let authorsEdit = """
    INSERT INTO notes VALUES (1, 'one', 'first'), (2, 'two', 'second'); UPDATE notes SET title = 'uno' WHERE id = 1;
    """

  private static func external(insert: String = "", when condition: String = "", before other: String = "") -> String {
    """
    \(notes)
    CREATE VIRTUAL TABLE words USING fts5(title, content=notes, content_rowid=id);
    CREATE TRIGGER i AFTER INSERT ON notes \(condition) BEGIN
      \(other)
      INSERT INTO words(rowid, title) VALUES (new.id, \(insert.isEmpty ? "new.title" : insert));
    END;
    CREATE TRIGGER u AFTER UPDATE ON notes BEGIN
      INSERT INTO words(words, rowid, title) VALUES ('delete', old.id, old.title);
      INSERT INTO words(rowid, title) VALUES (new.id, new.title);
    END;
    CREATE TRIGGER d AFTER DELETE ON notes BEGIN
      INSERT INTO words(words, rowid, title) VALUES ('delete', old.id, old.title);
    END;
    """
  }

  private static func spans(_ statement: String, table: String = notes, index: String = "rtree(id, low, high)")
    -> String
  {
    "\(table) CREATE VIRTUAL TABLE spans USING \(index); CREATE TRIGGER i AFTER INSERT ON notes BEGIN \(statement); END;"
  }

  struct Example: CustomTestStringConvertible {
    let name: String
    let base: String
    /// Parts of the only warning; nil when there must be none.
    let warning: [String]?
    /// The result of the index afterwards; nil when it does not matter.
    var answers: [String: [String]]?
    var testDescription: String { name }

    init(_ name: String, _ base: String, warning: [String]?, answers: [String: [String]]? = nil) {
      self.name = name
      self.base = base
      self.warning = warning
      self.answers = answers
    }
  }

  private static let rebuilt = ["words": ["one: 1", "two: 2"]]
  /// As SpatiaLite's triggers do it.
  private static let realigning = "DELETE FROM spans WHERE id = new.id; SELECT realign('spans', new.id, new.title)"
  private static let directly = "INSERT INTO spans VALUES (new.id, 1, 2)"

  static let examples = [
    Example(
      "an unknown function", spans("INSERT INTO spans VALUES (new.id, low_of(new.body), 2)"),
      warning: ["rtree", "\"spans\"", "\"notes\"", "no such function: low_of", "rebuild it"]),
    Example(
      "an unknown function, over external content", external(insert: "folded(new.title)"),
      warning: ["fts5", "\"words\"", "\"notes\"", "no such function: folded", "rebuilt"], answers: rebuilt),
    Example(
      "an unknown function, over some of the external content",
      external(insert: "folded(new.title)", when: "WHEN new.id > 1"),
      warning: ["\"words\"", "no such function: folded", "rebuild it"]),
    Example(
      "a function that writes to the index, and is not there",
      spans(realigning, table: "\(notes) CREATE TABLE unused(a);") + "INSERT INTO spans VALUES (1, 5, 6);",
      warning: ["rtree", "\"spans\"", "\"notes\"", "no such function: realign", "rebuild it"],
      answers: ["spans": ["1|5.0|6.0"]]),
    Example(
      "nothing but a function that writes to the index", spans("SELECT realign('spans', new.id)"),
      warning: ["\"spans\"", "no such function: realign", "rebuild it"], answers: ["spans": []]),
    Example(
      "a function that writes to the index behind another trigger",
      spans("DELETE FROM spans WHERE id = new.id") + """
        CREATE TRIGGER j AFTER INSERT ON notes WHEN new.id > 0 BEGIN SELECT realign('spans', new.id); END;
        INSERT INTO spans VALUES (1, 5, 6);
        """, warning: ["\"spans\"", "no such function: realign", "rebuild it"], answers: ["spans": ["1|5.0|6.0"]]),
    Example(
      "a function that may write to the index, for all that can be told",
      spans("DELETE FROM spans WHERE id = new.id; SELECT realign(new.id)") + "INSERT INTO spans VALUES (1, 5, 6);",
      warning: ["\"spans\"", "also calls realign()", "rebuild it"], answers: ["spans": ["1|5.0|6.0"]]),
    Example(
      "a function beside the statements of an index over external content",
      external(before: "SELECT tell(new.id);"),
      warning: ["\"words\"", "also calls tell()", "rebuilt"], answers: rebuilt),
    Example(
      "statements that call SQLite's own functions",
      spans(
        "SELECT count(*) FROM notes WHERE length(title) > 3; SELECT json(1) WHERE new.id IN (SELECT 1); \(directly)"),
      warning: nil, answers: ["spans": ["1|1.0|2.0", "2|1.0|2.0"]]),
    Example(
      "a TEMP table of the same name", spans(directly) + "CREATE TEMP TABLE spans(id, low, high);",
      warning: ["\"spans\"", "TEMP table", "hides"]),
    Example(
      "a TEMP table of the same name, over external content",
      external() + "CREATE TEMP TABLE words(a);", warning: nil),
    Example(
      "RAISE in the trigger", spans("INSERT INTO spans SELECT new.id, 1, CASE WHEN new.id > 1 THEN RAISE(IGNORE) END"),
      warning: ["\"spans\"", "RAISE"]),
    Example(
      "a function that triggers may not call",
      spans("INSERT INTO spans VALUES (new.id, 1, load_extension('x'))"), warning: ["\"spans\"", "load_extension"]),
    Example(
      "a module whose tables are not to be read there",
      spans("INSERT INTO spans SELECT new.id, 1, count(*) FROM dbstat"), warning: ["\"spans\"", "\"dbstat\""]),
    Example(
      "a trigger that asks what its other statements did",
      spans(
        "INSERT INTO log(line) VALUES (new.title); INSERT INTO spans VALUES (last_insert_rowid(), 1, 2)",
        table: "\(notes) CREATE TABLE log(id INTEGER PRIMARY KEY, line);"), warning: ["\"spans\"", "last_insert_rowid"]),
    Example(
      "a trigger that asks for the row it belongs to", spans("INSERT INTO spans VALUES (last_insert_rowid(), 1, 2)"),
      warning: nil, answers: ["spans": ["1|1.0|2.0", "2|1.0|2.0"]]),
    Example(
      "a trigger that takes a value apart",
      spans("INSERT INTO spans SELECT new.id, min(value), max(value) FROM json_each('[3, 4]')"), warning: nil,
      answers: ["spans": ["1|3.0|4.0", "2|3.0|4.0"]]),
    Example(
      "two policies for one conflict",
      spans(
        "INSERT OR REPLACE INTO spans VALUES (new.id, 1, 2)",
        table: "CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT UNIQUE ON CONFLICT REPLACE, body TEXT);"),
      warning: ["\"spans\"", "conflict"]),
    Example(
      "one policy for one conflict",
      spans(
        directly, table: "CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT UNIQUE ON CONFLICT REPLACE, body TEXT);"
      ),
      warning: nil, answers: ["spans": ["1|1.0|2.0", "2|1.0|2.0"]]),
    Example(
      "a trigger that writes through a view",
      """
      \(notes) CREATE VIRTUAL TABLE spans USING rtree(id, low, high); CREATE VIEW v AS SELECT * FROM spans;
      CREATE TRIGGER iv INSTEAD OF INSERT ON v BEGIN INSERT INTO spans VALUES (new.id, new.low, new.high); END;
      CREATE TRIGGER i AFTER INSERT ON notes BEGIN INSERT INTO v VALUES (new.id, 1, 2); END;
      """, warning: ["\"spans\"", "\"notes\"", "through the view \"v\""]),
    Example(
      "no triggers over external content",
      "\(notes) CREATE VIRTUAL TABLE words USING fts5(title, content=notes, content_rowid=id);",
      warning: ["\"words\"", "over \"notes\"", "no triggers", "rebuilt"], answers: rebuilt),
    Example(
      "no triggers over external content of an older module",
      "\(notes) CREATE VIRTUAL TABLE words USING fts4(content=\"notes\", title);",
      warning: ["fts4", "\"words\"", "no triggers", "rebuilt"], answers: rebuilt),
    Example(
      "no triggers over a view of the table",
      """
      \(notes) CREATE VIEW inner AS SELECT id AS number, title AS text FROM main.notes;
      CREATE VIEW shown AS SELECT number, text AS title FROM inner;
      CREATE VIRTUAL TABLE words USING fts5(title, content=shown, content_rowid=number);
      """, warning: ["\"words\"", "over \"shown\"", "no triggers", "rebuilt"], answers: rebuilt),
    Example(
      "triggers of the table over a view of it",
      """
      \(notes) CREATE VIEW shown AS SELECT id, title FROM notes;
      CREATE VIRTUAL TABLE words USING fts5(title, content=shown, content_rowid=id);
      CREATE TRIGGER i AFTER INSERT ON notes BEGIN INSERT INTO words(rowid, title) VALUES (new.id, new.title); END;
      """, warning: nil, answers: rebuilt),
    Example(
      "no triggers over external content that lacks the column",
      "\(notes) CREATE VIRTUAL TABLE words USING fts5(headline, content=notes, content_rowid=id);",
      warning: ["\"words\"", "no triggers", "cannot be rebuilt"]),
    Example(
      "no triggers over external content that is unchanged",
      "\(notes) CREATE TABLE other(title); CREATE VIRTUAL TABLE words USING fts5(title, content=other);", warning: nil),
    Example(
      "no triggers over external content but the application's own",
      """
      \(notes) CREATE VIRTUAL TABLE words USING fts5(title, content=notes, content_rowid=id);
      CREATE TEMP TRIGGER i AFTER INSERT ON main.notes BEGIN
        INSERT INTO words(rowid, title) VALUES (new.id, new.title);
      END;
      """, warning: nil, answers: rebuilt),
    Example(
      "a module that is not there",
      """
      \(notes) PRAGMA writable_schema = ON;
      INSERT INTO sqlite_schema VALUES ('table', 'far', 'far', 0, 'CREATE VIRTUAL TABLE far USING missing(a)');
      PRAGMA writable_schema = RESET;
      CREATE TRIGGER i AFTER INSERT ON notes BEGIN INSERT INTO far VALUES (new.title); END;
      """, warning: ["missing", "\"far\"", "\"notes\""]),
    Example(
      "an index that is damaged",
      """
      \(notes) CREATE VIRTUAL TABLE words USING fts5(title);
      CREATE TRIGGER i AFTER INSERT ON notes BEGIN INSERT INTO words(rowid, title) VALUES (new.id, new.title); END;
      PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'words_config'; PRAGMA writable_schema = RESET;
      """, warning: ["fts5", "\"words\"", "\"notes\"", "rebuild it"]),
    Example(
      "a trigger that reads another table of the diff",
      """
      \(notes) CREATE TABLE places(id INTEGER PRIMARY KEY, low INT, high INT);
      CREATE VIRTUAL TABLE spans USING rtree(id, low, high);
      CREATE TRIGGER i AFTER INSERT ON notes BEGIN
        INSERT INTO spans SELECT new.id, low, high FROM places WHERE id = new.id;
      END;
      """, warning: ["\"spans\"", "\"notes\"", "\"places\"", "rebuild it"]),
  ]

  @Test(
    "Rows are applied when an index cannot be maintained, and a warning names index, table and reason",
    arguments: examples)
  func named(_ example: Example) throws {
    let author = try IndexScenario(
      base: "\(Self.notes) CREATE TABLE places(id INTEGER PRIMARY KEY, low INT, high INT);",
      tables: ["notes", "places"]
    ).author("\(Self.places(example)) INSERT INTO notes VALUES (1, 'one', 'first'), (2, 'two', 'second')")
    let receiver = try SQLiteConnection(opening: ":memory:", as: .create)
    try receiver.execute(example.base)
    let result = try IndexScenario.apply(author.changes, to: receiver)
    #expect(try receiver.text("SELECT group_concat(title) FROM notes") == "one,two")
    #expect(result.counts.conflicts == 0)
    #expect(result.warnings.count == (example.warning == nil ? 0 : 1), "\(result.warnings)")
    for part in example.warning ?? [] {
      #expect(result.warnings.first?.description.contains(part) == true, "\(part): \(result.warnings)")
    }
    if let answers = example.answers { #expect(try IndexScenario.answers(of: receiver) == answers) }
    try IndexScenario.expectNothingLeft(on: receiver)
  }

  private static func places(_ example: Example) -> String {
    example.base.contains("places") ? "INSERT INTO places VALUES (1, 1, 2);" : ""
  }

  @Test("An index whose external content is hidden by a TEMP table is rebuilt completely")
  func rebuiltBehindTemporaryTable() throws {
    let author = try IndexScenario(base: Self.external(), tables: ["notes"]).author(Self.authorsEdit)
    let receiver = try SQLiteConnection(opening: ":memory:", as: .create)
    try receiver.execute(
      "\(Self.external()) INSERT INTO notes VALUES (9, 'mine', ''); CREATE TEMP TABLE words(a)")
    let result = try IndexScenario.apply(author.changes, to: receiver)
    #expect(result.warnings == [])
    try receiver.execute("DROP TABLE temp.words")
    #expect(try IndexScenario.answers(of: receiver) == ["words": ["mine: 9", "two: 2", "uno: 1"]])
  }

  @Test("With triggers on, only an index without triggers is rebuilt")
  func rebuiltWhereTriggersFire() throws {
    let author = try IndexScenario(base: Self.notes, tables: ["notes"]).author(Self.authorsEdit)
    let receiver = try SQLiteConnection(opening: ":memory:", as: .create)
    try receiver.execute(
      "\(Self.external()) CREATE VIRTUAL TABLE other USING fts5(body, content=notes, content_rowid=id);")
    let result = try IndexScenario.apply(
      author.changes, to: receiver, settings: ApplySettings(firesTriggers: true, time: 2_000_000_000_000))
    #expect(result.warnings.count == 1)
    #expect(
      result.warnings.first?.description.contains("\"other\" over \"notes\" has no triggers: it was rebuilt") == true)
    #expect(
      try IndexScenario.answers(of: receiver)
        == ["other": ["first: 1", "second: 2"], "words": ["two: 2", "uno: 1"]])
  }

  @Test("Warnings are about changed tables only")
  func otherTables() throws {
    let base = """
      \(Self.notes) CREATE TABLE places(id INTEGER PRIMARY KEY, low INT, high INT);
      CREATE VIRTUAL TABLE spans USING rtree(id, low, high);
      CREATE TRIGGER i AFTER INSERT ON places BEGIN INSERT INTO spans VALUES (new.id, low_of(new.low), 2); END;
      """
    let author = try IndexScenario(base: base, tables: ["notes"]).author(Self.authorsEdit)
    let receiver = try SQLiteConnection(opening: ":memory:", as: .create)
    try receiver.execute(base)
    #expect(try IndexScenario.apply(author.changes, to: receiver).warnings == [])
  }

  @Test("A row is written if an index refuses it, and counted in the warning")
  func outOfStep() throws {
    let base = """
      \(Self.notes) CREATE VIRTUAL TABLE words USING fts5(title);
      CREATE TRIGGER i AFTER INSERT ON notes BEGIN INSERT INTO words(rowid, title) VALUES (new.id, new.title); END;
      CREATE TRIGGER d AFTER DELETE ON notes BEGIN DELETE FROM words WHERE rowid = old.id; END;
      """
    let author = try IndexScenario(base: base, tables: ["notes"])
      .author("INSERT INTO notes VALUES (1, 'one', ''), (2, 'two', ''), (3, 'three', '')")
    let receiver = try SQLiteConnection(opening: ":memory:", as: .create)
    // The index still has a row 2, as after an earlier deletion without triggers.
    try receiver.execute("\(base) INSERT INTO words(rowid, title) VALUES (2, 'old')")
    let result = try IndexScenario.apply(author.changes, to: receiver)
    #expect(result.counts.inserted == 3)
    #expect(result.counts.conflicts == 0)
    #expect(result.warnings.count == 1)
    #expect(result.warnings.first?.description.contains("\"words\" over \"notes\" did not take 1 change (") == true)
    #expect(try IndexScenario.answers(of: receiver) == ["words": ["old: 2", "one: 1", "three: 3"]])
    try IndexScenario.expectNothingLeft(on: receiver)
  }

  @Test("An index with external content that refuses a row is rebuilt")
  func failsHalfWay() throws {
    let base = """
      \(Self.notes)
      CREATE VIRTUAL TABLE words USING fts5(title, content=notes, content_rowid=id);
      CREATE TRIGGER i AFTER INSERT ON notes BEGIN
        INSERT INTO words(rowid, title) VALUES (new.id, new.title);
        DELETE FROM words WHERE rowid = new.id AND json(new.body) ISNULL;
      END;
      """
    let author = try IndexScenario(base: Self.notes, tables: ["notes"])
      .author("INSERT INTO notes VALUES (1, 'one', '{}'), (2, 'two', 'no JSON'), (3, 'three', '{}')")
    let receiver = try SQLiteConnection(opening: ":memory:", as: .create)
    try receiver.execute(base)
    let result = try IndexScenario.apply(author.changes, to: receiver)
    #expect(result.counts.inserted == 3)
    // The trigger calls a function, so a warning says that the index was rebuilt from the content alone.
    #expect(result.warnings.count == 1)
    #expect(result.warnings.first?.description.contains("malformed JSON") == true)
    #expect(try IndexScenario.answers(of: receiver) == ["words": ["one: 1", "three: 3", "two: 2"]])
  }

  @Test("A row that a constraint of the table refuses is a conflict, and is not indexed")
  func constraints() throws {
    let base = """
      CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT UNIQUE, body TEXT CHECK (body <> 'bad'));
      CREATE VIRTUAL TABLE words USING fts5(title);
      CREATE TRIGGER i BEFORE INSERT ON notes BEGIN INSERT INTO words(rowid, title) VALUES (new.id, new.title); END;
      CREATE TRIGGER u BEFORE UPDATE ON notes BEGIN UPDATE words SET title = new.title WHERE rowid = old.id; END;
      """
    let author = try IndexScenario(base: Self.notes, tables: ["notes"])
      .author("INSERT INTO notes VALUES (1, 'one', 'good'), (2, 'two', 'bad'), (3, 'taken', 'good')")
    let receiver = try SQLiteConnection(opening: ":memory:", as: .create)
    try receiver.execute("\(base) INSERT INTO notes VALUES (9, 'taken', 'good')")
    let result = try IndexScenario.apply(author.changes, to: receiver)
    #expect(result.counts.inserted == 1)
    #expect(result.counts.conflicts == 2)
    #expect(result.warnings == [])
    #expect(try IndexScenario.answers(of: receiver) == ["words": ["one: 1", "taken: 9"]])
  }

  @Test("With an untrusted schema, copied triggers may call no more functions than SQLite allows them")
  func untrustedSchema() throws {
    let author = try IndexScenario(base: Self.notes, tables: ["notes"]).author(Self.authorsEdit)
    let receiver = try SQLiteConnection(opening: ":memory:", as: .create)
    try receiver.execute(
      """
      \(Self.external())
      CREATE VIRTUAL TABLE ids USING fts5(id);
      CREATE TRIGGER i2 AFTER INSERT ON notes BEGIN INSERT INTO ids(id) VALUES (own(new.id)); END;
      """)
    var functions = SQLiteFunctions(on: receiver)
    try functions.add("own", argumentCount: 1) { .integer($0.integer(at: 0)) }
    try receiver.distrustSchema()
    let result = try IndexScenario.apply(author.changes, to: receiver)
    #expect(result.warnings.count == 1)
    #expect(result.warnings.first?.description.contains("own()") == true)
    #expect(try IndexScenario.answers(of: receiver) == ["ids": [], "words": ["two: 2", "uno: 1"]])
  }

  @Test("A database without virtual tables needs no maintenance")
  func nothingToDo() throws {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute("\(Self.notes) CREATE TRIGGER i AFTER INSERT ON notes BEGIN SELECT 1; END; BEGIN")
    #expect(try !IndexSchema.hasVirtualTables(on: connection))
    try connection.execute("CREATE VIRTUAL TABLE v USING fts5(x)")
    #expect(try IndexSchema.hasVirtualTables(on: connection))
  }
}
