import Foundation
import SQLiteConnections
import TestSupport
import Testing

@Suite("Locked, interrupted and invalid databases")
struct UnfitDatabaseTests {
  /// A database of some pages, and a diff for it in `inbound`.
  private func delivered() throws -> Workbench {
    let bench = try Workbench()
    try FileManager.default.createDirectory(atPath: bench.path("inbound"), withIntermediateDirectories: true)
    try bench.sql(
      "mine.db",
      """
      CREATE TABLE t(id INTEGER PRIMARY KEY, b TEXT);
      WITH RECURSIVE i(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM i WHERE x < 200)
      INSERT INTO t SELECT x, hex(zeroblob(200)) FROM i
      """)
    try FileManager.default.copyItem(atPath: bench.path("mine.db"), toPath: bench.path("new.db"))
    try bench.sql("new.db", "UPDATE t SET b = 'new' WHERE id % 20 = 0")
    #expect(try bench.buckia(["diff", "mine.db", "new.db", "-o", "inbound"]).status == 0)
    return bench
  }

  @Test("A locked database is busy: exit code 3, nothing recorded, and reading still works", arguments: [false, true])
  func locked(isWAL: Bool) throws {
    let bench = try delivered()
    try bench.sql("mine.db", "PRAGMA journal_mode = \(isWAL ? "WAL" : "DELETE")")
    #expect(try bench.buckia(["init", "mine.db"]).status == 0)
    let other = try SQLiteConnection(opening: bench.path("mine.db"), as: .readWrite)
    try other.execute("BEGIN IMMEDIATE")
    let outcome = try bench.buckia(["apply", "mine.db", "inbound", "--busy-timeout", "100", "--json"])
    #expect(outcome.status == 3)
    let error = try #require(try outcome.json["error"] as? [String: Any])
    #expect(error["code"] as? String == "busy")
    #expect((error["message"] as? String)?.hasPrefix("mine.db: the database is locked") == true)
    #expect(try bench.buckia(["log", "mine.db", "--busy-timeout", "0"]).status == 0, "readers do not mind")
    #expect(try bench.buckia(["diff", "mine.db", "new.db", "-o", "again.bdiff"]).status == 0)
    try other.execute("ROLLBACK")
    #expect(try bench.sql("mine.db", "SELECT * FROM buckia_ledger; SELECT * FROM buckia_refused").isEmpty)
    #expect(try bench.buckia(["apply", "mine.db", "inbound"]).status == 0)
  }

  @Test("apply rolls back a hot journal first; commands that only read give advice")
  func hotJournal() throws {
    let bench = try delivered()
    do {
      // Half a transaction, as left by a power cut: pages overwritten, the old ones in a synced journal.
      let other = try SQLiteConnection(opening: bench.path("mine.db"), as: .readWrite)
      try other.execute("PRAGMA cache_size = 1; BEGIN; UPDATE t SET b = hex(zeroblob(199))")
      for suffix in ["", "-journal"] {
        try FileManager.default.copyItem(
          atPath: bench.path("mine.db\(suffix)"), toPath: bench.path("torn.db\(suffix)"))
      }
      try other.execute("ROLLBACK")
    }
    for arguments in [["log", "torn.db"], ["diff", "torn.db", "new.db", "-o", "x.bdiff"]] {
      let outcome = try bench.buckia(arguments)
      #expect(outcome.status == 1)
      #expect(outcome.diagnostics.contains("torn.db: an interrupted transaction"), "\(outcome.diagnostics)")
    }
    let outcome = try bench.buckia(["apply", "torn.db", "inbound"])
    #expect(outcome.status == 0, "\(outcome.output) \(outcome.diagnostics)")
    #expect(try bench.sql("torn.db", "PRAGMA integrity_check; SELECT count(*) FROM buckia_conflict") == ["ok", "0"])
    #expect(
      try TestDatabases.content(of: bench.path("torn.db")) == TestDatabases.content(of: bench.path("new.db")))
    #expect(try bench.buckia(["log", "torn.db"]).status == 0)
  }

  @Test(
    "A truncated database is an error that names it, and keeps each byte",
    arguments: [50, 99, 100, 4_096, 5_000, 40_960, -4_096])
  func truncated(count: Int) throws {
    let bench = try delivered()
    let whole = try Data(contentsOf: bench.folder.appendingPathComponent("mine.db"))
    let kept = whole.prefix(count > 0 ? count : whole.count + count)
    try kept.write(to: bench.folder.appendingPathComponent("cut.db"))
    for arguments in [["apply", "cut.db", "inbound"], ["diff", "cut.db", "new.db", "-o", "x.bdiff"]] {
      let outcome = try bench.buckia(arguments)
      #expect(outcome.status == 1, "\(arguments): \(outcome.output)")
      #expect(outcome.diagnostics.contains("cut.db: "), "\(outcome.diagnostics)")
    }
    #expect(try Data(contentsOf: bench.folder.appendingPathComponent("cut.db")) == kept)
    #expect(try bench.names(in: "inbound").count == 1)
    #expect(try bench.names() == ["cut.db", "inbound", "mine.db", "new.db"])
  }

  @Test("A folder in place of a database is named", arguments: ["apply", "log", "doctor", "diff", "init"])
  func folder(command: String) throws {
    let bench = try delivered()
    try FileManager.default.createDirectory(atPath: bench.path("folder.db"), withIntermediateDirectories: true)
    let rest = command == "apply" ? ["inbound"] : command == "diff" ? ["mine.db", "-o", "x.bdiff"] : []
    let outcome = try bench.buckia([command, "folder.db"] + rest)
    #expect(outcome.status == 1)
    #expect(outcome.diagnostics.contains("folder.db: "), "\(outcome.diagnostics)")
    #expect(try bench.names(in: "folder.db").isEmpty)
  }

  @Test("An empty file can be read and receive rows, but is no side of a comparison")
  func emptyFile() throws {
    let bench = try delivered()
    try Data().write(to: bench.folder.appendingPathComponent("empty.db"))
    #expect(try bench.buckia(["doctor", "empty.db"]).status == 0)
    #expect(try bench.buckia(["log", "empty.db"]).status == 0)
    let refused = try bench.buckia(["diff", "empty.db", "new.db", "-o", "all.bdiff"])
    #expect(refused.status == 1 && refused.diagnostics.contains("empty.db"), "\(refused.diagnostics)")
    try bench.sql("none.db", "CREATE TABLE t(id INTEGER PRIMARY KEY, b TEXT)")
    #expect(try bench.buckia(["diff", "none.db", "new.db", "-o", "all.bdiff"]).status == 0)
    #expect(try bench.buckia(["apply", "empty.db", "all.bdiff"]).status == 0)
    #expect(
      try TestDatabases.content(of: bench.path("empty.db")) == TestDatabases.content(of: bench.path("new.db")))
  }
}
