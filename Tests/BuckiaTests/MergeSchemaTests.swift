import Buckia
import BuckiaDiff
import Foundation
import SQLiteSchemas
import TestSupport
import Testing

@Suite("Merging edits with changes of the schema") struct MergeSchemaTests {
  private static let base =
    "CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, b TEXT); INSERT INTO t VALUES (1, 'a1', 'b1'), (2, 'a2', 'b2');"

  private static func rebuild(_ columns: String, _ values: String = "id, a, b") -> String {
    "CREATE TABLE n(\(columns)); INSERT INTO n SELECT \(values) FROM t; DROP TABLE t; ALTER TABLE n RENAME TO t"
  }

  private static let edit = "UPDATE t SET a = 'EDIT' WHERE id = 1; INSERT INTO t VALUES (3, 'NEW', 'b3')"

  @Test("A column that either side has renamed has the edits of both, and its new name", arguments: [true, false])
  func renamed(isOurs: Bool) throws {
    let rename = "ALTER TABLE t RENAME COLUMN a TO title; UPDATE t SET title = 'other' WHERE id = 2"
    let three = try ThreeWay(base: Self.base, ours: isOurs ? rename : Self.edit, theirs: isOurs ? Self.edit : rename)
    #expect(try three.merge().isClean)
    #expect(try three.text("SELECT id, title, b FROM t") == ["1|EDIT|b1", "2|other|b2", "3|NEW|b3"])
    #expect(try three.text("SELECT count(*) FROM pragma_table_info('t')") == ["3"])
    #expect(try three.text(ThreeWay.ownTables).isEmpty)
  }

  @Test("A rename that the definitions do not show can be declared, and a false declaration is refused")
  func declaredRename() throws {
    let three = try ThreeWay(
      base: Self.base, ours: Self.edit,
      theirs: Self.rebuild("id INTEGER PRIMARY KEY, b TEXT, title VARCHAR(9)", "id, b, a"))
    var options = MergeOptions()
    options.renames = [ColumnRename(table: "t", from: "a", to: "title")]
    #expect(try three.merge(options).isClean)
    #expect(try three.text("SELECT id, title FROM t") == ["1|EDIT", "2|a2", "3|NEW"])
    options.renames = [ColumnRename(table: "t", from: "b", to: "title")]
    options.replacesOutput = true
    let error = #expect(throws: BuckiaError.self) { try three.merge(options) }
    #expect(error?.description.contains("\"t.b\" has not become \"title\"") == true, "\(String(describing: error))")
  }

  @Test("A dropped column and another one added in its place are not mistaken for a rename")
  func droppedAndAdded() throws {
    let three = try ThreeWay(
      base: Self.base, ours: "UPDATE t SET b = 'EDIT' WHERE id = 1",
      theirs: "ALTER TABLE t DROP COLUMN b; ALTER TABLE t ADD COLUMN c TEXT")
    let report = try three.merge()
    #expect(report.schemaConflicts.map(\.name) == ["t.b"])
    #expect(try three.text("SELECT b, c FROM t WHERE id = 1") == ["EDIT|NULL"])
  }

  @Test(
    "A column that theirs has dropped stays if ours has edited it, and is dropped if not",
    arguments: [true, false])
  func droppedThere(isEdited: Bool) throws {
    let three = try ThreeWay(
      base: Self.base, ours: isEdited ? "UPDATE t SET b = 'EDIT' WHERE id = 1" : "UPDATE t SET a = 'EDIT' WHERE id = 1",
      theirs: "ALTER TABLE t DROP COLUMN b; UPDATE t SET a = 'x' WHERE id = 2")
    let report = try three.merge()
    #expect(report.isClean == !isEdited)
    #expect(report.schemaConflicts.map(\.kind) == (isEdited ? [.droppedThere] : []))
    #expect(try three.text("SELECT * FROM t") == (isEdited ? ["1|a1|EDIT", "2|x|b2"] : ["1|EDIT", "2|x"]))
  }

