import TestSupport
import Testing

/// Random histories of people who share with each other from the first step.
@Suite struct ShareHistoryTests {
  @Test(arguments: Seeds.shards)
  func shareHistories(shard: Int) throws {
    try Seeds.tryEach(120, shard: shard) { seed in
      let history = ShareHistory(seed: seed)
      guard let kind = try faults(of: history).faults.first?.kind else { return }
      let shortest = history.shrunk { shorter in
        do { return try faults(of: shorter).faults.contains { $0.kind == kind } } catch { return false }
      }
      let (found, script) = try faults(of: shortest)
      let lines = found.map { "\($0.kind) \(history.schema): \($0)" } + script
      throw Failure(description: "\(history)\n\(lines.joined(separator: "\n"))")
    }
  }

  private func faults(of history: ShareHistory) throws -> (faults: [ShareHistoryRun.Fault], script: [String]) {
    let run = try ShareHistoryRun(history)
    return (try run.faults(), run.script)
  }

  private struct Failure: Error, CustomStringConvertible {
    let description: String
  }
}
