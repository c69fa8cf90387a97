import BuckiaBytes
import SQLiteSchemas

/// The rows of a table as 256 sums of keyed hashes, a sum for the keys whose hash begins with a byte: what tells whether two sides have
/// the same rows, and where they have not. A sum follows a change of a row without the other rows.
///
/// This is MSet-Add-Hash (<https://people.csail.mit.edu/devadas/pubs/mhashes.pdf>) with numbers of 128 bits. `Schemas/digests.md` specifies it.
package struct StateSums: Equatable, Sendable {
  /// How many sums there are.
  package static let bucketCount = 256

  private var buckets = [Sum128](repeating: Sum128(), count: bucketCount)
  /// How many rows there are.
  package private(set) var rowCount: Int64 = 0

  /// No rows.
  package init() {}

  /// Reads what ``encoded`` has written; nil for anything else.
  package init?(rowCount: Int64, encoded bytes: [UInt8]) {
    guard bytes.count.isMultiple(of: 17) else { return nil }
    self.rowCount = rowCount
    var last = -1
    for start in stride(from: 0, to: bytes.count, by: 17) {
      guard let sum = Sum128(bytes[(start + 1)..<(start + 17)]), Int(bytes[start]) > last else { return nil }
      last = Int(bytes[start])
      buckets[last] = sum
    }
  }

  /// The sums that are not zero: a byte that says which, and 16 bytes.
  package var encoded: [UInt8] {
    buckets.enumerated().flatMap { $1 == Sum128() ? [] : [UInt8($0)] + $1.bytes }
  }

  /// The sum of all.
  package var digest: Sum128 {
    var sum = Sum128()
    for bucket in buckets { sum += bucket }
    return sum
  }

  subscript(bucket: UInt8) -> Sum128 { buckets[Int(bucket)] }

  mutating func add(_ row: Sum128, to bucket: UInt8) {
    buckets[Int(bucket)] += row
    rowCount += 1
  }

  mutating func remove(_ row: Sum128, from bucket: UInt8) {
    buckets[Int(bucket)] -= row
    rowCount -= 1
  }

  /// The buckets in which two sides differ.
  func differences(from other: StateSums) -> [UInt8] {
    (0...UInt8.max).filter { self[$0] != other[$0] }
  }
}

/// The hashes of the rows of one table of a stream.
struct StateHasher {
  private static let domain = Array("buckia/state/v1\n".utf8)

  private let hash: SipHash
  private let prefix: [UInt8]

  /// - Parameter key: What makes the hashes differ from those of others: the stream.
  init(key: [UInt8], table: String) {
    hash = SipHash(key: key)
    prefix = Self.domain + Array(ASCIIName.folded(table).utf8) + [0]
  }

  /// Where the sum is that a row belongs to, and what of the row depends on its key alone.
  func place(_ key: [UInt8]) -> (bucket: UInt8, key: Sum128) {
    let count = prefix.count + key.count
    let found = withUnsafeTemporaryAllocation(byteCount: count, alignment: 8) { bytes in
      bytes.copyBytes(from: prefix)
      UnsafeMutableRawBufferPointer(rebasing: bytes[prefix.count...]).copyBytes(from: key)
      return hash.hash(UnsafeRawBufferPointer(bytes))
    }
    return (UInt8(truncatingIfNeeded: found.low), found)
  }

  /// What a row adds to its sum.
  ///
  /// - Parameters:
  ///   - key: As ``place(_:)`` has it.
  ///   - content: The ``StreamRowHash``.
  func row(_ key: Sum128, _ content: UInt64) -> Sum128 { hash.hash(key, content) }
}
