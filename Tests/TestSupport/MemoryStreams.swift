import BuckiaBytes

/// Reads bytes in memory.
package final class MemoryInput: ByteInput {
  private let bytes: [UInt8]
  private var position = 0

  package init(_ bytes: [UInt8]) { self.bytes = bytes }

  package func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    let count = min(buffer.count, bytes.count - position)
    bytes.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[position..<position + count])) }
    position += count
    return count
  }
}

/// Keeps written bytes in memory.
package final class MemoryOutput: ByteOutput {
  package private(set) var bytes: [UInt8] = []

  package init() {}

  package func write(_ bytes: UnsafeRawBufferPointer) { self.bytes.append(contentsOf: bytes) }
}

extension ByteInput {
  /// Writes all remaining bytes to an output.
  ///
  /// - Returns: The number of bytes.
  @discardableResult
  package func copy(to output: any ByteOutput) throws(ByteStreamError) -> Int {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: streamChunkBytes, alignment: 16)
    defer { buffer.deallocate() }
    var copied = 0
    while true {
      let count = try read(into: buffer)
      if count == 0 { return copied }
      try output.write(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      copied += count
    }
  }
}
