/// A set of page numbers, one bit a page.
///
/// The bits are in memory of their own: a class pays for exclusive access to its array each time, and this set is asked
/// about every page of a file.
final class PageBitmap {
  /// The number of pages that share a word of memory, those from a multiple of it up to the next.
  static let wordPages = 64

  private let words: UnsafeMutableBufferPointer<UInt64>

  /// - Parameter pages: The greatest page number that the set can hold.
  init(upTo pages: Int) {
    words = .allocate(capacity: pages / 64 + 1)
    words.initialize(repeating: 0)
  }

  deinit { words.deallocate() }

  @inline(__always)
  func contains(_ page: Int) -> Bool { words[page >> 6] >> UInt64(page & 63) & 1 == 1 }

  /// Inserts a page.
  ///
  /// - Returns: false when the set already contained it.
  @discardableResult
  func insert(_ page: Int) -> Bool {
    let bit = UInt64(1) << UInt64(page & 63)
    defer { words[page >> 6] |= bit }
    return words[page >> 6] & bit == 0
  }

  func remove(_ page: Int) { words[page >> 6] &= ~(UInt64(1) << UInt64(page & 63)) }

  var isEmpty: Bool { words.allSatisfy { $0 == 0 } }

  /// The number of pages in the set.
  var count: Int { words.reduce(0) { $0 + $1.nonzeroBitCount } }

  /// Calls `body` with each page, in ascending order.
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
