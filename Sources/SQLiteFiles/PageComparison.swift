/// Which pages of two databases differ, found by reading both files once from one end to the other.
///
/// Equal pages of the same tree, with equal overflow chains, hold equal rows: so whoever knows the pages that differ need
/// not look at any other row. See ``changedRows(older:newer:isTable:)``.
///
/// Takes some 12 bytes of memory a page.
public final class PageComparison {
  /// The database to start from.
  public let older: DatabasePages
  /// The database to arrive at.
  public let newer: DatabasePages
  /// How many pages differ or are in one database only.
  public var differingCount: Int { notes.differing.count }

  private let notes: PageDifferences
  /// Whether any page differs that may hold the continuation of a row.
  private var mayOverflowDiffer = false
  private let olderClaims: PageOwnership
  private let newerClaims: PageOwnership

  /// Whether two databases can be compared by their pages: these have the same size.
  public static func canCompare(_ older: DatabasePages, _ newer: DatabasePages) -> Bool {
    older.header.pageSize == newer.header.pageSize && older.header.reservedBytes == newer.header.reservedBytes
  }

  /// Compares all pages.
  ///
  /// A second thread takes half of large files, where their sources can be had twice.
  ///
  /// - Parameters:
  ///   - older: The database to start from.
  ///   - newer: The database to arrive at; `canCompare` has said yes.
  /// - Throws: What the sources throw.
  public init(older: DatabasePages, newer: DatabasePages) throws {
    precondition(Self.canCompare(older, newer))
    self.older = older
    self.newer = newer
    notes = PageDifferences(older, newer)
    olderClaims = PageOwnership(pages: older.pageCount)
    newerClaims = PageOwnership(pages: newer.pageCount)
    try notes.compareFiles(older.file, newer.file)
    try compareLogged()
    try lookForOverflow()
  }

  /// Looks again at what a log has put over the files.
  private func compareLogged() throws {
    let one = PageBuffer(size: newer.header.pageSize)
    let two = PageBuffer(size: newer.header.pageSize)
    for page in Set(older.loggedPages + newer.loggedPages) where page < notes.words.count {
      let inOlder = page <= older.pageCount
      let inNewer = page <= newer.pageCount
      if inOlder { try older.read(page, into: one.bytes) }
      if inNewer { try newer.read(page, into: two.bytes) }
      notes.note(
        page, inOlder ? UnsafeRawBufferPointer(one.bytes) : nil, inNewer ? UnsafeRawBufferPointer(two.bytes) : nil)
    }
  }

  // MARK: What is known of a page

  /// Whether a page is in both databases, and the same.
  func isEqual(_ page: Int) -> Bool {
    page >= 1 && page < notes.words.count && !notes.differing.contains(page)
  }

  enum Side { case older, newer }

  /// The byte that says what a page is, in one of the databases.
  fileprivate func kind(_ page: Int, in side: Side) -> UInt8 {
    let word = notes.words[page]
    if !notes.differing.contains(page) { return UInt8(word >> 24) }
    return UInt8(truncatingIfNeeded: side == .older ? word >> 8 : word)
  }

  /// Whether a page is a leaf, and it and all that its rows hold are the same in both databases.
  ///
  /// - Returns: false where that is not known without a look at it.
  public func isEqualLeaf(_ page: Int) -> Bool {
    isEqual(page) && !mayOverflowDiffer && BTreePageType(rawValue: kind(page, in: .newer))?.isLeaf == true
  }

  // MARK: Overflow

  /// From how many pages on the first byte of an overflow page, that of a page number, may be one that a tree's page has.
  private static let ambiguousPages = 0x0200_0000

