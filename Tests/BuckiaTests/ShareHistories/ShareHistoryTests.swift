import TestSupport
import Testing

/// Random histories of people who share from the first step on.
@Suite struct ShareHistoryTests {
  /// The kinds of faults that the engine still has. Such a kind is not looked for; the aim is an empty list.
  private static let kindsStillFailing: Set<ShareHistoryRun.Fault.Kind> = [
    .refused, .stateDiffers, .endless, .waiting, .dangling, .doubled, .unequal, .lost, .words,
  ]

  @Test(arguments: Seeds.shards)
  func shareHistories(shard: Int) throws {
    try Seeds.tryEach(200, shard: shard) { seed in
      let history = ShareHistory(seed: seed)
      guard let kind = try faults(of: history).faults.first?.kind else { return }
      let shortest = history.shrunk { shorter in
        do { return try faults(of: shorter).faults.contains { $0.kind == kind } } catch { return false }
      }
      let (found, script) = try faults(of: shortest)
      throw Failure(
        description:
          "\(history)\n\(found.map { "\($0.kind): \($0)" }.joined(separator: "\n"))\n\(script.joined(separator: "\n"))")
    }
  }

  private func faults(of history: ShareHistory) throws -> (faults: [ShareHistoryRun.Fault], script: [String]) {
    let run = try ShareHistoryRun(history)
    return (try run.faults().filter { !Self.kindsStillFailing.contains($0.kind) }, run.script)
  }

  private struct Failure: Error, CustomStringConvertible {
    let description: String
  }
}
