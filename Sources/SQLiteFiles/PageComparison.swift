/// Compares two databases by their pages, and finds the rows of a table that may differ.
///
/// Equal leaf pages of one b-tree have equal rows if their overflow chains are equal, too. Only the rows of the other
/// leaves must be decoded.
///
/// ```swift
/// let comparison = try PageComparison(older: older, newer: newer)
/// let rows = try comparison.changedRows(older: 2, newer: 2, isTable: true)
/// while try rows.newer.next() { print("row \(rows.newer.rowID) may be new or changed") }
/// ```
///
/// A comparison reads both files once, and takes about 12 bytes of memory a page. Use it from one thread at a time.
public final class PageComparison {
  /// The older database: a difference leads from it to the newer one.
  public let older: DatabasePages
  /// The newer database.
  public let newer: DatabasePages
  /// The number of pages that differ or are in one database only.
  public var differingCount: Int { differences.differing.count }

  let differences: PageDifferences
  private let olderOwnership: PageOwnership
  private let newerOwnership: PageOwnership

  /// True if two databases can be compared by their pages: both page sizes and both reserved sizes are equal.
  public static func canCompare(_ older: DatabasePages, _ newer: DatabasePages) -> Bool {
    older.header.pageSize == newer.header.pageSize && older.header.reservedBytes == newer.header.reservedBytes
  }

  /// Compares all pages. With large files whose sources can be duplicated, a second thread does half of the work.
  ///
  /// - Parameters:
  ///   - older: The older database.
  ///   - newer: The newer database.
  /// - Throws: `DatabaseFileError` with `pageSizesDiffer` or `truncated`; what the sources throw.
  public init(older: DatabasePages, newer: DatabasePages) throws {
    guard Self.canCompare(older, newer) else {
      throw DatabaseFileError(.pageSizesDiffer, "the databases have pages of different sizes")
    }
    self.older = older
    self.newer = newer
    differences = try PageDifferences(older, newer)
    olderOwnership = PageOwnership(pages: older.pageCount)
    newerOwnership = PageOwnership(pages: newer.pageCount)
  }

  /// True if a page is a leaf that is known to be equal in both databases, with its overflow chains.
  ///
  /// - Parameter page: The page number, from 1.
  /// - Returns: false if that is unknown without another read of the page.
  public func isEqualLeaf(_ page: Int) -> Bool {
    differences.isEqual(page) && !differences.mayOverflowDiffer
      && BTreePageType(rawValue: differences.typeByte(page, in: .newer))?.isLeaf == true
  }

  /// Two cursors over the rows of a table that may differ, in the order of the b-tree.
  public struct ChangedRows {
    /// The rows of the older database.
    public let older: BTreeCursor
    /// The rows of the newer database.
    public let newer: BTreeCursor
    fileprivate let differences: PageDifferences

    /// True if the current rows of both cursors have the same record, byte for byte. Rowids do not count.
    ///
    /// - Throws: `DatabaseFileError` with `badOverflow` or `cycle`; what the sources throw.
    public func isSameRecord() throws -> Bool { try older.hasSamePayload(as: newer, differences) }
  }

  /// Finds the rows of a table that may differ. All other rows are in both databases, and equal.
  ///
  /// Some of the rows found may be equal all the same: they share a page with one that differs, or are on an interior page
  /// of a WITHOUT ROWID table.
  ///
  /// - Parameters:
  ///   - olderRoot: The root page of the table in the older database.
  ///   - newerRoot: The root page of the table in the newer database.
  ///   - isTable: True if the table is a rowid table; false for a WITHOUT ROWID table.
  /// - Throws: `DatabaseFileError` for damage; what the sources throw.
  public func changedRows(older olderRoot: Int, newer newerRoot: Int, isTable: Bool) throws -> ChangedRows {
    let tree = olderOwnership.beginTree()
    newerOwnership.beginTree()
    let leaf: BTreePageType = isTable ? .tableLeaf : .indexLeaf
    var walk = OwnershipWalk(older, .older, leaf, differences, olderOwnership)
    try walk.visit(olderRoot)
    walk = OwnershipWalk(newer, .newer, leaf, differences, newerOwnership)
    try walk.visit(newerRoot)
    let filter = EqualLeafFilter(olderOwnership, newerOwnership, tree)
    return ChangedRows(
      older: try BTreeCursor(older, root: olderRoot, isTable: isTable, filter: filter),
      newer: try BTreeCursor(newer, root: newerRoot, isTable: isTable, filter: filter), differences: differences)
  }
}

