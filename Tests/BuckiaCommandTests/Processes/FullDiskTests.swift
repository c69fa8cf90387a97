import Foundation
import TestSupport
import Testing

@Suite("A full disk", .enabled(if: SmallVolume.isAvailable, SmallVolume.requirement))
struct FullDiskTests {
  /// A database on a small volume, and a diff that needs more room than the volume has left.
  private func nearlyFull(
    _ journal: Chain.Journal, of bytes: Int = 4 << 20
  ) throws -> (bench: Workbench, volume: SmallVolume) {
    let bench = try Workbench()
    let volume = try SmallVolume("volume", of: bytes, on: bench)
    try FileManager.default.createDirectory(atPath: bench.path("inbound"), withIntermediateDirectories: true)
    let rows = "WITH RECURSIVE i(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM i WHERE x < 40)"
    try bench.sql("old.db", "CREATE TABLE t(id INTEGER PRIMARY KEY, b); INSERT INTO t VALUES (1000, 'here')")
    try FileManager.default.copyItem(atPath: bench.path("old.db"), toPath: bench.path("new.db"))
    try bench.sql("new.db", "\(rows) INSERT INTO t SELECT x, randomblob(20000) FROM i")
    try FileManager.default.copyItem(atPath: bench.path("old.db"), toPath: bench.path("volume/mine.db"))
    try bench.sql("volume/mine.db", "PRAGMA journal_mode = \(journal.rawValue)")
    return (bench, volume)
  }

  @Test("apply reports it, changes nothing, records nothing, and later works", arguments: Chain.Journal.allCases)
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

  @Test("Without room for the ledger nothing changes", arguments: Chain.Journal.allCases)
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

  @Test("diff reports it and leaves no file behind", arguments: [[], ["--raw"]])
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

  @Test("Without room for temporary files, diff and apply name the folder")
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
    // The report contains the error: other files of the folder would have been applied.
    #expect(outcome.output.contains(volume.path), "\(outcome.output)")
    #expect(try bench.sql("old.db", "SELECT * FROM t; SELECT * FROM buckia_ledger; SELECT * FROM buckia_refused") == [])
    #expect(try bench.buckia(["apply", "old.db", "x.bdiff"]).status == 0)
  }

  // MARK: Rounds of sync

  private func settings(_ bench: Workbench, folder: String, storage: String) throws {
    let text = """
      user: ben
      database: \(folder)/mine.db
      folder: \(folder)/files
      storage: { type: folder, path: \(storage) }
      """
    try Data(text.utf8).write(to: URL(fileURLWithPath: bench.path("ben.yaml")))
  }

  private func sync(_ bench: Workbench) throws -> Workbench.Outcome {
    try bench.buckia(["sync", "--config", "ben.yaml", "--json"])
  }

  @Test("A download without room leads to no upload and no deletion, and is repeated once there is room")
  func download() throws {
    // In the end the volume holds the database and its log, the diff, and a copy of the database.
    let (bench, volume) = try nearlyFull(.wal, of: 12 << 20)
    defer { volume.unmount() }
    try settings(bench, folder: "volume", storage: "storage")
    #expect(try sync(bench).status == 0)
    #expect(try bench.buckia(["diff", "old.db", "new.db", "-o", "storage/ben/inbound"]).status == 0)
    try bench.sql("volume/mine.db", "INSERT INTO t VALUES (2000, 'not backed up yet')")
    let before = try TestDatabases.content(of: bench.path("volume/mine.db"))
    let backups = try bench.names(in: "storage/ben/backups")
    try volume.fill(leaving: 150_000)
    let outcome = try sync(bench)
    #expect(outcome.status == 1, "\(outcome.output) \(outcome.diagnostics)")
    let failures = try #require(try outcome.json["failures"] as? [[String: Any]])
    let codes = failures.map { ($0["error"] as? [String: Any])?["code"] as? String }
    #expect(codes == ["fullDisk"], "\(outcome.output)")
    #expect(try bench.names(in: "storage/ben/inbound").count == 1)
    #expect(try bench.names(in: "storage/ben/backups") == backups)
    #expect(try FileManager.default.contentsOfDirectory(atPath: bench.path("volume/files/ben/inbound")).isEmpty)
    #expect(try TestDatabases.content(of: bench.path("volume/mine.db")) == before)
    try volume.makeRoom()
    let last = try sync(bench)
    #expect(last.status == 0, "\(last.output)")
    #expect(try bench.sql("volume/mine.db", "SELECT count(*) FROM t; PRAGMA integrity_check") == ["42", "ok"])
    #expect(try bench.names(in: "storage/ben/inbound").isEmpty)
  }

  @Test("A storage without room for the backup keeps the diffs that the backup would have included")
  func fullStorage() throws {
    let (bench, volume) = try nearlyFull(.wal)
    defer { volume.unmount() }
    try FileManager.default.createDirectory(atPath: bench.path("here"), withIntermediateDirectories: true)
    try FileManager.default.copyItem(atPath: bench.path("old.db"), toPath: bench.path("here/mine.db"))
    try settings(bench, folder: "here", storage: "volume/storage")
    #expect(try bench.buckia(["diff", "old.db", "new.db", "-o", "volume/storage/ben/inbound"]).status == 0)
    try volume.fill(leaving: 150_000)
    let outcome = try sync(bench)
    #expect(outcome.status == 1, "\(outcome.output) \(outcome.diagnostics)")
    let failures = try #require(try outcome.json["failures"] as? [[String: Any]])
    #expect(failures.contains { ($0["step"] as? String) == "backing-up" }, "\(outcome.output)")
    #expect(try bench.sql("here/mine.db", "SELECT count(*) FROM t") == ["41"])
    #expect(try bench.names(in: "volume/storage/ben/inbound").count == 1)
    // No incomplete file is left under any name, hidden or not.
    let left = try FileManager.default.subpathsOfDirectory(atPath: bench.path("volume/storage"))
    let expected = ["ben", "ben/backups", "ben/inbound", ".buckia-storage"]
    #expect(left.filter { !$0.contains("inbound/") && !expected.contains($0) } == [], "\(left)")
    try volume.makeRoom()
    #expect(try sync(bench).status == 0)
    #expect(try bench.names(in: "volume/storage/ben/inbound").isEmpty)
    #expect(try bench.names(in: "volume/storage/ben") == ["backups", "inbound"])
  }
}
