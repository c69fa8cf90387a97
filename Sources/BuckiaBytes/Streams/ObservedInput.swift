/// An input that tells how far it has been read.
package final class ObservedInput: RandomAccessInput {
  private let input: any RandomAccessInput
  private let observe: (Int) -> Void
  private var byteCount = 0

  /// - Parameters:
  ///   - input: An input of which nothing has been read.
  ///   - observe: Is called with the number of bytes that have been read, after each reading that moves on.
  package init(_ input: any RandomAccessInput, _ observe: @escaping (Int) -> Void) {
    self.input = input
    self.observe = observe
  }

  package func read(into buffer: UnsafeMutableRawBufferPointer) throws(ByteStreamError) -> Int {
    let count = try input.read(into: buffer)
    byteCount += count
    observe(byteCount)
    return count
  }

  package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(ByteStreamError) -> Int {
    try input.read(into: buffer, at: offset)
  }
}
