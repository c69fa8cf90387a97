import BuckiaDiff
import SQLiteFiles
import TestSupport
import Testing

@testable import BuckiaSharing

/// Digests of leaves whose rows are found by key, as the ledger stores them.
@Suite struct KeyLeafDigestPiecesTests {
  private static func digests(_ count: Int, seed: UInt64 = 1) -> [KeyLeafDigest] {
    var random = SeededGenerator(seed: seed)
    let keys = (0..<count).map { index in [3, 4] + Array("\(index + 1000)".utf8) }
    return keys.indices.map { place in
      let span = KeySpan(from: place == 0 ? nil : keys[place], to: place + 1 < count ? keys[place + 1] : nil)
      return KeyLeafDigest(span: span, hash: PageHash(high: random.next(), low: random.next()))
    }
  }

  @Test(arguments: [0, 1, 2, 5_000])
  func `digests are divided into pieces and put together again`(count: Int) throws {
    let digests = Self.digests(count)
    let found = try #require(KeyLeafDigestPieces.digests(in: KeyLeafDigestPieces.pieces(of: digests)))
    #expect(found.count == count)
    #expect(Set(found) == Set(digests))
  }

  @Test func `a changed leaf changes one piece`() {
    let digests = Self.digests(5_000)
    var other = digests
    other[2_020] = KeyLeafDigest(span: other[2_020].span, hash: PageHash(high: 1, low: 2))
    let (before, after) = (KeyLeafDigestPieces.pieces(of: digests), KeyLeafDigestPieces.pieces(of: other))
    #expect(before.count > 40)
    #expect(after.filter { before[$0.key] != $0.value }.count <= 2)
  }

  @Test func `damaged pieces are refused`() throws {
    let pieces = KeyLeafDigestPieces.pieces(of: Self.digests(100))
    let (first, bytes) = try #require(pieces.first)
    #expect(KeyLeafDigestPieces.digests(in: [first: []]) == nil)
    #expect(KeyLeafDigestPieces.digests(in: [first: Array(bytes.dropLast())]) == nil)
    #expect(KeyLeafDigestPieces.digests(in: [first: Array(bytes.prefix(4))]) == nil)
    #expect(KeyLeafDigestPieces.digests(in: [first + [0]: bytes]) == nil)
    #expect(KeyLeafDigestPieces.digests(in: [first: [255] + bytes.dropFirst()]) == nil)
  }

  @Test func `leaves that only one side has stand for the keys from their first one to the next`() throws {
    func print(_ first: UInt8?, _ next: UInt8?, _ hash: UInt64) -> KeyLeafDigest {
      KeyLeafDigest(span: KeySpan(from: first.map { [$0] }, to: next.map { [$0] }), hash: PageHash(high: 0, low: hash))
    }
    let older = [print(nil, 2, 1), print(2, 4, 2), print(4, 6, 3), print(6, nil, 4)]
    let newer = [print(nil, 2, 1), print(2, 3, 7), print(3, 5, 8), print(5, 6, 9), print(6, nil, 4)]
    let found = try #require(KeyLeafDigest.differences(of: older, newer))
    #expect(found.older == [KeySpan(from: [2], to: [6])])
    #expect(found.newer == [KeySpan(from: [2], to: [6])])
    #expect(KeyLeafDigest.differences(of: older, older).map { $0.older.isEmpty && $0.newer.isEmpty } == true)
    #expect(KeyLeafDigest.differences(of: older, [])?.older == [KeySpan(from: nil, to: nil)])
    #expect(KeyLeafDigest.differences(of: [], [print(3, 4, 1), print(5, 6, 2)])?.newer.count == 2)
    #expect(KeyLeafDigest.differences(of: [], Self.digests(12)) == nil)
  }
}
