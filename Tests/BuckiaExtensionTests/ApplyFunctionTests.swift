import SQLiteConnections
import TestSupport
import Testing

@Suite("buckia_apply, buckia_log and buckia_conflicts")
struct ApplyFunctionTests {
  private static let edits =
    "UPDATE notes SET title = 'Boat' WHERE id = 1; INSERT INTO notes VALUES (3, 'Harbour', NULL)"
  private static let state = "SELECT json_extract(buckia_apply('inbound'), '$.diffs[0].state')"

  @Test("A folder is applied once, its files are removed, and the log and the conflicts list it")
  func folder() throws {
    let bench = try ExtensionBench()
    try bench.exchange(theirs: Self.edits)
    let found = try bench.sql([
      "UPDATE notes SET title = 'Yacht' WHERE id = 1",
      "SELECT count(*) FROM buckia_log",
      "SELECT json_extract(r, '$.trust'), json_extract(r, '$.diffs[0].state'), json_extract(r, '$.diffs[0].conflicts'), "
        + "json_extract(r, '$.diffs[0].removed') FROM (SELECT buckia_apply('inbound') AS r LIMIT 1)",
      "SELECT json_array_length(buckia_apply('inbound'), '$.diffs')",
      "SELECT id, title FROM notes",
      "SELECT sender, state, inserted, updated, deleted, conflicts, reason FROM buckia_log",
      "SELECT id, tbl, key, kind, outcome, base, local, incoming, status FROM buckia_conflicts WHERE tbl = 'notes'",
    ])
    #expect(
      found == [
        "0", "any|applied|1|1", "0", "1|Yacht", "2|Radio", "3|Harbour", "unsigned|applied|1|0|0|1|NULL",
        #"1|notes|{"id":1}|data|kept-local|{"id":1,"title":"Ship"}|{"id":1,"title":"Yacht","body":null}|{"id":1,"title":"Boat"}|open"#,
      ])
    #expect(try bench.folder.names(in: "inbound").isEmpty)
  }

  @Test("Inside a transaction, applying is part of it, and the files stay", arguments: [true, false])
  func transaction(commits: Bool) throws {
    let bench = try ExtensionBench()
    try bench.exchange(theirs: Self.edits)
    let found = try bench.sql([
      "BEGIN", "INSERT INTO notes VALUES (9, 'mine', NULL)", Self.state, "SELECT count(*) FROM notes",
      commits ? "COMMIT" : "ROLLBACK", "SELECT group_concat(id) FROM notes", "SELECT count(*) FROM buckia_log",
      Self.state, "SELECT count(*) FROM notes WHERE id = 3",
    ])
    #expect(
      found
        == (commits
          ? ["applied", "4", "1,2,3,9", "1", "already-applied", "1"] : ["applied", "4", "1,2", "0", "applied", "1"]))
    #expect(try bench.folder.names(in: "inbound").isEmpty)
  }

  @Test("A statement that writes, or that reads outside a transaction, cannot call it, and nothing changes")
  func statements() throws {
    let bench = try ExtensionBench()
    try bench.exchange(theirs: Self.edits)
    let writes = "error 1: buckia_apply cannot be called by a statement that writes"
    let reads = "error 1: buckia_apply cannot be called by a statement that reads tables"
    let found = try bench.sql([
      "CREATE TABLE reports(report)",
      "SELECT buckia_apply('inbound') FROM notes",
      "INSERT INTO reports VALUES (buckia_apply('inbound'))",
      "UPDATE notes SET title = buckia_apply('inbound')",
      "CREATE TABLE other AS SELECT buckia_apply('inbound')",
      "BEGIN", "INSERT INTO reports VALUES (buckia_apply('inbound'))", "COMMIT",
      "SELECT (SELECT group_concat(title) FROM notes), (SELECT count(*) FROM reports), (SELECT count(*) FROM buckia_log)",
    ])
    #expect(found.count == 6 && found.last == "Ship,Radio|0|0")
    for (line, start) in zip(found, [reads, writes, writes, writes, writes]) { #expect(line.hasPrefix(start)) }
    #expect(try bench.folder.names(in: "inbound").count == 1)
  }

  @Test("Bytes can be applied, in a transaction also from a table, and each exactly once")
  func bytes() throws {
    let bench = try ExtensionBench()
    try bench.exchange(theirs: Self.edits)
    try bench.make("now.sqlite", ExtensionBench.notes)
    try bench.make("now.sqlite", "INSERT INTO notes VALUES (5, 'Raw', NULL)")
    #expect(
      try bench.sql([
        "CREATE TABLE files AS SELECT buckia_diff('base.sqlite', 'now.sqlite') AS file",
        "BEGIN",
        "SELECT json_extract(buckia_apply(file), '$.diffs[0].state', '$.diffs[0].inserted') FROM files",
        "SELECT json_extract(buckia_apply(file), '$.diffs[0].state') FROM files",
        "COMMIT",
        "SELECT count(*) FROM notes WHERE title = 'Raw'",
        "SELECT buckia_apply(NULL)",
        "SELECT json_extract(buckia_apply(x'00ff'), '$.diffs[0].state')",
      ]) == [#"["applied",1]"#, "already-applied", "1", "NULL", "rejected"])
  }

  @Test("Options choose how to apply")
  func options() throws {
    let bench = try ExtensionBench()
    try bench.exchange(theirs: Self.edits)
    func call(_ options: String, _ path: String) -> String {
      "SELECT json_extract(buckia_apply('inbound', '\(options)'), '\(path)')"
    }
    let found = try bench.sql([
      "UPDATE notes SET title = 'Yacht' WHERE id = 1",
      call(#"{"dryRun":true}"#, "$.diffs[0].inserted"),
      call(#"{"onConflict":"abort"}"#, "$.diffs[0].state"),
      call(#"{"trust":"known"}"#, "$.diffs[0].state"),
      call(#"{"trust":"any","onConflictIn":{"notes":"take-incoming"},"keep":true}"#, "$.diffs[0].state"),
      "SELECT title FROM notes WHERE id = 1",
      call(#"{"onConflict":"perhaps"}"#, "$"),
      call(#"{"force":true}"#, "$"),
      "SELECT buckia_apply('nowhere')",
    ])
    #expect(
      found == [
        "1", "rejected", "quarantined", "applied", "Boat",
        "error 1: the option \"onConflict\" of buckia_apply must be one of keep-local, take-incoming, abort, latest",
        "error 1: buckia_apply has no option \"force\"; its options are onConflict, onConflictIn, schema, triggers, trust, keep, "
          + "remove, dryRun, snapshot, home",
        "error 1: nowhere: there is no such file or folder",
      ])
    #expect(try bench.folder.names(in: "inbound").count == 1)
  }

  @Test("While another program writes, the statement is busy")
  func busy() throws {
    let bench = try ExtensionBench()
    try bench.exchange(theirs: Self.edits)
    let other = try SQLiteConnection(opening: bench.folder.file("mine.sqlite"), as: .readWrite)
    try other.execute("BEGIN IMMEDIATE")
    let found = try bench.sql([Self.state, "SELECT count(*) FROM notes"])
    try other.execute("COMMIT")
    #expect(found.count == 2 && found.first?.hasPrefix("error 5: ") == true && found.last == "2")
    #expect(try bench.sql([Self.state]) == ["applied"])
  }

  /// SQLite removes no function while a statement is running, and one always is while an extension is called.
  @Test("Full-text and spatial indexes are maintained by each of several calls on one connection")
  func indexes() throws {
    let bench = try ExtensionBench()
    let schema = """
      CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT, x REAL);
      CREATE VIRTUAL TABLE words USING fts5(title, content='notes', content_rowid='id');
      CREATE VIRTUAL TABLE places USING rtree(id, low, high);
      CREATE TRIGGER a AFTER INSERT ON notes BEGIN
        INSERT INTO words(rowid, title) VALUES (new.id, new.title);
        INSERT INTO places VALUES (new.id, new.x, new.x); END;
      CREATE TRIGGER d AFTER DELETE ON notes BEGIN
        INSERT INTO words(words, rowid, title) VALUES ('delete', old.id, old.title);
        DELETE FROM places WHERE id = old.id; END;
      CREATE TRIGGER u AFTER UPDATE ON notes BEGIN
        INSERT INTO words(words, rowid, title) VALUES ('delete', old.id, old.title);
        INSERT INTO words(rowid, title) VALUES (new.id, new.title);
        UPDATE places SET low = new.x, high = new.x WHERE id = old.id; END;
      INSERT INTO notes VALUES (1, 'ship', 1), (2, 'radio', 2);
      """
    try bench.exchange(schema, theirs: "UPDATE notes SET title = 'boat', x = 7 WHERE id = 1")
    let first = try bench.folder.names(in: "inbound")
    try bench.send("DELETE FROM notes WHERE id = 2; INSERT INTO notes VALUES (3, 'harbour', 9)")
    let second = try bench.folder.names(in: "inbound").filter { !first.contains($0) }
    let calls = (first + second).map { "SELECT json_extract(buckia_apply('inbound/\($0)'), '$.diffs[0].state')" }
    let look = [
      "SELECT group_concat(rowid) FROM words WHERE words MATCH 'ship OR boat OR radio OR harbour'",
      "SELECT group_concat(id || ':' || CAST(low AS INTEGER)) FROM (SELECT * FROM places ORDER BY id)",
      "INSERT INTO words(words, rank) VALUES ('integrity-check', 1)",
    ]
    let found = try bench.sql([calls[0]] + look + [calls[1]] + look)
    #expect(found == ["applied", "1,2", "1:7,2:2", "applied", "1,3", "1:7,3:9"])
  }

  @Test("Tables are created and indexes rebuilt while the calling statement runs")
  func largeFile() throws {
    let bench = try ExtensionBench()
    try bench.exchange(
      "CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, b TEXT); CREATE INDEX ta ON t(a); CREATE INDEX tb ON t(b, a)",
      theirs: """
        CREATE TABLE u(id INTEGER PRIMARY KEY, a); INSERT INTO u VALUES (1, 1);
        INSERT INTO t WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 60000)
          SELECT i, hex(i * 7919 % 60000), i FROM c
        """)
    #expect(
      try bench.sql([
        Self.state, "SELECT count(*) FROM t INDEXED BY ta WHERE a > ''", "SELECT count(*) FROM u",
        "PRAGMA integrity_check",
      ]) == ["applied", "60000", "1", "ok"])
  }

  @Test("Changes can be applied to a database in memory")
  func memory() throws {
    let bench = try ExtensionBench()
    try bench.exchange(theirs: Self.edits)
    #expect(
      try bench.sql(
        [
          ExtensionBench.notes.split(separator: "\n").joined(separator: " "), Self.state,
          "SELECT group_concat(title) FROM notes",
        ],
        on: ":memory:") == ["applied", "Boat,Radio,Harbour"])
  }

  @Test("Verifying a file lists its contents, or its fault")
  func verification() throws {
    let bench = try ExtensionBench()
    try bench.exchange(theirs: Self.edits)
    #expect(
      try bench.sql([
        "SELECT json_extract(buckia_verify('inbound'), '$.files[0].ok', '$.files[0].signature')",
        "SELECT json_extract(buckia_verify(x'00ff'), '$.files[0].ok')",
        "SELECT buckia_verify(NULL), json_array_length(buckia_verify('.'), '$.files')",
        "SELECT buckia_verify(7)",
      ]) == [
        #"[true,"none"]"#, "0", "NULL|0", "error 1: buckia_verify takes a path, or the bytes of a file as a blob",
      ])
  }
}
