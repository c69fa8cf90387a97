import BuckiaBytes
import SQLiteSchemas

/// A digest of a table's rows: 256 sums of keyed hashes, one for each first byte of the hash of a key. Comparing the
/// sums of two sides shows whether they have the same rows, and in which buckets they differ. A sum can follow the
/// change of a row without the other rows.
///
/// This is MSet-Add-Hash (<https://people.csail.mit.edu/devadas/pubs/mhashes.pdf>) with numbers of 128 bits. `Schemas/digests.md` specifies it.
package struct StateSums: Equatable, Sendable {
  /// The number of sums.
  package static let bucketCount = 256

  private var buckets = [Sum128](repeating: Sum128(), count: bucketCount)
  /// The number of rows.
  package private(set) var rowCount: Int64 = 0

  /// Creates the sums of no rows.
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

  /// The sums other than zero: the byte of the bucket, followed by 16 bytes, for each.
  package var encoded: [UInt8] {
    buckets.enumerated().flatMap { $1 == Sum128() ? [] : [UInt8($0)] + $1.bytes }
  }

  /// The sum of all buckets.
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

  /// - Parameter key: The key of the hashes: the stream's id.
  init(key: [UInt8], table: String) {
    hash = SipHash(key: key)
    prefix = Self.domain + Array(ASCIIName.folded(table).utf8) + [0]
  }

  /// The bucket of a row, and the hash of its key. ASCII letters count in lower case: under NOCASE all spellings are one
  /// key. Elsewhere the hash of the row's content tells spellings apart.
  func place(_ key: [UInt8]) -> (bucket: UInt8, key: Sum128) {
    let count = prefix.count + key.count
    let found = withUnsafeTemporaryAllocation(byteCount: count, alignment: 8) { bytes in
      bytes.copyBytes(from: prefix)
      for place in key.indices { bytes[prefix.count + place] = ASCIIName.folded(key[place]) }
      return hash.hash(UnsafeRawBufferPointer(bytes))
    }
    return (UInt8(truncatingIfNeeded: found.low), found)
  }

  /// The hash that a row adds to its bucket.
  ///
  /// - Parameters:
  ///   - key: The hash of the key from ``place(_:)``.
  ///   - content: The ``StreamRowHash``.
  func row(_ key: Sum128, _ content: UInt64) -> Sum128 { hash.hash(key, content) }
}

/// SipHash-2-4 with a result of 128 bits (<https://www.aumasson.jp/siphash/siphash.pdf>): a keyed hash that is fast on short input.
struct SipHash {
  private let k0: UInt64
  private let k1: UInt64

  /// - Parameter key: 16 bytes; missing ones count as zero.
  init(key: [UInt8]) {
    k0 = Self.word(key, at: 0)
    k1 = Self.word(key, at: 8)
  }

  /// The hash of some bytes.
  func hash(_ bytes: UnsafeRawBufferPointer) -> Sum128 {
    var state = State(k0, k1)
    let whole = bytes.count & ~7
    for start in stride(from: 0, to: whole, by: 8) {
      state.absorb(UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: start, as: UInt64.self)))
    }
    var last = UInt64(truncatingIfNeeded: bytes.count) << 56
    for place in whole..<bytes.count { last |= UInt64(bytes[place]) << UInt64(8 * (place - whole)) }
    state.absorb(last)
    return state.finish()
  }

  /// The hash of some bytes.
  func hash(_ bytes: [UInt8]) -> Sum128 { bytes.withUnsafeBytes { hash($0) } }

  /// The hash of a sum's 16 bytes, followed by the 8 bytes of a number, little-endian.
  func hash(_ sum: Sum128, _ number: UInt64) -> Sum128 {
    var state = State(k0, k1)
    state.absorb(sum.low)
    state.absorb(sum.high)
    state.absorb(number)
    state.absorb(24 << 56)
    return state.finish()
  }

  /// Up to eight bytes as a little-endian number.
  private static func word(_ bytes: [UInt8], at start: Int) -> UInt64 {
    var word: UInt64 = 0
    for place in start..<max(start, min(start + 8, bytes.count)) {
      word |= UInt64(bytes[place]) << UInt64(8 * (place - start))
    }
    return word
  }

  /// The internal state: four words.
  private struct State {
    private var v0: UInt64
    private var v1: UInt64
    private var v2: UInt64
    private var v3: UInt64

    init(_ k0: UInt64, _ k1: UInt64) {
      v0 = k0 ^ 0x736f_6d65_7073_6575
      v1 = k1 ^ 0x646f_7261_6e64_6f6d ^ 0xee
      v2 = k0 ^ 0x6c79_6765_6e65_7261
      v3 = k1 ^ 0x7465_6462_7974_6573
    }

    @inline(__always)
    private mutating func round() {
      v0 &+= v1
      v1 = v1 << 13 | v1 >> 51
      v1 ^= v0
      v0 = v0 << 32 | v0 >> 32
      v2 &+= v3
      v3 = v3 << 16 | v3 >> 48
      v3 ^= v2
      v0 &+= v3
      v3 = v3 << 21 | v3 >> 43
      v3 ^= v0
      v2 &+= v1
      v1 = v1 << 17 | v1 >> 47
      v1 ^= v2
      v2 = v2 << 32 | v2 >> 32
    }

    @inline(__always)
    mutating func absorb(_ word: UInt64) {
      v3 ^= word
      round()
      round()
      v0 ^= word
    }

    mutating func finish() -> Sum128 {
      v2 ^= 0xee
      for _ in 0..<4 { round() }
      let low = v0 ^ v1 ^ v2 ^ v3
      v1 ^= 0xdd
      for _ in 0..<4 { round() }
      return Sum128(low: low, high: v0 ^ v1 ^ v2 ^ v3)
    }
  }
}

/// A number of 128 bits; arithmetic is modulo 2^128.
package struct Sum128: Hashable, Sendable {
  private(set) var low: UInt64 = 0
  private(set) var high: UInt64 = 0

  init() {}

  init(low: UInt64, high: UInt64) {
    self.low = low
    self.high = high
  }

  /// The 16 bytes, little-endian.
  package var bytes: [UInt8] {
    [low, high].flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) } }
  }

  /// Reads 16 bytes, little-endian; nil for another number of bytes.
  init?(_ bytes: some Collection<UInt8>) {
    guard bytes.count == 16 else { return nil }
    for (place, byte) in bytes.enumerated() {
      if place < 8 { low |= UInt64(byte) << UInt64(8 * place) } else { high |= UInt64(byte) << UInt64(8 * place - 64) }
    }
  }

  static func += (sum: inout Sum128, other: Sum128) {
    let (low, carries) = sum.low.addingReportingOverflow(other.low)
    sum.low = low
    sum.high = sum.high &+ other.high &+ (carries ? 1 : 0)
  }

  static func -= (sum: inout Sum128, other: Sum128) {
    let (low, borrows) = sum.low.subtractingReportingOverflow(other.low)
    sum.low = low
    sum.high = sum.high &- other.high &- (borrows ? 1 : 0)
  }
}
