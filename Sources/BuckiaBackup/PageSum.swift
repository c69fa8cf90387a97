import BuckiaFormat
import Crypto
import Dispatch

/// The sum of the SHA-256 digests of numbered pages, modulo 2^256.
///
/// It is that of a set: a changed page changes it without a look at the others.
struct PageSum: Hashable, Sendable {
  /// The number, the least significant part first.
  private var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)

  init() {}

  /// - Parameter digest: The number, most significant byte first.
  init(_ digest: ContentDigest) { add(digest.bytes[...]) }

  /// Its 32 bytes, most significant first.
  var digest: ContentDigest {
    let words = [words.3, words.2, words.1, words.0]
    return ContentDigest(checked: words.flatMap { word in withUnsafeBytes(of: word.bigEndian) { Array($0) } })
  }

  static func == (one: PageSum, other: PageSum) -> Bool { one.words == other.words }

  func hash(into hasher: inout Hasher) {
    hasher.combine(words.0)
    hasher.combine(words.3)
  }

  /// Adds the 32 bytes of a page's digest.
  mutating func add(_ digest: ArraySlice<UInt8>) { add(Self.words(digest), carrying: 0) }

  /// Subtracts the 32 bytes of a page's digest: adds its complement and 1.
  mutating func subtract(_ digest: ArraySlice<UInt8>) {
    let other = Self.words(digest)
    add((~other.0, ~other.1, ~other.2, ~other.3), carrying: 1)
  }

  private mutating func add(_ other: (UInt64, UInt64, UInt64, UInt64), carrying first: UInt64) {
    var carry = first
    func sum(_ one: UInt64, _ two: UInt64) -> UInt64 {
      let (partial, isOver) = one.addingReportingOverflow(two)
      let (total, isOverAgain) = partial.addingReportingOverflow(carry)
      carry = isOver || isOverAgain ? 1 : 0
      return total
    }
    words.0 = sum(words.0, other.0)
    words.1 = sum(words.1, other.1)
    words.2 = sum(words.2, other.2)
    words.3 = sum(words.3, other.3)
  }

  private static func words(_ digest: ArraySlice<UInt8>) -> (UInt64, UInt64, UInt64, UInt64) {
    func word(_ place: Int) -> UInt64 {
      digest[digest.startIndex + place..<digest.startIndex + place + 8].reduce(0) { $0 << 8 | UInt64($1) }
    }
    return (word(24), word(16), word(8), word(0))
  }

  /// The size of a digest in bytes.
  static let digestBytes = ContentDigest.byteCount

  /// The digests of consecutive pages, one after the other, computed by all cores. That of a page covers its number, 8
  /// bytes, big-endian, and its bytes.
  ///
  /// - Parameters:
  ///   - bytes: The pages.
  ///   - first: The number of the first, from 0.
  static func digests(of bytes: UnsafeRawBufferPointer, from first: Int64, pageSize: Int) -> [UInt8] {
    let count = bytes.count / pageSize
    return [UInt8](unsafeUninitializedCapacity: count * digestBytes) { buffer, initialized in
      nonisolated(unsafe) let (bytes, target) = (bytes, UnsafeMutableRawBufferPointer(buffer))
      let pieces = count < 64 ? 1 : 8
      DispatchQueue.concurrentPerform(iterations: pieces) { piece in
        for page in count * piece / pieces..<count * (piece + 1) / pieces {
          var hash = SHA256()
          withUnsafeBytes(of: UInt64(first + Int64(page)).bigEndian) { hash.update(bufferPointer: $0) }
          hash.update(bufferPointer: UnsafeRawBufferPointer(rebasing: bytes[page * pageSize..<(page + 1) * pageSize]))
          hash.finalize().withUnsafeBytes {
            UnsafeMutableRawBufferPointer(rebasing: target[page * digestBytes..<(page + 1) * digestBytes]).copyMemory(
              from: $0)
          }
        }
      }
      initialized = count * digestBytes
    }
  }
}