  /// Finds out whether pages differ that may be parts of overflow chains. Mostly there are none, and then no chain has to be
  /// followed.
  private func lookForOverflow() throws {
    guard !notes.differing.isEmpty else { return }
    if notes.words.count > Self.ambiguousPages {
      mayOverflowDiffer = true
      return
    }
    let trunks = try freeTrunks()
    let isTree: (UInt8) -> Bool = { BTreePageType(rawValue: $0) != nil }
    notes.differing.forEach { page in
      if mayOverflowDiffer || page == 1 || page > min(older.pageCount, newer.pageCount) { return }
      if isTree(kind(page, in: .older)) || isTree(kind(page, in: .newer)) { return }
      if older.header.isPointerMap(page) && newer.header.isPointerMap(page) || trunks.contains(page) { return }
      mayOverflowDiffer = true
    }
  }

  /// The pages of the newer database that only list free ones. A damaged list is cut off where the damage begins.
  private func freeTrunks() throws -> Set<Int> {
    var trunks: Set<Int> = []
    let buffer = PageBuffer(size: newer.header.pageSize)
    var page = newer.header.firstFreelistTrunkPage
    while page >= 1, page <= newer.pageCount, trunks.insert(page).inserted {
      try newer.read(page, into: buffer.bytes)
      page = Int(UnsafeRawBufferPointer(buffer.bytes).number32(at: 0))
    }
    return trunks
  }

  /// Whether any page of an overflow chain differs.
  ///
  /// - Parameters:
  ///   - page: Its first page, the same in both databases.
  ///   - bytes: How many bytes it holds.
  func chainDiffers(from page: Int, bytes: Int) -> Bool {
    if !mayOverflowDiffer { return false }
    // A row may claim more than the file can hold, and its chain go round in a circle for all of that.
    guard bytes / (newer.header.usableSize - 4) < notes.words.count else { return true }
    var page = page
    var left = bytes
    while left > 0 {
      // A chain that leads nowhere is damage, which is for the reader of the row to say.
      guard isEqual(page) else { return true }
      left -= newer.header.usableSize - 4
      page = Int(notes.words[page])
    }
    return false
  }

  // MARK: Trees

  /// Two cursors over the rows that may differ, in the order of their keys: those of pages that are not the same in both.
  public struct ChangedRows {
    /// Rows of the older database.
    public let older: BTreeCursor
    /// Rows of the newer database.
    public let newer: BTreeCursor
    fileprivate let comparison: PageComparison?

    /// Whether both present rows are stored in the same bytes, rowids aside.
    public func isSameRecord() throws -> Bool { try older.hasSamePayload(as: newer, comparison) }
  }

  /// The rows of one table that may differ. All others are in both databases, and the same.
  ///
  /// Rows of inner pages of a WITHOUT ROWID table are among them whether they differ or not.
  ///
  /// - Parameters:
  ///   - olderRoot: The root page of the table in the older database.
  ///   - newerRoot: The root page in the newer database.
  ///   - isTable: Whether it has rowids.
  /// - Throws: `DatabaseFileError`; what the sources throw.
  public func changedRows(older olderRoot: Int, newer newerRoot: Int, isTable: Bool) throws -> ChangedRows {
    let table = olderClaims.beginTable()
    newerClaims.beginTable()
    try claim(olderRoot, isTable: isTable, .older)
    try claim(newerRoot, isTable: isTable, .newer)
    let filter = EqualLeafFilter(olderClaims, newerClaims, table)
    return ChangedRows(
      older: try BTreeCursor(older, root: olderRoot, isTable: isTable, filter: filter),
      newer: try BTreeCursor(newer, root: newerRoot, isTable: isTable, filter: filter), comparison: self)
  }

  /// Walks down a tree and notes which leaves are its own, and which of them are the same in both databases.
  private func claim(_ root: Int, isTable: Bool, _ side: Side) throws {
    let pages = side == .older ? older : newer
    let claims = side == .older ? olderClaims : newerClaims
    let buffers = LevelBuffers(pageSize: pages.header.pageSize)
    try claim(root, depth: 0, isTable: isTable, side, pages, claims, buffers)
  }

