/// Bytes that are read once, from the first to the last: a file, memory, a socket, or another input with something done
/// to it.
///
/// Inputs stack. One that decrypts, decompresses or digests takes its bytes from another and puts them into the buffer
/// of whoever reads it, so nothing but that buffer stands between two layers.
package protocol ByteInput: AnyObject {
  /// Reads the next bytes, waiting until there are some.
  ///
  /// - Parameter buffer: Where they go. It is not empty.
  /// - Returns: How many bytes were read: at least one, and fewer than fit wherever that suits the input; 0 at the end.
  /// - Throws: `ByteStreamError`. The input cannot be read any further then.
  func read(into buffer: UnsafeMutableRawBufferPointer) throws(ByteStreamError) -> Int
}

/// Bytes of which any part can be read at any time.
package protocol RandomAccessBytes: AnyObject {
  /// Reads the bytes from an offset on.
  ///
  /// - Returns: How many bytes were read: fewer than fit only where the bytes end.
  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(ByteStreamError) -> Int
}

/// A byte input of which any part can be read besides, without moving on.
package protocol RandomAccessInput: ByteInput, RandomAccessBytes {}

/// How many bytes are read at once where only speed matters.
package let streamChunkBytes = 128 << 10

extension ByteInput {
  /// Reads until a buffer is full or the input ends.
  ///
  /// - Returns: How many bytes were read: fewer than fit only where the input ends.
  package func readFully(into buffer: UnsafeMutableRawBufferPointer) throws(ByteStreamError) -> Int {
    var filled = 0
    while filled < buffer.count {
      let count = try read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]))
      if count == 0 { break }
      filled += count
    }
    return filled
  }
}
