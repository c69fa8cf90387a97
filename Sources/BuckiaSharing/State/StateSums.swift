import SQLiteSchemas

/// The rows of a table as 256 sums of keyed hashes, a sum for the keys whose hash begins with a byte: what tells whether two sides have
/// the same rows, and where they have not. A sum follows a change of a row without the other rows.
///
/// This is MSet-Add-Hash (<https://people.csail.mit.edu/devadas/pubs/mhashes.pdf>) with numbers of 128 bits. `Schemas/digests.md` specifies it.
package struct StateSums: Equatable, Sendable {
  /// How many sums there are.
  package static let bucketCount = 256

  private var buckets: [UInt8: Sum128] = [:]
  /// How many rows there are.
  package private(set) var rowCount: Int64 = 0

  /// No rows.
  package init() {}

  /// Reads what ``encoded`` has written; nil for anything else.
  package init?(rowCount: Int64, encoded bytes: [UInt8]) {
    guard bytes.count.isMultiple(of: 17) else { return nil }
    self.rowCount = rowCount
    for start in stride(from: 0, to: bytes.count, by: 17) {
      guard let sum = Sum128(bytes[(start + 1)..<(start + 17)]), buckets.updateValue(sum, forKey: bytes[start]) == nil
      else { return nil }
    }
  }

  /// The sums that are not zero: a byte that says which, and 16 bytes.
  package var encoded: [UInt8] { buckets.sorted { $0.key < $1.key }.flatMap { [$0.key] + $0.value.bytes } }

  /// The sum of all.
  package var digest: Sum128 {
    var sum = Sum128()
    for bucket in buckets.values { sum += bucket }
    return sum
  }

  subscript(bucket: UInt8) -> Sum128 { buckets[bucket] ?? Sum128() }

  mutating func add(_ row: Sum128, to bucket: UInt8) {
    buckets[bucket, default: Sum128()] += row
    rowCount += 1
    drop(bucket)
  }

  mutating func remove(_ row: Sum128, from bucket: UInt8) {
    buckets[bucket, default: Sum128()] -= row
    rowCount -= 1
    drop(bucket)
  }

  /// A sum of zero is as good as none, and takes no room.
  private mutating func drop(_ bucket: UInt8) { if buckets[bucket] == Sum128() { buckets[bucket] = nil } }

  /// The buckets in which two sides differ.
  func differences(from other: StateSums) -> [UInt8] {
    Set(buckets.keys).union(other.buckets.keys).filter { self[$0] != other[$0] }.sorted()
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
  func place(_ key: [UInt8]) -> (bucket: UInt8, key: [UInt8]) {
    let bytes = hash.hash(prefix + key).bytes
    return (bytes[0], bytes)
  }

  /// What a row adds to its sum.
  ///
  /// - Parameters:
  ///   - key: As ``place(_:)`` has it.
  ///   - content: The ``StreamRowHash``.
  func row(_ key: [UInt8], _ content: UInt64) -> Sum128 {
    hash.hash(key + (0..<8).map { UInt8(truncatingIfNeeded: content >> (8 * $0)) })
  }
}