  private func claim(
    _ number: Int, depth: Int, isTable: Bool, _ side: Side, _ pages: DatabasePages, _ claims: PageOwnership,
    _ buffers: LevelBuffers
  ) throws {
    guard number >= 1, number <= pages.pageCount else {
      throw DatabaseFileError(.badPage, page: number, "a tree leads to it, and it is not there")
    }
    guard depth < BTreeCursor.depthLimit else { throw DatabaseFileError(.cycle, page: number, "the tree is too deep") }
    let leaf: BTreePageType = isTable ? .tableLeaf : .indexLeaf
    let isLeaf = kind(number, in: side) == leaf.rawValue
    if isLeaf, !isEqual(number) || !mayOverflowDiffer {
      guard claims.claim(number, as: isEqual(number) ? .equalLeaf : .other) else {
        throw DatabaseFileError.visitedTwice(number)
      }
      return
    }
    let buffer = buffers[depth]
    try pages.read(number, into: buffer)
    let page = try BTreePage(number, UnsafeRawBufferPointer(buffer), usableSize: pages.header.usableSize)
    if page.kind.isLeaf {
      let isSame = try isLeaf && page.kind == leaf && !overflowDiffers(page)
      guard claims.claim(number, as: isSame ? .equalLeaf : .other) else {
        throw DatabaseFileError.visitedTwice(number)
      }
      return
    }
    guard claims.claim(number, as: .other) else { throw DatabaseFileError.visitedTwice(number) }
    for index in 0...page.cellCount {
      try claim(
        try page.child(index), depth: depth + 1, isTable: isTable, side, pages, claims, buffers)
    }
  }

  private func overflowDiffers(_ page: BTreePage) throws -> Bool {
    for index in 0..<page.cellCount {
      let cell = try page.cell(index)
      if cell.overflow != 0, chainDiffers(from: cell.overflow, bytes: cell.payloadBytes - cell.local.count) {
        return true
      }
    }
    return false
  }
}

/// Which table each page of a database belongs to, as far as they have been walked through.
final class PageOwnership {
  enum Claim: UInt32 {
    /// A leaf that is the same in both databases, with all that its rows hold.
    case equalLeaf = 1
    /// Any other page.
    case other = 0
  }

  private let owners: UnsafeMutableBufferPointer<UInt32>
  private var table: UInt32 = 0

  init(pages: Int) {
    owners = .allocate(capacity: pages + 1)
    owners.initialize(repeating: 0)
  }

  deinit { owners.deallocate() }

  /// Begins with another table.
  @discardableResult
  func beginTable() -> UInt32 {
    table += 1
    return table
  }

  /// Notes that a page belongs to the present table; false when that has been noted before.
  func claim(_ page: Int, as claim: Claim) -> Bool {
    guard owners[page] >> 1 != table else { return false }
    owners[page] = table << 1 | claim.rawValue
    return true
  }

  /// Whether a page is an equal leaf of a table.
  @inline(__always)
  func isEqualLeaf(_ page: Int, of table: UInt32) -> Bool {
    page < owners.count && owners[page] == table << 1 | Claim.equalLeaf.rawValue
  }
}

/// The leaves that a cursor need not look at: those that both trees have, and that are the same.
final class EqualLeafFilter {
  private let older: PageOwnership
  private let newer: PageOwnership
  private let table: UInt32

  init(_ older: PageOwnership, _ newer: PageOwnership, _ table: UInt32) {
    self.older = older
    self.newer = newer
    self.table = table
  }

  @inline(__always)
  func skips(_ page: Int) -> Bool {
    older.isEqualLeaf(page, of: table) && newer.isEqualLeaf(page, of: table)
  }
}

/// One page of memory for each level of a tree, made when it is first needed.
private final class LevelBuffers {
  private let pageSize: Int
  private var buffers: [PageBuffer] = []

  init(pageSize: Int) { self.pageSize = pageSize }

  subscript(depth: Int) -> UnsafeMutableRawBufferPointer {
    while buffers.count <= depth { buffers.append(PageBuffer(size: pageSize)) }
    return buffers[depth].bytes
  }
}