  @Test("A column that ours has dropped comes back only with new rows of theirs, and an edit of it is a conflict")
  func droppedHere() throws {
    for (theirs, rows) in [
      ("UPDATE t SET b = 'EDIT' WHERE id = 1", ["1|a1", "2|a2"]),
      ("UPDATE t SET a = 'EDIT' WHERE id = 1", ["1|EDIT", "2|a2"]),
      ("INSERT INTO t VALUES (9, 'n', 'NEW')", ["1|a1|NULL", "2|a2|NULL", "9|n|NEW"]),
    ] {
      let three = try ThreeWay(base: Self.base, ours: "ALTER TABLE t DROP COLUMN b", theirs: theirs)
      let report = try three.merge()
      #expect(report.conflicts == (theirs.contains("b = 'EDIT'") ? 1 : 0))
      #expect(report.schemaConflicts.map(\.kind) == (theirs.contains("NEW") ? [.droppedHere] : []))
      #expect(try three.text("SELECT * FROM t") == rows)
    }
  }

  @Test(
    "A new column type that would alter an edited value is not merged",
    arguments: [("'007'", false), ("'7'", true), ("'seven'", true)])
  func retyped(value: String, isMerged: Bool) throws {
    let three = try ThreeWay(
      base: Self.base, ours: "UPDATE t SET b = \(value) WHERE id = 1",
      theirs: Self.rebuild("id INTEGER PRIMARY KEY, a TEXT, b INTEGER"))
    let report = try three.merge()
    #expect(report.isClean == isMerged, "\(report)")
    #expect(try three.text("SELECT b FROM t WHERE id = 1") == [value.replacingOccurrences(of: "'", with: "")])
  }

  @Test("Rows whose integer keys have become text on one side are the same rows", arguments: [true, false])
  func keyBecameText(isOurs: Bool) throws {
    let migration = Self.rebuild("id TEXT PRIMARY KEY, a TEXT, b TEXT") + "; UPDATE t SET b = 'theirs' WHERE id = '2'"
    let three = try ThreeWay(
      base: Self.base, ours: isOurs ? migration : Self.edit, theirs: isOurs ? Self.edit : migration)
    _ = try three.merge()
    #expect(try three.text("SELECT id, a, b FROM t ORDER BY id") == ["1|EDIT|b1", "2|a2|theirs", "3|NEW|b3"])
  }

  @Test("The edits of both sides are kept if one side has changed the primary key")
  func otherKey() throws {
    let three = try ThreeWay(
      base: Self.base, ours: "UPDATE t SET b = 'EDIT' WHERE id = 1",
      theirs: Self.rebuild("id INTEGER, a TEXT PRIMARY KEY, b TEXT") + "; UPDATE t SET b = 'theirs' WHERE a = 'a2'")
    _ = try three.merge()
    #expect(try three.text("SELECT id, a, b FROM t ORDER BY id") == ["1|a1|EDIT", "2|a2|theirs"])
  }

