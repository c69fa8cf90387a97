import BuckiaBytes

extension [UInt8] {
  /// Gives the bytes to `body`; they must not be kept beyond it.
  ///
  /// The array's own `span` would do, but needs macOS 26 and iOS 26.
  ///
  /// - Throws: Whatever `body` throws.
  public func withRawSpan<Result, Failure: Error>(
    _ body: (RawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    // Sound: the buffer is the array's, which stays as it is while `body` runs.
    try withUnsafeBufferPointer { (buffer) throws(Failure) in try body(UnsafeRawBufferPointer(buffer).bytes) }
  }
}

extension RawSpan {
  /// The byte at an offset; out of bounds traps, so callers check `byteCount` first.
  @inlinable
  @inline(__always)
  func byte(at offset: Int) -> UInt8 {
    // Sound: the load checks the bounds, and every bit pattern is a byte.
    unsafeLoadUnaligned(fromByteOffset: offset, as: UInt8.self)
  }

  /// Eight bytes as they stand; the caller says in which order they are. Out of bounds traps.
  @inlinable
  @inline(__always)
  func loadEightBytes(at offset: Int) -> UInt64 {
    // Sound: the load checks the bounds, and every bit pattern is a number.
    unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self)
  }

  /// A copy of a range of bytes.
  public func array(_ range: Range<Int>) -> [UInt8] {
    extracting(range).withUnsafeBytes { Array($0) }
  }

  /// Whether two spans hold the same bytes.
  func isEqual(to other: RawSpan) -> Bool {
    byteCount == other.byteCount && byteOrder(against: other) == 0
  }

  /// Compares byte by byte, a prefix before what continues it: negative, zero or positive.
  package func byteOrder(against other: RawSpan) -> Int {
    withUnsafeBytes { mine in
      other.withUnsafeBytes { theirs in
        let common = Swift.min(mine.count, theirs.count)
        // Sound: both buffers hold at least `common` bytes; empty ones may have no address and are not touched.
        if common > 0, let one = mine.baseAddress, let two = theirs.baseAddress {
          let order = memcmp(one, two, common)
          if order != 0 { return Int(order) }
        }
        return mine.count - theirs.count
      }
    }
  }
}
