import Buckia
import Foundation
@testable import SQLiteConnections
import TestSupport
import Testing

/// Three databases: the base of two sides, and what each side has made of it.
struct ThreeWay {
  let folder: TemporaryFolder
  var base: String { folder.file("base.db") }
  var ours: String { folder.file("ours.db") }
  var theirs: String { folder.file("theirs.db") }
  var out: String { folder.file("out.db") }

  init(base: String, ours: String, theirs: String) throws {
    folder = try TemporaryFolder()
    try TestDatabases.run(base, on: self.base)
    _ = try folder.copy("base.db", to: "ours.db")
    _ = try folder.copy("base.db", to: "theirs.db")
    try TestDatabases.run(ours, on: self.ours)
    try TestDatabases.run(theirs, on: self.theirs)
  }

  func merge(_ options: MergeOptions = MergeOptions(), into output: String? = nil) throws -> MergeReport {
    let report = try DatabaseManager(ours).merge(theirs, since: base, into: output ?? out, options: options)
    if !options.isDryRun { #expect(try text("PRAGMA integrity_check", output ?? out) == ["ok"]) }
    return report
  }

  /// The rows of a query, with columns separated by bars.
  func text(_ sql: String, _ path: String? = nil) throws -> [String] {
    try TestDatabases.texts(sql, on: path ?? out)
  }

  /// The bytes of the three databases.
  func inputs() throws -> [Data] { try [base, ours, theirs].map { try Data(contentsOf: URL(fileURLWithPath: $0)) } }

  static let ownTables = "SELECT name FROM sqlite_schema WHERE name LIKE 'buckia%'"
}

@Suite("Merging databases") struct MergeTests {
  private static let notes =
    "CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT, body TEXT);"
    + "INSERT INTO notes VALUES (1, 'one', 'a'), (2, 'two', 'b'), (3, 'three', 'c')"

  @Test("The result is ours with their changes; a merge without conflicts adds no tables and keeps the inputs")
  func clean() throws {
    let three = try ThreeWay(
      base: Self.notes,
      ours: "UPDATE notes SET title = 'ours' WHERE id = 1; INSERT INTO notes VALUES (4, 'four', 'd')",
      theirs:
        "UPDATE notes SET body = 'theirs' WHERE id = 1; DELETE FROM notes WHERE id = 2; INSERT INTO notes VALUES (5, 'five', 'e')"
    )
    let before = try three.inputs()
    let report = try three.merge()
    #expect(report.isClean && report.hasBase && report.path == three.out)
    #expect(report.inserted == 1 && report.updated == 1 && report.deleted == 1)
    #expect(try three.text("SELECT * FROM notes") == ["1|ours|theirs", "3|three|c", "4|four|d", "5|five|e"])
    #expect(try three.text(ThreeWay.ownTables).isEmpty)
    #expect(try three.text("PRAGMA freelist_count; ") == ["0"])
    let after = try three.inputs()
    #expect(after == before)
    #expect(try three.folder.names(in: "") == ["base.db", "ours.db", "out.db", "theirs.db"])
  }

  @Test(
    "A conflict is recorded in the result with all versions, and decided by the policy",
    arguments: [(ConflictPolicy.keepLocal, "ours"), (.takeIncoming, "theirs")])
  func conflict(policy: ConflictPolicy, kept: String) throws {
    let three = try ThreeWay(
      base: Self.notes, ours: "UPDATE notes SET title = 'ours' WHERE id = 1",
      theirs: "UPDATE notes SET title = 'theirs' WHERE id = 1")
    let report = try three.merge(MergeOptions(conflicts: ConflictPolicies(policy)))
    #expect(!report.isClean && report.conflicts == 1)
    #expect(try three.text("SELECT title FROM notes WHERE id = 1") == [kept])
    let records = try DatabaseManager(three.out).conflicts()
    #expect(records.count == 1)
    #expect(records.first?.kind == .data)
    #expect(records.first?.base?.contains { $0.value == .text("one") } == true)
    #expect(records.first?.local?.contains { $0.value == .text("ours") } == true)
    #expect(records.first?.incoming?.contains { $0.value == .text("theirs") } == true)
    #expect(try DatabaseManager(three.out).log().map(\.sender) == ["a merge"])
  }

  @Test("Under the policy abort a conflict stops the merge, and there is no result")
  func abort() throws {
    let three = try ThreeWay(
      base: Self.notes, ours: "UPDATE notes SET title = 'ours'", theirs: "UPDATE notes SET title = 'theirs'")
    let error = #expect(throws: BuckiaError.self) {
      try three.merge(MergeOptions(conflicts: ConflictPolicies(.abort)))
    }
    #expect(error?.code == .conflict)
    #expect(try three.folder.names(in: "") == ["base.db", "ours.db", "theirs.db"])
  }

