import Foundation
import TestSupport
import Testing

@Suite("buckia status, and what other commands print about the replica")
struct StatusCommandTests {
  @Test("status lists received files, open conflicts and the next commands")
  func text() throws {
    try Transcript(
      """
      $ sql base.db CREATE TABLE t(id INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (1, 'a')
      $ cp base.db anna.db
      $ cp base.db ben.db
      $ buckia status ben.db
      The database has no ledger: nothing has been applied to it yet.

      Make the ledger: buckia init ben.db
      $ sql anna.db UPDATE t SET v = 'A'
      $ sql ben.db UPDATE t SET v = 'B'
      $ mkdir inbound
      $ buckia diff base.db anna.db -o inbound
      …
      $ buckia apply ben.db inbound
      …
      $ buckia status ben.db
      files        1 applied
      last entry   … UTC
      conflicts    1 open, 1 in all
      trust        any
      replica      …
      incarnation  …

      Look at 1 open conflict: buckia conflicts ben.db --open
      $ cp ben.db copy.db
      $ buckia status copy.db
      …
      Note: this database is a copy of another one that is still there; the next…
      …
      $ buckia init copy.db
      …
      Note: this database is a copy of
      …
      $ buckia status copy.db
      files        1 applied
      last entry   … UTC
      conflicts    1 open, 1 in all
      trust        any
      replica      …
      incarnation  …

      Look at 1 open conflict: buckia conflicts copy.db --open
      """
    ).play(on: Workbench())
  }

  @Test("The JSON document has the ledger, the streams, the replica and the next commands")
  func document() throws {
    let bench = try Workbench()
    try bench.sql("notes.db", "CREATE TABLE t(id INTEGER PRIMARY KEY, v)")
    let empty = try bench.buckia(["status", "notes.db", "--json"]).json
    #expect(empty["ledger"] is NSNull)
    #expect((empty["next"] as? [[String: Any]])?.first?["command"] as? String == "buckia init notes.db")
    #expect(try bench.buckia(["init", "notes.db"]).status == 0)
    let json = try bench.buckia(["status", "notes.db", "--json"]).json
    #expect(json["version"] as? Int == 1)
    #expect((json["ledger"] as? [String: Any])?["applied"] as? Int == 0)
    #expect((json["streams"] as? [Any])?.isEmpty == true)
    #expect((json["next"] as? [Any])?.isEmpty == true)
    #expect((json["replica"] as? [String: Any])?["standing"] as? String == "present")
    #expect((json["conflicts"] as? [String: Any])?["open"] as? Int == 0)
    #expect(try bench.buckia(["status", "missing.db"]).status == 1)
  }

  @Test("apply warns once of a restored backup, and show prints the replica that a file claims to be from")
  func restored() throws {
    let bench = try Workbench()
    try bench.sql("notes.db", "CREATE TABLE t(id INTEGER PRIMARY KEY, v)")
    #expect(try bench.buckia(["init", "notes.db"]).status == 0)
    let manager = FileManager.default
    try manager.copyItem(atPath: bench.path("notes.db"), toPath: bench.path("backup.db"))
    try bench.sql("notes.db", "INSERT INTO t VALUES (1, 1)")
    let made = try bench.buckia(["diff", "backup.db", "notes.db", "-o", "out", "--json"]).json
    let file = try #require(made["path"] as? String)
    #expect((made["warningCodes"] as? [Any])?.isEmpty == true)
    let shown = try bench.buckia(["show", file])
    #expect(shown.output.contains(/replica +claims to be [0-9a-f]{32}\n/), "\(shown.output)")
    #expect(shown.output.contains(/incarnation +[0-9a-f]{32}\n/))
    try Data(contentsOf: URL(fileURLWithPath: bench.path("backup.db"))).write(
      to: URL(fileURLWithPath: bench.path("notes.db")))
    let first = try bench.buckia(["apply", "notes.db", file])
    #expect(first.status == 0)
    #expect(first.output.contains("Note: this database is in an earlier state than when it was last used"))
    let second = try bench.buckia(["apply", "notes.db", file, "--json"]).json
    #expect((second["warningCodes"] as? [Any])?.isEmpty == true)
  }
}
