/// SipHash-2-4 with a result of 128 bits (<https://www.aumasson.jp/siphash/siphash.pdf>): a keyed hash that is fast on short input.
struct SipHash {
  private let k0: UInt64
  private let k1: UInt64

  /// - Parameter key: 16 bytes; what is missing counts as zero.
  init(key: [UInt8]) {
    k0 = Self.word(key, at: 0)
    k1 = Self.word(key, at: 8)
  }

  /// The hash of some bytes.
  func hash(_ bytes: [UInt8]) -> Sum128 {
    var v0 = k0 ^ 0x736f_6d65_7073_6575
    var v1 = k1 ^ 0x646f_7261_6e64_6f6d ^ 0xee
    var v2 = k0 ^ 0x6c79_6765_6e65_7261
    var v3 = k1 ^ 0x7465_6462_7974_6573

    func round() {
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
    func absorb(_ word: UInt64) {
      v3 ^= word
      round()
      round()
      v0 ^= word
    }

    let whole = bytes.count & ~7
    for start in stride(from: 0, to: whole, by: 8) { absorb(Self.word(bytes, at: start)) }
    absorb(Self.word(bytes, at: whole) | UInt64(truncatingIfNeeded: bytes.count) << 56)
    v2 ^= 0xee
    for _ in 0..<4 { round() }
    let low = v0 ^ v1 ^ v2 ^ v3
    v1 ^= 0xdd
    for _ in 0..<4 { round() }
    return Sum128(low: low, high: v0 ^ v1 ^ v2 ^ v3)
  }

  /// Up to eight bytes as a number, the first byte lowest.
  private static func word(_ bytes: [UInt8], at start: Int) -> UInt64 {
    var word: UInt64 = 0
    for place in start..<max(start, min(start + 8, bytes.count)) {
      word |= UInt64(bytes[place]) << UInt64(8 * (place - start))
    }
    return word
  }
}

/// A number of 128 bits that counts modulo 2^128.
package struct Sum128: Hashable, Sendable {
  private(set) var low: UInt64 = 0
  private(set) var high: UInt64 = 0

  init() {}

  init(low: UInt64, high: UInt64) {
    self.low = low
    self.high = high
  }

  /// 16 bytes, the lowest first.
  package var bytes: [UInt8] {
    [low, high].flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) } }
  }

  /// Takes 16 bytes, the lowest first; nil for any other number.
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
