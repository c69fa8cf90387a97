import Foundation
import Testing

@Suite("buckia diff")
struct DiffCommandTests {
  /// Two databases: one row changed, one deleted and one inserted, with a new column and a new table.
  static func pair() throws -> Workbench {
    let bench = try Workbench()
    try bench.sql(
      "old.db", "CREATE TABLE notes(id INTEGER PRIMARY KEY, text); INSERT INTO notes VALUES(1, 'a'), (2, 'b'), (3, 'c')"
    )
    try FileManager.default.copyItem(atPath: bench.path("old.db"), toPath: bench.path("new.db"))
    try bench.sql(
      "new.db",
      """
      UPDATE notes SET text = 'B' WHERE id = 2; DELETE FROM notes WHERE id = 3; INSERT INTO notes VALUES(4, 'd');
      ALTER TABLE notes ADD COLUMN stars INTEGER; CREATE TABLE tags(name TEXT PRIMARY KEY); INSERT INTO tags VALUES('x')
      """)
    return bench
  }

  @Test("A diff says what changed and how to apply it")
  func text() throws {
    try Transcript(
      """
      $ buckia diff old.db new.db -o changes.bdiff
      changes.bdiff  … bytes in …

        table   inserted  updated  deleted  method
        notes          1        1        1  rows    new column stars
        tags           1        –        –  rows    new table
        in all         2        1        1

      Compared row by row:
        notes  its definition differs between the two databases

      Apply it with: buckia apply DB changes.bdiff
      $ buckia show changes.bdiff
      file    changes.bdiff (… bytes)
      made    … UTC, id …
      sender  unsigned
      kind    delta
      schema  2 statements for those who adopt it (--json lists them)

        table  inserted  updated  deleted
        notes         1        1        1
        tags          1        –        –

      notes
        - id 3
        ~ id 2: text 'b' → 'B'
        + id 4, text 'd', stars NULL

      tags
        + name 'x'
      """
    ).play(on: Self.pair())
  }

  @Test("Virtual tables with their own rows are compared like other tables, and the method is not reported")
  func virtualTables() throws {
    let bench = try Workbench()
    try bench.sql(
      "old.db",
      """
      CREATE TABLE notes(id INTEGER PRIMARY KEY, text); INSERT INTO notes VALUES(1, 'a');
      CREATE VIRTUAL TABLE words USING fts5(title, tokenize = porter); INSERT INTO words VALUES('bells');
      CREATE VIRTUAL TABLE same USING rtree(id, low, high); INSERT INTO same VALUES(1, 0.1, 0.2)
      """)
    try FileManager.default.copyItem(atPath: bench.path("old.db"), toPath: bench.path("new.db"))
    try bench.sql(
      "new.db",
      """
      UPDATE words SET title = 'ringing bells'; UPDATE notes SET text = 'b';
      CREATE VIRTUAL TABLE places USING rtree(id, x0, x1, +name); INSERT INTO places VALUES(7, 0.5, 2, 'kitchen')
      """)
    try Transcript(
      """
      $ buckia diff old.db new.db -o changes.bdiff
      changes.bdiff  … bytes in …

        table   inserted  updated  deleted  method
        notes          –        1        –  pages
        words          –        1        –  rows
        places         1        –        –  rows    new table
        in all         1        2        –

      Apply it with: buckia apply DB changes.bdiff
      $ buckia show changes.bdiff --quiet
      $ buckia apply old.db changes.bdiff --quiet
      $ sql old.db SELECT rowid, title FROM words('ring')
      1|ringing bells
      $ sql old.db SELECT * FROM places
      7|0.5|2.0|kitchen
      $ buckia diff old.db new.db -o again.bdiff
      No changes, so no file was written (…).
      $ buckia diff old.db new.db --tables words_content -o again.bdiff
      No changes, so no file was written (…).

      Not in the file:
        words_content  holds the insides of the virtual table words
      """
    ).play(on: bench)
  }

