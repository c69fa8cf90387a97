import Dispatch

/// The differing pages of two databases, and the facts about each page that need no other read.
///
/// Two threads write at once: the pages of one are all below, those of the other all from, a multiple of
/// `PageBitmap.wordPages`. Nothing is written after `init`.
final class PageDifferences: @unchecked Sendable {
  /// One of the two databases.
  enum Side { case older, newer }

  /// The pages that differ or are in one database only.
  let differing: PageBitmap
  /// For a page that is equal in both: its first four bytes, which hold the next page of an overflow page and the type of
  /// a b-tree page. For one that differs: the first byte in the older database, shifted by 8, and in the newer.
  let words: UnsafeMutableBufferPointer<UInt32>
  /// The usable size of a page in bytes.
  let usableSize: Int
  /// True if a page differs that may be an overflow page.
  private(set) var mayOverflowDiffer = false

  private let pageSize: Int
  private let olderCount: Int
  private let newerCount: Int

  /// The size of a read of each file in bytes, which fits in the cache of a core.
  private static let pieceBytes = 256 << 10
  /// The size in bytes from which a second thread is worth starting.
  private static let threadBytes = 8 << 20

  /// Compares all pages of two databases with the same page size.
  ///
  /// - Throws: What the sources throw.
  init(_ older: DatabasePages, _ newer: DatabasePages) throws {
    pageSize = newer.header.pageSize
    usableSize = newer.header.usableSize
    olderCount = older.pageCount
    newerCount = newer.pageCount
    let count = max(olderCount, newerCount)
    differing = PageBitmap(upTo: count)
    words = .allocate(capacity: count + 1)
    words.initialize(repeating: 0)
    try compareFiles(older.file, newer.file)
    try compareLoggedPages(older, newer)
    mayOverflowDiffer = try overflowMayDiffer(older, newer)
  }

  deinit { words.deallocate() }

  /// Compares the database files, whatever their logs hold. A second thread takes half of large ones.
  private func compareFiles(_ older: any ByteSource, _ newer: any ByteSource) throws {
    let end = words.count
    let middle = end / 2 / PageBitmap.wordPages * PageBitmap.wordPages
    guard (end - middle) * pageSize >= Self.threadBytes, let secondOlder = try older.duplicate(),
      let secondNewer = try newer.duplicate()
    else { return try compare(1..<end, older, newer) }
    let upper = BackgroundTask(with: (secondOlder, secondNewer)) { try self.compare(middle..<end, $0.0, $0.1) }
    let lower = Result { try compare(1..<middle, older, newer) }
    try upper.join()
    try lower.get()
  }

