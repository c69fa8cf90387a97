@testable import BuckiaApply
import BuckiaLedger
import SQLiteChangesets
import TestSupport
import Testing

/// The effects of a large diff, compressed while it is being applied.
@Suite("Effects of large diffs") struct EffectLogTests {
  @Test("After rewinding to any point, the changes before it remain", arguments: 0..<20)
  func rewound(_ seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let compressor = EffectCompressor()
    var all: [UInt8] = []
    for number in 0..<Int.random(in: 1...12, using: &random) {
      let changes = (0..<Int.random(in: 1...4_000, using: &random)).map { _ in UInt8.random(in: 0...3, using: &random) }
      compressor.add(EffectBlock.Piece(entry: 7, number == 0 ? .diff : .none, of: nil, changes: changes))
      all += changes
    }
    let mark = Int.random(in: 0...all.count, using: &random)
    let rest = try compressor.rewind(to: mark)
    let blocks = try compressor.finish()
    #expect(try blocks.flatMap { try $0.pieces() }.flatMap(\.changes) + rest == Array(all[..<mark]))
    #expect(blocks.reduce(0) { $0 + $1.size } == mark - rest.count)
  }

  @Test("Pieces are read back unchanged")
  func pieces() throws {
    let table = AppliedEffects.Table(name: "t", columns: ["a", "b c"])
    let pieces = [
      EffectBlock.Piece(entry: 3, .diff, of: nil, changes: [1, 2, 3]),
      EffectBlock.Piece(entry: 3, .none, of: [table], changes: []),
      EffectBlock.Piece(entry: 4, .part, of: [], changes: [0]),
      EffectBlock.Piece(entry: 2, .unknown, of: [table, table], changes: [UInt8](repeating: 5, count: 100_000)),
    ]
    let read = try EffectBlock(pieces).pieces()
    #expect(read.map(\.entry) == [3, 3, 4, 2])
    #expect(read.map(\.beginning) == [.diff, .none, .part, .unknown])
    #expect(read.map(\.tables) == [nil, [table], [], [table, table]])
    #expect(read.map(\.changes) == pieces.map(\.changes))
    #expect(try EffectBlock(pieces).size == 100_004)
  }
}
