import BuckiaBytes

/// Moves bytes from an input to an output.
enum CipherCopy {
  /// Moves all of them through one buffer, which does not keep them.
  static func copy(_ input: any ByteInput, to output: any ByteOutput) throws(ByteStreamError) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: streamChunkBytes, alignment: 16)
    defer {
      buffer.initializeMemory(as: UInt8.self, repeating: 0)
      buffer.deallocate()
    }
    while true {
      let count = try input.read(into: buffer)
      if count == 0 { return }
      try output.write(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    }
  }
}
