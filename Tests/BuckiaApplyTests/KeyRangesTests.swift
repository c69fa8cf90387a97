import Testing

@testable import BuckiaApply

/// The start of a table's sequence.
@Suite struct KeyRangesTests {
  private static let block: Int64 = 1 << 20
  private static let epoch: Int64 = 1 << 40

  @Test func `a table without keys starts with the block`() {
    #expect(KeyRanges(block: 5).start(behind: 0) == 5 * Self.block)
    #expect(KeyRanges(block: 5).start(behind: -7) == 5 * Self.block)
    #expect(KeyRanges(block: 5).start(behind: 1_000) == 5 * Self.block)
  }

  @Test func `a sequence continues as long as it is in its block`() {
    let ranges = KeyRanges(block: 5)
    for greatest in [5 * Self.block, 5 * Self.block + 1, 5 * Self.block + 700_000, 9 * Self.epoch + 5 * Self.block + 3]
    {
      #expect(ranges.start(behind: greatest) == nil)
    }
    #expect(KeyRanges(block: 0).start(behind: 0) == nil)
  }

  @Test func `after keys of another block, a sequence continues in the next epoch, or later in the same one`() {
    let ranges = KeyRanges(block: 5)
    #expect(ranges.start(behind: 6 * Self.block) == Self.epoch + 5 * Self.block)
    #expect(ranges.start(behind: 4 * Self.block + 900_000) == 5 * Self.block)
    #expect(ranges.start(behind: 7 * Self.epoch + 4 * Self.block) == 7 * Self.epoch + 5 * Self.block)
    #expect(ranges.start(behind: 7 * Self.epoch + 8 * Self.block) == 8 * Self.epoch + 5 * Self.block)
  }

  @Test func `a block that is nearly full is left`() {
    #expect(KeyRanges(block: 5).start(behind: 5 * Self.block + 800_000) == Self.epoch + 5 * Self.block)
    #expect(KeyRanges(block: 5).start(behind: 6 * Self.block + 30) == Self.epoch + 5 * Self.block)
  }

  @Test func `without another epoch, a sequence continues unchanged`() {
    #expect(KeyRanges(block: 5).start(behind: .max) == nil)
    #expect(KeyRanges(block: 5).start(behind: .max - Self.epoch) != nil)
  }

  @Test func `several replicas never assign the same key, in any order of exchange`() {
    for seed in 0..<200 {
      var random = SystemRandomNumberGenerator()
      var blocks = Set<Int64>()
      while blocks.count < 4 { blocks.insert(Int64.random(in: 0..<1 << 20, using: &random)) }
      let replicas = blocks.map { KeyRanges(block: $0) }
      var known = Array(repeating: Int64(0), count: 4)
      var given: Set<Int64> = []
      for step in 0..<400 {
        let place = Int.random(in: 0..<4, using: &random)
        if Bool.random(using: &random) {
          known[place] = max(known[place], known[Int.random(in: 0..<4, using: &random)])
        }
        known[place] = replicas[place].start(behind: known[place]) ?? known[place]
        for _ in 0..<Int.random(in: 1...5, using: &random) {
          known[place] += 1
          #expect(given.insert(known[place]).inserted, "\(blocks), step \(step) of \(seed)")
        }
      }
    }
  }
}
