import BuckiaBytes

/// Big-endian integers and varints. The fixed-size reads are unchecked: the caller has checked that the bytes exist.
extension UnsafeRawBufferPointer {
  /// The two bytes at an offset as a big-endian integer.
  @inline(__always)
  func number16(at offset: Int) -> Int { Int(self[offset]) << 8 | Int(self[offset + 1]) }

  /// The four bytes at an offset as a big-endian integer.
  @inline(__always)
  func number32(at offset: Int) -> UInt32 {
    UInt32(bigEndian: loadUnaligned(fromByteOffset: offset, as: UInt32.self))
  }

  /// The eight bytes at an offset as a big-endian integer.
  @inline(__always)
  func number64(at offset: Int) -> UInt64 {
    UInt64(bigEndian: loadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }

  /// Reads a varint of one to nine bytes and moves past it. See <https://sqlite.org/fileformat2.html#varint>.
  ///
  /// - Returns: nil when the buffer ends inside the varint.
  @inline(__always)
  func varint(at position: inout Int) -> UInt64? {
    guard position < count else { return nil }
    let first = self[position]
    position += 1
    if first < 0x80 { return UInt64(first) }
    return longVarint(UInt64(first & 0x7f), at: &position)
  }

  private func longVarint(_ start: UInt64, at position: inout Int) -> UInt64? {
    var value = start
    for _ in 0..<7 {
      guard position < count else { return nil }
      let byte = self[position]
      position += 1
      value = value << 7 | UInt64(byte & 0x7f)
      if byte < 0x80 { return value }
    }
    guard position < count else { return nil }
    value = value << 8 | UInt64(self[position])
    position += 1
    return value
  }

  /// Whether both buffers hold the same bytes.
  @inline(__always)
  func isEqual(to other: UnsafeRawBufferPointer) -> Bool {
    guard count == other.count else { return false }
    guard count > 0, let mine = baseAddress, let theirs = other.baseAddress else { return true }
    // Sound: both have `count` bytes.
    return memcmp(mine, theirs, count) == 0
  }
}
