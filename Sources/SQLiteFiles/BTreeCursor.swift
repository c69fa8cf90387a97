/// Walks the rows of a b-tree in order: those of a table by rowid, those of a WITHOUT ROWID table by primary key, and the
/// entries of an index by its columns.
///
/// ```swift
/// let rows = try BTreeCursor(pages, root: 2)
/// let record = RecordReader(limit: 3)
/// while try rows.next() {
///   try record.read(rows.payload(), page: rows.page)
///   if case .text(let title)? = record.value(at: 1) { print(rows.rowID, String(decoding: title, as: UTF8.self)) }
/// }
/// ```
///
/// A walk ends and stays within its bounds whatever the file contains: it visits each page once, and checks cells and
/// overflow chains. See <https://sqlite.org/fileformat2.html#b_tree_pages>.
public final class BTreeCursor {
  /// The deepest b-tree that is read; SQLite's own limit.
  static let depthLimit = 20

  private let pages: DatabasePages
  private let isTable: Bool
  private let usableSize: Int
  private let filter: EqualLeafFilter?
  /// The pages visited so far; nil with a filter, because the pages have been checked when it was made.
  private let visited: PageBitmap?
  /// The pages down to the current one, and where to continue on each: twice the index of the next child or, if odd, of the cell after
  /// that child.
  private var levels: [(page: BTreePage, next: Int)] = []
  private var buffers: [PageBuffer] = []
  private var cell = BTreePage.Cell()
  private var bytes = UnsafeRawBufferPointer(start: nil, count: 0)
  /// Memory for a record with an overflow chain.
  private var assembled = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  private var isAssembled = false
  /// The length of the overflow chains followed so far, in pages.
  private var overflowPages = 0
  /// The index of the next cell of the current leaf.
  private var leafNext = 0
  private var leafCount = 0

  /// The number of the page that holds the current row.
  public private(set) var page = 0

  /// The rowid of the current row; 0 in an index or a WITHOUT ROWID table.
  public var rowID: Int64 { cell.rowID }

  /// Creates a cursor before the first row.
  ///
  /// - Parameters:
  ///   - pages: The database.
  ///   - root: The number of the root page, `rootpage` in `sqlite_schema`; 1 for `sqlite_schema` itself.
  ///   - isTable: True if the b-tree is that of a rowid table; false for an index or a WITHOUT ROWID table.
  /// - Throws: `DatabaseFileError` for damage; what the sources throw.
  public convenience init(_ pages: DatabasePages, root: Int, isTable: Bool = true) throws {
    try self.init(pages, root: root, isTable: isTable, filter: nil)
  }

  /// - Parameter filter: The leaves to skip.
  init(_ pages: DatabasePages, root: Int, isTable: Bool, filter: EqualLeafFilter?) throws {
    self.pages = pages
    self.isTable = isTable
    self.filter = filter
    usableSize = pages.header.usableSize
    visited = filter == nil ? PageBitmap(upTo: pages.pageCount) : nil
    try descend(to: root)
  }

  deinit { assembled.deallocate() }

  /// Moves to the next row.
  ///
  /// - Returns: false after the last row.
  /// - Throws: `DatabaseFileError` for damage; what the sources throw.
  public func next() throws -> Bool {
    isAssembled = false
    while true {
      if leafNext < leafCount {
        cell = try levels[levels.count - 1].page.cell(leafNext)
        leafNext += 1
        return true
      }
      guard let level = levels.last else { return false }
      leafCount = 0
      leafNext = 0
      if level.page.kind.isLeaf || level.next > 2 * level.page.cellCount {
        levels.removeLast()
        continue
      }
      if level.next & 1 == 1, !isTable {
        levels[levels.count - 1].next = level.next + 1
        cell = try level.page.cell(level.next >> 1)
        bytes = level.page.bytes
        page = level.page.number
        return true
      }
      let (child, number) = try nextChild(of: level.page, from: (level.next + 1) >> 1)
      levels[levels.count - 1].next = 2 * child + 1
      if let number { try descend(to: number) }
    }
  }

  /// Finds the next child of an interior page that is not skipped, or is followed by a row. Most children of a large table
  /// are skipped here, and nowhere else.
  ///
  /// - Returns: The index of the child, and its page number unless it is skipped.
  private func nextChild(of page: BTreePage, from start: Int) throws(DatabaseFileError) -> (place: Int, page: Int?) {
    var place = start
    while true {
      let number = try page.child(place)
      guard let filter, filter.skips(number) else { return (place, number) }
      if !isTable || place == page.cellCount { return (place, nil) }
      place += 1
    }
  }

