import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import Testing
import TestSupport

@Suite("Rebasing by SQLite's rebase buffers")
struct RebaseBufferTests {
  @Test("random changesets and resolutions give the same bytes as in SQLite", arguments: Seeds.shards)
  func sameAsStock(shard: Int) throws {
    try Seeds.tryEach(160, shard: shard) { seed in
      let local = try RandomDatabase(seed: seed, hasLooseKeys: seed % 5 == 0)
      try local.addTrigger()
      local.diverge(seed: seed &+ 1)
      let recorded = try local.changes(20).changeset
      let other = try RandomDatabase(seed: seed)
      var random = SeededGenerator(seed: seed)
      var buffers: [[UInt8]] = []
      for step in 0..<Int.random(in: 1...3, using: &random) {
        other.diverge(seed: seed &+ 2 &+ UInt64(step))
        let answers = SharedGenerator(seed: seed &+ UInt64(step))
        buffers.append(
          try StockChangesets.resolutions(of: other.changes(20).changeset, appliedTo: local.connection) { question in
            let mayReplace = question.kind == .data || question.kind == .conflict
            return mayReplace && answers.isHeads() ? .replace : .omit
          })
      }
      let expected = try StockChangesets.rebase(recorded, resolving: buffers)
      let rebased = try Changesets.rebased(recorded, resolving: buffers)
      guard rebased == expected else {
        let (ours, stock) = try (lines(rebased), lines(expected))
        throw Difference(ours: ours.filter { !stock.contains($0) }, stock: stock.filter { !ours.contains($0) })
      }
      let output = TemporaryBuffer(memoryLimit: 0)
      try Changesets.rebase(TemporaryBuffer(recorded, windowBytes: 64), resolving: buffers, into: output)
      guard try output.allBytes() == expected else { throw Difference(ours: ["other bytes from a file"], stock: []) }
    }
  }

  private struct Difference: Error {
    let ours: [String]
    let stock: [String]
  }

  @Test("an invalid buffer, a patchset and a table that differs are refused")
  func refusals() throws {
    let local = changeset(.insert([1, "a"]))
    for (buffer, code) in [
      ([0x54, 1], ChangesetError.Code.truncated), ([18, 0], .changeBeforeTable),
      (changeset(.update(old: [1, "a"], new: [.undefined, "b"])), .unknownOperation),
      (changeset(.insert([.undefined, "a"])), .misplacedValue),
      (changeset(format: .patchset, .insert([1, "a"])), .needsChangeset),
      (changeset(key: [1, 0, 0], .insert([1, "a", 2])), .incompatibleTables),
      (changeset(.insert([1, "a"])) + changeset(key: [0, 1], .insert([1, "a"])), .incompatibleTables),
    ] {
      #expect(changesetError { _ = try Changesets.rebased(local, resolving: [buffer]) }?.code == code)
    }
    let patchset = changeset(format: .patchset, .insert([1, "a"]))
    #expect(changesetError { _ = try Changesets.rebased(patchset, resolving: []) }?.code == .needsChangeset)
    // Any prefix of a buffer is refused or read, without a crash.
    let buffer = changeset(.insert([1, "abc"]), .delete([2, 0.5]))
    for end in buffer.indices { _ = try? Changesets.rebased(local, resolving: [Array(buffer[..<end])]) }
  }
}

/// Answers of a callback, taken from a seed.
final class SharedGenerator {
  private var random: SeededGenerator
  init(seed: UInt64) { random = SeededGenerator(seed: seed) }
  func isHeads() -> Bool { Bool.random(using: &random) }
}
