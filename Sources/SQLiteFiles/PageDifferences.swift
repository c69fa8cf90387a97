import Dispatch

/// What is known of each page of two databases after both files have been read: whether it differs, and of what kind it is.
///
/// Two threads may write at once as long as the pages of one are all below, and those of the other all from, a multiple of
/// `PageBitmap.wordPages`.
final class PageDifferences: @unchecked Sendable {
  /// The pages that differ or are in one database only.
  let differing: PageBitmap
  /// Of an equal page its first four bytes: the next page where it is one of a chain, its kind where it is one of a tree.
  /// Of a page that differs both kinds.
  let words: UnsafeMutableBufferPointer<UInt32>

  private let pageSize: Int
  private let olderCount: Int
  private let newerCount: Int

  /// How many bytes of each file are read at once: what stays in the cache of a core.
  private static let pieceBytes = 256 << 10
  /// From how many bytes on a second thread is worth it.
  private static let threadBytes = 8 << 20

  init(_ older: DatabasePages, _ newer: DatabasePages) {
    pageSize = newer.header.pageSize
    olderCount = older.pageCount
    newerCount = newer.pageCount
    let count = max(olderCount, newerCount)
    differing = PageBitmap(upTo: count)
    words = .allocate(capacity: count + 1)
    words.initialize(repeating: 0)
  }

  deinit { words.deallocate() }

  /// Compares the files, without a look at their logs: half of it in a second thread when both files can be had twice.
  func compareFiles(_ older: any ByteSource, _ newer: any ByteSource) throws {
    let end = words.count
    let middle = end / 2 / PageBitmap.wordPages * PageBitmap.wordPages
    guard (end - middle) * pageSize >= Self.threadBytes, let secondOlder = try older.duplicate(),
      let secondNewer = try newer.duplicate()
    else { return try compare(1..<end, older, newer) }
    let upper = OtherThread(of: (secondOlder, secondNewer)) { try self.compare(middle..<end, $0.0, $0.1) }
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
      note(first, count, theirs, mine)
    }
  }

  /// Notes what was found of some pages that follow one another.
  private func note(_ first: Int, _ count: Int, _ theirs: UnsafeRawBufferPointer, _ mine: UnsafeRawBufferPointer) {
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
      note(
        first + index, one ? UnsafeRawBufferPointer(rebasing: theirs[range]) : nil,
        two ? UnsafeRawBufferPointer(rebasing: mine[range]) : nil)
    }
  }

  /// Notes what was found of one page; nil where a database does not have it.
  func note(_ page: Int, _ older: UnsafeRawBufferPointer?, _ newer: UnsafeRawBufferPointer?) {
    let place = BTreePage.headerOffset(of: page)
    if let older, let newer, older.isEqual(to: newer) {
      words[page] = newer.number32(at: place)
      differing.remove(page)
    } else {
      words[page] = UInt32(older?[place] ?? 0) << 8 | UInt32(newer?[place] ?? 0)
      differing.insert(page)
    }
  }
}

/// Work that is done by another thread meanwhile.
private final class OtherThread<Things>: @unchecked Sendable {
  private let isDone = DispatchSemaphore(value: 0)
  private let things: Things
  private let work: (Things) throws -> Void
  // Written before the signal, read after it.
  private var failure: (any Error)?

  /// Begins; `join()` must follow.
  init(of things: Things, _ work: @escaping (Things) throws -> Void) {
    self.things = things
    self.work = work
    DispatchQueue(label: "buckia.pages").async {
      do { try self.work(self.things) } catch { self.failure = error }
      self.isDone.signal()
    }
  }

  /// Waits for its end, and throws what it has thrown.
  func join() throws {
    isDone.wait()
    if let failure { throw failure }
  }
}