  @Test(
    "A generated column of ours keeps its values: other values of theirs are conflicts, and rows are merged",
    arguments: ["VIRTUAL", "STORED"])
  func generatedHere(storage: String) throws {
    let ours = """
      CREATE TABLE n(id INTEGER PRIMARY KEY, a TEXT, b TEXT AS (a || '!') \(storage)); INSERT INTO n(id, a) SELECT id, a FROM t;
      DROP TABLE t; ALTER TABLE n RENAME TO t
      """
    let three = try ThreeWay(
      base: Self.base + "INSERT INTO t VALUES (5, 'a5', 'b5'), (6, 'a6', 'b6')",
      ours: ours + "; DELETE FROM t WHERE id = 6",
      theirs: """
        UPDATE t SET a = 'EDIT', b = 'OTHER' WHERE id = 1; DELETE FROM t WHERE id = 2; UPDATE t SET b = NULL WHERE id = 5;
        UPDATE t SET b = 'LOST' WHERE id = 6; INSERT INTO t VALUES (3, 'NEW', 'NEW!'), (4, 'MORE', 'b4')
        """)
    let report = try three.merge()
    #expect(report.conflicts == 3 && !report.isClean && report.schemaConflicts.isEmpty)
    #expect(try three.text("SELECT * FROM t") == ["1|EDIT|EDIT!", "3|NEW|NEW!", "4|MORE|MORE!", "5|a5|a5!"])
    let records = try DatabaseManager(three.out).conflicts()
    #expect(records.map(\.kind) == [.data, .notFound, .data])
    #expect(records.map { $0.incoming?.last?.value } == [.text("OTHER"), .text("LOST"), .text("b4")])
    #expect(records.map { $0.local?.last?.value } == [.text("EDIT!"), nil, .text("MORE!")])
    #expect(records.map { $0.base?.last?.value } == [.text("b1"), .text("b6"), nil])
    #expect(records.first?.reason?.contains("\"t.b\" is a generated one here") == true)
    let error = #expect(throws: BuckiaError.self) {
      try three.merge(MergeOptions(conflicts: .abort, replacesOutput: true))
    }
    #expect(error?.code == .conflict)
    let clean = try ThreeWay(base: Self.base, ours: ours, theirs: "UPDATE t SET a = 'EDIT' WHERE id = 1")
    #expect(try clean.merge().isClean)
    #expect(try clean.text("SELECT b FROM t") == ["EDIT!", "a2!"])
  }

  /// The bases, and the changes of the table by one side.
  private static var migrations: [(base: String, migration: String)] {
    var found: [(String, String)] = []
    for base in [Self.base, Self.keyless] {
      for columns in [
        "id INTEGER, a TEXT PRIMARY KEY, b TEXT", "id INTEGER, a TEXT, b TEXT, PRIMARY KEY (id, a)",
        "id INTEGER, a TEXT, b TEXT, PRIMARY KEY (b, id)) WITHOUT ROWID; CREATE TABLE other(x",
        "id INTEGER, a TEXT, b TEXT", "id INTEGER PRIMARY KEY, a TEXT, b TEXT",
      ] { found.append((base, rebuild(columns))) }
      for key in ["uuid TEXT PRIMARY KEY", "k INTEGER PRIMARY KEY"] {
        found.append((base, rebuild("\(key), id INTEGER, a TEXT, b TEXT", "10 * id, id, a, b")))
      }
      found.append((base, rebuild("uuid TEXT PRIMARY KEY, a TEXT, b TEXT", "10 * id, a, b")))
      found.append(
        (
          base,
          """
          CREATE TABLE n(id INTEGER PRIMARY KEY, a TEXT AS (b || '!'), b TEXT); INSERT INTO n(id, b) SELECT id, b FROM t;
          DROP TABLE t; ALTER TABLE n RENAME TO t
          """
        ))
    }
    return found
  }

  private static let keyless = base.replacingOccurrences(of: " PRIMARY KEY", with: "")

  @Test(
    "Each edit is in a row or a conflict, whichever side has another key or generates the column",
    arguments: [true, false])
  func nothingIsLost(isOurs: Bool) throws {
    for (base, migration) in Self.migrations {
      for edit in [
        "UPDATE t SET a = 'EDIT' WHERE id = 1", "UPDATE t SET b = 'EDIT' WHERE id = 2",
        "UPDATE t SET b = 'other'; UPDATE t SET a = 'EDIT', b = 'more' WHERE id = 2",
        "INSERT INTO t VALUES (3, 'EDIT', 'b3')",
        "INSERT INTO t VALUES (10, 'a10', 'EDIT'); DELETE FROM t WHERE id = 2",
      ] {
        let three = try ThreeWay(base: base, ours: isOurs ? migration : edit, theirs: isOurs ? edit : migration)
        let report = try three.merge()
        let rows = try three.text("SELECT * FROM t")
        let records = try DatabaseManager(three.out).conflicts()
        let isThere = rows.contains { $0.contains("EDIT") }
        #expect(isThere || "\(records)".contains("EDIT"), "\(migration): \(edit): \(rows)")
        #expect(isThere || !report.isClean, "\(migration): \(edit)")
      }
    }
  }

  @Test("All changes of a table whose key is a new column of ours are conflicts with their values")
  func newKeyHere() throws {
    let three = try ThreeWay(
      base: Self.base, ours: Self.rebuild("k INTEGER PRIMARY KEY, id INTEGER, a TEXT, b TEXT", "NULL, id, a, b"),
      theirs: Self.edit + "; DELETE FROM t WHERE id = 2; CREATE TABLE more(x); INSERT INTO more VALUES (1)")
    let report = try three.merge()
    #expect(report.conflicts == 3 && !report.isClean)
    #expect(report.warnings.map(\.code) == [.keyChanged])
    let database = DatabaseManager(three.out)
    let records = try database.conflicts()
    #expect(records.map { $0.key.first?.value } == [.integer(2), .integer(1), .integer(3)])
    #expect(records.map { $0.incoming?[1].value } == [nil, .text("EDIT"), .text("NEW")])
    #expect(try database.resolve(records.map(\.id), taking: .incoming).counts.refused == 3)
    #expect(try database.resolve(records.map(\.id), taking: .local).counts.resolved == 3)
    #expect(try three.text("SELECT k, id, a FROM t") == ["1|1|a1", "2|2|a2"])
    #expect(try three.text("SELECT x FROM more") == ["1"])
  }

  @Test(
    "A table that ours has dropped comes back as theirs has it, with indexes and triggers", arguments: [false, true])
  func returnedTable(changesSchema: Bool) throws {
    let base = """
      CREATE TABLE p(id INTEGER PRIMARY KEY); INSERT INTO p VALUES (1);
      CREATE TABLE t(id INTEGER PRIMARY KEY AUTOINCREMENT, a TEXT NOT NULL DEFAULT (upper('x')) CHECK (a <> ''),
        b TEXT UNIQUE COLLATE NOCASE, c TEXT AS (a || b), p INTEGER REFERENCES p(id), UNIQUE (a, b)) STRICT;
      CREATE TABLE w(x TEXT PRIMARY KEY, y CHECK (y > 0)) WITHOUT ROWID; CREATE INDEX i ON t(b, a);
      CREATE TRIGGER tr AFTER INSERT ON t BEGIN UPDATE w SET y = y + 1; END; CREATE VIEW v AS SELECT x FROM w;
      INSERT INTO t(id, a, b, p) VALUES (1, 'a1', 'b1', 1); INSERT INTO w VALUES ('k', 1)
      """
    let three = try ThreeWay(
      base: base, ours: "DROP VIEW v; DROP TABLE t; DROP TABLE w",
      theirs: "INSERT INTO t(id, a, b) VALUES (2, 'NEW', 'b2'); DELETE FROM t WHERE id = 1"
        + (changesSchema ? "; CREATE TABLE more(x); CREATE INDEX j ON t(p)" : ""))
    let report = try three.merge()
    #expect(report.schemaConflicts.map(\.name) == ["t", "w"])
    #expect(report.warnings.isEmpty && report.skipped.isEmpty && report.conflicts == 0)
    let statements =
      "SELECT sql FROM sqlite_schema WHERE name NOT IN ('v', 'more') AND name NOT LIKE 'sqlite%' ORDER BY name"
    #expect(try three.text(statements) == three.text(statements, three.theirs))
    #expect(try three.text("SELECT id, a, b, c FROM t") == ["2|NEW|b2|NEWb2"])
    #expect(try three.text("SELECT x, y FROM w") == ["k|2"])
  }

  @Test(
    "Clearing a value or deleting a row does not keep a column that the other side has dropped",
    arguments: [true, false])
  func clearedBesideDropped(isOurs: Bool) throws {
    for (edit, rows) in [
      ("UPDATE t SET b = NULL WHERE id = 1", ["1|a1", "2|a2"]), ("DELETE FROM t WHERE id = 2", ["1|a1"]),
      ("DELETE FROM t WHERE id = 2; UPDATE t SET b = NULL, a = 'x' WHERE id = 1", ["1|x"]),
    ] {
      let drop = "ALTER TABLE t DROP COLUMN b"
      let three = try ThreeWay(base: Self.base, ours: isOurs ? drop : edit, theirs: isOurs ? edit : drop)
      let report = try three.merge()
      #expect(report.isClean, "\(edit)")
      #expect(try three.text("SELECT * FROM t") == rows)
      #expect(report.schemaChanges.filter { $0.contains("add") }.isEmpty)
    }
    // A value that differs from the base only in case counts as edited.
    let other = try ThreeWay(
      base: "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b COLLATE NOCASE); INSERT INTO t VALUES (1, 'a', 'b')",
      ours: isOurs ? "ALTER TABLE t DROP COLUMN b" : "UPDATE t SET b = 'B'",
      theirs: isOurs ? "UPDATE t SET b = 'B'" : "ALTER TABLE t DROP COLUMN b")
    #expect(try !other.merge().isClean)
  }

  @Test("The report names a single added column, and counts several")
  func addedColumns() throws {
    for (columns, change) in [(["c"], "add column t.c"), (["c", "d"], "add 2 columns to t")] {
      let theirs = columns.map { "ALTER TABLE t ADD COLUMN \($0) DEFAULT 1" }.joined(separator: ";")
      let report = try ThreeWay(base: Self.base, ours: Self.edit, theirs: theirs).merge()
      #expect(report.schemaChanges == [change])
    }
  }

  @Test("A file that drops a column, or changes its type, is refused if local values of it would be lost")
  func adopted() throws {
    for (migration, value) in [
      ("ALTER TABLE t DROP COLUMN b", "EDIT"), (Self.rebuild("id INTEGER PRIMARY KEY, a TEXT, b INTEGER"), "007"),
    ] {
      let exchange = try Exchange(Self.base)
      try TestDatabases.run("UPDATE t SET b = '\(value)' WHERE id = 1", on: exchange.mine)
      try exchange.send(migration)
      let report = try exchange.apply(ApplyOptions(schema: .adopt))
      #expect(report.diffs.map(\.state) == [.rejected])
      #expect(report.diffs.first?.reason?.contains("t.b") == true)
      #expect(try exchange.texts("SELECT b FROM t WHERE id = 1") == [value])
      try TestDatabases.run("UPDATE t SET b = 'b1', a = 'other' WHERE id = 1", on: exchange.mine)
      #expect(try exchange.apply(ApplyOptions(schema: .adopt)).diffs.map(\.state) == [.applied])
      #expect(try exchange.texts("SELECT a FROM t WHERE id = 1") == ["other"])
    }
  }

  @Test("Adopting integer keys that have become text keeps the rows and their local edits")
  func adoptedTextKey() throws {
    let exchange = try Exchange(Self.base)
    try TestDatabases.run("UPDATE t SET a = 'EDIT' WHERE id = 1", on: exchange.mine)
    try exchange.send(Self.rebuild("id TEXT PRIMARY KEY, a TEXT, b TEXT") + "; UPDATE t SET b = 'new' WHERE id = '2'")
    #expect(try exchange.apply(ApplyOptions(schema: .adopt)).diffs.map(\.state) == [.applied])
    #expect(try exchange.texts("SELECT id, a, b FROM t ORDER BY id") == ["1|EDIT|b1", "2|a2|new"])
  }
}

