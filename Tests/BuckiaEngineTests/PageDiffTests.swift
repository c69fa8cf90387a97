import BuckiaEngine
import SQLiteChangesets
import SQLiteConnections
import Testing
import TestSupport

/// Comparing pages finds what comparing rows finds.
@Suite struct PageDiffTests {
  /// The changes of a difference, each as its bytes, in an order of their own.
  private static func changes(_ difference: DatabaseDifference) throws -> [[UInt8]] {
    try difference.changeset.withBytes { bytes in
      var changes: [[UInt8]] = []
      var reader = ChangesetReader()
      while let change = try reader.next(in: bytes) {
        changes.append(Array((reader.table?.name ?? "").utf8) + [0] + bytes.array(change.range))
      }
      return changes.sorted { $0.lexicographicallyPrecedes($1) }
    }
  }

  private static func compare(_ older: String, _ newer: String, _ note: @autoclosure () -> String) throws -> Int {
    let rows = try DatabaseComparison.run(older: older, newer: newer, options: DiffOptions(method: .rows))
    let pages = try DatabaseComparison.run(older: older, newer: newer, options: DiffOptions(method: .pages))
    let (wanted, found) = (try changes(rows), try changes(pages))
    if wanted != found {
      Issue.record("\(wanted.count) changes by rows, \(found.count) by pages\n\(note())")
    }
    #expect(rows.tables.map(\.definition) == pages.tables.map(\.definition))
    #expect(rows.skipped == pages.skipped)
    try #require(wanted == found)
    return pages.tables.count { $0.method == .pages }
  }

  @Test("The same changes, however the files came about", arguments: Seeds.shards)
  func likeRows(shard: Int) throws {
    var done = 0
    try Seeds.tryEach(120, shard: shard) { seed in
      let files = try RandomFiles(seed: seed)
      done += try Self.compare(files.older, files.newer, "\(Seeds.replay(seed))\n\(files.story)")
    }
    #expect(done > 0)
  }

  @Test("The same changes, whatever the tables and values", arguments: Seeds.shards)
  func likeRowsForAllTables(shard: Int) throws {
    try Seeds.tryEach(120, shard: shard) { seed in
      let pair = try RandomPair(seed: seed)
      _ = try Self.compare(pair.older, pair.newer, Seeds.replay(seed))
    }
  }
}
