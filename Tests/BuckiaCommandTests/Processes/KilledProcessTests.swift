import Foundation
import SQLiteConnections
import TestSupport
import Testing

@Suite("Killed at any point")
struct KilledProcessTests {
  @Test("apply, killed again and again, finally applies each diff exactly once", arguments: Chain.Journal.allCases)
  func apply(journal: Chain.Journal) throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = SeededRandom(seed: seed)
    let chain = try Chain(count: 40)
    try chain.deliver(to: "mine.db", inbound: "inbound", journal: journal)
    var kills = 0
    // Each kill waits for progress, not only for the clock, so that slow machines are interrupted as often as fast
    // ones.
    for target in stride(from: chain.count - 1, through: 1, by: -4) {
      let command = try RunningCommand(
        ["apply", "mine.db", "inbound", "--busy-timeout", "60000"], on: chain.bench)
      while command.isRunning, try chain.bench.names(in: "inbound").count > target { usleep(200) }
      usleep(random.next(below: 8_000))
      if command.killNow() { kills += 1 }
    }
    let last = try chain.bench.buckia(["apply", "mine.db", "inbound", "--json"])
    #expect(last.status == 0, "seed \(seed): \(last.output) \(last.diagnostics)")
    #expect(try chain.bench.names(in: "inbound").isEmpty, "seed \(seed)")
    #expect(kills > 0, "seed \(seed)")
    try chain.expectEnd(of: "mine.db", "seed \(seed), \(kills) kills")
  }

  @Test("diff, killed while it writes, leaves no incomplete file under the final name, and no others for good")
  func diff() throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = SeededRandom(seed: seed)
    let bench = try Workbench()
    try FileManager.default.createDirectory(atPath: bench.path("out"), withIntermediateDirectories: true)
    let rows = "WITH RECURSIVE i(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM i WHERE x < 6)"
    try bench.sql("old.db", "CREATE TABLE t(id INTEGER PRIMARY KEY, b BLOB)")
    try bench.sql(
      "new.db",
      "CREATE TABLE t(id INTEGER PRIMARY KEY, b BLOB); \(rows) INSERT INTO t SELECT x, randomblob(1000000) FROM i")
    var kills = 0
    // A fast machine may need more attempts to be interrupted.
    for round in 0..<100 where round < 12 || kills == 0 {
      let left = try Self.names(in: "out", of: bench)
      let command = try RunningCommand(["diff", "old.db", "new.db", "-o", "out"], on: bench)
      // Every other round waits until the file is being written.
      while command.isRunning, round.isMultiple(of: 2), try Self.names(in: "out", of: bench) == left { usleep(200) }
      usleep(random.next(below: round.isMultiple(of: 2) ? 60_000 : 250_000))
      if command.killNow() { kills += 1 }
      for name in try Self.names(in: "out", of: bench) {
        if name.hasPrefix(".buckia-"), name.hasSuffix(".tmp") { continue }
        let verified = try bench.buckia(["verify", "out/\(name)"])
        #expect(verified.status == 0, "seed \(seed), round \(round), \(name): \(verified.output)")
        try FileManager.default.removeItem(atPath: bench.path("out/\(name)"))
      }
    }
    #expect(kills > 0, "seed \(seed)")
    #expect(try bench.buckia(["diff", "old.db", "new.db", "-o", "out"]).status == 0)
    #expect(try bench.buckia(["verify", "out"]).status == 0)
    #expect(try Self.names(in: "out", of: bench).filter { $0.hasPrefix(".buckia-") } == [])
  }

  @Test(
    "share, killed again and again, writes each file once, and its recipient misses none",
    arguments: Chain.Journal.allCases)
  func share(journal: Chain.Journal) throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = SeededRandom(seed: seed)
    let bench = try Workbench()
    func home(_ name: String) -> [String] { ["--home", bench.path("home of \(name)")] }
    for name in ["Anna", "Ben"] {
      #expect(try bench.buckia(["identity", "new", "--name", name] + home(name)).status == 0)
      let card = try bench.buckia(["identity", "show"] + home(name)).output
      try card.write(toFile: bench.path("\(name).card"), atomically: true, encoding: .utf8)
    }
    for (name, other) in [("Anna", "Ben"), ("Ben", "Anna")] {
      #expect(try bench.buckia(["contact", "add", "\(other).card"] + home(name)).status == 0)
      #expect(try bench.trust(other, options: home(name)).status == 0)
    }
    try bench.sql(
      "anna.db",
      """
      PRAGMA journal_mode = \(journal.rawValue);
      CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT);
      WITH RECURSIVE i(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM i WHERE x < 2000)
      INSERT INTO note SELECT x, hex(randomblob(100)) FROM i
      """)
    try bench.sql("ben.db", "PRAGMA user_version = 1")
    try FileManager.default.createDirectory(atPath: bench.path("outbox"), withIntermediateDirectories: true)
    let arguments = ["share", "anna.db", "--to", "Ben", "--table", "note", "-o", "outbox"] + home("Anna")
    let start = ContinuousClock.now
    #expect(try bench.buckia(arguments + ["--dry-run"]).status == 0)
    let elapsed: Double = (ContinuousClock.now - start) / .microseconds(1)
    let duration = UInt32(min(10_000_000, max(1_000, elapsed)))
    var kills = 0
    for round in 1...8 {
      let context = "seed \(seed), round \(round)"
      try bench.sql(
        "anna.db",
        """
        UPDATE note SET text = hex(randomblob(100)) WHERE id % 10 = \(round - 1);
        INSERT INTO note(text) VALUES ('round \(round)')
        """)
      let before = try Self.names(in: "outbox", of: bench)
      let command = try RunningCommand(arguments, on: bench)
      // Every other round waits until the file is being written.
      let waits = round.isMultiple(of: 2)
      while command.isRunning, waits, try Self.names(in: "outbox", of: bench).count == before.count { usleep(200) }
      usleep(random.next(below: waits ? 3_000 : duration))
      if command.killNow() { kills += 1 }
      // The existing files by name: undelivered or written.
      let undelivered = try Self.undelivered(by: bench.path("anna.db"))
      var written: [String: [UInt8]] = [:]
      for name in try bench.names(in: "outbox") { written[name] = try fileBytes(bench.path("outbox/\(name)")) }

      let outcome = try bench.buckia(arguments)
      #expect(outcome.status == 0, "\(context): \(outcome.diagnostics)")
      #expect(try Self.undelivered(by: bench.path("anna.db")).isEmpty, "\(context)")
      for (name, bytes) in undelivered.merging(written, uniquingKeysWith: { $1 }) {
        #expect(try fileBytes(bench.path("outbox/\(name)")) == bytes, "\(context)")
        if let made = undelivered[name] { #expect(made == bytes, "\(context)") }
      }
      // Each round has changed something, so it has made exactly one file.
      #expect(
        try bench.sql(
          "anna.db",
          """
          SELECT count(*), count(DISTINCT sequence), max(sequence), count(DISTINCT diff), sum(is_delivered)
          FROM buckia_outbox
          """) == [Array(repeating: "\(round)", count: 5).joined(separator: "|")], "\(context)")
      #expect(
        try bench.names(in: "outbox") == bench.sql("anna.db", "SELECT file FROM buckia_outbox ORDER BY file"),
        "\(context)")
    }
    #expect(kills > 0, "seed \(seed)")
    let applied = try bench.buckia(["apply", "ben.db", "outbox", "--trust", "known", "--json"] + home("Ben"))
    #expect(applied.status == 0, "seed \(seed): \(applied.output) \(applied.diagnostics)")
    let diffs = try #require(try applied.json["diffs"] as? [[String: Any]])
    #expect(diffs.map { $0["state"] as? String } == Array(repeating: "applied", count: 8), "seed \(seed)")
    #expect(try bench.names(in: "outbox").isEmpty, "seed \(seed)")
    let notes = "SELECT id, text FROM note ORDER BY id"
    #expect(try bench.sql("ben.db", notes) == bench.sql("anna.db", notes), "seed \(seed)")
  }

  /// The undelivered files of a database, by name.
  private static func undelivered(by database: String) throws -> [String: [UInt8]] {
    // Opened for writing, because only that rolls back a journal left behind.
    let connection = try SQLiteConnection(opening: database, as: .readWrite)
    guard try connection.integer("SELECT 1 FROM sqlite_schema WHERE name = 'buckia_outbox'") != nil else { return [:] }
    var found: [String: [UInt8]] = [:]
    let pieces = """
      SELECT o.file, p.bytes FROM buckia_outbox_piece AS p JOIN buckia_outbox AS o ON o.diff = p.diff ORDER BY p.piece
      """
    try connection.forEachRow(of: pieces) { row in found[row.text(at: 0) ?? "", default: []] += row.blob(at: 1) }
    return found
  }

  /// All names, including hidden ones.
  private static func names(in folder: String, of bench: Workbench) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: bench.path(folder))
  }
}

/// Random numbers that a printed seed reproduces (splitmix64).
struct SeededRandom {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  /// A number from 0 to `limit - 1`.
  mutating func next(below limit: UInt32) -> UInt32 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return UInt32(truncatingIfNeeded: (mixed ^ (mixed >> 31)) >> 32) % limit
  }
}
