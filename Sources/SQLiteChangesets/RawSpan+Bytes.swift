extension RawSpan {
  /// The byte at an offset; out of bounds traps, so callers check `byteCount` first.
  @inline(__always)
  func byte(at offset: Int) -> UInt8 { unsafeLoad(checkingBoundsAt: offset) }

  @inline(__always)
  private func unsafeLoad(checkingBoundsAt offset: Int) -> UInt8 {
    precondition(offset >= 0 && offset < byteCount)
    // Sound: the offset was checked on the line above and a byte has no alignment.
    return unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: UInt8.self)
  }

  /// Eight bytes as they stand; the caller says in which order they are.
  @inline(__always)
  func loadEightBytes(at offset: Int) -> UInt64 {
    precondition(offset >= 0 && offset <= byteCount - 8)
    // Sound: all eight bytes were checked to lie inside the span.
    return unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: UInt64.self)
  }

  /// A copy of a range of bytes.
  public func array(_ range: Range<Int>) -> [UInt8] {
    extracting(range).withUnsafeBytes { Array($0) }
  }

  /// Whether two spans hold the same bytes.
  func isEqual(to other: RawSpan) -> Bool {
    guard byteCount == other.byteCount else { return false }
    return withUnsafeBytes { mine in
      other.withUnsafeBytes { theirs in mine.elementsEqual(theirs) }
    }
  }
}
