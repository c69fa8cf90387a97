/// A set of pages, a bit each.
///
/// The bits are in memory of its own, not in an array: a class that looks into its own array pays for it each time, and this
/// is asked for every page of a file.
final class PageBitmap {
  /// How many pages share a word of memory: those from a multiple of this to the next.
  static let wordPages = 64

  private let words: UnsafeMutableBufferPointer<UInt64>

  /// - Parameter pages: The greatest page that can be in it.
  init(upTo pages: Int) {
    words = .allocate(capacity: pages / 64 + 1)
    words.initialize(repeating: 0)
  }

  deinit { words.deallocate() }

  @inline(__always)
  func contains(_ page: Int) -> Bool { words[page >> 6] >> UInt64(page & 63) & 1 == 1 }

  /// Adds a page; false when it was there.
  @discardableResult
  func insert(_ page: Int) -> Bool {
    let bit = UInt64(1) << UInt64(page & 63)
    defer { words[page >> 6] |= bit }
    return words[page >> 6] & bit == 0
  }

  func remove(_ page: Int) { words[page >> 6] &= ~(UInt64(1) << UInt64(page & 63)) }

  /// Whether no page is in it.
  var isEmpty: Bool { words.allSatisfy { $0 == 0 } }

  /// How many pages are in it.
  var count: Int { words.reduce(0) { $0 + $1.nonzeroBitCount } }

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
