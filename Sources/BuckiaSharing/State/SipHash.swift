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

  /// The hash of 24 bytes: those of a sum, and a number, the lowest first.
  func hash(_ sum: Sum128, _ number: UInt64) -> Sum128 {
    var state = State(k0, k1)
    state.absorb(sum.low)
    state.absorb(sum.high)
    state.absorb(number)
    state.absorb(24 << 56)
    return state.finish()
  }

  /// Up to eight bytes as a number, the first byte lowest.
  private static func word(_ bytes: [UInt8], at start: Int) -> UInt64 {
    var word: UInt64 = 0
    for place in start..<max(start, min(start + 8, bytes.count)) {
      word |= UInt64(bytes[place]) << UInt64(8 * (place - start))
    }
    return word
  }

  /// The four words that the input goes into.
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
