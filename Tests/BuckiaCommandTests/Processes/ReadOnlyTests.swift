import Foundation
import Testing

@Suite("A read-only volume", .enabled(if: SmallVolume.isAvailable, SmallVolume.requirement))
struct ReadOnlyTests {
  /// A read-only volume with two databases, a folder with a diff, and a ledger with an entry.
  private func readOnly(_ journal: Chain.Journal) throws -> (bench: Workbench, volume: SmallVolume, id: String) {
    let bench = try Workbench()
    let volume = try SmallVolume("disc", of: 4 << 20, on: bench)
    try FileManager.default.createDirectory(atPath: bench.path("disc/inbound"), withIntermediateDirectories: true)
    for name in ["disc/old.db", "disc/new.db"] {
      try bench.sql(name, "CREATE TABLE t(id INTEGER PRIMARY KEY, b); INSERT INTO t VALUES (1, 'a')")
    }
    try bench.sql("disc/new.db", "INSERT INTO t VALUES (2, 'b')")
    let first = try bench.buckia(["diff", "disc/old.db", "disc/new.db", "-o", "disc/inbound", "--json"]).json
    #expect(try bench.buckia(["apply", "disc/old.db", "disc/inbound"]).status == 0)
    try bench.sql("disc/new.db", "INSERT INTO t VALUES (3, 'c')")
    #expect(try bench.buckia(["diff", "disc/old.db", "disc/new.db", "-o", "disc/inbound"]).status == 0)
    for name in ["disc/old.db", "disc/new.db"] {
      try bench.sql(name, "PRAGMA journal_mode = \(journal.rawValue)")
    }
    #expect(try bench.names(in: "disc") == ["inbound", "new.db", "old.db"], "a WAL is gone with its last connection")
    try volume.remount(readOnly: true)
    return (bench, volume, try #require(first["id"] as? String))
  }

  @Test("Commands that only read work", arguments: Chain.Journal.allCases)
  func reading(journal: Chain.Journal) throws {
    let (bench, volume, id) = try readOnly(journal)
    defer { volume.unmount() }
    let name = try #require(try bench.names(in: "disc/inbound").first)
    for arguments in [
      ["verify", "disc/inbound"], ["show", "disc/inbound/\(name)"], ["doctor", "disc/old.db"],
      ["conflicts", "disc/old.db"], ["apply", "disc/old.db", "disc/inbound", "--dry-run"],
      ["diff", "disc/old.db", "disc/new.db", "-o", "here.bdiff"],
    ] {
      let outcome = try bench.buckia(arguments)
      #expect(outcome.status == 0, "\(arguments): \(outcome.output) \(outcome.diagnostics)")
    }
    let log = try bench.buckia(["log", "disc/old.db"])
    #expect(log.status == 0 && log.output.contains(id), "\(log.output) \(log.diagnostics)")
  }

  @Test("apply names the database, and changes nothing", arguments: Chain.Journal.allCases)
  func apply(journal: Chain.Journal) throws {
    let (bench, volume, _) = try readOnly(journal)
    defer { volume.unmount() }
    let outcome = try bench.buckia(["apply", "disc/old.db", "disc/inbound"])
    #expect(outcome.status == 1)
    let reason = journal == .wal ? "is in WAL mode, and the index of its write-ahead log" : "cannot be"
    #expect(outcome.diagnostics.contains("disc/old.db: the database \(reason)"), "\(outcome.diagnostics)")
    #expect(try bench.names(in: "disc/inbound").count == 1)
    try volume.remount(readOnly: false)
    #expect(try bench.buckia(["apply", "disc/old.db", "disc/inbound"]).status == 0)
    #expect(try bench.sql("disc/old.db", "SELECT count(*) FROM t") == ["3"])
  }

  @Test("With a read-only inbound folder, the diff is applied once, and the file stays with a warning")
  func folder() throws {
    let (bench, volume, _) = try readOnly(.rollback)
    defer { volume.unmount() }
    try FileManager.default.copyItem(atPath: bench.path("disc/old.db"), toPath: bench.path("mine.db"))
    let outcome = try bench.buckia(["apply", "mine.db", "disc/inbound"])
    #expect(outcome.status == 0, "\(outcome.diagnostics)")
    #expect(outcome.output.contains("cannot be removed"), "\(outcome.output)")
    #expect(try bench.buckia(["apply", "mine.db", "disc/inbound"]).output.contains("already-applied"))
    #expect(try bench.sql("mine.db", "SELECT count(*) FROM t; SELECT count(*) FROM buckia_ledger") == ["3", "2"])
  }

  @Test("diff into a read-only folder names the file")
  func output() throws {
    let (bench, volume, _) = try readOnly(.rollback)
    defer { volume.unmount() }
    let outcome = try bench.buckia(["diff", "disc/old.db", "disc/new.db", "-o", "disc"])
    #expect(outcome.status == 1)
    #expect(outcome.diagnostics.contains("disc/") && outcome.diagnostics.contains(".bdiff: it cannot be written"))
  }

  @Test("With a read-only home, diff writes its file and warns")
  func home() throws {
    let (bench, volume, _) = try readOnly(.rollback)
    defer { volume.unmount() }
    let outcome = try bench.buckia(
      ["diff", "disc/old.db", "disc/new.db"], environment: ["BUCKIA_HOME": bench.path("disc/home")])
    #expect(outcome.status == 0, "\(outcome.diagnostics)")
    #expect((outcome.output + outcome.diagnostics).contains("disc/home"))
  }
}
