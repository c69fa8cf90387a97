import Foundation
import Testing

@Suite("buckia merge") struct MergeCommandTests {
  private static func bench() throws -> Workbench {
    let bench = try Workbench()
    try bench.sql(
      "base.db",
      "CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT); INSERT INTO notes VALUES (1, 'one'), (2, 'two')")
    for name in ["ours.db", "theirs.db"] {
      try FileManager.default.copyItem(atPath: bench.path("base.db"), toPath: bench.path(name))
    }
    return bench
  }

  @Test("merge lists what was merged, exits with 2 if conflicts are left, and conflicts shows them")
  func transcript() throws {
    try Transcript(
      """
      $ sql theirs.db UPDATE notes SET title = 'zwei' WHERE id = 2
      $ buckia merge base.db ours.db theirs.db -o out.db
      out.db  0 rows inserted, 1 updated, 0 deleted in …
      $ sql out.db SELECT * FROM notes
      1|one
      2|zwei
      $ buckia merge base.db ours.db theirs.db -o out.db
      ? 1
      2> buckia: out.db: a file of that name is there already; --force replaces it
      $ sql ours.db UPDATE notes SET title = 'deux' WHERE id = 2
      $ buckia merge base.db ours.db theirs.db -o out.db --force --dry-run
      ? 2
      …
      This was a dry run: nothing was changed.
      $ buckia merge base.db ours.db theirs.db -o out.db --force
      ? 2
      out.db  0 rows inserted, 0 updated, 0 deleted in …

      1 conflict of rows:
      …
      See it with: buckia conflicts out.db
      $ buckia conflicts out.db
      …
      $ buckia resolve out.db 1 --take theirs --quiet
      $ sql out.db SELECT title FROM notes WHERE id = 2
      zwei
      $ buckia merge base.db ours.db theirs.db -o ours.db --on-conflict abort
      ? 2
      2> buckia: UPDATE of the row with id = 2 …
      $ buckia merge /dev/null ours.db theirs.db -o new.db --on-conflict take-incoming
      ? 2
      new.db  …
      There is no base: …
      …
      $ buckia merge base.db ours.db theirs.db
      ? 64
      2> …
      …
      """
    ).play(on: Self.bench())
  }

  @Test("--json prints one document, with conflicts of rows and of the schema")
  func json() throws {
    let bench = try Self.bench()
    try bench.sql("ours.db", "ALTER TABLE notes ADD COLUMN a INT; UPDATE notes SET title = 'x'")
    try bench.sql("theirs.db", "ALTER TABLE notes ADD COLUMN a TEXT; UPDATE notes SET title = 'y' WHERE id = 1")
    let outcome = try bench.buckia(["merge", "base.db", "ours.db", "theirs.db", "-o", "out.db", "--json"])
    #expect(outcome.status == 2)
    let json = try outcome.json
    #expect(json["version"] as? Int == 1)
    #expect(json["clean"] as? Bool == false)
    #expect(json["conflicts"] as? Int == 1)
    #expect((json["schemaConflicts"] as? [[String: Any]])?.first?["kind"] as? String == "both-changed")
    #expect((json["conflictSummary"] as? [[String: Any]])?.first?["outcome"] as? String == "kept-local")
  }

  @Test("The outcome of a merge conflict names OURS and THEIRS everywhere")
  func sides() throws {
    let bench = try Self.bench()
    try bench.sql("ours.db", "UPDATE notes SET title = 'x'")
    try bench.sql("theirs.db", "UPDATE notes SET title = 'y' WHERE id = 1")
    let merged = try bench.buckia(["merge", "base.db", "ours.db", "theirs.db", "-o", "out.db"])
    #expect(merged.output.contains("the row of OURS was kept"), "\(merged.output)")
    let shown = try bench.buckia(["conflicts", "out.db"]).output
    #expect(shown.contains("OURS and THEIRS have changed the row; the row of OURS was kept."), "\(shown)")
    #expect(try bench.buckia(["resolve", "out.db", "1", "--take", "theirs"]).status == 0)
    let decided = try bench.buckia(["conflicts", "out.db"]).output
    #expect(decided.contains(": the row of THEIRS."), "\(decided)")
    #expect(!(shown + decided).contains("incoming"))
  }

  @Test("A missing base is refused, and an empty file stands for no base")
  func missingBase() throws {
    let bench = try ServedDatabases.apart()
    let refused = try bench.buckia(["merge", "odl.db", "ben.db", "new.db", "-o", "merged.db"])
    #expect(
      refused.status == 1 && refused.diagnostics.contains("odl.db: there is no such base"), "\(refused.diagnostics)")
    #expect(try !bench.names().contains("merged.db"))
    #expect(try bench.buckia(["merge", "/dev/null", "ben.db", "new.db", "-o", "merged.db"]).status == 2)
  }
}
