// The C library, under whichever name the platform has it: `import BuckiaBytes` is enough for its functions.
#if canImport(Glibc)
  @_exported import Glibc
#elseif canImport(Musl)
  @_exported import Musl
#elseif canImport(Android)
  @_exported import Android
#elseif canImport(Darwin)
  @_exported import Darwin
#endif

extension UnsafeRawBufferPointer {
  /// Compares byte by byte; a prefix comes before anything longer. The result is negative, zero or positive.
  @inlinable
  package func byteOrder(against other: UnsafeRawBufferPointer) -> Int {
    let common = Swift.min(count, other.count)
    // Sound: both hold at least so many bytes; empty ones may have no address and are not touched.
    if common > 0, let mine = baseAddress, let theirs = other.baseAddress {
      let order = memcmp(mine, theirs, common)
      if order != 0 { return Int(order) }
    }
    return count - other.count
  }
}
