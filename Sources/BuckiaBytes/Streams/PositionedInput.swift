/// Reads bytes of which any part can be read, from the first to the last: each reading of the same bytes has an input of its
/// own, and none moves another.
package final class PositionedInput: RandomAccessInput {
  private let bytes: any RandomAccessBytes
  private var position = 0

  /// Begins at the first of some bytes, which must not change any more.
  package init(_ bytes: any RandomAccessBytes) { self.bytes = bytes }

  package func read(into buffer: UnsafeMutableRawBufferPointer) throws(ByteStreamError) -> Int {
    let count = try bytes.read(into: buffer, at: position)
    position += count
    return count
  }

  package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(ByteStreamError) -> Int {
    try bytes.read(into: buffer, at: offset)
  }
}