  @Test("A row that one side has deleted and the other changed is a conflict; a row deleted by both is deleted")
  func deleteAgainstUpdate() throws {
    let three = try ThreeWay(
      base: Self.notes,
      ours: "DELETE FROM notes WHERE id = 1; UPDATE notes SET title = 'x' WHERE id = 2; DELETE FROM notes WHERE id = 3",
      theirs: "UPDATE notes SET title = 'y' WHERE id = 1; DELETE FROM notes WHERE id IN (2, 3)")
    let report = try three.merge()
    #expect(report.conflicts == 2)
    #expect(try three.text("SELECT id, title FROM notes") == ["2|x"])
    #expect(Set(try DatabaseManager(three.out).conflicts().map(\.kind)) == [.notFound, .data])
  }

  @Test(
    "Equal rows added with one key are one row; different ones and rows that refer to them are conflicts"
  )
  func sameKey() throws {
    let three = try ThreeWay(
      base: Self.notes + "; CREATE TABLE tags(note REFERENCES notes(id), tag, PRIMARY KEY (note, tag))",
      ours: "INSERT INTO notes VALUES (4, 'same', 's'), (5, 'mine', 'm')",
      theirs:
        "INSERT INTO notes VALUES (4, 'same', 's'), (5, 'yours', 'y'); INSERT INTO tags VALUES (4, 'ok'), (5, 'astray')"
    )
    var options = MergeOptions()
    options.remapsKeys = false
    let report = try three.merge(options)
    #expect(report.conflicts == 2)
    #expect(try three.text("SELECT title FROM notes WHERE id > 3") == ["same", "mine"])
    #expect(try three.text("SELECT * FROM tags") == ["4|ok"])
    #expect(try three.text("PRAGMA foreign_key_check").isEmpty)
    #expect(try three.text("SELECT count(*) FROM buckia_contested_key") == ["0"])
  }

