import Foundation
import SQLiteConnections
import Testing

@Suite("buckia resolve")
struct ResolveCommandTests {
  /// Ben's database with three conflicts: both people changed notes 1 and 2, and Ben deleted note 3.
  private func bench() throws -> Workbench {
    let bench = try Workbench()
    try bench.sql(
      "old.db",
      """
      CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT, stars REAL);
      INSERT INTO notes VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3), (4, 'd', 4)
      """)
    for name in ["new.db", "ben.db"] {
      try FileManager.default.copyItem(atPath: bench.path("old.db"), toPath: bench.path(name))
    }
    try bench.sql("new.db", "UPDATE notes SET title = 'Anna' WHERE id < 4")
    try bench.sql("ben.db", "UPDATE notes SET title = 'Ben' WHERE id < 3; DELETE FROM notes WHERE id = 3")
    #expect(try bench.buckia(["diff", "old.db", "new.db", "-o", "inbound"]).status == 0)
    #expect(try bench.buckia(["apply", "ben.db", "inbound", "--keep"]).status == 0)
    return bench
  }

  @Test("A conflict is resolved by its number, again with another answer, and the list says by whom")
  func story() throws {
    try Transcript(
      """
      $ buckia resolve ben.db 1 --take incoming --by Ben --dry-run
      #1  notes, id = 1 (Ben)
        The row would be changed.
        column  before  after
        title   'Ben'   'Anna'

      This was a dry run: nothing was changed. It would resolve 1 conflict, 1 row
        changed.
      $ buckia resolve ben.db 1 --take incoming --by Ben
      #1  notes, id = 1 (Ben)
        The row was changed.
        column  before  after
        title   'Ben'   'Anna'

      Resolved 1 conflict, 1 row changed.
      $ buckia resolve ben.db 1 --take {"title":"Both","stars":4.5} --by Anna
      #1  notes, id = 1 (Anna)
        The row was changed.
        column  before  after
        title   'Anna'  'Both'
        stars   1.0     4.5

      Resolved 1 conflict, 1 row changed.
      $ sql ben.db SELECT title, stars FROM notes WHERE id = 1
      Both|4.5
      $ buckia conflicts ben.db --kind data
      #1  notes, id = 1 (Ben)
        The row was changed here, too; the local row was kept.
        From …
        Resolved by Anna, …: values that were typed.
        column  before  here   incoming
        title   'a'     'Ben'  'Anna'

      #2  notes, id = 2 (Ben)
        The row was changed here, too; the local row was kept.
        From …
        column  before  here   incoming
        title   'b'     'Ben'  'Anna'
      $ buckia resolve ben.db 1 --take local --quiet
      $ sql ben.db SELECT title, stars FROM notes WHERE id = 1
      Ben|1.0
      """
    ).play(on: try bench())
  }

  @Test func `a conflict is resolved by single values, or by deleting the row`() throws {
    let bench = try bench()
    #expect(try bench.buckia(["resolve", "ben.db", "1", "--set", "title=a=b", "--set", "stars=7"]).status == 0)
    #expect(try bench.sql("ben.db", "SELECT title, stars FROM notes WHERE id = 1") == ["a=b|7.0"])
    #expect(try bench.buckia(["resolve", "ben.db", "1", "2", "--delete"]).status == 0)
    #expect(try bench.sql("ben.db", "SELECT id FROM notes") == ["4"])
    for wrong in [
      ["--delete", "--take", "local"], ["--set", "title"], ["--set", "title=a", "--set", "title=b"],
      ["--delete", "--remember"],
    ] {
      #expect(try bench.buckia(["resolve", "ben.db", "1"] + wrong).status == 64, "\(wrong)")
    }
  }

  @Test("A row changed since the conflict needs a person, or --force")
  func changedSince() throws {
    try Transcript(
      """
      $ sql ben.db UPDATE notes SET stars = 9 WHERE id = 2
      $ buckia resolve ben.db 2 --take incoming
      ? 2
      #2  notes, id = 2 (Ben)
        Not resolved: the row was changed since the conflict was met.
        column  known  now
        stars   2.0    9.0

      Resolved 0 conflicts, 0 rows changed; 1 conflict was not resolved.
      --force writes the row anyway.
      $ buckia resolve ben.db 2 --take incoming --force --quiet
      $ sql ben.db SELECT title, stars FROM notes WHERE id = 2
      Anna|9.0
      """
    ).play(on: try bench())
  }

