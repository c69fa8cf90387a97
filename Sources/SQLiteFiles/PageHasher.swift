/// A keyed hash of pages: 128 bits, so that pages which differ have the same one as good as never.
///
/// Words are added to those of a secret, multiplied in pairs, and the products added up: NH of UMAC
/// (<https://www.rfc-editor.org/rfc/rfc4418#section-5.2.2>) with words of 64 bits. For any two pages that were chosen without knowing
/// the secret the hashes are equal with a probability of 2^-64.
package final class PageHasher {
  /// How many bytes the secret has.
  package static let keyBytes = 16

  private let words: UnsafeMutableBufferPointer<UInt64>

  /// - Parameters:
  ///   - key: The secret: ``keyBytes`` bytes.
  ///   - pageSize: How many bytes a page has: a multiple of 32.
  package init(key: [UInt8], pageSize: Int) {
    precondition(key.count == Self.keyBytes && pageSize % 32 == 0, "a secret or a page of another size")
    let (one, two) = key.withUnsafeBytes { bytes in
      (
        UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self)),
        UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
      )
    }
    words = .allocate(capacity: pageSize / 8 + 2)
    for index in words.indices {
      let count = UInt64(index + 1)
      words.initializeElement(
        at: index,
        to: Self.mix(one &+ count &* 0x9e37_79b9_7f4a_7c15) ^ Self.mix(two &- count &* 0xd1b5_4a32_d192_ed03))
    }
  }

  deinit { words.deallocate() }

  /// The last step of SplitMix64.
  private static func mix(_ value: UInt64) -> UInt64 {
    var value = value
    value = (value ^ value >> 30) &* 0xbf58_476d_1ce4_e5b9
    value = (value ^ value >> 27) &* 0x94d0_49bb_1331_11eb
    return value ^ value >> 31
  }

  /// The hash of a page.
  ///
  /// - Parameters:
  ///   - page: A whole page.
  ///   - earlier: The hash of what comes before it, for one hash of several pages.
  package func hash(_ page: UnsafeRawBufferPointer, after earlier: PageHash = PageHash(high: 0, low: 0)) -> PageHash {
    precondition(page.count == (words.count - 2) * 8, "a page of another size")
    // Two sums at once, since each waits for its own last step only.
    var even = PageHash(high: 0, low: 0)
    var odd = PageHash(high: 0, low: 0)
    var place = 0
    for offset in stride(from: 0, to: page.count, by: 32) {
      // Sound: a page is a multiple of 32 bytes, and the secret has a word for each eight of them.
      even.add(product(page, offset, place))
      odd.add(product(page, offset + 16, place + 2))
      place += 4
    }
    even.add(odd)
    even.add((earlier.low &+ words[place]).multipliedFullWidth(by: earlier.high &+ words[place + 1]))
    return even
  }

  /// The hash of some bytes, fewer than a page has.
  package func hash(part bytes: UnsafeRawBufferPointer) -> PageHash {
    precondition(bytes.count <= (words.count - 2) * 8, "more bytes than a page has")
    func word(_ offset: Int) -> UInt64 {
      if offset + 8 <= bytes.count {
        return UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
      }
      return bytes.dropFirst(offset).reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }
    var sum = PageHash(high: 0, low: 0)
    for offset in stride(from: 0, to: bytes.count, by: 16) {
      let place = offset / 8
      sum.add((word(offset) &+ words[place]).multipliedFullWidth(by: word(offset + 8) &+ words[place + 1]))
    }
    // How many they are tells zeros at the end from none.
    let end = words.count - 2
    sum.add((UInt64(bytes.count) &+ words[end]).multipliedFullWidth(by: words[end + 1]))
    return sum
  }

  @inline(__always)
  private func product(_ page: UnsafeRawBufferPointer, _ offset: Int, _ place: Int) -> (high: UInt64, low: UInt64) {
    let one = UInt64(littleEndian: page.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    let two = UInt64(littleEndian: page.loadUnaligned(fromByteOffset: offset + 8, as: UInt64.self))
    return (one &+ words[place]).multipliedFullWidth(by: two &+ words[place + 1])
  }
}

/// A hash of 128 bits.
package struct PageHash: Hashable, Sendable {
  package var high: UInt64
  package var low: UInt64

  package init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  @inline(__always)
  fileprivate mutating func add(_ product: (high: UInt64, low: UInt64)) {
    let sum = low.addingReportingOverflow(product.low)
    low = sum.partialValue
    high &+= product.high &+ (sum.overflow ? 1 : 0)
  }

  @inline(__always)
  fileprivate mutating func add(_ other: PageHash) { add((other.high, other.low)) }
}
