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

/// The type of a b-tree page. The raw value is the first byte of the page's header.
enum BTreePageType: UInt8, Sendable {
  /// An interior page of an index or a WITHOUT ROWID table. Its cells hold rows, too.
  case indexInterior = 2
  /// An interior page of a rowid table.
  case tableInterior = 5
  /// A leaf page of an index or a WITHOUT ROWID table.
  case indexLeaf = 10
  /// A leaf page of a rowid table.
  case tableLeaf = 13

  /// True if pages of this type have no children.
  var isLeaf: Bool { self == .indexLeaf || self == .tableLeaf }
  /// True if the b-tree is that of a rowid table.
  var isTable: Bool { self == .tableInterior || self == .tableLeaf }
}

/// A b-tree page, decoded in place. See <https://sqlite.org/fileformat2.html#b_tree_pages>.
///
/// Every access is checked against the bounds of the page. The bytes must outlive the value.
struct BTreePage {
  let number: Int
  let kind: BTreePageType
  let cellCount: Int
  /// The usable bytes of the page.
  let bytes: UnsafeRawBufferPointer
  /// The offset of the cell pointer array.
  private let pointers: Int
  /// The most payload bytes that are stored on the page without overflow, X in the file format.
  private let localLimit: Int
  /// The fewest payload bytes that are stored on the page when some overflow, M in the file format.
  private let localMinimum: Int

  /// The offset of the b-tree page header. On page 1 it follows the database header.
  static func headerOffset(of page: Int) -> Int { page == 1 ? DatabaseHeader.byteCount : 0 }

  /// - Parameters:
  ///   - number: The page number.
  ///   - bytes: The whole page.
  ///   - usableSize: The usable size in bytes.
  /// - Throws: `DatabaseFileError` with `badPage`.
  init(_ number: Int, _ bytes: UnsafeRawBufferPointer, usableSize: Int) throws(DatabaseFileError) {
    let header = Self.headerOffset(of: number)
    guard let kind = BTreePageType(rawValue: bytes[header]) else {
      throw DatabaseFileError(.badPage, page: number, "the page is not a b-tree page")
    }
    self.number = number
    self.kind = kind
    self.bytes = UnsafeRawBufferPointer(rebasing: bytes[..<usableSize])
    cellCount = bytes.number16(at: header + 3)
    pointers = header + (kind.isLeaf ? 8 : 12)
    guard pointers + 2 * cellCount <= usableSize else {
      throw DatabaseFileError(.badPage, page: number, "the page claims \(cellCount) cells, more than fit")
    }
    localLimit = kind.isTable ? usableSize - 35 : (usableSize - 12) * 64 / 255 - 23
    localMinimum = (usableSize - 12) * 32 / 255 - 23
  }

  private func fault(_ cell: Int) -> DatabaseFileError {
    DatabaseFileError(.badCell, page: number, "cell \(cell) extends beyond the page")
  }

  /// The offset of a cell.
  @inline(__always)
  private func start(of cell: Int) throws(DatabaseFileError) -> Int {
    let offset = bytes.number16(at: pointers + 2 * cell)
    guard offset >= pointers + 2 * cellCount, offset + 4 <= bytes.count else { throw fault(cell) }
    return offset
  }

  /// The left child of a cell of an interior page; the right-most child for the index `cellCount`.
  func child(_ index: Int) throws(DatabaseFileError) -> Int {
    if index == cellCount { return Int(bytes.number32(at: pointers - 4)) }
    return Int(bytes.number32(at: try start(of: index)))
  }

  /// A cell that has a payload.
  struct Cell {
    /// The rowid; 0 in an index b-tree.
    var rowID: Int64 = 0
    /// The size of the whole payload in bytes.
    var payloadBytes = 0
    /// The part of the payload that is stored on this page.
    var local = 0..<0
    /// The first overflow page; 0 when there is none.
    var overflow = 0
    /// The part of the payload that is stored on overflow pages, in bytes.
    var overflowBytes: Int { payloadBytes - local.count }
  }

  /// Decodes a cell of any page but an interior table page, whose cells have no payload.
  @inline(__always)
  func cell(_ index: Int) throws(DatabaseFileError) -> Cell {
    var position = try start(of: index)
    if kind == .indexInterior { position += 4 }
    var cell = Cell()
    guard let size = bytes.varint(at: &position), size <= 0x7fff_ffff else { throw fault(index) }
    cell.payloadBytes = Int(size)
    if kind == .tableLeaf {
      guard let rowID = bytes.varint(at: &position) else { throw fault(index) }
      cell.rowID = Int64(bitPattern: rowID)
    }
    if cell.payloadBytes <= localLimit {
      guard position + cell.payloadBytes <= bytes.count else { throw fault(index) }
      cell.local = position..<position + cell.payloadBytes
      return cell
    }
    let surplus = localMinimum + (cell.payloadBytes - localMinimum) % (bytes.count - 4)
    let local = surplus <= localLimit ? surplus : localMinimum
    guard position + local + 4 <= bytes.count else { throw fault(index) }
    cell.local = position..<position + local
    cell.overflow = Int(bytes.number32(at: position + local))
    return cell
  }
}
