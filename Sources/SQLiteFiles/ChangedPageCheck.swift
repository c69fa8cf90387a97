extension DatabasePages {
  /// Checks the pages that have changed since a state in which SQLite found no damage, as `PRAGMA quick_check` does with
  /// all pages.
  ///
  /// Read are the changed pages, the leaves to which changed pages lead, and the interior pages of all b-trees, of which there
  /// are few. They must lead to each page once, and to leaves at one depth.
  ///
  /// - Parameter changed: The numbers of the pages that have changed or are new.
  /// - Returns: false if a complete check is needed: there are pages that no read page leads to, such as overflow pages of
  ///   unchanged rows, or the database has pointer maps.
  /// - Throws: `DatabaseFileError` for damage; what the sources throw.
  package func checkChanges(_ changed: PageBitmap) throws -> Bool {
    guard header.largestRootPage == 0 else { return false }
    let check = ChangedPageCheck(self, changed)
    try check.readFreelist()
    try check.readTree(from: 1)
    let schema = try BTreeCursor(self, root: 1)
    let record = RecordReader(limit: 4)
    while try schema.next() {
      try record.read(schema.payload(), page: schema.page)
      // Views, triggers and virtual tables have no pages.
      if case .integer(let root)? = record.value(at: 3), root != 0 { try check.readTree(from: Int(clamping: root)) }
    }
    return check.hasVisitedAll
  }
}

/// A check of the structure of a database, as far as pages have changed.
private final class ChangedPageCheck {
  private let pages: DatabasePages
  private let changed: PageBitmap
  private let visited: PageBitmap
  /// A page of memory for each level of a b-tree.
  private var buffers: [PageBuffer] = []
  private let spare: PageBuffer
  private let record = RecordReader(limit: columnLimit)

  /// The most columns of a table, unless SQLite was compiled otherwise. Records with more are not checked to their end.
  private static let columnLimit = 2_000

  init(_ pages: DatabasePages, _ changed: PageBitmap) {
    self.pages = pages
    self.changed = changed
    visited = PageBitmap(upTo: pages.pageCount)
    spare = PageBuffer(size: pages.header.pageSize)
    // The lock-byte page is in no b-tree.
    if pages.header.lockBytePage <= pages.pageCount { visited.insert(pages.header.lockBytePage) }
  }

  /// True if each page is free or in a b-tree.
  var hasVisitedAll: Bool { (1...pages.pageCount).allSatisfy { visited.contains($0) } }

  private func visit(_ page: Int) throws(DatabaseFileError) {
    guard page >= 1, page <= pages.pageCount else {
      throw DatabaseFileError(.badPage, page: page, "another page leads to this one, which does not exist")
    }
    guard visited.insert(page) else { throw DatabaseFileError.visitedTwice(page) }
  }

  private func bytes(of page: Int, in buffer: PageBuffer) throws -> UnsafeRawBufferPointer {
    try pages.read(page, into: buffer.bytes)
    return UnsafeRawBufferPointer(rebasing: buffer.bytes[..<pages.header.pageSize])
  }

  // MARK: Free pages

  /// Visits the pages of the freelist: <https://sqlite.org/fileformat2.html#the_freelist>.
  func readFreelist() throws {
    var (trunk, count) = (pages.header.firstFreelistTrunkPage, 0)
    while trunk != 0 {
      try visit(trunk)
      let bytes = try bytes(of: trunk, in: spare)
      let leaves = Int(bytes.number32(at: 4))
      guard leaves <= pages.header.usableSize / 4 - 2 else {
        throw DatabaseFileError(.badPage, page: trunk, "the page claims \(leaves) free pages, more than fit")
      }
      for leaf in 0..<leaves { try visit(Int(bytes.number32(at: 8 + 4 * leaf))) }
      count += 1 + leaves
      trunk = Int(bytes.number32(at: 0))
    }
    guard count == pages.header.freelistPageCount else {
      throw DatabaseFileError(
        .badHeader, "\(count) pages are free, and the header has \(pages.header.freelistPageCount)")
    }
  }

  // MARK: B-trees

  /// Visits the pages of a b-tree.
  func readTree(from root: Int) throws {
    var (height, page) = (0, root)
    var isTable = true
    // All leaves have one depth: the first shows it.
    while true {
      guard height <= BTreeCursor.depthLimit else {
        throw DatabaseFileError(.cycle, page: root, "the b-tree is too deep")
      }
      guard page >= 1, page <= pages.pageCount else { try visit(page); return }
      let node = try BTreePage(page, bytes(of: page, in: spare), usableSize: pages.header.usableSize)
      isTable = node.kind.isTable
      if node.kind.isLeaf { break }
      page = try node.child(0)
      height += 1
    }
    while buffers.count <= height { buffers.append(PageBuffer(size: pages.header.pageSize)) }
    try readPage(root, isTable: isTable, height: height, isRoot: true, in: Int64.min...Int64.max)
  }

  /// - Parameters:
  ///   - height: The number of levels below the page.
  ///   - rowIDs: The rowids that rows below the page can have.
  private func readPage(
    _ number: Int, isTable: Bool, height: Int, isRoot: Bool = false, below parentIsChanged: Bool = false,
    in rowIDs: ClosedRange<Int64>
  ) throws {
    try visit(number)
    let hasChanged = changed.contains(number)
    let isChecked = parentIsChanged || hasChanged
    guard isChecked || height > 0 else { return }
    let page = try BTreePage(
      number, bytes(of: number, in: buffers[height]), usableSize: pages.header.usableSize)
    guard page.kind.isTable == isTable, page.kind.isLeaf == (height == 0), page.cellCount > 0 || isRoot else {
      throw DatabaseFileError(.badPage, page: number, "the page is not what its place in the b-tree requires")
    }
    if isChecked {
      try page.checkSpace()
      if height == 0 || !isTable { try checkCells(of: page, in: rowIDs) }
    }
    guard height > 0 else { return }
    var lower = rowIDs.lowerBound
    for place in 0...page.cellCount {
      var upper = rowIDs.upperBound
      if isTable, place < page.cellCount {
        upper = try page.separator(place)
        guard upper >= lower, upper <= rowIDs.upperBound else { throw Self.disorder(number) }
      }
      try readPage(page.child(place), isTable: isTable, height: height - 1, below: hasChanged, in: lower...upper)
      if isTable, upper < Int64.max { lower = upper + 1 }
    }
  }

  private static func disorder(_ page: Int) -> DatabaseFileError {
    DatabaseFileError(.badPage, page: page, "the rows are not in the order of their rowids")
  }

  /// Checks the cells of a page, and visits the overflow pages of its rows.
  private func checkCells(of page: BTreePage, in rowIDs: ClosedRange<Int64>) throws {
    var last: Int64?
    for index in 0..<page.cellCount {
      let cell = try page.cell(index)
      if page.kind.isTable {
        guard rowIDs.contains(cell.rowID), last.map({ $0 < cell.rowID }) ?? true else {
          throw Self.disorder(page.number)
        }
        last = cell.rowID
      }
      if cell.overflowBytes == 0 {
        try record.read(UnsafeRawBufferPointer(rebasing: page.bytes[cell.local]), page: page.number)
        continue
      }
      var (next, left) = (cell.overflow, cell.overflowBytes)
      while left > 0 {
        try visit(next)
        left -= pages.header.usableSize - 4
        next = Int(try bytes(of: next, in: spare).number32(at: 0))
      }
      guard next == 0 else {
        throw DatabaseFileError(.badOverflow, page: page.number, "the overflow chain of a row does not end with it")
      }
    }
  }
}
