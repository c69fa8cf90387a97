import BuckiaBytes

extension UnsafeRawBufferPointer {
  /// Compares byte by byte; a prefix comes before anything longer. The result is negative, zero or positive.
  package func byteOrder(against other: UnsafeRawBufferPointer) -> Int {
    let common = Swift.min(count, other.count)
    if common > 0, let mine = baseAddress, let theirs = other.baseAddress {
      let order = memcmp(mine, theirs, common)
      if order != 0 { return Int(order) }
    }
    return count - other.count
  }
}
