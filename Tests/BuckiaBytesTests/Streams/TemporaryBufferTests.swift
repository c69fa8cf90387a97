import Testing

@testable import BuckiaBytes
import TestSupport

@Suite struct TemporaryBufferTests {
  /// Around the sizes at which a file is used and a segment is full.
  private static let sizes = [0, 1, 999, 1_000, 1_001, 65_535, 65_536, 65_537, 131_072, 300_000]

  private func noise(_ count: Int, _ generator: inout SeededGenerator) -> [UInt8] {
    (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
  }

  @Test("Everything is read back, from memory and file", arguments: sizes)
  func readingAgain(size: Int) throws {
    let folder = try TemporaryFolder()
    var generator = SeededGenerator(seed: UInt64(size))
    let bytes = noise(size, &generator)
    let buffer = TemporaryBuffer(folder: folder.path, memoryLimit: 1_000)
    try buffer.write(bytes)
    #expect(buffer.count == size)
    for _ in 0..<2 {
      #expect(try buffer.allBytes() == bytes)
    }
    // The file has no name.
    #expect(try folder.names(in: "").isEmpty)
  }

  @Test("A read at any offset returns the bytes written there")
  func windows() throws {
    let folder = try TemporaryFolder()
    let seed = UInt64.random(in: 0...UInt64.max)
    var generator = SeededGenerator(seed: seed)
    for round in 0..<10 {
      let buffer = TemporaryBuffer(folder: folder.path, memoryLimit: Int.random(in: 0...100_000, using: &generator))
      var bytes: [UInt8] = []
      for _ in 0..<Int.random(in: 1...12, using: &generator) {
        // Large pieces are written to the file without being collected.
        let largest = [90_000, 90_000, 700_000].randomElement(using: &generator) ?? 0
        let piece = noise(Int.random(in: 0...largest, using: &generator), &generator)
        try buffer.write(piece)
        bytes += piece
        // Reading between two writes.
        let start = Int.random(in: 0...bytes.count, using: &generator)
        let length = Int.random(in: 0...150_000, using: &generator)
        var window = [UInt8](repeating: 0, count: length)
        let found = try window.withUnsafeMutableBytes { try buffer.read(into: $0, at: start) }
        #expect(found == min(length, bytes.count - start), "seed \(seed), round \(round)")
        #expect(window.prefix(found).elementsEqual(bytes[start..<start + found]), "seed \(seed), round \(round)")
      }
      let lower = Int.random(in: 0...bytes.count, using: &generator)
      let upper = Int.random(in: lower...bytes.count, using: &generator)
      var found: [UInt8] = []
      try buffer.forEachPiece(lower..<upper) { found.append(contentsOf: $0) }
      #expect(found == Array(bytes[lower..<upper]), "seed \(seed), round \(round)")
    }
  }

  @Test("Reading at or after the end returns no bytes")
  func pastEnd() throws {
    let buffer = TemporaryBuffer(folder: "/tmp")
    try buffer.write([1, 2, 3])
    var window: [UInt8] = [0, 0]
    #expect(try window.withUnsafeMutableBytes { try buffer.read(into: $0, at: 3) } == 0)
    #expect(try window.withUnsafeMutableBytes { try buffer.read(into: $0, at: 4) } == 0)
  }

  @Test("If no temporary file can be created, the folder is named")
  func noTemporaryFile() throws {
    let folder = try TemporaryFolder()
    let buffer = TemporaryBuffer(folder: folder.file("missing"), memoryLimit: 2)
    let error = #expect(throws: ByteStreamError.self) { try buffer.write([1, 2, 3]) }
    #expect(error?.code == .unwritable)
    #expect(
      error?.description
        == "a temporary file in \(folder.file("missing")) cannot be made: No such file or directory")
  }

  @Test("An empty buffer has no bytes", arguments: [-1, 0, 10])
  func emptyBuffer(memoryLimit: Int) throws {
    let buffer = TemporaryBuffer(memoryLimit: memoryLimit)
    try buffer.write([])
    #expect(try buffer.allBytes() == [])
    #expect(buffer.isEmpty)
  }

  @Test("A buffer can be appended to another, and to itself", arguments: [0, 1 << 20])
  func appendingBuffers(memoryLimit: Int) throws {
    let buffer = TemporaryBuffer(memoryLimit: memoryLimit)
    try buffer.write([1, 2, 3])
    try buffer.write(contentsOf: TemporaryBuffer([4, 5]))
    try buffer.write(contentsOf: buffer)
    #expect(try buffer.allBytes() == [1, 2, 3, 4, 5, 1, 2, 3, 4, 5])
  }

  @Test("Bytes can be appended while a reader reads the earlier ones", arguments: [0, 1 << 20])
  func appendingWhileReading(memoryLimit: Int) throws {
    let buffer = TemporaryBuffer(memoryLimit: memoryLimit)
    try buffer.write([1, 2, 3])
    try buffer.forEachPiece { bytes in
      try buffer.write([UInt8](repeating: 9, count: 500_000))
      #expect(Array(bytes) == [1, 2, 3])
    }
    #expect(buffer.count == 500_003)
  }

  @Test("The pieces of a range contain all its bytes, in memory or file", arguments: [0, 1 << 20])
  func pieces(memoryLimit: Int) throws {
    let bytes = (0..<400_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    let buffer = TemporaryBuffer(memoryLimit: memoryLimit, windowBytes: 1_000)
    try buffer.write(Array(bytes[..<300_001]))
    try buffer.write(Array(bytes[300_001...]))
    #expect(memoryLimit > 0 || buffer.storedCount == 262_144)
    for range in [0..<bytes.count, 10..<20, 5_000..<90_000, 262_143..<262_146, 399_999..<400_000, 7..<7] {
      var found: [UInt8] = []
      var largest = 0
      try buffer.forEachPiece(range) {
        found += $0
        largest = max(largest, $0.count)
      }
      #expect(found == Array(bytes[range]))
      #expect(largest <= (memoryLimit == 0 ? 1_000 : bytes.count))
    }
  }

  @Test("A buffer made like another is empty, and has the same limits")
  func emptyCopy() throws {
    let buffer = TemporaryBuffer(folder: "/nowhere/at all", memoryLimit: 2)
    try buffer.write([1, 2])
    let other = buffer.makeEmpty()
    #expect(other.isEmpty)
    #expect(throws: ByteStreamError.self) { try other.write([1, 2, 3]) }
  }

  @Test("Another thread reads the stored bytes, and finally all of them")
  func readingFromAnotherThread() throws {
    let bytes = (0..<700_000).map { UInt8(truncatingIfNeeded: $0 &* 17) }
    let buffer = try TemporaryBuffer(arriving: bytes.count)
    #expect(buffer.expectedCount == bytes.count)
    for start in stride(from: 0, to: bytes.count, by: 70_000) {
      try buffer.write(Array(bytes[start..<start + 70_000]))
      #expect(buffer.storedCount % TemporaryBuffer.segmentBytes == 0)
      #expect(buffer.count - buffer.storedCount < 5 * TemporaryBuffer.segmentBytes)
      var window = [UInt8](repeating: 0, count: buffer.storedCount)
      #expect(try window.withUnsafeMutableBytes { try buffer.read(into: $0, at: 0) } == buffer.storedCount)
      #expect(window.elementsEqual(bytes[..<buffer.storedCount]))
    }
    try buffer.finish()
    #expect(buffer.storedCount == bytes.count)
    #expect(try buffer.allBytes() == bytes)
  }
}
