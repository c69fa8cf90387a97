import Testing

@testable import BuckiaBytes
import TestSupport

@Suite struct StreamTests {
  /// Returns three bytes at a time.
  private final class ShortReads: ByteInput {
    private let source: MemoryInput
    init(_ bytes: [UInt8]) { source = MemoryInput(bytes) }
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(ByteStreamError) -> Int {
      source.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<min(3, buffer.count)]))
    }
  }

  /// Sums the bytes weighted by their position.
  private struct Sum: ByteHasher, Equatable {
    var count = 0
    var sum = 0
    mutating func update(_ bytes: UnsafeRawBufferPointer) {
      for byte in bytes {
        count += 1
        sum += count * Int(byte)
      }
    }
  }

  /// Accepts ten bytes and no more.
  private final class FullOutput: ByteOutput {
    var taken = 0
    func write(_ bytes: UnsafeRawBufferPointer) throws(ByteStreamError) {
      guard taken + bytes.count <= 10 else { throw ByteStreamError(.fullDisk, "it is full") }
      taken += bytes.count
    }
  }

  private let bytes = Array(UInt8(0)..<200)

  @Test("A buffer is filled, even if only a few bytes arrive at a time", arguments: [1, 3, 199, 200, 201])
  func filledBuffer(size: Int) throws {
    let input = ShortReads(bytes)
    var buffer = [UInt8](repeating: 255, count: size)
    let count = try buffer.withUnsafeMutableBytes { try input.readFully(into: $0) }
    #expect(count == min(size, 200))
    #expect(buffer.prefix(count).elementsEqual(bytes.prefix(count)))
  }

  @Test("All bytes are copied to an output and counted")
  func copying() throws {
    let output = MemoryOutput()
    #expect(try ShortReads(bytes).copy(to: output) == 200)
    #expect(output.bytes == bytes)
  }

  @Test("Read and written bytes are digested on their way")
  func digests() throws {
    var expected = Sum()
    bytes.withUnsafeBytes { expected.update($0) }
    let input = DigestingInput(ShortReads(bytes), Sum())
    let output = MemoryOutput()
    let digesting = DigestingOutput(output, Sum())
    try input.copy(to: digesting)
    #expect(output.bytes == bytes)
    #expect(input.hasher == expected)
    #expect(input.byteCount == 200)
    #expect(digesting.hasher == expected)
    #expect(digesting.byteCount == 200)
  }

  @Test("Bytes that could not be written are not digested")
  func failedWrite() throws {
    let output = DigestingOutput(FullOutput(), Sum())
    try output.write([UInt8](repeating: 1, count: 8))
    let error = #expect(throws: ByteStreamError.self) { try output.write([1, 2, 3]) }
    #expect(error?.code == .fullDisk)
    #expect(output.byteCount == 8)
    #expect(output.hasher.count == 8)
  }
}
