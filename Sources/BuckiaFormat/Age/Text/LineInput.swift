import BuckiaBytes

/// Reads lines from the beginning of an input, and whatever follows them as it is.
final class LineInput: ByteInput {
  /// How a line ended.
  enum Ending {
    /// With a line feed.
    case newline
    /// The input ended.
    case end
    /// The line is longer than it may be, and was not read to its end.
    case tooLong
  }

  private let source: any ByteInput
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 16 << 10, alignment: 16)
  private var start = 0
  private var end = 0

  init(_ source: any ByteInput) { self.source = source }

  deinit { buffer.deallocate() }

  /// Reads up to the next line feed.
  ///
  /// - Parameters:
  ///   - line: Becomes the line, without the line feed.
  ///   - limit: How many bytes it may have.
  func readLine(into line: inout [UInt8], limit: Int) throws(ByteStreamError) -> Ending {
    line.removeAll(keepingCapacity: true)
    while try fill() {
      let pending = UnsafeRawBufferPointer(rebasing: buffer[start..<end])
      let newline = pending.firstIndex(of: UInt8(ascii: "\n"))
      let count = newline ?? pending.count
      guard line.count + count <= limit else { return .tooLong }
      line.append(contentsOf: pending[..<count])
      start += count
      if newline != nil {
        start += 1
        return .newline
      }
    }
    return .end
  }

  /// The next byte, which stays the next; nil at the end.
  func peek() throws(ByteStreamError) -> UInt8? { try fill() ? buffer[start] : nil }

  /// Moves past the byte that ``peek()`` has shown.
  func skip() { start += 1 }

  func read(into target: UnsafeMutableRawBufferPointer) throws(ByteStreamError) -> Int {
    // Much is read past the buffer.
    if start == end, target.count >= buffer.count { return try source.read(into: target) }
    guard try fill() else { return 0 }
    let count = min(target.count, end - start)
    target.copyMemory(from: UnsafeRawBufferPointer(rebasing: buffer[start..<start + count]))
    start += count
    return count
  }

  /// Whether a byte is there.
  private func fill() throws(ByteStreamError) -> Bool {
    guard start == end else { return true }
    start = 0
    end = try source.read(into: buffer)
    return end > 0
  }
}
