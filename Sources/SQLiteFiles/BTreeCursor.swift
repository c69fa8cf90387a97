/// Goes through the rows of a b-tree in the order of their keys: a table's by rowid, those of a WITHOUT ROWID table, or the
/// entries of an index, by the key columns.
///
/// ```swift
/// let rows = try BTreeCursor(pages, root: 2)
/// let record = RecordReader(limit: 3)
/// while try rows.next() {
///   try record.read(try rows.payload(), page: rows.page)
///   print(rows.rowID, record.kind(0))
/// }
/// ```
///
/// Whatever the file holds, this ends and reads nothing outside it: pages are visited once, cells and chains are checked
/// against their bounds.
public final class BTreeCursor {
  /// How deep a tree may be; SQLite's own limit.
  static let depthLimit = 20

  private struct Level {
    let page: BTreePage
    /// Twice the number of the next child or, if odd, of the next cell.
    var next: Int
  }

  private let pages: DatabasePages
  private let isTable: Bool
  private let usableSize: Int
  private let filter: EqualLeafFilter?
  /// The pages that have been met; nil where someone has made sure that none comes twice.
  private let visited: PageBitmap?
  private var levels: [Level] = []
  private var buffers: [PageBuffer] = []
  private var cell = BTreePage.Cell()
  private var bytes = UnsafeRawBufferPointer(start: nil, count: 0)
  /// Where a record is put together that lies on several pages.
  private var assembled = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  private var isAssembled = false
  /// Where the next leaf cell is.
  private var leafNext = 0
  private var leafCount = 0

  /// The page that the present row is on.
  public private(set) var page = 0

  /// The present row's rowid; 0 where there is none.
  public var rowID: Int64 { cell.rowID }

  /// Begins before the first row.
  ///
  /// - Parameters:
  ///   - pages: The database.
  ///   - root: The root page, as `sqlite_schema` has it.
  ///   - isTable: Whether it is a table with rowids; else an index or a WITHOUT ROWID table.
  /// - Throws: `DatabaseFileError`; what the source throws.
  public convenience init(_ pages: DatabasePages, root: Int, isTable: Bool = true) throws {
    try self.init(pages, root: root, isTable: isTable, filter: nil)
  }

  /// - Parameter filter: The leaves that are not wanted.
  init(_ pages: DatabasePages, root: Int, isTable: Bool, filter: EqualLeafFilter?) throws {
    self.pages = pages
    self.isTable = isTable
    self.filter = filter
    usableSize = pages.header.usableSize
    visited = filter == nil ? PageBitmap(upTo: pages.pageCount) : nil
    try descend(to: root)
  }

  deinit { assembled.deallocate() }

  /// Goes on to the next row.
  ///
  /// - Returns: false behind the last one.
  /// - Throws: `DatabaseFileError`; what the source throws.
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

  /// The next child of an inner page that is not skipped, or whose cell comes after it: most of the children of a large table
  /// are passed over here, and nowhere else.
  ///
  /// - Returns: The child's place, and its page where that is to be looked at.
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
        .badPage, page: levels.last?.page.number, "it leads to page \(number), which is not there")
    }
    guard levels.count < Self.depthLimit else { throw DatabaseFileError(.cycle, page: number, "the tree is too deep") }
    if levels.isEmpty, let filter, filter.skips(number) { return }
    if let visited, !visited.insert(number) { throw DatabaseFileError.visitedTwice(number) }
    if levels.count == buffers.count { buffers.append(PageBuffer(size: pages.header.pageSize)) }
    let buffer = buffers[levels.count].bytes
    try pages.read(number, into: buffer)
    let found = try BTreePage(number, UnsafeRawBufferPointer(buffer), usableSize: usableSize)
    guard found.kind.isTable == isTable else {
      throw DatabaseFileError(.badPage, page: number, "it belongs to \(isTable ? "an index" : "a table with rowids")")
    }
    levels.append(Level(page: found, next: 0))
    if found.kind.isLeaf {
      leafNext = 0
      leafCount = found.cellCount
      bytes = found.bytes
      page = number
    }
  }

  // MARK: The present row

  /// How many bytes the row's record has.
  public var payloadBytes: Int { cell.payloadBytes }

  /// The row's record, put together where it lies on several pages. Good until the next row.
  ///
  /// - Throws: `DatabaseFileError` with `badOverflow`; what the source throws.
  public func payload() throws -> UnsafeRawBufferPointer {
    if cell.overflow == 0, cell.local.count == cell.payloadBytes { return local }
    if !isAssembled { try assemble() }
    return UnsafeRawBufferPointer(rebasing: assembled[..<cell.payloadBytes])
  }

  /// The part of the record that is on the row's own page.
  @inline(__always)
  private var local: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: bytes[cell.local]) }

  private func assemble() throws {
    // A row may claim gigabytes that no file of this size can hold.
    guard cell.payloadBytes / (usableSize - 4) <= pages.pageCount else {
      throw DatabaseFileError(.badOverflow, page: page, "a row is to be longer than the whole file")
    }
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
          next == 0 ? "a row ends too early" : "a row goes on at page \(next), which is not there")
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

  /// Whether the present rows of two cursors are stored in the same bytes.
  ///
  /// - Parameter comparison: What is known of the pages of both databases; saves the reading of equal overflow pages.
  func hasSamePayload(as other: BTreeCursor, _ comparison: PageComparison?) throws -> Bool {
    guard cell.payloadBytes == other.cell.payloadBytes, cell.local.count == other.cell.local.count,
      local.isEqual(to: other.local)
    else { return false }
    if cell.local.count == cell.payloadBytes { return true }
    if let comparison, cell.overflow == other.cell.overflow,
      !comparison.chainDiffers(from: cell.overflow, bytes: cell.payloadBytes - cell.local.count)
    {
      return true
    }
    return try payload().isEqual(to: other.payload())
  }
}

extension DatabaseFileError {
  static func visitedTwice(_ page: Int) -> DatabaseFileError {
    DatabaseFileError(.cycle, page: page, "two pages, or two places of one, lead to it")
  }
}
