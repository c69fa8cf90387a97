import Foundation
import Testing

@Suite("buckia changeset rebase")
struct ChangesetRebaseCommandTests {
  /// A database, and the changes that two people have recorded on copies of it.
  private func twoPeople() throws -> Workbench {
    let bench = try Workbench()
    try bench.sql(
      "base.db",
      "CREATE TABLE notes(id INTEGER PRIMARY KEY, text, weight); INSERT INTO notes VALUES(1, 'a', 1), (2, 'b', 2), (3, 'c', 3)"
    )
    for (name, edits) in [
      ("mine", "UPDATE notes SET text = 'A' WHERE id < 3; INSERT INTO notes VALUES(4, 'mine', 0)"),
      (
        "theirs",
        "UPDATE notes SET text = 'x', weight = 9 WHERE id = 1; DELETE FROM notes WHERE id = 2; INSERT INTO notes VALUES(4, 'theirs', 0)"
      ),
    ] {
      try FileManager.default.copyItem(atPath: bench.path("base.db"), toPath: bench.path("\(name).db"))
      try bench.record("\(name).db", edits, to: "\(name).changeset")
    }
    return bench
  }

  @Test("Conflicts are listed with the side that won, and the result is applied without a conflict")
  func keepLocal() throws {
    let bench = try twoPeople()
    try Transcript(
      """
      $ buckia changeset rebase mine.changeset --onto theirs.changeset --schema base.db -o out.changeset
      out.changeset  … bytes in …

        table  inserted  updated  deleted
        notes         1        2        –

      3 conflicts, the local changes are kept:
        notes id 1: both set text
        notes id 2: the incoming changes delete it, the local ones change it
        notes id 4: both insert a row with this key

      Note: rows that refer to one which both have inserted mean different rows;
        --remap gives the local rows keys of their own
      """
    ).play(on: bench)
    try bench.applyWithSQLite("theirs.changeset", to: "base.db")
    try bench.applyWithSQLite("out.changeset", to: "base.db")
    #expect(
      try bench.sql("base.db", "SELECT id || text || weight FROM notes ORDER BY id")
        == (try bench.sql(
          "mine.db",
          "SELECT id || text || iif(id = 1, 9, weight) FROM notes WHERE id <> 3 UNION ALL SELECT '3c3' ORDER BY 1")))
  }

  @Test("With --remap the local row gets a free key, and the document lists it, the conflicts and the winners")
  func document() throws {
    let bench = try twoPeople()
    let document = try bench.buckia([
      "changeset", "rebase", "mine.changeset", "--onto", "theirs.changeset", "--schema", "base.db", "--remap",
      "--on-conflict", "take-incoming", "-o", "out.changeset", "--json",
    ]).json
    #expect(document["policy"] as? String == "take-incoming")
    #expect(document["conflictCount"] as? Int == 2)
    let conflicts = try #require(document["conflicts"] as? [[String: Any]])
    #expect(conflicts.map { $0["kind"] as? String } == ["updated-by-both", "deleted-by-incoming"])
    #expect(conflicts.map { ($0["key"] as? [String: Any])?["id"] as? Int } == [1, 2])
    #expect(conflicts[0]["columns"] as? [String] == ["text"])
    #expect(conflicts[0]["winner"] as? String == "incoming" && conflicts[0]["table"] as? String == "notes")
    let keys = try #require(document["remappedKeys"] as? [[String: Any]])
    #expect(keys.map { [$0["key"] as? Int, $0["newKey"] as? Int] } == [[4, 5]])
    try bench.applyWithSQLite("theirs.changeset", to: "base.db")
    try bench.applyWithSQLite("out.changeset", to: "base.db")
    #expect(try bench.buckia(["changeset", "rebase", "mine.changeset", "-o", "x"]).status == 64)
  }
}
