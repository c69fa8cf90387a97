import SQLiteFiles
import TestSupport
import Testing

@testable import BuckiaSharing

/// Digests as the ledger stores them.
@Suite struct LeafDigestPiecesTests {
  private static func digests(_ count: Int, seed: UInt64 = 1) -> [LeafDigest] {
    var random = SeededGenerator(seed: seed)
    return (0..<count).map {
      LeafDigest(firstRowID: Int64($0) * 50 - 1_000, hash: PageHash(high: random.next(), low: random.next()))
    }
  }

  @Test(arguments: [0, 1, 2, 5_000])
  func `digests are divided into pieces and put together again`(count: Int) throws {
    let digests = Self.digests(count)
    let found = try #require(LeafDigestPieces.digests(in: LeafDigestPieces.pieces(of: digests)))
    #expect(found.map(\.firstRowID) == digests.map(\.firstRowID))
    #expect(found.map(\.hash) == digests.map(\.hash))
  }

  @Test func `an additional leaf changes one piece or two`() {
    let digests = Self.digests(5_000)
    var more = digests
    more.insert(LeafDigest(firstRowID: 100_010, hash: PageHash(high: 1, low: 3)), at: 2_021)
    more[2_020] = LeafDigest(firstRowID: more[2_020].firstRowID, hash: PageHash(high: 1, low: 2))
    let (before, after) = (LeafDigestPieces.pieces(of: digests), LeafDigestPieces.pieces(of: more))
    #expect(before.count > 40)
    #expect(after.filter { before[$0.key] != $0.value }.count <= 2)
  }

  @Test func `the leaves of moved rows are forgotten, and no others`() throws {
    let digests = Self.digests(200)
    let pieces = LeafDigestPieces.pieces(of: digests)
    let found = try #require(
      LeafDigestPieces.digests(in: LeafDigestPieces.forgetting([-5_000, -949, -1, 0, 100_000], in: pieces)))
    #expect(found.map(\.firstRowID) == digests.map(\.firstRowID))
    #expect(found.indices.filter { found[$0].hash == nil } == [0, 1, 19, 20, 199])
    #expect(found.indices.allSatisfy { found[$0].hash == nil || found[$0].hash == digests[$0].hash })
  }

  @Test func `damaged pieces are refused`() throws {
    let pieces = LeafDigestPieces.pieces(of: Self.digests(100))
    let (first, bytes) = try #require(pieces.min { $0.key < $1.key })
    #expect(LeafDigestPieces.digests(in: [first: []]) == nil)
    #expect(LeafDigestPieces.digests(in: [first: Array(bytes.dropLast())]) == nil)
    #expect(LeafDigestPieces.digests(in: [first + 1: bytes]) == nil)
    #expect(LeafDigestPieces.digests(in: [first: bytes + bytes]) == nil)
  }
}