@Suite("Merging rows with assigned keys, and limits of merging") struct MergeRowTests {
  @Test("Rows without a key are matched by their content after VACUUM has moved them", arguments: [true, false])
  func vacuum(isOurs: Bool) throws {
    let (moved, edited) = ("VACUUM; INSERT INTO k VALUES ('t', 3)", "UPDATE k SET b = 99 WHERE a = 'r'")
    let three = try ThreeWay(
      base: "CREATE TABLE k(a, b); INSERT INTO k VALUES ('p', 1), ('q', 2), ('r', 3); DELETE FROM k WHERE a = 'q'",
      ours: isOurs ? moved : edited, theirs: isOurs ? edited : moved)
    #expect(try three.merge().isClean)
    #expect(try three.text("SELECT a, b FROM k ORDER BY a") == ["p|1", "r|99", "t|3"])
  }

  @Test("An UPDATE of a row without a key is a conflict if another row has its rowid")
  func movedRowInADiff() throws {
    let exchange = try Exchange(
      "CREATE TABLE k(a, b); INSERT INTO k VALUES ('p', 1), ('q', 2), ('r', 3); DELETE FROM k WHERE a = 'q'")
    try TestDatabases.run("VACUUM", on: exchange.mine)
    try TestDatabases.run("INSERT INTO k VALUES ('t', 3)", on: exchange.mine)
    try exchange.send("UPDATE k SET b = 99 WHERE a = 'r'")
    #expect(try exchange.apply().diffs.first?.conflicts == 1)
    #expect(try exchange.texts("SELECT a, b FROM k ORDER BY a") == ["p|1", "r|3", "t|3"])
  }

