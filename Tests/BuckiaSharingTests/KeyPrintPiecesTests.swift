import BuckiaDiff
import SQLiteFiles
import TestSupport
import Testing

@testable import BuckiaSharing

/// Prints of the leaves by which rows are found by their key, as the ledger keeps them.
@Suite struct KeyPrintPiecesTests {
  private static func prints(_ count: Int, seed: UInt64 = 1) -> [KeyPrint] {
    var random = SeededGenerator(seed: seed)
    let keys = (0..<count).map { index in [3, 4] + Array("\(index + 1000)".utf8) }
    return keys.indices.map { place in
      let span = KeySpan(from: place == 0 ? nil : keys[place], to: place + 1 < count ? keys[place + 1] : nil)
      return KeyPrint(span: span, hash: PageHash(high: random.next(), low: random.next()))
    }
  }

  @Test(arguments: [0, 1, 2, 5_000])
  func `they are put together as they were divided`(count: Int) throws {
    let prints = Self.prints(count)
    let found = try #require(KeyPrintPieces.prints(in: KeyPrintPieces.pieces(of: prints)))
    #expect(found.count == count)
    #expect(Set(found) == Set(prints))
  }

  @Test func `a leaf that changes changes one piece`() {
    let prints = Self.prints(5_000)
    var other = prints
    other[2_020] = KeyPrint(span: other[2_020].span, hash: PageHash(high: 1, low: 2))
    let (before, after) = (KeyPrintPieces.pieces(of: prints), KeyPrintPieces.pieces(of: other))
    #expect(before.count > 40)
    #expect(after.filter { before[$0.key] != $0.value }.count <= 2)
  }

  @Test func `what is not as it was made is refused`() throws {
    let pieces = KeyPrintPieces.pieces(of: Self.prints(100))
    let (first, bytes) = try #require(pieces.first)
    #expect(KeyPrintPieces.prints(in: [first: []]) == nil)
    #expect(KeyPrintPieces.prints(in: [first: Array(bytes.dropLast())]) == nil)
    #expect(KeyPrintPieces.prints(in: [first: Array(bytes.prefix(4))]) == nil)
    #expect(KeyPrintPieces.prints(in: [first + [0]: bytes]) == nil)
    #expect(KeyPrintPieces.prints(in: [first: [255] + bytes.dropFirst()]) == nil)
  }

  @Test func `leaves that are not in both stand for the keys from their first one to the next`() throws {
    func print(_ first: UInt8?, _ next: UInt8?, _ hash: UInt64) -> KeyPrint {
      KeyPrint(span: KeySpan(from: first.map { [$0] }, to: next.map { [$0] }), hash: PageHash(high: 0, low: hash))
    }
    let older = [print(nil, 2, 1), print(2, 4, 2), print(4, 6, 3), print(6, nil, 4)]
    let newer = [print(nil, 2, 1), print(2, 3, 7), print(3, 5, 8), print(5, 6, 9), print(6, nil, 4)]
    let found = try #require(KeyPrint.differences(of: older, newer))
    #expect(found.older == [KeySpan(from: [2], to: [6])])
    #expect(found.newer == [KeySpan(from: [2], to: [6])])
    #expect(KeyPrint.differences(of: older, older).map { $0.older.isEmpty && $0.newer.isEmpty } == true)
    #expect(KeyPrint.differences(of: older, [])?.older == [KeySpan(from: nil, to: nil)])
    #expect(KeyPrint.differences(of: [], [print(3, 4, 1), print(5, 6, 2)])?.newer.count == 2)
    #expect(KeyPrint.differences(of: [], Self.prints(12)) == nil)
  }
}
