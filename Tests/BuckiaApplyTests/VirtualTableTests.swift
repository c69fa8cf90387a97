import BuckiaApply
import BuckiaDiff
import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections
import Testing
import ReplicationTestSupport
import TestSupport

/// R-trees and full-text tables with their own rows are replicated as rows.
@Suite struct VirtualTableTests {
  private static let words = "CREATE VIRTUAL TABLE words USING fts5(title, body, lang UNINDEXED, prefix = 2);"
  private static let places = "CREATE VIRTUAL TABLE places USING rtree(id, x0, x1, y0, y1, +name TEXT, +data BLOB);"
  private static let cells = "CREATE VIRTUAL TABLE cells USING rtree_i32(key, low, high);"
  private static let all = words + places + cells
  private static let tables = ["words", "places", "cells"]

  private static let olderRows = """
    INSERT INTO words(rowid, title, body, lang) VALUES
      (1, 'red fox', 'jumps', 'en'), (5, NULL, x'00ff', 7), (-9223372036854775808, 1.5, -0.0, ''),
      (9223372036854775807, 'Überblick', 'a' || char(0) || 'b', NULL);
    INSERT INTO places VALUES (1, 0.1, 0.2, -3.5e30, 9e999, 'a', x''), (2, -0.0, 0, 1e-45, 1, 5, NULL),
      (-7, -9e999, 9e999, 16777217, 16777219, '5', 2.5);
    INSERT INTO cells VALUES (1, -2147483648, 2147483647), (2, 0, 0);
    """
  private static let edits = """
    UPDATE words SET body = 'runs' WHERE rowid = 1; DELETE FROM words WHERE rowid = 5;
    UPDATE words SET title = '1.5', lang = x'61' WHERE rowid = -9223372036854775808;
    INSERT INTO words(rowid, title, body, lang) VALUES (0, 'new fox', NULL, 9223372036854775807), (7, '', 'fox', 1e300);
    UPDATE places SET x0 = 0.05, name = 5 WHERE id = 1; UPDATE places SET data = x'31' WHERE id = 2;
    DELETE FROM places WHERE id = -7; INSERT INTO places VALUES (9223372036854775807, 1, 2, 3, 4, NULL, 9007199254740993);
    UPDATE cells SET high = 5 WHERE key = 2; INSERT INTO cells VALUES (3, 1, 2); DELETE FROM cells WHERE key = 1;
    """

  /// Two files, the newer made from the older.
  private struct Files {
    let folder: TemporaryFolder
    let older: String
    let newer: String

    init(_ schema: String = "", _ older: String, _ edits: String) throws {
      folder = try TemporaryFolder()
      self.older = try TestDatabases.run(schema + older, on: folder.file("older"))
      newer = try TestDatabases.run(edits, on: folder.copy("older", to: "newer"))
    }

    func target(_ sql: String = "") throws -> String {
      try TestDatabases.run(sql, on: folder.copy("older", to: "target"))
    }
  }

  private static func expectAlike(_ one: String, _ other: String, tables: [String] = tables) throws {
    let first = try SQLiteConnection(opening: one, as: .readWrite)
    let second = try SQLiteConnection(opening: other, as: .readWrite)
    for table in tables {
      let contents = [
        try VirtualRows.content(of: table, on: first), try VirtualRows.content(of: table, on: second),
      ]
      #expect(contents[0] == contents[1], "\(table)")
      try VirtualRows.requireSound(table, on: first)
    }
  }

  // MARK: Mirroring

