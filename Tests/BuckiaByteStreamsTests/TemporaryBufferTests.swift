import Testing

@testable import BuckiaByteStreams
import TestSupport

@Suite struct TemporaryBufferTests {
  /// Around the sizes where a file takes over and a segment is full.
  private static let sizes = [0, 1, 999, 1_000, 1_001, 65_535, 65_536, 65_537, 131_072, 300_000]

  private func noise(_ count: Int, _ generator: inout SeededGenerator) -> [UInt8] {
    (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
  }

  @Test("Everything is read again, from memory and file", arguments: sizes)
  func readingAgain(size: Int) throws {
    let folder = try TemporaryFolder()
    var generator = SeededGenerator(seed: UInt64(size))
    let bytes = noise(size, &generator)
    let buffer = TemporaryBuffer(folder: folder.path, memoryLimit: 1_000)
    try buffer.write(bytes)
    #expect(buffer.byteCount == Int64(size))
    for _ in 0..<2 {
      let output = MemoryOutput()
      #expect(try buffer.input().copy(to: output) == Int64(size))
      #expect(output.bytes == bytes)
    }
    // The file has no name.
    #expect(try folder.names(in: "").isEmpty)
  }

  @Test("Any window of any number of pieces is what was written there")
  func windows() throws {
    let folder = try TemporaryFolder()
    let seed = UInt64.random(in: 0...UInt64.max)
    var generator = SeededGenerator(seed: seed)
    for round in 0..<10 {
      let buffer = TemporaryBuffer(folder: folder.path, memoryLimit: Int.random(in: 0...100_000, using: &generator))
      var bytes: [UInt8] = []
      for _ in 0..<Int.random(in: 1...12, using: &generator) {
        let piece = noise(Int.random(in: 0...90_000, using: &generator), &generator)
        try buffer.write(piece)
        bytes += piece
        // Reading between two writes.
        let start = Int.random(in: 0...bytes.count, using: &generator)
        let length = Int.random(in: 0...150_000, using: &generator)
        var window = [UInt8](repeating: 0, count: length)
        let found = try window.withUnsafeMutableBytes { try buffer.read(into: $0, at: Int64(start)) }
        #expect(found == min(length, bytes.count - start), "seed \(seed), round \(round)")
        #expect(window.prefix(found).elementsEqual(bytes[start..<start + found]), "seed \(seed), round \(round)")
      }
      let lower = Int.random(in: 0...bytes.count, using: &generator)
      let upper = Int.random(in: lower...bytes.count, using: &generator)
      let output = MemoryOutput()
      try buffer.input(Int64(lower)..<Int64(upper)).copy(to: output)
      #expect(output.bytes == Array(bytes[lower..<upper]), "seed \(seed), round \(round)")
    }
  }

  @Test("Behind the end there is nothing")
  func pastEnd() throws {
    let buffer = TemporaryBuffer(folder: "/tmp")
    try buffer.write([1, 2, 3])
    var window: [UInt8] = [0, 0]
    #expect(try window.withUnsafeMutableBytes { try buffer.read(into: $0, at: 3) } == 0)
    #expect(try window.withUnsafeMutableBytes { try buffer.read(into: $0, at: 4) } == 0)
  }

  @Test("Where no temporary file can be made, the folder is named")
  func noTemporaryFile() throws {
    let folder = try TemporaryFolder()
    let buffer = TemporaryBuffer(folder: folder.file("missing"), memoryLimit: 2)
    let error = #expect(throws: ByteStreamError.self) { try buffer.write([1, 2, 3]) }
    #expect(error?.code == .unwritable)
    #expect(
      error?.description
        == "a temporary file in \(folder.file("missing")) cannot be made: No such file or directory")
  }
}