  private func compare(_ pages: Range<Int>, _ older: any ByteSource, _ newer: any ByteSource) throws {
    let pagesPerPiece = max(1, Self.pieceBytes / pageSize)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 2 * pagesPerPiece * pageSize, alignment: 4_096)
    defer { buffer.deallocate() }
    for first in stride(from: pages.lowerBound, to: pages.upperBound, by: pagesPerPiece) {
      let count = min(pagesPerPiece, pages.upperBound - first)
      let offset = Int64(first - 1) * Int64(pageSize)
      func read(_ source: any ByteSource, into place: Int) throws -> UnsafeRawBufferPointer {
        let target = UnsafeMutableRawBufferPointer(rebasing: buffer[place..<place + count * pageSize])
        return UnsafeRawBufferPointer(rebasing: target[..<(try source.read(into: target, at: offset))])
      }
      let theirs = try read(older, into: 0)
      let mine = try read(newer, into: pagesPerPiece * pageSize)
      record(first, count, theirs, mine)
    }
  }

  /// Records the result for consecutive pages.
  private func record(_ first: Int, _ count: Int, _ theirs: UnsafeRawBufferPointer, _ mine: UnsafeRawBufferPointer) {
    let isFull = first + count - 1 <= min(olderCount, newerCount)
    if isFull, mine.count == count * pageSize, mine.isEqual(to: theirs) {
      for index in 0..<count {
        words[first + index] = mine.number32(at: index * pageSize + BTreePage.headerOffset(of: first + index))
      }
      return
    }
    for index in 0..<count {
      let range = index * pageSize..<(index + 1) * pageSize
      let one = first + index <= olderCount && range.upperBound <= theirs.count
      let two = first + index <= newerCount && range.upperBound <= mine.count
      record(
        first + index, one ? UnsafeRawBufferPointer(rebasing: theirs[range]) : nil,
        two ? UnsafeRawBufferPointer(rebasing: mine[range]) : nil)
    }
  }

  /// Records the result for one page, which is nil if a database does not have it.
  private func record(_ page: Int, _ older: UnsafeRawBufferPointer?, _ newer: UnsafeRawBufferPointer?) {
    let place = BTreePage.headerOffset(of: page)
    if let older, let newer, older.isEqual(to: newer) {
      words[page] = newer.number32(at: place)
      differing.remove(page)
    } else {
      words[page] = UInt32(older?[place] ?? 0) << 8 | UInt32(newer?[place] ?? 0)
      differing.insert(page)
    }
  }

  /// Compares the pages again that a write-ahead log overlays.
  private func compareLoggedPages(_ older: DatabasePages, _ newer: DatabasePages) throws {
    let one = PageBuffer(size: pageSize)
    let two = PageBuffer(size: pageSize)
    for page in Set(older.loggedPages + newer.loggedPages) where page < words.count {
      let inOlder = page <= olderCount
      let inNewer = page <= newerCount
      if inOlder { try older.read(page, into: one.bytes) }
      if inNewer { try newer.read(page, into: two.bytes) }
      record(
        page, inOlder ? UnsafeRawBufferPointer(one.bytes) : nil, inNewer ? UnsafeRawBufferPointer(two.bytes) : nil)
    }
  }

  // MARK: Results

  /// True if a page is in both databases, and equal.
  func isEqual(_ page: Int) -> Bool {
    page >= 1 && page < words.count && !differing.contains(page)
  }

  /// The first byte of a page's b-tree header in one database: its type if it is a b-tree page. The page must exist.
  func typeByte(_ page: Int, in side: Side) -> UInt8 {
    let word = words[page]
    if !differing.contains(page) { return UInt8(word >> 24) }
    return UInt8(truncatingIfNeeded: side == .older ? word >> 8 : word)
  }

  // MARK: Overflow chains

  // See https://sqlite.org/fileformat2.html#cell_payload_overflow_pages. An overflow page has no mark: it starts with
  // the number of the next one. A page therefore counts as one unless it is known to be of another kind.

  /// From this page number on the first byte of the number can be that of a b-tree page type.
  private static let ambiguousPageNumber = 0x0200_0000

  /// True if a page differs that may be an overflow page. Mostly none does, and then no chain has to be followed.
  func overflowMayDiffer(_ older: DatabasePages, _ newer: DatabasePages) throws -> Bool {
    if differing.isEmpty { return false }
    if words.count > Self.ambiguousPageNumber { return true }
    let trunks = try freelistTrunkPages(newer)
    let isBTreePage: (UInt8) -> Bool = { BTreePageType(rawValue: $0) != nil }
    var mayDiffer = false
    differing.forEach { page in
      if mayDiffer || page == 1 || page > min(older.pageCount, newer.pageCount) { return }
      if isBTreePage(typeByte(page, in: .older)) || isBTreePage(typeByte(page, in: .newer)) { return }
      if older.header.isPointerMap(page) && newer.header.isPointerMap(page) || trunks.contains(page) { return }
      mayDiffer = true
    }
    return mayDiffer
  }

  /// The freelist trunk pages of a database, up to the first invalid page number. See
  /// <https://sqlite.org/fileformat2.html#the_freelist>.
  private func freelistTrunkPages(_ pages: DatabasePages) throws -> Set<Int> {
    var trunks: Set<Int> = []
    let buffer = PageBuffer(size: pages.header.pageSize)
    var page = pages.header.firstFreelistTrunkPage
    while page >= 1, page <= pages.pageCount, trunks.insert(page).inserted {
      try pages.read(page, into: buffer.bytes)
      page = Int(UnsafeRawBufferPointer(buffer.bytes).number32(at: 0))
    }
    return trunks
  }

  /// True if any page of an overflow chain differs.
  ///
  /// - Parameters:
  ///   - page: The first page of the chain, the same in both databases.
  ///   - bytes: The size of the payload in the chain, in bytes.
  func chainDiffers(from page: Int, bytes: Int) -> Bool {
    if !mayOverflowDiffer { return false }
    // A cell can claim more than the file holds, and its chain can be a cycle.
    guard bytes / (usableSize - 4) < words.count else { return true }
    var page = page
    var left = bytes
    while left > 0 {
      // A chain that ends too early is damage, which is reported when the payload is read.
      guard isEqual(page) else { return true }
      left -= usableSize - 4
      page = Int(words[page])
    }
    return false
  }
}

/// A set of page numbers, one bit a page.
///
/// The bits are in memory of their own: a class pays for exclusive access to its array each time, and this set is asked
/// about every page of a file.
package final class PageBitmap {
  /// The number of pages that share a word of memory, those from a multiple of it up to the next.
  static let wordPages = 64

  private let words: UnsafeMutableBufferPointer<UInt64>

  /// - Parameter pages: The greatest page number that the set can hold.
  package init(upTo pages: Int) {
    words = .allocate(capacity: pages / 64 + 1)
    words.initialize(repeating: 0)
  }

  deinit { words.deallocate() }

  @inline(__always)
  package func contains(_ page: Int) -> Bool { words[page >> 6] >> UInt64(page & 63) & 1 == 1 }

  /// Inserts a page.
  ///
  /// - Returns: false when the set already contained it.
  @discardableResult
  package func insert(_ page: Int) -> Bool {
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

/// Work that runs on another thread.
package final class BackgroundTask<Input, Output>: @unchecked Sendable {
  private let isDone = DispatchSemaphore(value: 0)
  private let input: Input
  private let work: (Input) throws -> Output
  // Written before the signal, read after it.
  private var result: Result<Output, any Error> = .failure(CancellationError())

  /// Starts the work. `join()` must follow.
  package init(with input: Input, _ work: @escaping (Input) throws -> Output) {
    self.input = input
    self.work = work
    DispatchQueue(label: "SQLiteFiles.BackgroundTask").async {
      self.result = Result { try self.work(self.input) }
      self.isDone.signal()
    }
  }

  /// Waits until the work has ended.
  ///
  /// - Returns: Its result.
  /// - Throws: Its error.
  package func join() throws -> Output {
    isDone.wait()
    return try result.get()
  }
}
