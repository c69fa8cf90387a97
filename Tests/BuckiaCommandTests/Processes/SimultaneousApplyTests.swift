import Foundation
import Testing

@Suite("Several processes at once")
struct SimultaneousApplyTests {
  @Test(
    "Several processes that apply one folder at the same time give the result of one",
    arguments: Chain.Journal.allCases, [2, 5])
  func sameFolder(journal: Chain.Journal, processes: Int) throws {
    let chain = try Chain(count: 12)
    for round in 1...(processes == 2 ? 3 : 2) {
      try chain.deliver(to: "mine.db", inbound: "inbound", journal: journal)
      let running = try (0..<processes).map { _ in
        try RunningCommand(
          ["apply", "mine.db", "inbound", "--json", "--busy-timeout", "60000"], on: chain.bench)
      }
      var applied: [String] = []
      for command in running {
        let outcome = try command.outcome()
        #expect(outcome.status == 0, "\(outcome.output) \(outcome.diagnostics)")
        let diffs = try #require(try outcome.json["diffs"] as? [[String: Any]])
        let states = Set(diffs.compactMap { $0["state"] as? String })
        #expect(states.isSubset(of: ["applied", "already-applied"]), "\(outcome.output)")
        applied += diffs.filter { $0["state"] as? String == "applied" }.compactMap { $0["id"] as? String }
      }
      #expect(applied.count == chain.count, "each diff was applied by one process: \(applied)")
      #expect(Set(applied).count == chain.count)
      #expect(try chain.bench.names(in: "inbound").isEmpty)
      try chain.expectEnd(of: "mine.db", "round \(round)")
    }
  }

  @Test("A process that cannot get the lock in time reports it; the others continue", arguments: Chain.Journal.allCases)
  func impatient(journal: Chain.Journal) throws {
    let chain = try Chain(count: 6)
    try chain.deliver(to: "mine.db", inbound: "inbound", journal: journal)
    let running = try (0..<4).map { number in
      try RunningCommand(
        ["apply", "mine.db", "inbound", "--busy-timeout", number == 0 ? "60000" : "0"], on: chain.bench)
    }
    let statuses = try running.map { try $0.outcome().status }
    #expect(statuses[0] == 0)
    #expect(statuses.dropFirst().allSatisfy { $0 == 0 || $0 == 3 }, "\(statuses)")
    try chain.expectEnd(of: "mine.db", "\(statuses)")
  }

  @Test("Ids made by several processes at the same time are all different")
  func ids() throws {
    let chain = try Chain(count: 1)
    let running = try (0..<4).map { _ in
      try RunningCommand(["diff", "base.db", "end.db", "-o", "sent", "--json"], on: chain.bench)
    }
    let ids = try running.map { try #require(try $0.outcome().json["id"] as? String) }
    #expect(Set(ids).count == ids.count, "\(ids)")
    #expect(try chain.bench.names(in: "sent").count == ids.count + 1)
    let verified = try chain.bench.buckia(["verify", "sent"])
    #expect(verified.status == 0, "\(verified.output)")
  }
}
