import BuckiaDiff
import SQLiteFiles
import TestSupport
import Testing

/// The keys of rows that may differ, found by their leaves.
@Suite struct KeyIntervalsTests {
  private static func leaf(_ first: Int64, _ hash: UInt64) -> LeafDigest {
    LeafDigest(firstRowID: first, hash: PageHash(high: hash, low: 1))
  }

  private static func intervals(_ older: [LeafDigest], _ newer: [LeafDigest]) -> [ClosedRange<Int64>] {
    KeyIntervals(from: older.map { ($0.firstRowID, $0.hash) }, to: newer).ranges
  }

  @Test func `equal leaves need no comparison`() {
    let leaves = [Self.leaf(1, 7), Self.leaf(10, 8), Self.leaf(20, 7)]
    #expect(Self.intervals(leaves, leaves).isEmpty)
    #expect(Self.intervals([], []).isEmpty)
  }

  @Test func `a leaf covers the keys up to the next, the first and the last leaf all keys beyond`() {
    let leaves = [Self.leaf(1, 7), Self.leaf(10, 8), Self.leaf(20, 9)]
    #expect(Self.intervals(leaves, [Self.leaf(1, 7), Self.leaf(10, 0), Self.leaf(20, 9)]) == [10...19])
    #expect(Self.intervals(leaves, [Self.leaf(1, 0), Self.leaf(10, 8), Self.leaf(20, 9)]) == [Int64.min...9])
    #expect(Self.intervals(leaves, [Self.leaf(1, 7), Self.leaf(10, 8), Self.leaf(20, 0)]) == [20...Int64.max])
    #expect(Self.intervals(leaves, []) == [Int64.min...Int64.max])
    #expect(Self.intervals([], leaves) == [Int64.min...Int64.max])
  }

  @Test func `deleted rows at the start of a leaf are compared`() {
    let older = [Self.leaf(1, 7), Self.leaf(11, 8), Self.leaf(30, 9)]
    let newer = [Self.leaf(1, 7), Self.leaf(15, 0), Self.leaf(30, 9)]
    #expect(Self.intervals(older, newer) == [11...29])
  }

  @Test func `a leaf without a digest is compared`() {
    let leaves = [Self.leaf(1, 7), Self.leaf(10, 8)]
    let found = KeyIntervals(from: [(1, nil), (10, leaves[1].hash)], to: leaves)
    #expect(found.ranges == [Int64.min...9])
  }

  @Test func `adjacent intervals are joined, up to the greatest key`() {
    let found = KeyIntervals([
      5...9, 10...12, 1...2, Int64.max...Int64.max, (Int64.max - 3)...Int64.max, 20...30, 25...26,
    ])
    #expect(found.ranges == [1...2, 5...12, 20...30, (Int64.max - 3)...Int64.max])
  }

  /// Rows on leaves of random sizes: every row on a leaf that only one side has is in an interval.
  @Test(arguments: Seeds.shards)
  func `every row that differs is in an interval`(shard: Int) throws {
    try Seeds.tryEach(400, shard: shard) { seed in
      var random = SeededGenerator(seed: seed)
      var older: [Int64: Int] = [:]
      for key in Int64(0)..<60 where random.oneIn(2) { older[key] = Int.random(in: 0..<3, using: &random) }
      var newer = older
      for _ in 0..<Int.random(in: 0...8, using: &random) {
        let key = Int64.random(in: 0..<60, using: &random)
        newer[key] = random.oneIn(3) ? nil : Int.random(in: 0..<3, using: &random)
      }
      let keepsLayout = random.oneIn(2)
      let cuts = (0..<6).map { _ in Int64.random(in: 0..<60, using: &random) }
      let others = (0..<6).map { _ in Int64.random(in: 0..<60, using: &random) }
      let one = Self.leaves(of: older, cutAt: Set(cuts))
      let other = Self.leaves(of: newer, cutAt: Set(keepsLayout ? cuts : others))
      let found = Self.intervals(one, other)
      for key in Int64(0)..<60 where older[key] != newer[key] {
        #expect(found.contains { $0.contains(key) }, "\(key): \(Seeds.replay(seed))")
      }
    }
  }

  private static func leaves(of rows: [Int64: Int], cutAt cuts: Set<Int64>) -> [LeafDigest] {
    var leaves: [[(Int64, Int)]] = []
    for (key, value) in rows.sorted(by: { $0.key < $1.key }) {
      if leaves.isEmpty || cuts.contains(key) { leaves.append([]) }
      leaves[leaves.count - 1].append((key, value))
    }
    return leaves.map { rows in
      leaf(rows[0].0, rows.reduce(1) { $0 &* 1_000_003 &+ UInt64($1.0) &* 31 &+ UInt64($1.1) })
    }
  }
}