  @Test("In a table without a key, two rows with one rowid are both kept, and equal ones are one")
  func keyless() throws {
    let three = try ThreeWay(
      base: "CREATE TABLE log(line); INSERT INTO log VALUES ('a'), ('b')",
      ours: "INSERT INTO log VALUES ('same'), ('mine'), ('mine too'); UPDATE log SET line = 'A' WHERE rowid = 1",
      theirs: "INSERT INTO log VALUES ('same'), ('yours'), ('yours too'), ('fourth'); DELETE FROM log WHERE rowid = 2")
    let report = try three.merge()
    #expect(report.isClean)
    #expect(
      try three.text("SELECT rowid, line FROM log ORDER BY rowid") == [
        "1|A", "3|same", "4|mine", "5|mine too", "6|fourth", "7|yours", "8|yours too",
      ])
    #expect(report.warnings.map(\.code) == [.renumberedRows])
    #expect(report.warnings.first?.arguments == ["log", "2"])
  }

  @Test("Two rows with the greatest rowid are both kept")
  func keylessWithoutRowIDs() throws {
    let three = try ThreeWay(
      base: "CREATE TABLE log(line)", ours: "INSERT INTO log(rowid, line) VALUES (9223372036854775807, 'mine')",
      theirs: "INSERT INTO log(rowid, line) VALUES (9223372036854775807, 'yours')")
    #expect(try three.merge().isClean)
    #expect(try three.text("SELECT line FROM log ORDER BY line") == ["mine", "yours"])
  }

  @Test("Without a base, equal rows are one row, and different rows with one key conflict", arguments: [true, false])
  func withoutBase(isEmptyFile: Bool) throws {
    let three = try ThreeWay(
      base: "", ours: Self.notes + "; CREATE TABLE log(line); INSERT INTO log VALUES ('m')",
      theirs: Self.notes
        + "; UPDATE notes SET title = 'other' WHERE id = 2; INSERT INTO notes VALUES (9, 'nine', ''); CREATE TABLE log(line); INSERT INTO log VALUES ('y')"
    )
    try Data().write(to: URL(fileURLWithPath: three.base))
    let report = try DatabaseManager(three.ours).merge(
      three.theirs, since: isEmptyFile ? three.base : nil, into: three.out)
    #expect(!report.hasBase)
    #expect(report.conflicts == 1)
    #expect(report.schemaConflicts.isEmpty)
    #expect(try three.text("SELECT title FROM notes") == ["one", "two", "three", "nine"])
    #expect(try three.text("SELECT line FROM log ORDER BY line") == ["m", "y"])
  }

  @Test("The result has the columns, tables, constraints, indexes and triggers of both sides")
  func schemasOfBoth() throws {
    let three = try ThreeWay(
      base: Self.notes,
      ours: """
        ALTER TABLE notes ADD COLUMN mine INTEGER DEFAULT 7; UPDATE notes SET mine = 1 WHERE id = 1;
        CREATE TABLE ours_only(x); INSERT INTO ours_only VALUES (1);
        CREATE INDEX mine_index ON notes(mine);
        CREATE TRIGGER mine_trigger AFTER INSERT ON notes BEGIN INSERT INTO ours_only VALUES (new.id); END
        """,
      theirs: """
        ALTER TABLE notes ADD COLUMN yours TEXT CHECK (yours <> '') DEFAULT 'y'; UPDATE notes SET yours = 'set' WHERE id = 2;
        CREATE TABLE theirs_only(x INTEGER PRIMARY KEY, y CHECK (y > 0)); INSERT INTO theirs_only VALUES (1, 2);
        CREATE UNIQUE INDEX yours_index ON notes(title); INSERT INTO notes(id, title) VALUES (4, 'four')
        """)
    let report = try three.merge()
    #expect(report.isClean, "\(report)")
    #expect(report.skipped.isEmpty)
    #expect(
      try three.text("SELECT * FROM notes") == [
        "1|one|a|1|y", "2|two|b|7|set", "3|three|c|7|y", "4|four|NULL|7|y",
      ])
    #expect(try three.text("SELECT x FROM ours_only") == ["1"])
    #expect(try three.text("SELECT * FROM theirs_only") == ["1|2"])
    #expect(
      try three.text("SELECT name FROM sqlite_schema WHERE type IN ('index', 'trigger') ORDER BY name")
        == ["mine_index", "mine_trigger", "yours_index"])
    #expect(throws: SQLiteError.self) { try TestDatabases.run("UPDATE notes SET yours = ''", on: three.out) }
    #expect(throws: SQLiteError.self) { try TestDatabases.run("INSERT INTO theirs_only VALUES (2, 0)", on: three.out) }
  }

  @Test("Different schema changes of one table are reported, and its rows are merged as far as they fit")
  func differentChangesOfATable() throws {
    let three = try ThreeWay(
      base: Self.notes,
      ours: "ALTER TABLE notes ADD COLUMN rank INTEGER; UPDATE notes SET rank = 5 WHERE id = 1",
      theirs:
        "ALTER TABLE notes ADD COLUMN rank TEXT; UPDATE notes SET rank = 'high' WHERE id = 2; UPDATE notes SET title = 'TWO' WHERE id = 2"
    )
    let report = try three.merge()
    #expect(report.schemaConflicts.map(\.kind) == [.bothChanged])
    #expect(report.schemaConflicts.map(\.name) == ["notes"])
    #expect(!report.isClean)
    #expect(try three.text("SELECT title, rank FROM notes WHERE id = 1") == ["one|5"])
  }

  @Test("If both sides have rebuilt a table, theirs with another key, its rows are left out and others merged")
  func anotherKey() throws {
    let three = try ThreeWay(
      base: "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT NOT NULL); INSERT INTO t VALUES (1, 'x'); " + Self.notes,
      ours:
        "DROP TABLE t; CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT NOT NULL CHECK (b <> '')); INSERT INTO t VALUES (1, 'x')",
      theirs:
        "DROP TABLE t; CREATE TABLE t(a INTEGER, b TEXT PRIMARY KEY NOT NULL); INSERT INTO t VALUES (1, 'x'), (2, 'y'); DELETE FROM notes WHERE id = 1"
    )
    let report = try three.merge()
    #expect(report.schemaConflicts.map(\.name) == ["t"])
    #expect(report.warnings.map(\.code).contains(.keyChanged))
    #expect(try three.text("SELECT * FROM t; ") == ["1|x"])
    #expect(try three.text("SELECT id FROM notes") == ["2", "3"])
  }

  @Test("If a row violates a new constraint of theirs, the schema is not merged, and the report says so")
  func rowsThatDoNotFit() throws {
    let three = try ThreeWay(
      base: "CREATE TABLE t(a INTEGER PRIMARY KEY, b)", ours: "INSERT INTO t VALUES (1, 'same'), (2, 'same')",
      theirs: "CREATE UNIQUE INDEX u ON t(b); CREATE TABLE more(x INTEGER PRIMARY KEY); INSERT INTO more VALUES (1)")
    let report = try three.merge()
    #expect(report.warnings.map(\.code) == [.schemaNotMerged])
    #expect(!report.isSchemaMerged && !report.isClean)
    #expect(report.skipped.contains { $0.name == "u" && $0.reason.code == .newObject })
    #expect(try three.text("SELECT count(*) FROM t, more") == ["2"])
  }

  @Test("A table that one side has dropped and the other changed is kept and reported")
  func droppedTables() throws {
    let base =
      "CREATE TABLE a(x INTEGER PRIMARY KEY, y); INSERT INTO a VALUES (1, 1); CREATE TABLE b(x INTEGER PRIMARY KEY, y);"
      + "INSERT INTO b VALUES (1, 1); CREATE TABLE c(x); CREATE TABLE d(x)"
    let three = try ThreeWay(
      base: base, ours: "DROP TABLE a; UPDATE b SET y = 2; DROP TABLE c",
      theirs: "UPDATE a SET y = 2; DROP TABLE b; DROP TABLE d")
    let report = try three.merge()
    #expect(report.schemaConflicts.map(\.kind) == [.droppedHere, .droppedThere])
    #expect(report.schemaConflicts.map(\.name) == ["a", "b"])
    #expect(try three.text("SELECT name FROM sqlite_schema WHERE name NOT LIKE 'buckia%' ORDER BY 1") == ["a", "b"])
    #expect(try three.text("SELECT x, y FROM a") == ["1|2"])
  }

  @Test("Full-text indexes that triggers keep are up to date, and not reported as left out")
  func fullText() throws {
    let three = try ThreeWay(
      base: Self.notes + """
        ; CREATE VIRTUAL TABLE search USING fts5(title, content='notes', content_rowid='id');
        CREATE TRIGGER added AFTER INSERT ON notes BEGIN INSERT INTO search(rowid, title) VALUES (new.id, new.title); END
        """, ours: "", theirs: "INSERT INTO notes VALUES (4, 'needle', '')")
    let report = try three.merge()
    #expect(report.isClean && report.skipped.isEmpty)
    #expect(try three.text("SELECT rowid FROM search('needle')") == ["4"])
  }

  @Test("OURS itself can be the result, and keeps its settings")
  func inPlace() throws {
    let three = try ThreeWay(
      base: "PRAGMA page_size = 8192; PRAGMA encoding = 'UTF-16le'; " + Self.notes,
      ours:
        "PRAGMA user_version = 7; PRAGMA application_id = 9; PRAGMA journal_mode = WAL; UPDATE notes SET title = 'é' WHERE id = 1",
      theirs: "PRAGMA user_version = 8; INSERT INTO notes VALUES (4, 'four', 'd')")
    for output in [three.out, three.ours] {
      let report = try three.merge(into: output)
      #expect(report.isClean)
      #expect(try three.text("SELECT title FROM notes", output) == ["é", "two", "three", "four"])
      let settings = try ["user_version", "application_id", "journal_mode", "page_size", "encoding"].flatMap {
        try three.text("PRAGMA \($0)", output)
      }
      #expect(settings == ["7", "9", "wal", "8192", "UTF-16le"])
    }
    #expect(try three.folder.names(in: "").filter { $0.hasPrefix(".") }.isEmpty)
  }

  @Test("Commits in a write-ahead log are merged, and a locked database is reported as busy")
  func inUse() throws {
    let three = try ThreeWay(base: Self.notes, ours: "PRAGMA journal_mode = WAL", theirs: "PRAGMA journal_mode = WAL")
    let other = try SQLiteConnection(opening: three.theirs, as: .readWrite)
    try other.execute("INSERT INTO notes VALUES (4, 'in the log', '')")
    let writer = try SQLiteConnection(opening: three.ours, as: .readWrite)
    try writer.execute("INSERT INTO notes VALUES (5, 'in our log', ''); BEGIN IMMEDIATE; DELETE FROM notes")
    #expect(try three.merge().isClean)
    #expect(try three.text("SELECT title FROM notes WHERE id > 3") == ["in the log", "in our log"])
    var database = DatabaseManager(three.ours)
    database.busyTimeout = 1
    let error = #expect(throws: BuckiaError.self) { try database.merge(three.theirs, since: three.base) }
    #expect(error?.isBusy == true)
    try writer.execute("ROLLBACK")
    #expect(try three.merge(into: three.ours).isClean)
    #expect(try three.text("SELECT count(*) FROM notes", three.ours) == ["5"])
  }

  @Test("An existing output file is replaced only if the options allow it")
  func existingOutput() throws {
    let three = try ThreeWay(
      base: Self.notes, ours: "DELETE FROM notes WHERE id = 1", theirs: "DELETE FROM notes WHERE id = 2")
    _ = try three.folder.copy("base.db", to: "out.db")
    let error = #expect(throws: BuckiaError.self) { try three.merge() }
    #expect(error?.code == .alreadyExists)
    #expect(try three.merge(MergeOptions(replacesOutput: true)).isClean)
    #expect(try three.text("SELECT id FROM notes") == ["3"])
  }

  @Test("A dry run reports everything and changes nothing", arguments: [true, false])
  func dryRun(isInPlace: Bool) throws {
    let three = try ThreeWay(
      base: Self.notes, ours: "UPDATE notes SET title = 'ours' WHERE id = 1",
      theirs: "UPDATE notes SET title = 'theirs' WHERE id = 1; DELETE FROM notes WHERE id = 2")
    let before = try Data(contentsOf: URL(fileURLWithPath: three.ours))
    let report = try three.merge(MergeOptions(isDryRun: true), into: isInPlace ? three.ours : three.out)
    #expect(report.conflicts == 1 && report.deleted == 1)
    #expect(report.dryRunConflicts.map(\.table) == ["notes"])
    #expect(try Data(contentsOf: URL(fileURLWithPath: three.ours)) == before)
    #expect(try three.folder.names(in: "") == ["base.db", "ours.db", "theirs.db"])
  }

  @Test("A ledger of ours stays unchanged, and a database that trusts only known senders refuses a merge in place")
  func ledger() throws {
    let three = try ThreeWay(base: Self.notes, ours: "", theirs: "DELETE FROM notes WHERE id = 1")
    try DatabaseManager(three.ours).initialize()
    #expect(try three.merge().isClean)
    #expect(try DatabaseManager(three.out).log().isEmpty)
    #expect(try !three.text(ThreeWay.ownTables).isEmpty)
    try DatabaseManager(three.ours).initialize(trust: .known)
    let error = #expect(throws: BuckiaError.self) {
      try three.merge(MergeOptions(replacesOutput: true))
    }
    #expect(error?.code == .untrusted)
    #expect(try three.text("SELECT count(*) FROM notes", three.ours) == ["3"])
  }

  @Test("A merge without changes keeps the database byte for byte, and unrelated databases are refused")
  func nothingAndUnrelated() throws {
    let three = try ThreeWay(base: Self.notes, ours: "UPDATE notes SET title = 'x'", theirs: "")
    let before = try Data(contentsOf: URL(fileURLWithPath: three.ours))
    #expect(try three.merge(into: three.ours).isClean)
    #expect(try Data(contentsOf: URL(fileURLWithPath: three.ours)) == before)
    try TestDatabases.run("DROP TABLE notes; CREATE TABLE other(y)", on: three.theirs)
    let error = #expect(throws: BuckiaError.self) { try three.merge() }
    #expect(error?.code == .nothingInCommon)
  }

  @Test("A merge into a borrowed database is part of the app's open transaction")
  func borrowed() throws {
    let three = try ThreeWay(base: Self.notes, ours: "", theirs: "DELETE FROM notes WHERE id = 1")
    let app = try SQLiteConnection(opening: three.ours, as: .readWrite)
    try app.execute("BEGIN; DELETE FROM notes WHERE id = 2")
    let report = try DatabaseManager.borrowing(app.handle.pointer) { database in
      try database.merge(three.theirs, since: three.base)
    }
    #expect(report.deleted == 1)
    #expect(try app.integer("SELECT count(*) FROM notes") == 1)
    try app.execute("ROLLBACK")
    #expect(try app.integer("SELECT count(*) FROM notes") == 3)
  }

  @Test("A resolver decides conflicts of a merge")
  func resolver() throws {
    let three = try ThreeWay(
      base: Self.notes, ours: "UPDATE notes SET title = 'ours' WHERE id = 1",
      theirs: "UPDATE notes SET title = 'theirs' WHERE id = 1")
    let report = try DatabaseManager(three.ours).merge(three.theirs, since: three.base, into: three.out) { _ in
      .write(["title": .text("both")])
    }
    #expect(report.conflictCounts.map(\.outcome) == [.resolved])
    #expect(try three.text("SELECT title FROM notes WHERE id = 1") == ["both"])
  }
}
