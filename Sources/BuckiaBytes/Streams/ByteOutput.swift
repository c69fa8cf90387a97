/// Where bytes are written, one piece after the other: a file, memory, a socket, or another output that gets something
/// made of them.
///
/// An output that has to write something at the end, such as a checksum, has a call of its own for that.
package protocol ByteOutput: AnyObject {
  /// Writes all of the bytes.
  ///
  /// - Throws: `ByteStreamError`. Some of the bytes may have been written then, and nothing can follow them.
  func write(_ bytes: UnsafeRawBufferPointer) throws(ByteStreamError)
}

extension ByteOutput {
  /// Writes all of the bytes.
  package func write(_ bytes: [UInt8]) throws(ByteStreamError) {
    try bytes.withUnsafeBufferPointer { (buffer) throws(ByteStreamError) in
      try write(UnsafeRawBufferPointer(buffer))
    }
  }

  /// Writes all of the bytes.
  package func write(_ bytes: RawSpan) throws(ByteStreamError) {
    try bytes.withUnsafeBytes { (buffer) throws(ByteStreamError) in try write(buffer) }
  }
}
