/// A set of pages, a bit each.
struct PageSet {
  private var words: [UInt64]
  private(set) var count = 0

  /// - Parameter pages: The greatest page that can be in it.
  init(upTo pages: Int) { words = [UInt64](repeating: 0, count: pages / 64 + 1) }

  @inline(__always)
  func contains(_ page: Int) -> Bool { words[page >> 6] >> UInt64(page & 63) & 1 == 1 }

  /// Adds a page; false when it was there.
  @discardableResult
  @inline(__always)
  mutating func insert(_ page: Int) -> Bool {
    let bit = UInt64(1) << UInt64(page & 63)
    guard words[page >> 6] & bit == 0 else { return false }
    words[page >> 6] |= bit
    count += 1
    return true
  }

  mutating func remove(_ page: Int) {
    guard contains(page) else { return }
    words[page >> 6] &= ~(UInt64(1) << UInt64(page & 63))
    count -= 1
  }

  /// Calls `body` with each page, in order.
  func forEach(_ body: (Int) throws -> Void) rethrows {
    for place in words.indices where words[place] != 0 {
      var word = words[place]
      while word != 0 {
        try body(place << 6 + word.trailingZeroBitCount)
        word &= word - 1
      }
    }
  }
}
