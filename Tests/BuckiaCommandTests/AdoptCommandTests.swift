import Foundation
import Testing

@Suite("buckia apply --schema adopt")
struct AdoptCommandTests {
  @Test("A dry run shows each statement and changes nothing; then the author's schema is adopted")
  func dryRun() throws {
    let bench = try Workbench()
    try bench.sql(
      "old.db",
      "CREATE TABLE notes(id INTEGER PRIMARY KEY, text TEXT); INSERT INTO notes VALUES(1, 'a'); CREATE TABLE gone(a); CREATE INDEX i ON notes(text)"
    )
    for name in ["new.db", "mine.db"] {
      try FileManager.default.copyItem(atPath: bench.path("old.db"), toPath: bench.path(name))
    }
    try bench.sql(
      "new.db",
      """
      CREATE TABLE made(id INTEGER PRIMARY KEY, text TEXT NOT NULL CHECK (text <> '')); INSERT INTO made SELECT * FROM notes;
      DROP TABLE notes; ALTER TABLE made RENAME TO notes; DROP TABLE gone; CREATE VIEW texts AS SELECT text FROM notes
      """)
    #expect(
      try bench.buckia(["diff", "old.db", "new.db", "-o", "changes.bdiff", "--json"]).json["includesSchema"] as? Bool
        == true)
    let statements = try #require(
      try bench.buckia(["show", "changes.bdiff", "--json"]).json["statements"] as? [[String: String]])
    #expect(statements.map { $0["name"] } == ["notes", "texts"])
    #expect(statements.last == ["kind": "view", "name": "texts", "sql": "CREATE VIEW texts AS SELECT text FROM notes"])
    let schema = "SELECT type, name, sql FROM sqlite_schema WHERE tbl_name NOT LIKE 'buckia%' ORDER BY type, name"
    let before = try bench.sql("mine.db", schema)
    let dry = try bench.buckia(["apply", "mine.db", "changes.bdiff", "--schema", "adopt", "--dry-run"])
    #expect(dry.status == 0, "\(dry.output)\(dry.diagnostics)")
    // Lines may be wrapped.
    let shown = dry.output.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    for part in [
      "drop gone: table gone", "drop notes: index i", "rebuild notes: CREATE TABLE \"notes\"(id INTEGER PRIMARY KEY,",
      "create texts: CREATE VIEW texts AS SELECT text FROM notes",
    ] {
      #expect(shown.contains(part), "\(dry.output)")
    }
    #expect(try bench.sql("mine.db", schema) == before)
    #expect(try bench.buckia(["apply", "mine.db", "changes.bdiff", "--schema", "adopt"]).status == 0)
    #expect(try bench.sql("mine.db", schema) == bench.sql("new.db", schema))
    #expect(try bench.sql("mine.db", "SELECT * FROM notes") == ["1|a"])
  }
}
