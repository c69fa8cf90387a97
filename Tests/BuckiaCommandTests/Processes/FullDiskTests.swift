import Foundation
import TestSupport
import Testing

@Suite("A full disk", .enabled(if: SmallVolume.isAvailable, SmallVolume.requirement))
struct FullDiskTests {
  /// A database on a small volume, and a diff that needs more room than is left there.
  private func nearlyFull(_ journal: Chain.Journal) throws -> (bench: Workbench, volume: SmallVolume) {
    let bench = try Workbench()
    let volume = try SmallVolume("volume", of: 4 << 20, on: bench)
    try FileManager.default.createDirectory(atPath: bench.path("inbound"), withIntermediateDirectories: true)
    let rows = "WITH RECURSIVE i(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM i WHERE x < 40)"
    try bench.sql("old.db", "CREATE TABLE t(id INTEGER PRIMARY KEY, b); INSERT INTO t VALUES (1000, 'here')")
    try FileManager.default.copyItem(atPath: bench.path("old.db"), toPath: bench.path("new.db"))
    try bench.sql("new.db", "\(rows) INSERT INTO t SELECT x, randomblob(20000) FROM i")
    try FileManager.default.copyItem(atPath: bench.path("old.db"), toPath: bench.path("volume/mine.db"))
    try bench.sql("volume/mine.db", "PRAGMA journal_mode = \(journal.rawValue)")
    return (bench, volume)
  }

  @Test("apply says so, changes and records nothing, and works once there is room", arguments: Chain.Journal.allCases)
  func apply(journal: Chain.Journal) throws {
    let (bench, volume) = try nearlyFull(journal)
    defer { volume.unmount() }
    #expect(try bench.buckia(["diff", "old.db", "new.db", "-o", "inbound"]).status == 0)
    #expect(try bench.buckia(["init", "volume/mine.db"]).status == 0)
    let before = try TestDatabases.content(of: bench.path("volume/mine.db"))
    try volume.fill(leaving: 200_000)
    let outcome = try bench.buckia(["apply", "volume/mine.db", "inbound", "--json"])
    #expect(outcome.status == 1, "\(outcome.output) \(outcome.diagnostics)")
    let error = try #require(try outcome.json["error"] as? [String: Any], "\(outcome.output)")
    #expect(error["code"] as? String == "sqlite-13")
    #expect((error["message"] as? String)?.contains("volume/mine.db: the disk is full; free some space") == true)
    #expect(try TestDatabases.content(of: bench.path("volume/mine.db")) == before)
    #expect(try bench.sql("volume/mine.db", "SELECT * FROM buckia_ledger; SELECT * FROM buckia_refused").isEmpty)
    #expect(try bench.names(in: "inbound").count == 1)
    try volume.makeRoom()
    #expect(try bench.buckia(["apply", "volume/mine.db", "inbound"]).status == 0)
    #expect(try bench.sql("volume/mine.db", "SELECT count(*) FROM t; PRAGMA integrity_check") == ["41", "ok"])
  }

  @Test("Not even the ledger fits: nothing has changed", arguments: Chain.Journal.allCases)
  func noRoomAtAll(journal: Chain.Journal) throws {
    let (bench, volume) = try nearlyFull(journal)
    defer { volume.unmount() }
    #expect(try bench.buckia(["diff", "old.db", "new.db", "-o", "inbound"]).status == 0)
    try volume.fill(leaving: 0)
    let outcome = try bench.buckia(["apply", "volume/mine.db", "inbound"])
    #expect(outcome.status == 1, "\(outcome.output) \(outcome.diagnostics)")
    #expect(outcome.diagnostics.contains("volume/mine.db: "))
    try volume.makeRoom()
    #expect(try bench.sql("volume/mine.db", "SELECT name FROM sqlite_schema; SELECT b FROM t") == ["t", "here"])
  }

  @Test("diff says so and leaves no file behind", arguments: [[], ["--raw"]])
  func diff(options: [String]) throws {
    let (bench, volume) = try nearlyFull(.rollback)
    defer { volume.unmount() }
    try volume.fill(leaving: 100_000)
    let outcome = try bench.buckia(["diff", "old.db", "new.db", "-o", "volume", "--json"] + options)
    #expect(outcome.status == 1)
    let error = try #require(try outcome.json["error"] as? [String: Any], "\(outcome.output)")
    #expect(error["code"] as? String == "fullDisk")
    #expect((error["path"] as? String)?.hasPrefix("volume/") == true)
    #expect(try FileManager.default.contentsOfDirectory(atPath: volume.path).sorted() == ["filling", "mine.db"])
    try volume.makeRoom()
    #expect(try bench.buckia(["diff", "old.db", "new.db", "-o", "volume"] + options).status == 0)
    #expect(try bench.buckia(["verify", "volume"]).status == 0)
  }

  @Test("No room for temporary files: diff and apply say which folder it is")
  func temporaryFiles() throws {
    let bench = try Workbench()
    let volume = try SmallVolume("small", of: 1 << 20, on: bench)
    defer { volume.unmount() }
    try bench.sql("old.db", "CREATE TABLE t(id INTEGER PRIMARY KEY, b)")
    try bench.sql(
      "new.db",
      """
      CREATE TABLE t(id INTEGER PRIMARY KEY, b);
      WITH RECURSIVE i(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM i WHERE x < 5)
      INSERT INTO t SELECT x, zeroblob(8000000) FROM i
      """)
    let crowded = ["TMPDIR": volume.path]
    let refused = try bench.buckia(["diff", "old.db", "new.db", "-o", "x.bdiff", "--json"], environment: crowded)
    #expect(refused.status == 1)
    #expect((try refused.json["error"] as? [String: Any])?["code"] as? String == "fullDisk", "\(refused.output)")
    #expect(try bench.names() == ["new.db", "old.db", "small"])

    #expect(try bench.buckia(["diff", "old.db", "new.db", "-o", "x.bdiff"]).status == 0)
    let outcome = try bench.buckia(["apply", "old.db", "x.bdiff"], environment: crowded)
    #expect(outcome.status == 1)
    // The report says so: other files of the folder would have gone on.
    #expect(outcome.output.contains(volume.path), "\(outcome.output)")
    #expect(try bench.sql("old.db", "SELECT * FROM t; SELECT * FROM buckia_ledger; SELECT * FROM buckia_refused") == [])
    #expect(try bench.buckia(["apply", "old.db", "x.bdiff"]).status == 0)
  }
}