  @Test("The difference of two databases turns the older into the newer, by any method", arguments: DiffMethod.allCases)
  func mirror(method: DiffMethod) throws {
    let files = try Files(Self.all, Self.olderRows, Self.edits)
    let difference = try DatabaseComparison.run(
      older: files.older, newer: files.newer, options: DiffOptions(method: method))
    #expect(difference.tables.map(\.definition.name) == Self.tables)
    #expect(difference.tables.map { [$0.inserted, $0.updated, $0.deleted] } == [[2, 2, 1], [1, 2, 1], [1, 1, 1]])
    #expect(difference.tables.allSatisfy { $0.method == .rows })
    // Neither the inner tables nor the lack of pages is reported.
    #expect(difference.skipped == [])
    #expect(difference.fallbacks == [])
    let target = try files.target()
    let result = try Shipping.apply(difference, to: target)
    #expect(result.counts.conflicts == 0)
    #expect(result.counts.inserted + result.counts.updated + result.counts.deleted == 12)
    #expect(result.warnings == [])
    try Self.expectAlike(target, files.newer)
    #expect(try DatabaseComparison.run(older: target, newer: files.newer).isEmpty)
  }

  @Test("Applied to an empty database, a difference creates the tables, with the same answers")
  func created() throws {
    let folder = try TemporaryFolder()
    let older = try TestDatabases.run("PRAGMA user_version = 1", on: folder.file("older"))
    let newer = try TestDatabases.run(Self.all + Self.olderRows + Self.edits, on: folder.file("newer"))
    let difference = try DatabaseComparison.run(older: older, newer: newer)
    #expect(difference.tables.map(\.isNew) == [true, true, true])
    let result = try Shipping.apply(difference, to: older)
    #expect(
      result.schemaChanges == [
        "create virtual table words (fts5, 3 columns)", "create virtual table places (rtree, 7 columns)",
        "create virtual table cells (rtree_i32, 3 columns)",
      ])
    try Self.expectAlike(older, newer)
    let connections = [
      try TestDatabases.rows("SELECT rowid FROM words('fo*') ORDER BY rank, rowid", on: older),
      try TestDatabases.rows("SELECT rowid FROM words('fo*') ORDER BY rank, rowid", on: newer),
    ]
    #expect(connections[0] == connections[1])
    #expect(connections[0].count == 3)
    #expect(try TestDatabases.rows("SELECT id FROM places WHERE x0 >= 0 AND x1 < 1", on: older).count == 2)
    #expect(try DatabaseComparison.run(older: older, newer: newer).tables.isEmpty)
  }

  @Test(
    "A table is created with its author's options",
    arguments: [
      "fts5(a, tokenize = 'porter unicode61 remove_diacritics 0 tokenchars ''-''')", "fts5(a, b, detail = none)",
      "fts5(a, b UNINDEXED, columnsize = 0, prefix = '1 3')", "fts5(a, tokenize = 'trigram case_sensitive 1')",
      "fts5(\"the \"\"title\"\"\", [b c], tokenize = ascii)", "rtree(\"i d\", a, b, c, d, e, f, +\"g h\" TEXT)",
    ])
  func options(_ arguments: String) throws {
    let files = try Files("", "PRAGMA user_version = 1", "CREATE VIRTUAL TABLE \"t 1\" USING \(arguments)")
    try Shipping.ship(from: files.older, to: files.newer, onto: files.older)
    #expect(try Self.definitions(files.older) == Self.definitions(files.newer))
    #expect(try Self.definitions(files.older).first?.module != nil)
  }

  private static func definitions(_ path: String) throws -> [TableDefinition] {
    let connection = try SQLiteConnection(opening: path, as: .readOnly)
    let schema = try SchemaReader(connection)
    return try schema.entries.filter { Replicability.refusal(of: $0) == nil }
      .map { try schema.definition(of: $0) }
  }

  @Test("In a UTF-16 database text is unchanged", arguments: ["UTF-16le", "UTF-16be"])
  func utf16(encoding: String) throws {
    let files = try Files("PRAGMA encoding = '\(encoding)';" + Self.all, Self.olderRows, Self.edits)
    let folder = files.folder
    let other = try TestDatabases.run(Self.all + Self.olderRows, on: folder.file("other"))
    let difference = try DatabaseComparison.run(older: files.older, newer: files.newer)
    _ = try Shipping.apply(difference, to: other)
    try Self.expectAlike(other, files.newer)
  }

  @Test("Tables with the same contents are equal, whatever their inner structure", arguments: DiffMethod.allCases)
  func sameInOtherTrees(method: DiffMethod) throws {
    let rows = "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)"
    let files = try Files(
      Self.all,
      """
      \(rows) INSERT INTO words(rowid, title) SELECT i, 'w' || i FROM n;
      \(rows) INSERT INTO places SELECT i, i, i, 0, i, i, NULL FROM n;
      """,
      """
      DELETE FROM words; DELETE FROM places; VACUUM;
      \(rows) INSERT INTO words(rowid, title) SELECT i, 'w' || i FROM n ORDER BY i % 7;
      \(rows) INSERT INTO places SELECT i, i, i, 0, i, i, NULL FROM n ORDER BY i % 7;
      INSERT INTO words(words) VALUES ('optimize');
      """)
    let options = DiffOptions(method: method)
    #expect(try DatabaseComparison.run(older: files.older, newer: files.newer, options: options).isEmpty)
    // One value of one row, in a column that is not indexed.
    try TestDatabases.run(
      "UPDATE places SET data = 1 WHERE id = 77; UPDATE words SET lang = '' WHERE rowid = 8", on: files.newer)
    let difference = try DatabaseComparison.run(older: files.older, newer: files.newer, options: options)
    #expect(difference.tables.map(\.updated) == [1, 1])
  }

  @Test(
    "A single change is found, wherever it is stored inside",
    arguments: [
      "UPDATE places SET y1 = 1e30 WHERE id = 1", "UPDATE places SET name = x'' WHERE id = 1",
      "UPDATE cells SET low = -7 WHERE key = 2", "UPDATE words SET lang = 8 WHERE rowid = 5",
      "UPDATE words SET body = NULL WHERE rowid = 1",
    ], DiffMethod.allCases)
  func changeAlone(edit: String, method: DiffMethod) throws {
    let files = try Files(Self.all, Self.olderRows, edit)
    let difference = try DatabaseComparison.run(
      older: files.older, newer: files.newer, options: DiffOptions(method: method))
    #expect(difference.tables.map { [$0.inserted, $0.updated, $0.deleted] } == [[0, 1, 0]])
  }

  // MARK: What is replicated

  @Test("Tables filled by triggers, without text or owned by others are named, and their rows stay")
  func namedRemainder() throws {
    let files = try Files(
      """
      CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT);
      CREATE VIRTUAL TABLE kept USING fts5(title);
      CREATE VIRTUAL TABLE box USING rtree(id, low, high);
      CREATE VIEW v AS SELECT * FROM notes;
      CREATE TRIGGER i AFTER INSERT ON notes BEGIN INSERT INTO kept(rowid, title) VALUES (new.id, new.title); END;
      CREATE TRIGGER d INSTEAD OF DELETE ON v BEGIN DELETE FROM box WHERE id = old.id; END;
      CREATE VIRTUAL TABLE over USING fts5(title, content = notes, content_rowid = id);
      CREATE VIRTUAL TABLE bare USING fts5(title, c = '');
      CREATE VIRTUAL TABLE old USING fts4(title);
      """, "INSERT INTO notes VALUES (1, 'one')",
      """
      INSERT INTO notes VALUES (2, 'two'); INSERT INTO box VALUES (1, 1, 2); INSERT INTO over(rowid, title) VALUES (2, 'two');
      INSERT INTO bare(rowid, title) VALUES (1, 'x'); INSERT INTO old(title) VALUES ('y');
      """)
    let difference = try DatabaseComparison.run(older: files.older, newer: files.newer)
    #expect(difference.tables.map(\.definition.name) == ["notes"])
    let reasons = Dictionary(uniqueKeysWithValues: difference.skipped.map { ($0.name, $0.reason.description) })
    #expect(reasons["kept"]?.contains("triggers keep it") == true)
    #expect(reasons["box"]?.contains("triggers keep it") == true)
    #expect(reasons["over"]?.contains("it indexes \"notes\"") == true)
    #expect(reasons["bare"]?.contains("keeps no text") == true)
    #expect(reasons["old"]?.contains("virtual table (fts4)") == true)
    #expect(reasons["kept_content"]?.contains("insides of the virtual table kept") == true)
  }

  @Test("New, changed and dropped tables that are not replicated are named")
  func namedChanges() throws {
    let files = try Files(
      """
      CREATE VIRTUAL TABLE a USING fts5(x); CREATE VIRTUAL TABLE b USING fts5(x, y);
      CREATE VIRTUAL TABLE c USING rtree(id, x, y); CREATE VIRTUAL TABLE d USING fts5(x); CREATE TABLE e(x);
      CREATE VIRTUAL TABLE gone USING rtree(id, x, y);
      """, "INSERT INTO a VALUES ('one')",
      """
      DROP TABLE a; DROP TABLE b; DROP TABLE c; DROP TABLE d; DROP TABLE e; DROP TABLE gone;
      CREATE VIRTUAL TABLE a USING fts5(x, tokenize = porter); INSERT INTO a VALUES ('ones');
      CREATE VIRTUAL TABLE b USING fts5(x, y, z); CREATE VIRTUAL TABLE c USING rtree_i32(id, x, y);
      CREATE TABLE d(x); CREATE VIRTUAL TABLE e USING fts5(x);
      CREATE VIRTUAL TABLE own USING fts5(x, tokenize = 'porter porter ascii');
      """)
    let difference = try DatabaseComparison.run(older: files.older, newer: files.newer)
    #expect(difference.tables.map(\.definition.name) == ["a"])
    #expect(difference.tables.map(\.updated) == [1])
    let reasons = Dictionary(difference.skipped.map { ($0.name, $0.reason.description) }) { "\($0); \($1)" }
    #expect(reasons["a"] == "its definition has changed, which does not travel; its rows do")
    #expect(reasons["b"]?.contains("columns differ") == true)
    #expect(reasons["c"]?.contains("its module is rtree in one") == true)
    #expect(reasons["d"]?.contains("virtual table in one") == true)
    #expect(reasons["e"]?.contains("virtual table in one") == true)
    #expect(reasons["gone"] == "the table was dropped; others keep it")
    #expect(reasons["own"]?.contains("could not be created elsewhere: its tokenizer") == true)
    #expect(reasons.count == 7, "\(reasons)")
  }

  @Test("A table with the app's own tokenizer is written if it exists, and never created")
  func unspeakableTokenizer() throws {
    let files = try Files(
      "CREATE VIRTUAL TABLE t USING fts5(x, tokenize = 'porter porter ascii');", "INSERT INTO t VALUES ('one')",
      "INSERT INTO t VALUES ('two')")
    let difference = try DatabaseComparison.run(older: files.older, newer: files.newer)
    #expect(difference.skipped == [])
    let target = try files.target()
    _ = try Shipping.apply(difference, to: target)
    try Self.expectAlike(target, files.newer, tables: ["t"])
    let empty = try TestDatabases.run("PRAGMA user_version = 1", on: files.folder.file("empty"))
    let error = #expect(throws: ReplicationError.self) { try Shipping.apply(difference, to: empty) }
    #expect(error?.code == .refusedDefinition)
    #expect(error?.message.contains("tokenizer") == true)
  }

  @Test("A table that SQLite cannot open here is named with SQLite's reason")
  func unavailable() throws {
    let files = try Files(
      "CREATE TABLE n(id INTEGER PRIMARY KEY); CREATE VIRTUAL TABLE t USING fts5(x);", "",
      """
      INSERT INTO n VALUES (1); PRAGMA writable_schema = ON;
      UPDATE sqlite_schema SET sql = 'CREATE VIRTUAL TABLE t USING fts5(x, tokenize = mine)' WHERE name = 't';
      """)
    let difference = try DatabaseComparison.run(older: files.older, newer: files.newer)
    #expect(difference.tables.map(\.definition.name) == ["n"])
    #expect(difference.skipped.first { $0.name == "t" }?.reason.description.contains("no such tokenizer: mine") == true)
  }

  @Test("Settings made by commands are named once")
  func settings() throws {
    let files = try Files(
      Self.words, "INSERT INTO words(words, rank) VALUES ('automerge', 2)",
      """
      INSERT INTO words(words, rank) VALUES ('rank', 'bm25(10.0)'); CREATE VIRTUAL TABLE new USING fts5(a);
      INSERT INTO new(new, rank) VALUES ('rank', 'bm25(5.0)'); CREATE VIRTUAL TABLE other USING fts5(a);
      """)
    let difference = try DatabaseComparison.run(older: files.older, newer: files.newer)
    #expect(difference.skipped.map(\.name) == ["words", "new"])
    #expect(difference.skipped.map(\.reason.code) == [.fullTextSettings, .fullTextSettings])
    #expect(difference.skipped.map(\.reason.arguments) == [["automerge", "rank"], ["rank"]])
    #expect(
      difference.skipped.map(\.reason.description) == [
        "its settings (automerge, rank) do not travel; its rows do", "its settings (rank) do not travel; its rows do",
      ])
    #expect(try DatabaseComparison.run(older: files.newer, newer: files.newer).skipped == [])
  }

  @Test("A damaged virtual table is named, and the others are replicated")
  func brokenInside() throws {
    let files = try Files(
      Self.all, Self.olderRows,
      """
      \(Self.edits) PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'words_content';
      UPDATE places_node SET data = x'ff';
      """)
    let difference = try DatabaseComparison.run(older: files.older, newer: files.newer)
    #expect(difference.tables.map(\.definition.name) == ["cells"])
    let reasons = Dictionary(difference.skipped.map { ($0.name, $0.reason.description) }) { first, _ in first }
    #expect(reasons["words"]?.contains("cannot be") == true)
    #expect(reasons["places"]?.contains("cannot be") == true)
  }

  // MARK: Applying

  @Test("Conflicts on virtual tables are those of any table", arguments: [ConflictPolicy.keepLocal, .takeIncoming])
  func conflicts(policy: ConflictPolicy) throws {
    let files = try Files(Self.all, Self.olderRows, Self.edits)
    let target = try files.target(
      """
      INSERT INTO words(rowid, title) VALUES (0, 'mine'); UPDATE words SET body = 'here' WHERE rowid = 1;
      UPDATE words SET title = 'here' WHERE rowid = 5; DELETE FROM words WHERE rowid = -9223372036854775808;
      UPDATE places SET x0 = 0.01 WHERE id = 1; INSERT INTO places VALUES (9223372036854775807, 1, 2, 3, 5, 'mine', 1);
      DELETE FROM cells WHERE key = 2; INSERT INTO cells VALUES (3, 1, 2); UPDATE cells SET low = 0 WHERE key = 1;
      """)
    var kinds: [String: [ConflictKind]] = [:]
    let result = try Shipping.ship(
      from: files.older, to: files.newer, onto: target,
      settings: ApplySettings(
        policies: ConflictPolicies(policy),
        resolver: { conflict in
          kinds[conflict.table.text, default: []].append(conflict.kind)
          return .useDefault
        }, time: 2_000_000_000_000))
    #expect(kinds["words"]?.map(\.rawValue).sorted() == ["conflict", "data", "data", "not-found"])
    #expect(kinds["places"]?.map(\.rawValue).sorted() == ["conflict", "data"])
    // An equal inserted row is also asked about, if there is a resolver.
    #expect(kinds["cells"]?.map(\.rawValue).sorted() == ["conflict", "data", "not-found"])
    #expect(result.counts.conflicts == 9)
    if policy == .takeIncoming {
      try Self.expectAlike(target, files.newer, tables: ["places"])
      #expect(try TestDatabases.rows("SELECT count(*) FROM words WHERE title = 'new fox'", on: target) == ["1"])
    } else {
      #expect(try TestDatabases.rows("SELECT count(*) FROM words('mine')", on: target) == ["1"])
      #expect(try TestDatabases.rows("SELECT low FROM cells WHERE key = 1", on: target) == ["0"])
    }
    let connection = try SQLiteConnection(opening: target, as: .readWrite)
    for table in Self.tables { try VirtualRows.requireSound(table, on: connection) }
  }

  @Test("0.0 and -0.0 are different coordinates, 5 and '5' different values in an auxiliary column")
  func likeValues() throws {
    let files = try Files(
      Self.places, "INSERT INTO places VALUES (9, 1, 1, 1, 1, NULL, NULL)",
      "INSERT INTO places VALUES (1, -0.0, 0, 0, 0, 5, NULL), (2, 0.0, 0, 0, 0, 5, NULL), (3, -0.0, 0, 0, 0, 5, NULL)")
    let target = try files.target(
      "INSERT INTO places VALUES (1, 0.0, 0, 0, 0, 5, NULL), (2, 0.0, 0, 0, 0, '5', NULL), (3, -0.0, 0, 0, 0, 5, NULL)")
    let result = try Shipping.ship(from: files.older, to: files.newer, onto: target)
    #expect(result.counts.conflicts == 2)
    #expect(result.counts.unchanged == 1)
  }

  @Test("Hundreds of rows in conflict are written in batches, and those that do not fit are left out")
  func batches() throws {
    let rows = "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 700)"
    let files = try Files(
      Self.all, "INSERT INTO cells VALUES (1, 0, 0)",
      """
      \(rows) INSERT INTO words(rowid, title, body) SELECT i, 'word' || i, 'all ' || (i % 7) FROM n;
      \(rows) INSERT INTO places SELECT i, i, i + 1, -i, i, 'p' || i, i FROM n;
      """)
    let target = try files.target(
      """
      INSERT INTO words(rowid, title) SELECT value, 'mine' FROM json_each('[3, 40, 41, 500]');
      INSERT INTO places SELECT value, 0, 0, 0, 0, 'mine', 0 FROM json_each('[3, 40, 41, 500]');
      """)
    let result = try Shipping.ship(from: files.older, to: files.newer, onto: target)
    #expect(result.counts.inserted == 2 * 696)
    #expect(result.counts.conflicts == 8)
    #expect(try TestDatabases.rows("SELECT count(*) FROM words('mine')", on: target) == ["4"])
    #expect(try TestDatabases.rows("SELECT count(*) FROM words('all')", on: target) == ["696"])
    #expect(try TestDatabases.rows("SELECT count(*) FROM places WHERE x0 > 600", on: target) == ["100"])
    let connection = try SQLiteConnection(opening: target, as: .readWrite)
    for table in Self.tables { try VirtualRows.requireSound(table, on: connection) }
  }

  @Test("A failure half way leaves nothing behind: no rows, no tables, no inner tables")
  func undone() throws {
    let folder = try TemporaryFolder()
    let newer = try TestDatabases.run(
      Self.all + Self.olderRows + "CREATE TABLE z(id INTEGER PRIMARY KEY, a); INSERT INTO z VALUES (1, 1), (2, 2)",
      on: folder.file("newer"))
    let older = try TestDatabases.run(
      Self.words + "CREATE TABLE z(id INTEGER PRIMARY KEY, a); INSERT INTO words(title) VALUES ('mine')",
      on: folder.file("older"))
    let difference = try DatabaseComparison.run(older: try empty(in: folder), newer: newer)
    let before = try TestDatabases.rows("SELECT * FROM sqlite_schema", on: older)
    try TestDatabases.run("INSERT INTO z VALUES (2, 'taken')", on: older)
    #expect(throws: ReplicationError.self) {
      try Shipping.apply(difference, to: older, settings: ApplySettings(policies: .abort, time: 2_000_000_000_000))
    }
    #expect(try TestDatabases.rows("SELECT * FROM sqlite_schema", on: older) == before)
    #expect(try TestDatabases.rows("SELECT title FROM words", on: older).count == 1)
    let connection = try SQLiteConnection(opening: older, as: .readWrite)
    try VirtualRows.requireSound("words", on: connection)
  }

  @Test(
    "Inside the application's transaction, a failed diff undoes nothing of the application",
    arguments: [true, false])
  func insideATransaction(commits: Bool) throws {
    let files = try Files(Self.all, Self.olderRows, Self.edits + "CREATE VIRTUAL TABLE more USING fts5(a);")
    let difference = try DatabaseComparison.run(older: files.older, newer: files.newer)
    let target = try files.target()
    let connection = try SQLiteConnection(opening: target, as: .readWrite)
    try connection.execute(
      """
      BEGIN; INSERT INTO words(rowid, title) VALUES (70, 'mine'); INSERT INTO places VALUES (70, 1, 2, 3, 4, 'mine', 0);
      UPDATE cells SET high = 9 WHERE key = 2;
      """)
    var refusals = 0
    for policy in [ConflictPolicy.abort, .keepLocal] {
      let incoming = try Shipping.incoming(difference)
      do {
        let plan = try Receiver.plan(
          incoming, on: connection, settings: ApplySettings(policies: ConflictPolicies(policy), time: 2_000_000_000_000)
        )
        #expect(try plan.apply().counts.conflicts == 1)
      } catch is ReplicationError {
        refusals += 1
        #expect(try connection.integer("SELECT count(*) FROM words") == 5)
        #expect(try connection.integer("SELECT count(*) FROM words('fox')") == 1)
        #expect(try connection.integer("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'more%'") == 0)
      }
    }
    #expect(refusals == 1)
    try connection.execute(commits ? "COMMIT" : "ROLLBACK")
    #expect(try connection.integer("SELECT count(*) FROM words('mine')") == (commits ? 1 : 0))
    #expect(try connection.integer("SELECT count(*) FROM words('fox')") == (commits ? 3 : 1))
    #expect(try connection.integer("SELECT count(*) FROM places") == (commits ? 4 : 3))
    for table in Self.tables { try VirtualRows.requireSound(table, on: connection) }
  }

  private func empty(in folder: TemporaryFolder) throws -> String {
    try TestDatabases.run("PRAGMA user_version = 1", on: folder.file("empty"))
  }

  @Test("Rows of an index that local triggers maintain are not written, with a warning", arguments: [true, false])
  func keptHere(firesTriggers: Bool) throws {
    let author = "CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT); CREATE VIRTUAL TABLE w USING fts5(title);"
    let files = try Files(
      author, "", "INSERT INTO notes VALUES (1, 'one'); INSERT INTO w(rowid, title) VALUES (1, 'one'), (9, 'astray')")
    let target = try files.target(
      "CREATE TRIGGER i AFTER INSERT ON notes BEGIN INSERT INTO w(rowid, title) VALUES (new.id, new.title); END")
    let result = try Shipping.ship(
      from: files.older, to: files.newer, onto: target,
      settings: ApplySettings(firesTriggers: firesTriggers, time: 2_000_000_000_000))
    #expect(result.counts.conflicts == 0)
    #expect(result.counts.inserted == 1)
    #expect(result.warnings.count == 1)
    #expect(result.warnings.first?.description.contains("\"w\" were not written: triggers keep it here") == true)
    #expect(try TestDatabases.rows("SELECT rowid FROM w ORDER BY rowid", on: target) == ["1"])
  }

  @Test("Rows of a table with external content here are not written either")
  func externalHere() throws {
    let files = try Files(
      "CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT);", "",
      "CREATE VIRTUAL TABLE w USING fts5(title); INSERT INTO notes VALUES (1, 'one'); INSERT INTO w VALUES ('other')")
    let target = try files.target("CREATE VIRTUAL TABLE w USING fts5(title, content = notes, content_rowid = id)")
    let result = try Shipping.ship(from: files.older, to: files.newer, onto: target)
    #expect(result.warnings.count == 2, "\(result.warnings)")
    #expect(result.warnings.first?.description.contains("here it indexes \"notes\"") == true)
    #expect(result.warnings.last?.description.contains("has no triggers: it was rebuilt") == true)
    #expect(try TestDatabases.rows("SELECT rowid FROM w('one')", on: target) == ["1"])
  }
}