  @Test("Different rows that cannot be sent make a merge and a diff incomplete, and equal ones do not")
  func leftOut() throws {
    for (table, insertion) in [
      ("CREATE VIRTUAL TABLE f USING fts4(body)", "INSERT INTO f(body) VALUES ('bravo')"),
      ("CREATE TABLE f(_rowid_, v)", "INSERT INTO f VALUES (1, 2)"),
    ] {
      let base = "\(table); \(insertion); CREATE TABLE z(id TEXT PRIMARY KEY)"
      let three = try ThreeWay(base: base, ours: "INSERT INTO z VALUES ('o')", theirs: insertion)
      let report = try three.merge()
      #expect(!report.isClean)
      #expect(report.skipped.filter(\.leavesRowsOut).map(\.name) == ["f"])
      let diff = try DatabaseManager(three.theirs, home: BuckiaHome(path: three.folder.file("home")))
        .createDatabaseDiff(since: three.base, output: .folder(three.folder.path))
      #expect(!diff.isComplete)
      var lines: [String] = []
      for path in [three.base, three.theirs] {
        var text = ""
        try DatabaseManager(path).forEachTextLine { text += $0 }
        lines.append(text)
      }
      #expect(lines[0] != lines[1])
      let other = try ThreeWay(base: base, ours: "INSERT INTO z VALUES ('o')", theirs: "INSERT INTO z VALUES ('t')")
      #expect(try other.merge().isClean)
    }
  }