  private func descend(to number: Int) throws {
    guard number >= 1, number <= pages.pageCount else {
      throw DatabaseFileError(
        .badPage, page: levels.last?.page.number, "a pointer leads to page \(number), which does not exist")
    }
    guard levels.count < Self.depthLimit else {
      throw DatabaseFileError(.cycle, page: number, "the b-tree is too deep")
    }
    if levels.isEmpty, let filter, filter.skips(number) { return }
    if let visited, !visited.insert(number) { throw DatabaseFileError.visitedTwice(number) }
    if levels.count == buffers.count { buffers.append(PageBuffer(size: pages.header.pageSize)) }
    let buffer = buffers[levels.count].bytes
    try pages.read(number, into: buffer)
    let found = try BTreePage(number, UnsafeRawBufferPointer(buffer), usableSize: usableSize)
    guard found.kind.isTable == isTable else {
      throw DatabaseFileError(.badPage, page: number, "the page is that of \(isTable ? "an index" : "a rowid table")")
    }
    levels.append((found, 0))
    if found.kind.isLeaf {
      leafNext = 0
      leafCount = found.cellCount
      bytes = found.bytes
      page = number
    }
  }

  // MARK: The current row

  /// The size of the record of the current row, in bytes.
  public var payloadBytes: Int { cell.payloadBytes }

  /// The record of the current row, valid until the cursor moves.
  ///
  /// - Throws: `DatabaseFileError` with `badOverflow` or `cycle`; what the sources throw.
  public func payload() throws -> UnsafeRawBufferPointer {
    if cell.overflow == 0, cell.local.count == cell.payloadBytes { return local }
    if !isAssembled { try assemble() }
    return UnsafeRawBufferPointer(rebasing: assembled[..<cell.payloadBytes])
  }

  /// The part of the record that is on the page of the row.
  @inline(__always)
  private var local: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: bytes[cell.local]) }

  /// Copies the record and its overflow chain into one piece of memory.
  private func assemble() throws {
    // A cell can claim gigabytes that no file of this size holds.
    guard cell.payloadBytes / (usableSize - 4) <= pages.storedPageCount else {
      throw DatabaseFileError(.badOverflow, page: page, "a record claims to be larger than the file")
    }
    try countOverflowPages()
    if assembled.count < cell.payloadBytes || assembled.count > 4 * cell.payloadBytes + 1 << 20 {
      assembled.deallocate()
      assembled = .allocate(byteCount: cell.payloadBytes, alignment: 16)
    }
    assembled.copyMemory(from: local)
    var done = cell.local.count
    let buffer = PageBuffer(size: pages.header.pageSize)
    var next = cell.overflow
    while done < cell.payloadBytes {
      guard next >= 1, next <= pages.pageCount else {
        throw DatabaseFileError(
          .badOverflow, page: page,
          next == 0
            ? "an overflow chain ends too early" : "an overflow chain leads to page \(next), which does not exist")
      }
      try pages.read(next, into: buffer.bytes)
      let bytes = UnsafeRawBufferPointer(buffer.bytes)
      let count = min(usableSize - 4, cell.payloadBytes - done)
      UnsafeMutableRawBufferPointer(rebasing: assembled[done..<done + count])
        .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[4..<4 + count]))
      done += count
      next = Int(bytes.number32(at: 0))
    }
    isAssembled = true
  }

  /// Counts the overflow pages of the current row: the rows of a crafted file must not share one long chain.
  ///
  /// Each page belongs to one chain, and a chain is followed at most twice: to compare it, and to read it.
  private func countOverflowPages() throws(DatabaseFileError) {
    overflowPages += cell.overflowBytes / (usableSize - 4)
    guard overflowPages <= 2 * pages.pageCount else { throw DatabaseFileError.visitedTwice(cell.overflow) }
  }

  /// True if the current rows of two cursors have the same record, byte for byte.
  ///
  /// - Parameter differences: The differences between the two databases. Equal overflow chains are not read.
  func hasSamePayload(as other: BTreeCursor, _ differences: PageDifferences) throws -> Bool {
    guard cell.payloadBytes == other.cell.payloadBytes, cell.local.count == other.cell.local.count,
      local.isEqual(to: other.local)
    else { return false }
    if cell.local.count == cell.payloadBytes { return true }
    if cell.overflow == other.cell.overflow {
      try countOverflowPages()
      if !differences.chainDiffers(from: cell.overflow, bytes: cell.overflowBytes) { return true }
    }
    return try payload().isEqual(to: other.payload())
  }
}
