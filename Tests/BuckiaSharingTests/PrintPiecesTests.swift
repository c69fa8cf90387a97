import SQLiteFiles
import TestSupport
import Testing

@testable import BuckiaSharing

/// Prints as the ledger keeps them.
@Suite struct PrintPiecesTests {
  private static func prints(_ count: Int, seed: UInt64 = 1) -> [LeafPrint] {
    var random = SeededGenerator(seed: seed)
    return (0..<count).map {
      LeafPrint(firstRowID: Int64($0) * 50 - 1_000, hash: PageHash(high: random.next(), low: random.next()))
    }
  }

  @Test(arguments: [0, 1, 2, 5_000])
  func `they are put together as they were divided`(count: Int) throws {
    let prints = Self.prints(count)
    let found = try #require(PrintPieces.prints(in: PrintPieces.pieces(of: prints)))
    #expect(found.map(\.firstRowID) == prints.map(\.firstRowID))
    #expect(found.map(\.hash) == prints.map(\.hash))
  }

  @Test func `a leaf more changes one piece or two`() {
    let prints = Self.prints(5_000)
    var more = prints
    more.insert(LeafPrint(firstRowID: 100_010, hash: PageHash(high: 1, low: 3)), at: 2_021)
    more[2_020] = LeafPrint(firstRowID: more[2_020].firstRowID, hash: PageHash(high: 1, low: 2))
    let (before, after) = (PrintPieces.pieces(of: prints), PrintPieces.pieces(of: more))
    #expect(before.count > 40)
    #expect(after.filter { before[$0.key] != $0.value }.count <= 2)
  }

  @Test func `the leaves of rows that have moved are forgotten, and no others`() throws {
    let prints = Self.prints(200)
    let pieces = PrintPieces.pieces(of: prints)
    let found = try #require(
      PrintPieces.prints(in: PrintPieces.forgetting([-5_000, -949, -1, 0, 100_000], in: pieces)))
    #expect(found.map(\.firstRowID) == prints.map(\.firstRowID))
    #expect(found.indices.filter { found[$0].hash == nil } == [0, 1, 19, 20, 199])
    #expect(found.indices.allSatisfy { found[$0].hash == nil || found[$0].hash == prints[$0].hash })
  }

  @Test func `what is not as it was made is refused`() throws {
    let pieces = PrintPieces.pieces(of: Self.prints(100))
    let (first, bytes) = try #require(pieces.min { $0.key < $1.key })
    #expect(PrintPieces.prints(in: [first: []]) == nil)
    #expect(PrintPieces.prints(in: [first: Array(bytes.dropLast())]) == nil)
    #expect(PrintPieces.prints(in: [first + 1: bytes]) == nil)
    #expect(PrintPieces.prints(in: [first: bytes + bytes]) == nil)
  }
}
