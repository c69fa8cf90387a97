import BuckiaFormat
import BuckiaBytes
import TestSupport
import Testing

@Suite struct OneTimeSpoolKeyTests {
  private func applied(_ key: OneTimeSpoolKey, to bytes: [UInt8], at offset: Int) throws -> [UInt8] {
    var bytes = bytes
    try bytes.withUnsafeMutableBytes { try key.apply(to: $0, at: offset) }
    return bytes
  }

  @Test(arguments: [0, 1, 15, 16, 17, 4_095, 65_536, 300_001])
  func `any part can be decrypted separately`(start: Int) throws {
    var generator = SeededGenerator(seed: UInt64(start))
    let bytes = (0..<700_000).map { _ in UInt8.random(in: 0...255, using: &generator) }
    let key = OneTimeSpoolKey()
    let sealed = try applied(key, to: bytes, at: 0)
    #expect(sealed != bytes)
    for count in [1, 16, 31, 70_000] {
      let part = try applied(key, to: Array(sealed[start..<start + count]), at: start)
      #expect(part.elementsEqual(bytes[start..<start + count]))
    }
  }

  @Test func `equal bytes are encrypted differently by offset and by key`() throws {
    let zeros = [UInt8](repeating: 0, count: 1 << 17)
    let sealed = try applied(OneTimeSpoolKey(), to: zeros, at: 0)
    let blocks = Set((0..<zeros.count / 16).map { Array(sealed[16 * $0..<16 * $0 + 16]) })
    #expect(blocks.count == zeros.count / 16)
    #expect(try applied(OneTimeSpoolKey(), to: zeros, at: 0) != sealed)
  }

  @Test func `a sealed buffer returns the written bytes, and stores none of them in clear`() throws {
    let folder = try TemporaryFolder()
    var generator = SeededGenerator(seed: 7)
    try TemporaryBuffer.$sealing.withValue(TemporaryBuffer.Sealing { OneTimeSpoolKey() }) {
      for arriving in [false, true] {
        var bytes: [UInt8] = []
        let total = 900_001
        let buffer =
          arriving
          ? try TemporaryBuffer(arriving: total, folder: folder.path)
          : TemporaryBuffer(folder: folder.path, memoryLimit: 1_000)
        while bytes.count < total {
          let count = min(total - bytes.count, Int.random(in: 1...400_000, using: &generator))
          let piece = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
          try buffer.write(piece)
          bytes += piece
          let start = Int.random(in: 0..<max(1, buffer.storedCount), using: &generator)
          var window = [UInt8](repeating: 0, count: min(1_000, buffer.storedCount - start))
          let found = try window.withUnsafeMutableBytes { try $0.isEmpty ? 0 : buffer.read(into: $0, at: start) }
          #expect(window.prefix(found).elementsEqual(bytes[start..<start + found]))
        }
        try buffer.finish()
        #expect(try buffer.allBytes() == bytes)
        let child = buffer.makeEmpty(memoryLimit: 0)
        try child.write(contentsOf: buffer)
        #expect(try child.allBytes() == bytes)
      }
    }
  }
}