  private static func ofUnknownModule(_ columns: String) -> String {
    "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'geo'; INSERT INTO sqlite_schema "
      + "VALUES ('table', 'geo', 'geo', 0, 'CREATE VIRTUAL TABLE geo USING spatial(\(columns))')"
  }

  @Test(
    "A virtual table that a merge cannot make is named if only one side has made, changed or dropped it"
  )
  func unmadeTable() throws {
    let table = "CREATE TABLE z(id TEXT PRIMARY KEY);"
    let edit = "INSERT INTO z VALUES ('o')"
    for (base, theirs) in [
      (table, Self.ofUnknownModule("a")), (table, "CREATE VIRTUAL TABLE geo USING fts4(a)"),
      (table + Self.ofUnknownModule("a"), Self.ofUnknownModule("a, b")),
      (table + Self.ofUnknownModule("a"), "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'geo'"),
    ] {
      let report = try ThreeWay(base: base, ours: edit, theirs: theirs).merge()
      #expect(report.skipped.filter(\.leavesRowsOut).map(\.name) == ["geo"], "\(theirs)")
      #expect(!report.isClean)
      #expect(try ThreeWay(base: base, ours: "\(edit); \(theirs)", theirs: theirs).merge().isClean, "\(theirs)")
    }
    #expect(try ThreeWay(base: table + Self.ofUnknownModule("a"), ours: edit, theirs: "").merge().isClean)
    let made = try ThreeWay(base: table, ours: edit, theirs: "CREATE VIRTUAL TABLE f USING fts5(id, content='z')")
    #expect(try made.merge().isClean)
    #expect(try made.text("SELECT count(*) FROM sqlite_schema WHERE name = 'f'") == ["1"])
  }