  @Test("Dropped indexes, triggers and views are named, except those of the ledger")
  func droppedObjects() throws {
    try Transcript(
      """
      $ sql old.db CREATE TABLE notes(id INTEGER PRIMARY KEY, text); CREATE INDEX byText ON notes(text); CREATE VIEW words AS SELECT text FROM notes
      $ cp old.db new.db
      $ sql new.db DROP INDEX byText; DROP VIEW words
      $ buckia init new.db --quiet
      $ buckia diff old.db new.db -o changes.bdiff
      changes.bdiff  … bytes in …

      Not in the file:
        byText  the index was dropped; others keep it
        words   the view was dropped; others keep it

      Applied with --schema adopt, it brings the whole schema.

      Apply it with: buckia apply DB changes.bdiff --schema adopt
      $ buckia apply old.db changes.bdiff --schema adopt --quiet
      $ sql old.db SELECT name FROM sqlite_schema WHERE name IN ('byText', 'words')
      """
    ).play(on: Workbench())
  }

  @Test("Into a folder, the file is named by its id, and the JSON document has its path")
  func folder() throws {
    let bench = try Self.pair()
    try FileManager.default.createDirectory(atPath: bench.path("out"), withIntermediateDirectories: true)
    let outcome = try bench.buckia(["diff", "old.db", "new.db", "-o", "out", "--json"])
    #expect(outcome.status == 0)
    let document = try outcome.json
    #expect(document["version"] as? Int == 1)
    let id = try #require(document["id"] as? String)
    #expect(document["path"] as? String == "out/\(id).bdiff")
    #expect(try bench.names(in: "out") == ["\(id).bdiff"])
    let size = try FileManager.default.attributesOfItem(atPath: bench.path("out/\(id).bdiff"))[.size] as? Int
    #expect(document["bytes"] as? Int == size)
    #expect(document["method"] as? String == "auto")
    #expect(document["seconds"] as? Double != nil)
    #expect((document["skipped"] as? [Any])?.isEmpty == true)
    let tables = try #require(document["tables"] as? [[String: Any]])
    #expect(tables.map { $0["name"] as? String } == ["notes", "tags"])
    #expect(tables[0]["inserted"] as? Int == 1)
    #expect(tables[0]["updated"] as? Int == 1)
    #expect(tables[0]["deleted"] as? Int == 1)
    let reason = "its definition differs between the two databases"
    #expect(tables.map { $0["method"] as? String } == ["rows", "rows"])
    #expect(tables[0]["methodReason"] as? String == reason)
    // A new table is compared with nothing.
    #expect(tables[1]["methodReason"] is NSNull)
    #expect(
      document["comparedByRows"] as? [[String: String]] == [
        ["name": "notes", "code": "definitionDiffers", "reason": reason]
      ])
  }

  /// Two databases with rows, one of which differs.
  private static func changed(_ settings: String, tables: [String]) throws -> Workbench {
    let bench = try Workbench()
    let rows = tables.map {
      "CREATE TABLE \($0)(id INTEGER PRIMARY KEY, v); INSERT INTO \($0) VALUES (1, 'a'), (2, 'b');"
    }
    try bench.sql("old.db", rows.joined())
    try bench.sql("new.db", settings + rows.joined() + "UPDATE \(tables[0]) SET v = 'B' WHERE id = 2")
    return bench
  }

  @Test("Pages are compared where possible, requested or not, without an explanation")
  func pages() throws {
    try Transcript(
      """
      $ buckia diff old.db new.db -o auto.bdiff
      auto.bdiff  … bytes in …

        table  inserted  updated  deleted  method
        notes         –        1        –  pages

      Apply it with: buckia apply DB auto.bdiff
      $ buckia diff old.db new.db -o pages.bdiff --method pages
      pages.bdiff  … bytes in …

        table  inserted  updated  deleted  method
        notes         –        1        –  pages

      Apply it with: buckia apply DB pages.bdiff
      $ buckia diff old.db new.db -o rows.bdiff --method rows
      rows.bdiff  … bytes in …

        table  inserted  updated  deleted  method
        notes         –        1        –  rows

      Apply it with: buckia apply DB rows.bdiff
      """
    ).play(on: Self.changed("", tables: ["notes"]))
    let bench = try Self.changed("", tables: ["notes"])
    let document = try bench.buckia(["diff", "old.db", "new.db", "--method", "pages", "--json"]).json
    #expect(document["method"] as? String == "pages")
    #expect((document["comparedByRows"] as? [Any])?.isEmpty == true)
    let tables = try #require(document["tables"] as? [[String: Any]])
    #expect(tables.map { $0["method"] as? String } == ["pages"])
    #expect(tables[0]["methodReason"] is NSNull)
  }

  @Test("Tables compared row by row are listed with the reason, changed or not, many in one line")
  func comparedByRows() throws {
    let settings = "PRAGMA page_size = 8192;"
    try Transcript(
      """
      $ buckia diff old.db new.db -o out.bdiff --method pages
      out.bdiff  … bytes in …

        table  inserted  updated  deleted  method
        a             –        1        –  rows

      Compared row by row:
        a, b, c and 2 more  the pages of the two databases differ in size (4096 and
                            8192 bytes)

      Apply it with: buckia apply DB out.bdiff
      """
    ).play(on: Self.changed(settings, tables: ["a", "b", "c", "d", "e"]))
    let bench = try Self.changed(settings, tables: ["a", "b"])
    let document = try bench.buckia(["diff", "old.db", "new.db", "--json"]).json
    let found = try #require(document["comparedByRows"] as? [[String: String]])
    #expect(found.map { $0["name"] } == ["a", "b"])
    #expect(Set(found.map { $0["reason"] }) == ["the pages of the two databases differ in size (4096 and 8192 bytes)"])
  }

  @Test("Without -o the file is written to the current folder; --raw writes a changeset")
  func currentFolder() throws {
    let bench = try Self.pair()
    try bench.sql("new.db", "DROP TABLE tags; ALTER TABLE notes DROP COLUMN stars")
    let document = try bench.buckia(["diff", "old.db", "new.db", "--raw", "--json"]).json
    let id = try #require(document["id"] as? String)
    #expect(try bench.names() == ["\(id).changeset", "new.db", "old.db"])
    try bench.applyWithSQLite("\(id).changeset", to: "old.db")
    #expect(
      try bench.sql("old.db", "SELECT * FROM notes") == (try bench.sql("new.db", "SELECT * FROM notes")))
  }

  @Test("Without changes no file is written, and the document says so")
  func noChanges() throws {
    let bench = try Workbench()
    try bench.sql("a.db", "CREATE TABLE t(id INTEGER PRIMARY KEY); INSERT INTO t VALUES(1)")
    try Transcript(
      """
      $ cp a.db b.db
      $ mkdir out
      $ buckia diff a.db b.db -o out
      No changes, so no file was written (…).
      $ buckia diff a.db b.db -o out/file.bdiff --quiet
      $ ls out
      """
    ).play(on: bench)
    let document = try bench.buckia(["diff", "a.db", "b.db", "-o", "out", "--json"]).json
    #expect(document["id"] is NSNull)
    #expect(document["path"] is NSNull)
    #expect((document["tables"] as? [Any])?.isEmpty == true)
  }

  @Test("An existing file stays, unless --force replaces it")
  func force() throws {
    try Transcript(
      """
      $ buckia diff old.db new.db -o changes.bdiff --quiet
      $ buckia diff old.db new.db -o changes.bdiff
      ? 1
      2> buckia: changes.bdiff: a file of that name is there already; --force replaces it
      $ buckia diff new.db old.db -o changes.bdiff --force --quiet
      $ buckia show changes.bdiff --limit 0
      …
        notes         1        1        1
      $ ls
      changes.bdiff
      new.db
      old.db
      """
    ).play(on: Self.pair())
  }

  @Test("--tables chooses the tables, and --method how they are compared", arguments: ["auto", "rows", "session"])
  func choices(method: String) throws {
    let bench = try Self.pair()
    let document = try bench.buckia([
      "diff", "old.db", "new.db", "-o", "x", "--tables", "tags", "--method", method, "--json",
    ]).json
    #expect((document["tables"] as? [[String: Any]])?.map { $0["name"] as? String } == ["tags"])
    #expect(document["method"] as? String == method)
  }

  @Test(
    "An input that cannot be read is named, and no file is written",
    arguments: [["missing.db", "new.db"], ["old.db", "text.db"], ["old.db", "new.db", "--tables", "nowhere"]])
  func failures(arguments: [String]) throws {
    let bench = try Self.pair()
    try Data(String(repeating: "This is no database. ", count: 100).utf8)
      .write(to: bench.folder.appendingPathComponent("text.db"))
    let outcome = try bench.buckia(["diff"] + arguments + ["-o", "out.bdiff", "--json"])
    #expect(outcome.status == 1)
    let error = try #require(try outcome.json["error"] as? [String: Any])
    let message = try #require(error["message"] as? String)
    #expect(message.contains("missing.db") || message.contains("text.db") || message.contains("nowhere"))
    #expect(error["code"] as? String != nil)
    #expect(error.keys.contains("path"))
    #expect(error.keys.contains("offset"))
    #expect(outcome.diagnostics == "buckia: \(message)\n")
    #expect(try bench.names() == ["new.db", "old.db", "text.db"])
  }

  @Test("--rename treats two names as one column, and apply shows the planned rename")
  func rename() throws {
    let bench = try Self.pair()
    try bench.sql("new.db", "ALTER TABLE notes RENAME COLUMN text TO body")
    let outcome = try bench.buckia(["diff", "old.db", "new.db", "-o", "x", "--rename", "notes.text=body", "--json"])
    let tables = try #require(try outcome.json["tables"] as? [[String: Any]])
    let notes = try #require(tables.first { $0["name"] as? String == "notes" })
    #expect(notes["updated"] as? Int == 1)
    #expect(notes["renames"] as? [[String: String]] == [["from": "text", "to": "body"]])
    let applied = try bench.buckia(["apply", "old.db", "x", "--dry-run", "--json"]).json
    let diff = try #require((applied["diffs"] as? [[String: Any]])?.first)
    let plan = try #require(diff["plan"] as? [[String: Any]])
    #expect(plan.map { $0["action"] as? String } == ["rename", "add", "create"])
    #expect(plan.first?["detail"] as? String == "it is called text here")
    for wrong in ["notes.text", "text=body", "notes.text=", "notes.text=TEXT"] {
      #expect(try bench.buckia(["diff", "old.db", "new.db", "--rename", wrong]).status == 64)
    }
  }

  @Test(arguments: [[], ["--raw"], ["--again"]])
  func `diff writes only to a snapshot and to the ledger of the newer database`(options: [String]) throws {
    let bench = try Workbench()
    try bench.sql("old.db", "CREATE TABLE t(id INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (1, 'a')")
    #expect(try bench.buckia(["init", "old.db", "--clocks"]).status == 0)
    for name in ["new.db", "plain.db"] {
      try FileManager.default.copyItem(atPath: bench.path("old.db"), toPath: bench.path(name))
      try bench.sql(name, "UPDATE t SET v = 'b'")
    }
    let tables = try bench.sql(
      "plain.db", "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'buckia%'")
    for table in tables { try bench.sql("plain.db", "DROP TABLE \(table)") }
    func bytes(_ name: String) throws -> Data { try Data(contentsOf: URL(fileURLWithPath: bench.path(name))) }
    let before = try (bytes("old.db"), bytes("plain.db"))
    for new in ["new.db", "plain.db"] {
      #expect(try bench.buckia(["diff", "old.db", new, "-o", "out"] + options).status == 0)
    }
    #expect(try bytes("old.db") == before.0 && bytes("plain.db") == before.1)
    #expect(try bench.sql("new.db", "SELECT count(*) FROM buckia_settings WHERE name = 'made'") == ["1"])
    #expect(try bench.sql("new.db", "SELECT * FROM t") == ["1|b"])
  }

  @Test("--where and --exclude choose rows and columns, and the file contains no others")
  func selections() throws {
    let bench = try Workbench()
    try bench.sql(
      "old.db",
      """
      CREATE TABLE notes(id INTEGER PRIMARY KEY, owner, text, secret); CREATE TABLE tags(name TEXT PRIMARY KEY);
      INSERT INTO notes VALUES(1, 7, 'mine', 's'), (2, 8, 'theirs', 's'), (3, 7, 'given', 's'), (4, 8, 'taken', 's')
      """)
    try FileManager.default.copyItem(atPath: bench.path("old.db"), toPath: bench.path("new.db"))
    try bench.sql(
      "new.db",
      """
      UPDATE notes SET text = text || '!', secret = 't'; UPDATE notes SET owner = 15 - owner WHERE id IN (3, 4);
      INSERT INTO tags VALUES ('a'), ('b')
      """)
    let made = try bench.buckia([
      "diff", "old.db", "new.db", "-o", "some.bdiff", "--where", "notes=owner = 7", "--where", "tags=name <> 'a'",
      "--exclude",
      "notes.secret",
    ])
    #expect(made.status == 0)
    #expect(made.output.contains("notes, tags  a condition selects its rows"))
    try Transcript(
      """
      $ buckia show some.bdiff
      …
        table  inserted  updated  deleted
        notes         1        1        1
        tags          1        –        –

      notes
        - id 3
        ~ id 1: text 'mine' → 'mine!'
        + id 4, owner 7, text 'taken!'

      tags
        + name 'b'
      """
    ).play(on: bench)
  }

  @Test("An invalid condition or column is named with its table, and no file is written")
  func badSelections() throws {
    let bench = try Self.pair()
    for (option, wrong) in [
      ("--where", "notes"), ("--where", "=1"), ("--exclude", "notes"), ("--exclude", ".text"), ("--exclude", "notes."),
    ] {
      #expect(try bench.buckia(["diff", "old.db", "new.db", option, wrong]).status == 64)
    }
    #expect(try bench.buckia(["diff", "old.db", "new.db", "--where", "notes=1", "--where", "NOTES=2"]).status == 64)
    for (arguments, reason) in [
      (["--where", "notes=txet = 'a'"], "no such column: txet (in: txet = 'a')"),
      (["--exclude", "notes.id"], "column \"notes.id\" cannot be left out: it is part of the primary key"),
      (["--exclude", "notes.txet"], "there is no column \"notes.txet\" to leave out"),
    ] {
      let outcome = try bench.buckia(["diff", "old.db", "new.db", "-o", "out.bdiff", "--json"] + arguments)
      #expect(outcome.status == 1)
      let error = try #require(try outcome.json["error"] as? [String: Any])
      #expect(error["code"] as? String == "invalid-selection")
      #expect((error["message"] as? String)?.contains(reason) == true)
      #expect((error["message"] as? String)?.contains("notes") == true)
    }
    #expect(try bench.names() == ["new.db", "old.db"])
  }

  @Test("A part that a raw changeset cannot carry is reported with the option to leave out")
  func rawSkips() throws {
    let bench = try Self.pair()
    let document = try bench.buckia(["diff", "old.db", "new.db", "--raw", "--json"]).json
    let skipped = try #require(document["skipped"] as? [[String: String]])
    #expect(skipped.map { $0["name"] } == ["notes", "tags"])
    #expect(skipped.map { $0["code"] } == ["columnsNeedDefinition", "newTableNeedsDefinition"])
    #expect(
      skipped.allSatisfy {
        $0["reason"]?.hasSuffix("a raw changeset carries no table definitions; leave out --raw") == true
      })
  }

  @Test("--home chooses where the clock of the ids is kept")
  func home() throws {
    let bench = try Self.pair()
    let outcome = try bench.buckia(["diff", "old.db", "new.db", "-o", "x", "--home", "mine", "--json"])
    let id = try #require(try outcome.json["id"] as? String)
    #expect(try String(contentsOfFile: bench.path("mine/clock"), encoding: .utf8) == "\(id)\n")
  }
}
