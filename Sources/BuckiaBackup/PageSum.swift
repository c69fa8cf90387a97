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
  mutating func add(_ digest: ArraySlice<UInt8>) {
    let other = Self.words(digest)
    var carry: UInt64 = 0
    func sum(_ one: UInt64, _ two: UInt64) -> UInt64 {
      let (partial, first) = one.addingReportingOverflow(two)
      let (total, second) = partial.addingReportingOverflow(carry)
      carry = first || second ? 1 : 0
      return total
    }
    words.0 = sum(words.0, other.0)
    words.1 = sum(words.1, other.1)
    words.2 = sum(words.2, other.2)
    words.3 = sum(words.3, other.3)
  }

  /// Subtracts the 32 bytes of a page's digest.
  mutating func subtract(_ digest: ArraySlice<UInt8>) {
    let other = Self.words(digest)
    var borrow: UInt64 = 0
    func difference(_ one: UInt64, _ two: UInt64) -> UInt64 {
      let (partial, first) = one.subtractingReportingOverflow(two)
      let (total, second) = partial.subtractingReportingOverflow(borrow)
      borrow = first || second ? 1 : 0
      return total
    }
    words.0 = difference(words.0, other.0)
    words.1 = difference(words.1, other.1)
    words.2 = difference(words.2, other.2)
    words.3 = difference(words.3, other.3)
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
    return [UInt8](unsafeUninitializedCapacity: count * 32) { buffer, initialized in
      nonisolated(unsafe) let (bytes, target) = (bytes, UnsafeMutableRawBufferPointer(buffer))
      let pieces = count < 64 ? 1 : 8
      DispatchQueue.concurrentPerform(iterations: pieces) { piece in
        for page in count * piece / pieces..<count * (piece + 1) / pieces {
          var hash = SHA256()
          withUnsafeBytes(of: UInt64(first + Int64(page)).bigEndian) { hash.update(bufferPointer: $0) }
          hash.update(bufferPointer: UnsafeRawBufferPointer(rebasing: bytes[page * pageSize..<(page + 1) * pageSize]))
          hash.finalize().withUnsafeBytes {
            UnsafeMutableRawBufferPointer(rebasing: target[page * 32..<(page + 1) * 32]).copyMemory(from: $0)
          }
        }
      }
      initialized = count * 32
    }
  }
}
