/// A leaf page of a rowid table: what its rows are, in short.
///
/// Two leaves with the same print hold the same rows, overflow chains included.
package struct LeafPrint: Hashable, Sendable {
  /// The rowid of its first row.
  package let firstRowID: Int64
  /// A keyed hash of the page, and of the overflow pages of its rows.
  package let hash: PageHash

  package init(firstRowID: Int64, hash: PageHash) {
    self.firstRowID = firstRowID
    self.hash = hash
  }
}

/// Reads the leaves of a rowid table in the order of its rows, many pages at a time where they stand together.
package struct LeafPrints {
  /// How many bytes are read at once: what stays in the cache of a core.
  private static let pieceBytes = 256 << 10

  private let pages: DatabasePages
  private let hasher: PageHasher
  private let pageSize: Int
  private let visited: PageBitmap
  /// A page of memory for each level of the b-tree.
  private var buffers: [PageBuffer] = []
  private let piece: PageBuffer
  private let overflow: PageBuffer
  private var found: [LeafPrint] = []
  private var lastRowID: Int64?

  /// The prints of a table, in the order of the rowids.
  ///
  /// - Parameters:
  ///   - pages: The database.
  ///   - root: The root page of the table.
  ///   - key: The secret of the hash: ``PageHasher/keyBytes`` bytes.
  /// - Returns: None for a table of a single page.
  /// - Throws: `DatabaseFileError` for damage; what the sources throw.
  package static func read(_ pages: DatabasePages, root: Int, key: [UInt8]) throws -> [LeafPrint] {
    var reader = LeafPrints(pages, key)
    try reader.visit(root, depth: 0)
    return reader.found
  }

  private init(_ pages: DatabasePages, _ key: [UInt8]) {
    self.pages = pages
    pageSize = pages.header.pageSize
    hasher = PageHasher(key: key, pageSize: pageSize)
    visited = PageBitmap(upTo: pages.pageCount)
    piece = PageBuffer(size: max(Self.pieceBytes, pageSize))
    overflow = PageBuffer(size: pageSize)
  }

  private func claim(_ number: Int) throws(DatabaseFileError) {
    guard number >= 1, number <= pages.pageCount else {
      throw DatabaseFileError(.badPage, page: number, "a b-tree leads to this page, which does not exist")
    }
    guard visited.insert(number) else { throw DatabaseFileError.visitedTwice(number) }
  }

  private mutating func visit(_ number: Int, depth: Int) throws {
    try claim(number)
    guard let page = try read(number, depth: depth) else { return }
    let children = try (0...page.cellCount).map { try page.child($0) }
    // All leaves are equally deep, so one child tells of its siblings.
    try claim(children[0])
    if try read(children[0], depth: depth + 1) == nil {
      try readLeaves(children)
    } else {
      visited.remove(children[0])
      for child in children { try visit(child, depth: depth + 1) }
    }
  }

  /// Reads a page of the tree.
  ///
  /// - Returns: nil for a leaf.
  private mutating func read(_ number: Int, depth: Int) throws -> BTreePage? {
    guard depth < BTreeCursor.depthLimit else {
      throw DatabaseFileError(.cycle, page: number, "the b-tree is too deep")
    }
    if depth == buffers.count { buffers.append(PageBuffer(size: pageSize)) }
    let buffer = buffers[depth].bytes
    try pages.read(number, into: buffer)
    let page = try BTreePage(number, UnsafeRawBufferPointer(buffer), usableSize: pages.header.usableSize)
    guard page.kind.isTable else { throw DatabaseFileError(.badPage, page: number, "the page is that of an index") }
    return page.kind.isLeaf ? nil : page
  }

  // MARK: Leaves

  /// - Parameter numbers: The leaves, of which the first has been claimed.
  private mutating func readLeaves(_ numbers: [Int]) throws {
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
        try add(numbers[index + place], bytes)
      }
      index += count
    }
  }

  private mutating func add(_ number: Int, _ bytes: UnsafeRawBufferPointer) throws {
    let page = try BTreePage(number, bytes, usableSize: pages.header.usableSize)
    guard page.kind == .tableLeaf, page.cellCount > 0 else {
      throw DatabaseFileError(.badPage, page: number, "the page is no leaf with rows")
    }
    var hash = hasher.hash(bytes)
    var first: Int64?
    for index in 0..<page.cellCount {
      let cell = try page.cell(index)
      if first == nil { first = cell.rowID }
      if let lastRowID, cell.rowID <= lastRowID {
        throw DatabaseFileError(.badPage, page: number, "the rows are not in the order of their rowids")
      }
      lastRowID = cell.rowID
      if cell.overflow != 0 { hash = try add(cell, to: hash) }
    }
    found.append(LeafPrint(firstRowID: first ?? 0, hash: hash))
  }

  /// Adds the overflow chain of a row.
  private func add(_ cell: BTreePage.Cell, to hash: PageHash) throws -> PageHash {
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
  func isInFile(_ page: Int) -> Bool { log?.offset(ofPage: page) == nil }

  /// Reads pages that follow each other: one, or several that are in the database file.
  func read(_ count: Int, from first: Int, into buffer: UnsafeMutableRawBufferPointer) throws {
    guard count > 1 else { return try read(first, into: buffer) }
    let wanted = UnsafeMutableRawBufferPointer(rebasing: buffer[..<(count * header.pageSize)])
    guard try file.read(into: wanted, at: Int64(first - 1) * Int64(header.pageSize)) == wanted.count else {
      throw DatabaseFileError(.truncated, page: first, "the file ends inside the page")
    }
  }
}
