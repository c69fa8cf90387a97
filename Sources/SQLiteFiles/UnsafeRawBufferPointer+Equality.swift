#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

extension UnsafeRawBufferPointer {
  /// Whether both hold the same bytes.
  @inline(__always)
  func isEqual(to other: UnsafeRawBufferPointer) -> Bool {
    guard count == other.count else { return false }
    guard count > 0, let mine = baseAddress, let theirs = other.baseAddress else { return true }
    // Sound: both have `count` bytes.
    return memcmp(mine, theirs, count) == 0
  }
}
