/// Reads the leaves of a b-tree in order, many pages at a time where they stand together.
final class LeafReader {
  /// How many bytes are read at once: what stays in the cache of a core.
  private static let pieceBytes = 256 << 10

  let hasher: PageHasher
  private let pages: DatabasePages
  private let isTable: Bool
  private let pageSize: Int
  private let visited: PageBitmap
  /// A page of memory for each level of the b-tree.
  private var buffers: [PageBuffer] = []
  private let piece: PageBuffer
  private let overflow: PageBuffer

  /// - Parameters:
  ///   - pages: The database.
  ///   - isTable: Whether the b-tree is that of a rowid table, and not that of an index or a WITHOUT ROWID table.
  ///   - key: The secret of the hashes: ``PageHasher/keyBytes`` bytes.
  init(_ pages: DatabasePages, isTable: Bool, key: [UInt8]) {
    self.pages = pages
    self.isTable = isTable
    pageSize = pages.header.pageSize
    hasher = PageHasher(key: key, pageSize: pageSize)
    visited = PageBitmap(upTo: pages.pageCount)
    piece = PageBuffer(size: max(Self.pieceBytes, pageSize))
    overflow = PageBuffer(size: pageSize)
  }

  /// Calls back with each leaf, and in the b-tree of an index with each entry between two leaves. A b-tree of one page has none.
  ///
  /// - Parameters:
  ///   - root: The first page of the b-tree.
  ///   - separator: Gets the page of an entry between leaves, and its place there.
  ///   - leaf: Gets a leaf, and all its bytes.
  /// - Throws: `DatabaseFileError` for damage; what the sources and the callbacks throw.
  func forEachLeaf(
    from root: Int, separator: (BTreePage, Int) throws -> Void = { _, _ in },
    leaf: (BTreePage, UnsafeRawBufferPointer) throws -> Void
  ) throws {
    try visit(root, depth: 0, separator, leaf)
  }

  private func claim(_ number: Int) throws(DatabaseFileError) {
    guard number >= 1, number <= pages.pageCount else {
      throw DatabaseFileError(.badPage, page: number, "a b-tree leads to this page, which does not exist")
    }
    guard visited.insert(number) else { throw DatabaseFileError.visitedTwice(number) }
  }

  private func visit(
    _ number: Int, depth: Int, _ separator: (BTreePage, Int) throws -> Void,
    _ leaf: (BTreePage, UnsafeRawBufferPointer) throws -> Void
  ) throws {
    try claim(number)
    guard let page = try read(number, depth: depth) else { return }
    let children = try (0...page.cellCount).map { try page.child($0) }
    /// Between the children of a table's page there are only rowids.
    func separate(_ child: Int) throws { if !isTable, child > 0 { try separator(page, child - 1) } }
    // All leaves are equally deep, so one child tells of its siblings.
    try claim(children[0])
    if try read(children[0], depth: depth + 1) == nil {
      try readLeaves(children, separate, leaf)
    } else {
      visited.remove(children[0])
      for (index, child) in children.enumerated() {
        try separate(index)
        try visit(child, depth: depth + 1, separator, leaf)
      }
    }
  }

  /// Reads a page of the b-tree.
  ///
  /// - Returns: nil for a leaf.
  private func read(_ number: Int, depth: Int) throws -> BTreePage? {
    guard depth < BTreeCursor.depthLimit else {
      throw DatabaseFileError(.cycle, page: number, "the b-tree is too deep")
    }
    if depth == buffers.count { buffers.append(PageBuffer(size: pageSize)) }
    let buffer = buffers[depth].bytes
    try pages.read(number, into: buffer)
    let page = try BTreePage(number, UnsafeRawBufferPointer(buffer), usableSize: pages.header.usableSize)
    guard page.kind.isTable == isTable else {
      throw DatabaseFileError(.badPage, page: number, "the page is that of \(isTable ? "an index" : "a table")")
    }
    return page.kind.isLeaf ? nil : page
  }

  /// - Parameter numbers: The leaves, of which the first has been claimed.
  private func readLeaves(
    _ numbers: [Int], _ separate: (Int) throws -> Void, _ leaf: (BTreePage, UnsafeRawBufferPointer) throws -> Void
  ) throws {
    for number in numbers.dropFirst() { try claim(number) }
    let limit = piece.bytes.count / pageSize
    var index = 0
    while index < numbers.count {
      var count = 1
      if pages.isInFile(numbers[index]) {
        while count < limit, index + count < numbers.count, numbers[index + count] == numbers[index] + count,
          pages.isInFile(numbers[index + count])
        {
          count += 1
        }
      }
      try pages.read(count, from: numbers[index], into: piece.bytes)
      for place in 0..<count {
        let bytes = UnsafeRawBufferPointer(rebasing: piece.bytes[place * pageSize..<(place + 1) * pageSize])
        let page = try BTreePage(numbers[index + place], bytes, usableSize: pages.header.usableSize)
        guard page.kind.isLeaf, page.kind.isTable == isTable, page.cellCount > 0 else {
          throw DatabaseFileError(.badPage, page: page.number, "the page is no leaf with rows")
        }
        try separate(index + place)
        try leaf(page, bytes)
      }
      index += count
    }
  }

  /// Adds the overflow chain of a cell to a hash.
  func addOverflow(of cell: BTreePage.Cell, to hash: PageHash) throws -> PageHash {
    var hash = hash
    var left = cell.overflowBytes
    var next = cell.overflow
    while left > 0 {
      // No page is visited twice, so a chain ends whatever the file claims.
      try claim(next)
      try pages.read(next, into: overflow.bytes)
      let bytes = UnsafeRawBufferPointer(overflow.bytes)
      hash = hasher.hash(UnsafeRawBufferPointer(rebasing: bytes[..<pageSize]), after: hash)
      left -= pages.header.usableSize - 4
      next = Int(bytes.number32(at: 0))
    }
    return hash
  }
}

extension DatabasePages {
  /// Whether a page is read from the database file, and not from the log.
  fileprivate func isInFile(_ page: Int) -> Bool { log?.offset(ofPage: page) == nil }

  /// Reads pages that follow each other: one, or several that are in the database file.
  fileprivate func read(_ count: Int, from first: Int, into buffer: UnsafeMutableRawBufferPointer) throws {
    guard count > 1 else { return try read(first, into: buffer) }
    let wanted = UnsafeMutableRawBufferPointer(rebasing: buffer[..<(count * header.pageSize)])
    guard try file.read(into: wanted, at: Int64(first - 1) * Int64(header.pageSize)) == wanted.count else {
      throw DatabaseFileError(.truncated, page: first, "the file ends inside the page")
    }
  }
}
