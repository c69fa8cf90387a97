import Foundation
import Testing

@Suite("The report of apply: conflicts and counts")
struct ApplyReportTests {
  /// Anna changes two notes and adds one; Ben has changed the first and added another with the same key.
  private func annaAndBen(_ columns: String = "id INTEGER PRIMARY KEY, text") throws -> Workbench {
    let bench = try Workbench()
    try bench.sql("old.db", "CREATE TABLE notes(\(columns)); INSERT INTO notes VALUES ('1', 'a'), ('2', 'b')")
    for name in ["anna.db", "ben.db"] {
      try FileManager.default.copyItem(atPath: bench.path("old.db"), toPath: bench.path(name))
    }
    try bench.sql("anna.db", "UPDATE notes SET text = text || '!'; INSERT INTO notes VALUES ('it''s', 'Anna')")
    try bench.sql("ben.db", "UPDATE notes SET text = 'Ben' WHERE id = '1'; INSERT INTO notes VALUES ('it''s', 'Ben')")
    #expect(try bench.buckia(["diff", "old.db", "anna.db", "-o", "inbound"]).status == 0)
    return bench
  }

  @Test("A dry run shows the conflicts that it would record, and records none")
  func dryRun() throws {
    let bench = try annaAndBen("id TEXT PRIMARY KEY, text")
    let before = try Data(contentsOf: bench.folder.appendingPathComponent("ben.db"))
    try Transcript(
      """
      $ buckia apply ben.db inbound --dry-run
      applied  …
      …
      It would record 2 conflicts:

      #1  notes, id = '1' (Ben)
        The row was changed here, too; the local row was kept.
        From …
        column  before  here   incoming
        text    'a'     'Ben'  'a!'

      #2  notes, id = 'it''s' (Ben)
        … row with this key is here already; the local row was kept.
        From …
        column  before  here   incoming
        text    no row  'Ben'  'Anna'

      This was a dry run: nothing was changed. It would be 1 row.
      Trust: …
      """
    ).play(on: bench)
    let document = try bench.buckia(["apply", "ben.db", "inbound", "--dry-run", "--json"]).json
    let conflicts = try #require(document["conflicts"] as? [[String: Any]])
    #expect(conflicts.map { $0["kind"] as? String } == ["data", "conflict"])
    #expect((conflicts[0]["local"] as? [String: Any])?["text"] as? String == "Ben")
    #expect(try Data(contentsOf: bench.folder.appendingPathComponent("ben.db")) == before)
    #expect(try bench.buckia(["apply", "ben.db", "inbound"]).status == 0)
    // A conflict that the ledger already has is not reported again.
    #expect(try bench.buckia(["diff", "old.db", "anna.db", "-o", "inbound", "--tables", "notes"]).status == 0)
    let again = try bench.buckia(["apply", "ben.db", "inbound", "--dry-run", "--json"]).json
    #expect((again["conflicts"] as? [[String: Any]])?.map { $0["id"] as? Int } == [3, 4])
  }

  @Test("abort names the row by its key")
  func abort() throws {
    let bench = try annaAndBen("id TEXT PRIMARY KEY, text")
    let outcome = try bench.buckia(["apply", "ben.db", "inbound", "--on-conflict", "abort", "--json"])
    #expect(outcome.status == 2)
    let reason = (try outcome.json["diffs"] as? [[String: Any]])?.first?["reason"] as? String
    #expect(
      reason?.hasPrefix("UPDATE of the row with id = '1' of table \"notes\" meets a conflict (data)") == true,
      "\(reason ?? "")")
  }

  @Test(
    "No key is printed in Swift's debug form",
    arguments: ["TEXT", "INTEGER", "REAL", "BLOB"])
  func keys(type: String) throws {
    let bench = try Workbench()
    try bench.sql("old.db", "CREATE TABLE notes(a \(type), b \(type), t, PRIMARY KEY (a, b)) WITHOUT ROWID")
    for name in ["anna.db", "ben.db"] {
      try FileManager.default.copyItem(atPath: bench.path("old.db"), toPath: bench.path(name))
    }
    let key = type == "TEXT" ? "'k', 'l''m'" : type == "BLOB" ? "x'01', x''" : "1, 2"
    try bench.sql("anna.db", "INSERT INTO notes VALUES (\(key), 'Anna')")
    try bench.sql("ben.db", "INSERT INTO notes VALUES (\(key), 'Ben')")
    #expect(try bench.buckia(["diff", "old.db", "anna.db", "-o", "x.bdiff"]).status == 0)
    #expect(try bench.buckia(["diff", "old.db", "anna.db", "--raw", "-o", "x.changeset"]).status == 0)
    for arguments in [
      ["show", "x.bdiff"], ["show", "x.bdiff", "--json"], ["show", "x.changeset"],
      ["apply", "ben.db", "x.bdiff", "--dry-run"], ["apply", "ben.db", "x.bdiff", "--on-conflict", "abort"],
      ["apply", "ben.db", "x.bdiff"], ["conflicts", "ben.db"], ["conflicts", "ben.db", "--json"], ["log", "ben.db"],
    ] {
      let outcome = try bench.buckia(arguments)
      let text = outcome.output + outcome.diagnostics
      #expect(!text.contains("Optional(") && !text.contains("ChangesetValue"), "\(arguments): \(text)")
    }
  }

  @Test("A row that refers to a left-out row names both, and the conflict that it results from")
  func foreignKeys() throws {
    let bench = try Workbench()
    try bench.sql(
      "old.db",
      """
      CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT UNIQUE);
      CREATE TABLE phone(number TEXT PRIMARY KEY, owner REFERENCES person)
      """)
    for name in ["anna.db", "ben.db"] {
      try FileManager.default.copyItem(atPath: bench.path("old.db"), toPath: bench.path(name))
    }
    try bench.sql("anna.db", "INSERT INTO person VALUES (4, 'Max'); INSERT INTO phone VALUES ('0123', 4)")
    try bench.sql("ben.db", "INSERT INTO person VALUES (9, 'Max')")
    #expect(try bench.buckia(["diff", "old.db", "anna.db", "-o", "inbound"]).status == 0)
    for options in [["--dry-run"], []] {
      #expect(try bench.buckia(["apply", "ben.db", "inbound"] + options).status == 0)
    }
    let found = try bench.buckia(["conflicts", "ben.db", "--kind", "foreign-key"])
    #expect(found.output.contains("phone, number = '0123'"), "\(found.output)")
    #expect(found.output.contains("It refers to person, id = 4; it was left out, see #1"), "\(found.output)")
    let document = try bench.buckia(["conflicts", "ben.db", "--json"]).json["conflicts"] as? [[String: Any]]
    let parent = try #require(document?.last?["parent"] as? [String: Any])
    #expect(parent["table"] as? String == "person" && parent["conflict"] as? Int == 1)
  }

  @Test("hold counts the applied rows")
  func hold() throws {
    let bench = try annaAndBen("id TEXT PRIMARY KEY, text")
    try bench.sql("anna.db", "CREATE TABLE tags(name TEXT PRIMARY KEY); INSERT INTO tags VALUES ('x')")
    try FileManager.default.removeItem(atPath: bench.path("inbound"))
    #expect(try bench.buckia(["diff", "old.db", "anna.db", "-o", "inbound"]).status == 0)
    let outcome = try bench.buckia(["apply", "ben.db", "inbound", "--schema", "hold"])
    #expect(outcome.status == 2)
    #expect(outcome.output.contains("\n1 row changed by 1 file in "), "\(outcome.output)")
  }
}
