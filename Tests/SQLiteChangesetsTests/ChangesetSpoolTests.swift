import SQLiteChangesets
import Testing
import TestSupport

@Suite("ChangesetSpool")
struct ChangesetSpoolTests {
  @Test(
    "what goes in comes out, in memory, in a file, and across the change from one to the other",
    arguments: [0, 1, 1000, 300_000, 1_000_000, Int.max])
  func roundTrip(memoryLimit: Int) throws {
    var random = SeededGenerator(seed: UInt64(memoryLimit % 1000))
    let spool = ChangesetSpool(memoryLimit: memoryLimit)
    var expected: [UInt8] = []
    // Small and large pieces: around the size of one write, and beyond it.
    for size in [0, 1, 999, 1, 70_000, 200_000, 262_144, 262_145, 3, 0, 600_000, 5] {
      let piece = [UInt8](repeating: UInt8.random(in: 0...255, using: &random), count: size)
      try spool.append(piece)
      expected += piece
      #expect(spool.count == expected.count)
      if size < 1000 { #expect(try spool.bytes == expected) }
    }
    #expect(try spool.bytes == expected)
    #expect(!spool.isEmpty)
  }

  @Test("an empty spool gives no bytes", arguments: [-1, 0, 10])
  func empty(memoryLimit: Int) throws {
    let spool = ChangesetSpool(memoryLimit: memoryLimit)
    try spool.append([])
    #expect(try spool.bytes == [])
    #expect(spool.isEmpty)
  }

  @Test("a spool can be added to another, and to itself", arguments: [0, 1 << 20])
  func append(memoryLimit: Int) throws {
    let spool = ChangesetSpool(memoryLimit: memoryLimit)
    try spool.append([1, 2, 3])
    try spool.append(contentsOf: ChangesetSpool([4, 5]))
    try spool.append(contentsOf: spool)
    #expect(try spool.bytes == [1, 2, 3, 4, 5, 1, 2, 3, 4, 5])
  }

  @Test("bytes can be added while they are read; the reader sees what was there", arguments: [0, 1 << 20])
  func appendWhileReading(memoryLimit: Int) throws {
    let spool = ChangesetSpool(memoryLimit: memoryLimit)
    try spool.append([1, 2, 3])
    try spool.withBytes { bytes in
      try spool.append([UInt8](repeating: 9, count: 500_000))
      #expect(bytes.array(0..<bytes.byteCount) == [1, 2, 3])
    }
    #expect(spool.count == 500_003)
  }

  @Test("a folder that is not there is named")
  func missingFolder() throws {
    let spool = ChangesetSpool(folder: "/nowhere/at all", memoryLimit: 2)
    try spool.append([1, 2])
    let failure = try #require(throws: ChangesetSpool.Failure.self) { try spool.append([3]) }
    #expect(failure.folder == "/nowhere/at all")
    #expect(failure.description.hasPrefix("cannot make a temporary file in /nowhere/at all: "))
    #expect(!failure.isFullDisk)
  }

  @Test("an error inside the reading closure comes out")
  func throwing() {
    struct Mine: Error {}
    #expect(throws: Mine.self) { try ChangesetSpool([1]).withBytes { _ in throw Mine() } }
  }

  @Test("Pieces are all bytes of a range, wherever they are", arguments: [0, 1 << 20])
  func pieces(memoryLimit: Int) throws {
    let bytes = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    let spool = ChangesetSpool(memoryLimit: memoryLimit, windowBytes: 1_000)
    try spool.append(Array(bytes[..<60_001]))
    try spool.flush()
    try spool.append(Array(bytes[60_001...]))
    for range in [0..<bytes.count, 10..<20, 5_000..<90_000, 60_001..<60_001, 60_000..<60_002, 99_999..<100_000] {
      var found: [UInt8] = []
      var largest = 0
      try spool.forEachPiece(range) {
        found += $0
        largest = max(largest, $0.count)
      }
      #expect(found == Array(bytes[range]))
      #expect(largest <= (memoryLimit == 0 ? 1_000 : bytes.count))
    }
  }

  @Test("One that is made alike is empty, and stays in memory no longer")
  func alike() throws {
    let spool = ChangesetSpool(folder: "/nowhere/at all", memoryLimit: 2)
    try spool.append([1, 2])
    let other = spool.makeEmpty()
    #expect(other.isEmpty)
    #expect(throws: ChangesetSpool.Failure.self) { try other.append([1, 2, 3]) }
  }
}