/// A walk down the b-tree of one table, which records the pages that belong to it and the leaves that are equal.
private struct OwnershipWalk {
  private let pages: DatabasePages
  private let side: PageDifferences.Side
  private let leaf: BTreePageType
  private let differences: PageDifferences
  private let ownership: PageOwnership
  /// A page of memory for each level of the b-tree.
  private var buffers: [PageBuffer] = []
  /// The length of all overflow chains so far, in pages.
  private var overflowPages = 0

  init(
    _ pages: DatabasePages, _ side: PageDifferences.Side, _ leaf: BTreePageType, _ differences: PageDifferences,
    _ ownership: PageOwnership
  ) {
    self.pages = pages
    self.side = side
    self.leaf = leaf
    self.differences = differences
    self.ownership = ownership
  }

  mutating func visit(_ number: Int, depth: Int = 0) throws {
    guard number >= 1, number <= pages.pageCount else {
      throw DatabaseFileError(.badPage, page: number, "a b-tree leads to this page, which does not exist")
    }
    guard depth < BTreeCursor.depthLimit else {
      throw DatabaseFileError(.cycle, page: number, "the b-tree is too deep")
    }
    let isLeaf = differences.typeByte(number, in: side) == leaf.rawValue
    if isLeaf, !differences.isEqual(number) || !differences.mayOverflowDiffer {
      return try claim(number, isEqualLeaf: differences.isEqual(number))
    }
    if depth == buffers.count { buffers.append(PageBuffer(size: pages.header.pageSize)) }
    let buffer = buffers[depth].bytes
    try pages.read(number, into: buffer)
    let page = try BTreePage(number, UnsafeRawBufferPointer(buffer), usableSize: pages.header.usableSize)
    if page.kind.isLeaf {
      return try claim(number, isEqualLeaf: isLeaf && page.kind == leaf && !overflowDiffers(page))
    }
    try claim(number, isEqualLeaf: false)
    for index in 0...page.cellCount { try visit(try page.child(index), depth: depth + 1) }
  }

  private func claim(_ number: Int, isEqualLeaf: Bool) throws {
    guard ownership.claim(number, isEqualLeaf: isEqualLeaf) else { throw DatabaseFileError.visitedTwice(number) }
  }

  /// True if an overflow chain of any cell of a leaf differs.
  private mutating func overflowDiffers(_ page: BTreePage) throws -> Bool {
    for index in 0..<page.cellCount {
      let cell = try page.cell(index)
      if cell.overflow == 0 { continue }
      // Else the cells of a crafted file could share one long chain, which would be followed for each of them.
      overflowPages += cell.overflowBytes / (differences.usableSize - 4)
      guard overflowPages <= pages.pageCount else { throw DatabaseFileError.visitedTwice(cell.overflow) }
      if differences.chainDiffers(from: cell.overflow, bytes: cell.overflowBytes) { return true }
    }
    return false
  }
}

/// The b-tree of each page of a database, for the b-trees that have been walked.
final class PageOwnership {
  private let owners: UnsafeMutableBufferPointer<UInt32>
  private var tree: UInt32 = 0

  init(pages: Int) {
    owners = .allocate(capacity: pages + 1)
    owners.initialize(repeating: 0)
  }

  deinit { owners.deallocate() }

  /// Starts the walk of another b-tree.
  ///
  /// - Returns: The number of the b-tree.
  @discardableResult
  func beginTree() -> UInt32 {
    tree += 1
    return tree
  }

  /// Records that a page belongs to the current b-tree.
  ///
  /// - Parameters:
  ///   - page: The page, which exists.
  ///   - isEqualLeaf: True if it is a leaf that is equal in both databases, overflow chains included.
  /// - Returns: false when the page was recorded for this b-tree before.
  func claim(_ page: Int, isEqualLeaf: Bool) -> Bool {
    guard owners[page] >> 1 != tree else { return false }
    owners[page] = tree << 1 | (isEqualLeaf ? 1 : 0)
    return true
  }

  /// True if a page is an equal leaf of a b-tree.
  @inline(__always)
  func isEqualLeaf(_ page: Int, of tree: UInt32) -> Bool {
    page < owners.count && owners[page] == tree << 1 | 1
  }
}

/// The leaves that a cursor skips: equal ones that belong to the table's b-tree in both databases.
final class EqualLeafFilter {
  private let older: PageOwnership
  private let newer: PageOwnership
  private let tree: UInt32

  init(_ older: PageOwnership, _ newer: PageOwnership, _ tree: UInt32) {
    self.older = older
    self.newer = newer
    self.tree = tree
  }

  @inline(__always)
  func skips(_ page: Int) -> Bool {
    older.isEqualLeaf(page, of: tree) && newer.isEqualLeaf(page, of: tree)
  }
}