  @Test("Unknown columns of a reinserted row are named")
  func unknown() throws {
    try Transcript(
      """
      $ buckia resolve ben.db 3 --take incoming
      #3  notes, id = 3 (Anna)
        The row was inserted.
        Not known, so left to their defaults: stars.
        column  before  after
        id      no row  3
        title   no row  'Anna'
        stars   no row  NULL

      Resolved 1 conflict, 1 row changed.
      """
    ).play(on: try bench())
  }

  @Test("Conflicts are resolved by a filter, the answer is kept as a rule, and the rule is forgotten")
  func rules() throws {
    let bench = try bench()
    try Transcript(
      """
      $ buckia resolve ben.db --all --open --kind data --table notes --take incoming --remember --by Ben
      …
      Resolved 2 conflicts, 2 rows changed.
      Remembered as rule 1: when an UPDATE conflicts with a row of notes in title,
        take the incoming version.
      $ buckia conflicts ben.db --open --summary
      1 conflict in all:
        table  kind       conflicts
        notes  not-found          1  …
      $ buckia conflicts ben.db --rules
      Rule 1  when an UPDATE conflicts with a row of notes in title, take the incoming
          version.
        Decided by Ben at #1, … UTC
      $ sql ben.db UPDATE notes SET title = 'again' WHERE id = 4
      $ sql new.db UPDATE notes SET title = 'Anna' WHERE id = 4
      """
    ).play(on: bench)
    #expect(try bench.buckia(["diff", "old.db", "new.db", "-o", "second"]).status == 0)
    let applied = try bench.buckia(["apply", "ben.db", "second"])
    #expect(applied.output.contains("1 conflict was decided by rules."))
    #expect(try bench.sql("ben.db", "SELECT title FROM notes WHERE id = 4") == ["Anna"])
    let list = try #require(
      try bench.buckia(["conflicts", "ben.db", "--json"]).json["conflicts"] as? [[String: Any]])
    #expect(list.last?["rule"] as? Int == 1 && list.last?["status"] as? String == "resolved")
    try Transcript(
      """
      $ buckia resolve ben.db --forget 1
      Rule 1 is forgotten; what it has decided stays.
      $ buckia conflicts ben.db --rules
      There are no rules.
      $ buckia resolve ben.db --forget 1
      ? 1
      2> buckia: there is no rule with the number 1
      """
    ).play(on: bench)
  }

  @Test("The JSON documents have the documented shape")
  func documents() throws {
    let bench = try bench()
    let before = try #require(
      (try bench.buckia(["conflicts", "ben.db", "--json"]).json["conflicts"] as? [[String: Any]])?.first)
    #expect(before["id"] as? Int == 1)
    #expect(before["status"] as? String == "open")
    #expect(before["resolution"] is NSNull && before["constraint"] is NSNull)
    #expect((before["others"] as? [Any])?.isEmpty == true)
    let report = try bench.buckia(["resolve", "ben.db", "1", "99", "--take", "incoming", "--by", "Ben", "--json"])
    #expect(report.status == 1)
    #expect(try report.json["version"] as? Int == 1)
    #expect(try report.json["changedTables"] as? [String] == ["notes"])
    let resolved = try #require(try report.json["conflicts"] as? [[String: Any]])
    #expect(resolved.map { $0["resolved"] as? Bool } == [true, false])
    #expect((resolved[0]["before"] as? [String: Any])?["title"] as? String == "Ben")
    #expect((resolved[0]["after"] as? [String: Any])?["title"] as? String == "Anna")
    #expect(resolved[1]["code"] as? String == "no-such-conflict")
    let after = try #require(
      (try bench.buckia(["conflicts", "ben.db", "--json"]).json["conflicts"] as? [[String: Any]])?.first)
    #expect(after["status"] as? String == "resolved")
    let resolution = try #require(after["resolution"] as? [String: Any])
    #expect(resolution["answer"] as? String == "incoming" && resolution["by"] as? String == "Ben")
    #expect((resolution["at"] as? String)?.contains(/^\d{4}-\d\d-\d\dT/) == true)
  }

  @Test("Values are written as --json prints them")
  func values() throws {
    let bench = try bench()
    let typed = #"{"title":{"blob":"00ff"},"stars":{"int":"9007199254740993"}}"#
    #expect(try bench.buckia(["resolve", "ben.db", "1", "--take", typed]).status == 0)
    #expect(try bench.sql("ben.db", "SELECT typeof(title), hex(title) FROM notes WHERE id = 1") == ["blob|00FF"])
    #expect(try bench.buckia(["resolve", "ben.db", "1", "--take", #"{"stars":-2.5e-3,"title":null}"#]).status == 0)
    #expect(try bench.sql("ben.db", "SELECT stars, title FROM notes WHERE id = 1") == ["-0.0025|NULL"])
  }

  @Test(
    "Contradictory arguments are a usage error",
    arguments: [
      ["1"], ["--take", "local"], ["1", "--take", "mine"], ["1", "--take", "{}"], ["1", "--take", #"{"title":true}"#],
      ["1", "--take", #"{"title":1e999}"#], ["1", "--all", "--take", "local"], ["1", "--open", "--take", "local"],
      ["1", "--take", #"{"title":"x"}"#, "--remember"], ["1", "--forget", "1"], ["--forget", "1", "--take", "local"],
    ])
  func usage(_ arguments: [String]) throws {
    let bench = try Workbench()
    try bench.sql("ben.db", "CREATE TABLE t(x)")
    #expect(try bench.buckia(["resolve", "ben.db"] + arguments).status == 64, "\(arguments)")
  }

  /// Two copies that have given one key to different rows, with rows that refer to them; Anna's file is applied to
  /// Ben's copy.
  private func collided() throws -> Workbench {
    let bench = try Workbench()
    try bench.sql(
      "old.db",
      """
      CREATE TABLE note(id INTEGER PRIMARY KEY, title TEXT, mail TEXT UNIQUE);
      CREATE TABLE comment(id INTEGER PRIMARY KEY, note INTEGER REFERENCES note(id), body TEXT)
      """)
    for name in ["anna.db", "ben.db"] {
      try FileManager.default.copyItem(atPath: bench.path("old.db"), toPath: bench.path(name))
    }
    return bench
  }

  private func apply(to bench: Workbench) throws {
    #expect(try bench.buckia(["diff", "old.db", "anna.db", "-o", "inbound"]).status == 0)
    #expect(try bench.buckia(["apply", "ben.db", "inbound"]).status == 0)
  }

  @Test("Two rows with the same key are both kept, and incoming references follow the incoming row")
  func keepBoth() throws {
    let bench = try collided()
    try bench.sql("anna.db", "INSERT INTO note VALUES (1, 'Anna', 'a'); INSERT INTO comment VALUES (5, 1, 'on Anna')")
    try bench.sql("ben.db", "INSERT INTO note VALUES (1, 'Ben', 'b'); INSERT INTO comment VALUES (7, 1, 'on Ben')")
    try apply(to: bench)
    let shown = try bench.buckia(["conflicts", "ben.db", "--table", "note"]).output
    #expect(shown.contains("note, id = 1 (Ben)") && shown.contains("(unsigned)"), "\(shown)")
    let asked = try bench.buckia(["resolve", "ben.db", "1", "--take", "incoming"])
    let said = asked.output.split { $0.isWhitespace }.joined(separator: " ")
    #expect(asked.status == 2 && said.contains("1 row of table \"comment\" refers to the row that is here"), "\(said)")
    #expect(try bench.sql("ben.db", "SELECT title FROM note") == ["Ben"])
    let both = try bench.buckia(["resolve", "ben.db", "1", "--take", "both"])
    #expect(both.status == 0, "\(both.output)\(both.diagnostics)")
    #expect(try bench.sql("ben.db", "SELECT id, title FROM note") == ["1|Ben", "2|Anna"])
    #expect(
      try bench.sql("ben.db", "SELECT c.body, n.title FROM comment c JOIN note n ON n.id = c.note ORDER BY c.id")
        == ["on Anna|Anna", "on Ben|Ben"])
    #expect(try bench.buckia(["conflicts", "ben.db", "--open"]).output == "There are no such conflicts.\n")
  }

  @Test("An incoming row with a local row's UNIQUE value is that row, and references to it follow")
  func sameRow() throws {
    let bench = try collided()
    try bench.sql("anna.db", "INSERT INTO note VALUES (4, 'Anna', 'x'); INSERT INTO comment VALUES (5, 4, 'hers')")
    try bench.sql("ben.db", "INSERT INTO note VALUES (1, 'Ben', 'x')")
    try apply(to: bench)
    let conflict = try #require(
      (bench.buckia(["conflicts", "ben.db", "--json", "--kind", "constraint"]).json["conflicts"] as? [[String: Any]])?
        .first?["id"] as? Int)
    let same = try bench.buckia(["resolve", "ben.db", "\(conflict)", "--take", "same"])
    #expect(same.status == 0, "\(same.output)\(same.diagnostics)")
    #expect(try bench.sql("ben.db", "SELECT id, title FROM note") == ["1|Ben"])
    #expect(try bench.sql("ben.db", "SELECT note, body FROM comment") == ["1|hers"])
    let again = try bench.buckia(["resolve", "ben.db", "\(conflict)", "--take", "both"])
    #expect(again.status == 1, "\(again.output)")
  }
}