  @Test("An empty file is refused as no database", arguments: ["ours.db", "theirs.db"])
  func emptyFile(name: String) throws {
    let three = try ThreeWay(base: "CREATE TABLE t(id INTEGER PRIMARY KEY)", ours: "", theirs: "")
    try Data().write(to: URL(fileURLWithPath: three.folder.file(name)))
    var unrelated = MergeOptions()
    unrelated.allowsUnrelated = true
    for options in [MergeOptions(), unrelated] {
      let error = #expect(throws: BuckiaError.self) { try three.merge(options) }
      #expect(error?.code == .notADatabase)
    }
    let empty = DatabaseManager(three.folder.file(name), home: BuckiaHome(path: three.folder.file("home")))
    #expect(throws: BuckiaError.self) {
      try empty.createDatabaseDiff(since: three.base, output: .folder(three.folder.path))
    }
    #expect(throws: BuckiaError.self) {
      var options = DiffOptions()
      options.allowsUnrelated = true
      try empty.createDatabaseDiff(since: three.base, output: .folder(three.folder.path), options: options)
    }
    #expect(throws: BuckiaError.self) { try empty.backupDatabase(to: three.folder.file("backup.db")) }
  }

  private static let sites = """
    CREATE TABLE site(fid INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, note TEXT);
    CREATE TABLE visit(id INTEGER PRIMARY KEY, site INTEGER REFERENCES site(fid), t TEXT); INSERT INTO site VALUES (1, 'a', '');
    """

  @Test("Two rows added with one key are both kept, references follow, and the counter is beyond all keys")
  func remapped() throws {
    let three = try ThreeWay(
      base: Self.sites, ours: "INSERT INTO site VALUES (2, 'ours', ''); INSERT INTO visit VALUES (1, 2, 'ov')",
      theirs: """
        INSERT INTO site VALUES (2, 'theirs', ''), (70, 'gone', ''); DELETE FROM site WHERE fid = 70;
        INSERT INTO visit VALUES (1, 2, 'tv')
        """)
    let report = try three.merge()
    #expect(report.isClean, "\(report)")
    #expect(report.warnings.filter { $0.code == .remappedKeys }.map(\.arguments) == [["site", "1"], ["visit", "1"]])
    let joined = "SELECT s.name, v.t FROM site s JOIN visit v ON v.site = s.fid ORDER BY 1"
    #expect(try three.text(joined) == ["ours|ov", "theirs|tv"])
    #expect(try three.text("SELECT seq >= 70 FROM sqlite_sequence WHERE name = 'site'") == ["1"])
    var options = MergeOptions(replacesOutput: true)
    options.remapsKeys = false
    #expect(try three.merge(options).conflicts > 0)
  }

  @Test("Equal rows with different keys are one row, and references follow")
  func matched() throws {
    let (ours, theirs) = (
      "INSERT INTO site VALUES (2, 'x', ''), (3, 'same', 'n')",
      "INSERT INTO site VALUES (2, 'same', 'n'); INSERT INTO visit VALUES (1, 2, 'tv')"
    )
    let three = try ThreeWay(base: Self.sites, ours: ours, theirs: theirs)
    #expect(try three.merge().isClean)
    #expect(try three.text("SELECT fid, name FROM site ORDER BY fid") == ["1|a", "2|x", "3|same"])
    #expect(try three.text("SELECT site FROM visit") == ["3"])
    // A difference in another column is a conflict of the one row.
    let other = try ThreeWay(
      base: Self.sites, ours: ours, theirs: theirs + "; UPDATE site SET note = 'theirs' WHERE fid = 2")
    var options = MergeOptions()
    options.matches = ["site": ["name"]]
    #expect(try other.merge(options).conflicts == 1)
    #expect(try other.text("SELECT fid, name, note FROM site ORDER BY fid") == ["1|a|", "2|x|", "3|same|n"])
    #expect(try other.text("SELECT site FROM visit") == ["3"])
  }

  @Test("Counters of triggers are added up, the later of two times stays, and ignored columns keep their values")
  func settledColumns() throws {
    let three = try ThreeWay(
      base: """
        CREATE TABLE item(id INTEGER PRIMARY KEY, v, seen TEXT);
        CREATE TABLE counts(name TEXT PRIMARY KEY, n INTEGER, changed TEXT); INSERT INTO counts VALUES ('item', 0, '2020');
        CREATE TRIGGER added AFTER INSERT ON item BEGIN UPDATE counts SET n = n + 1 WHERE name = 'item'; END;
        CREATE TRIGGER touched AFTER UPDATE OF v ON item BEGIN
          UPDATE counts SET changed = strftime('%Y', 'now') WHERE name = 'item'; END;
        INSERT INTO item VALUES (1, 1, 's')
        """,
      ours: "INSERT INTO item VALUES (2, 2, 's'); UPDATE counts SET changed = '2024'; UPDATE item SET seen = 'o'",
      theirs:
        "INSERT INTO item VALUES (12, 2, 's'), (13, 2, 's'); UPDATE counts SET changed = '2023'; UPDATE item SET seen = 't', v = v"
    )
    try TestDatabases.run("UPDATE counts SET changed = '2023'", on: three.theirs)
    var options = MergeOptions()
    options.ignoredColumns = ["item": ["seen"]]
    let report = try three.merge(options)
    #expect(report.isClean, "\(report)")
    #expect(try three.text("SELECT n, changed FROM counts") == ["4|2024"])
    #expect(try three.text("SELECT seen FROM item") == ["o", "o", "t", "t"])
    options.ignoredColumns = ["item": ["typo"]]
    options.replacesOutput = true
    #expect(throws: BuckiaError.self) { try three.merge(options) }
    let warnings = try DatabaseManager(three.base).examine().warnings
    #expect(warnings.filter { [.counters, .timesKept].contains($0.code) }.map { $0.arguments[1] } == ["n", "changed"])
  }

  @Test("The result has the strictest permissions of the three files, and a symbolic link stays a link")
  func permissionsAndLinks() throws {
    let three = try ThreeWay(
      base: "CREATE TABLE t(id TEXT PRIMARY KEY)", ours: "", theirs: "INSERT INTO t VALUES ('1')")
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: three.theirs)
    let link = three.folder.file("link.db")
    _ = try three.folder.copy("base.db", to: "real.db")
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "real.db")
    _ = try three.merge(MergeOptions(replacesOutput: true), into: link)
    #expect(try three.text("SELECT id FROM t", three.folder.file("real.db")) == ["1"])
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == "real.db")
    let attributes = try FileManager.default.attributesOfItem(atPath: three.folder.file("real.db"))
    #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
  }
}
