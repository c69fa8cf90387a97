import Foundation
import Testing

@Suite("Killed at any moment")
struct KilledProcessTests {
  @Test("apply, killed again and again, applies each diff exactly once in the end", arguments: Chain.Journal.allCases)
  func apply(journal: Chain.Journal) throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = SeededRandom(seed: seed)
    let chain = try Chain(count: 40)
    try chain.deliver(to: "mine.db", inbound: "inbound", journal: journal)
    var kills = 0
    // Kills are aimed by what has been done, not by the clock alone, so that slow machines see as many as fast ones.
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

  @Test("diff, killed while it writes, leaves no half-written file under the final name")
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
    for round in 0..<12 {
      let command = try RunningCommand(["diff", "old.db", "new.db", "-o", "out"], on: bench)
      // Every other round waits until the file is being written.
      while command.isRunning, round.isMultiple(of: 2), try Self.names(in: "out", of: bench).isEmpty { usleep(200) }
      usleep(random.next(below: round.isMultiple(of: 2) ? 60_000 : 250_000))
      if command.killNow() { kills += 1 }
      for name in try Self.names(in: "out", of: bench) {
        if name.hasPrefix(".buckia-"), name.hasSuffix(".tmp") {
          try FileManager.default.removeItem(atPath: bench.path("out/\(name)"))
          continue
        }
        let verified = try bench.buckia(["verify", "out/\(name)"])
        #expect(verified.status == 0, "seed \(seed), round \(round), \(name): \(verified.output)")
        try FileManager.default.removeItem(atPath: bench.path("out/\(name)"))
      }
    }
    #expect(kills > 0, "seed \(seed)")
    #expect(try bench.buckia(["diff", "old.db", "new.db", "-o", "out"]).status == 0)
    #expect(try bench.buckia(["verify", "out"]).status == 0)
  }

  /// All names, hidden ones too.
  private static func names(in folder: String, of bench: Workbench) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: bench.path(folder))
  }
}

/// Random numbers that a printed seed brings back (splitmix64).
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
