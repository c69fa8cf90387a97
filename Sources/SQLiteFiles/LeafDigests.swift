/// A leaf page of a rowid table, with a hash of its rows.
///
/// Two leaves with the same digest hold the same rows, overflow chains included.
package struct LeafDigest: Hashable, Sendable {
  /// The rowid of its first row.
  package let firstRowID: Int64
  /// A keyed hash of the page, and of the overflow pages of its rows.
  package let hash: PageHash

  package init(firstRowID: Int64, hash: PageHash) {
    self.firstRowID = firstRowID
    self.hash = hash
  }
}

extension DatabasePages {
  /// The digests of a rowid table, in the order of the rowids.
  ///
  /// - Parameters:
  ///   - root: The root page of the table.
  ///   - key: The secret of the hash: ``PageHasher/keyBytes`` bytes.
  /// - Returns: None for a table of a single page.
  /// - Throws: `DatabaseFileError` for damage; what the sources throw.
  package func leafDigests(root: Int, key: [UInt8]) throws -> [LeafDigest] {
    let reader = LeafReader(self, isTable: true, key: key)
    var found: [LeafDigest] = []
    var last: Int64?
    try reader.forEachLeaf(from: root) { page, bytes in
      var hash = reader.hasher.hash(bytes)
      var first: Int64?
      for index in 0..<page.cellCount {
        let cell = try page.cell(index)
        if first == nil { first = cell.rowID }
        if let last, cell.rowID <= last {
          throw DatabaseFileError(.badPage, page: page.number, "the rows are not in the order of their rowids")
        }
        last = cell.rowID
        if cell.overflow != 0 { hash = try reader.addOverflow(of: cell, to: hash) }
      }
      found.append(LeafDigest(firstRowID: first ?? 0, hash: hash))
    }
    return found
  }

  /// Reads the digests of the b-tree of an index or a WITHOUT ROWID table, in its order.
  ///
  /// Interior pages have entries between leaves: each belongs to the leaf after it.
  ///
  /// - Parameters:
  ///   - root: The root page of the b-tree.
  ///   - key: The secret of the hash: ``PageHasher/keyBytes`` bytes.
  ///   - digest: Gets the beginning of the record of the first entry, as far as it is stored without overflow; none of the first
  ///     leaf, which stands for all below it, too; and a keyed hash of the entries. It is not called for a b-tree of a single page.
  /// - Throws: `DatabaseFileError` for damage; what the sources and the callback throw.
  package func forEachEntryDigest(
    root: Int, key: [UInt8],
    _ digest: (_ first: UnsafeRawBufferPointer?, _ page: Int, _ hash: PageHash) throws -> Void
  ) throws {
    let reader = LeafReader(self, isTable: false, key: key)
    // The bytes of the parent page stay valid while the leaf after the entry is read.
    var opening: (record: UnsafeRawBufferPointer, hash: PageHash)?
    try reader.forEachLeaf(from: root) { page, index in
      let cell = try page.cell(index)
      let record = UnsafeRawBufferPointer(rebasing: page.bytes[cell.local])
      let hash = reader.hasher.hash(part: record)
      opening = (record, cell.overflow == 0 ? hash : try reader.addOverflow(of: cell, to: hash))
    } leaf: { page, bytes in
      var hash = reader.hasher.hash(bytes, after: opening?.hash ?? PageHash(high: 0, low: 0))
      for index in 0..<page.cellCount {
        let cell = try page.cell(index)
        if cell.overflow != 0 { hash = try reader.addOverflow(of: cell, to: hash) }
      }
      try digest(opening?.record, page.number, hash)
      opening = nil
    }
  }

  /// True if a page is read from the database file, and not from the log.
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

/// Reads the leaves of a b-tree in order, many pages at a time if they are consecutive.
final class LeafReader {
  /// The size of a read in bytes, which fits in the cache of a core.
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
  ///   - isTable: True if the b-tree is that of a rowid table, and not that of an index or a WITHOUT ROWID table.
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
  ///   - root: The first page of the b-tree, or of a part of it.
  ///   - depth: How deep the part is in the b-tree.
  ///   - separator: Gets the page of an entry between leaves, and its place there.
  ///   - leaf: Gets a leaf, and all its bytes.
  /// - Throws: `DatabaseFileError` for damage; what the sources and the callbacks throw.
  func forEachLeaf(
    from root: Int, depth: Int = 0, separator: (BTreePage, Int) throws -> Void = { _, _ in },
    leaf: (BTreePage, UnsafeRawBufferPointer) throws -> Void
  ) throws {
    try claim(root)
    guard let page = try read(root, depth: depth) else { return }
    let children = try (0...page.cellCount).map { try page.child($0) }
    /// Between the children of a table's page there are only rowids.
    func separate(_ child: Int) throws { if !isTable, child > 0 { try separator(page, child - 1) } }
    // All leaves have the same depth: one child shows the kind of its siblings.
    try claim(children[0])
    if try read(children[0], depth: depth + 1) == nil {
      try readLeaves(children, separate, leaf)
    } else {
      visited.remove(children[0])
      for (index, child) in children.enumerated() {
        try separate(index)
        try forEachLeaf(from: child, depth: depth + 1, separator: separator, leaf: leaf)
      }
    }
  }

  private func claim(_ number: Int) throws(DatabaseFileError) {
    guard number >= 1, number <= pages.pageCount else {
      throw DatabaseFileError(.badPage, page: number, "a b-tree leads to this page, which does not exist")
    }
    guard visited.insert(number) else { throw DatabaseFileError.visitedTwice(number) }
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
      // No page is visited twice, which ends a circular chain.
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

/// A keyed hash of pages: 128 bits, to make collisions of different pages practically impossible.
///
/// Words are added to those of a secret, multiplied in pairs, and the products added up: NH of UMAC
/// (<https://www.rfc-editor.org/rfc/rfc4418#section-5.2.2>) with words of 64 bits. For any two pages that were chosen without knowing
/// the secret the hashes are equal with a probability of 2^-64.
package final class PageHasher {
  /// The size of the secret in bytes.
  package static let keyBytes = 16

  private let words: UnsafeMutableBufferPointer<UInt64>

  /// - Parameters:
  ///   - key: The secret: ``keyBytes`` bytes.
  ///   - pageSize: The size of a page in bytes: a multiple of 32.
  package init(key: [UInt8], pageSize: Int) {
    precondition(key.count == Self.keyBytes && pageSize % 32 == 0, "a secret or a page of another size")
    let (one, two) = key.withUnsafeBytes { bytes in
      (
        UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self)),
        UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
      )
    }
    words = .allocate(capacity: pageSize / 8 + 2)
    for index in words.indices {
      let count = UInt64(index + 1)
      words.initializeElement(
        at: index,
        to: Self.mix(one &+ count &* 0x9e37_79b9_7f4a_7c15) ^ Self.mix(two &- count &* 0xd1b5_4a32_d192_ed03))
    }
  }

  deinit { words.deallocate() }

  /// The last step of SplitMix64.
  private static func mix(_ value: UInt64) -> UInt64 {
    var value = value
    value = (value ^ value >> 30) &* 0xbf58_476d_1ce4_e5b9
    value = (value ^ value >> 27) &* 0x94d0_49bb_1331_11eb
    return value ^ value >> 31
  }

  /// The hash of a page.
  ///
  /// - Parameters:
  ///   - page: A whole page.
  ///   - earlier: The hash of the pages before it, for one hash of several pages.
  package func hash(_ page: UnsafeRawBufferPointer, after earlier: PageHash = PageHash(high: 0, low: 0)) -> PageHash {
    precondition(page.count == (words.count - 2) * 8, "a page of another size")
    // Two sums at once, since each waits for its own last step only.
    var even = PageHash(high: 0, low: 0)
    var odd = PageHash(high: 0, low: 0)
    var place = 0
    for offset in stride(from: 0, to: page.count, by: 32) {
      // Sound: a page is a multiple of 32 bytes, and the secret has a word for each eight of them.
      even.add(product(page, offset, place))
      odd.add(product(page, offset + 16, place + 2))
      place += 4
    }
    even.add(odd)
    even.add((earlier.low &+ words[place]).multipliedFullWidth(by: earlier.high &+ words[place + 1]))
    return even
  }

  /// The hash of some bytes, fewer than a page has.
  package func hash(part bytes: UnsafeRawBufferPointer) -> PageHash {
    precondition(bytes.count <= (words.count - 2) * 8, "more bytes than a page has")
    func word(_ offset: Int) -> UInt64 {
      if offset + 8 <= bytes.count {
        return UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
      }
      return bytes.dropFirst(offset).reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }
    var sum = PageHash(high: 0, low: 0)
    for offset in stride(from: 0, to: bytes.count, by: 16) {
      let place = offset / 8
      sum.add((word(offset) &+ words[place]).multipliedFullWidth(by: word(offset + 8) &+ words[place + 1]))
    }
    // The length distinguishes zeros at the end from no bytes.
    let end = words.count - 2
    sum.add((UInt64(bytes.count) &+ words[end]).multipliedFullWidth(by: words[end + 1]))
    return sum
  }

  @inline(__always)
  private func product(_ page: UnsafeRawBufferPointer, _ offset: Int, _ place: Int) -> (high: UInt64, low: UInt64) {
    let one = UInt64(littleEndian: page.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    let two = UInt64(littleEndian: page.loadUnaligned(fromByteOffset: offset + 8, as: UInt64.self))
    return (one &+ words[place]).multipliedFullWidth(by: two &+ words[place + 1])
  }
}

/// A hash of 128 bits.
package struct PageHash: Hashable, Sendable {
  package var high: UInt64
  package var low: UInt64

  package init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  @inline(__always)
  fileprivate mutating func add(_ product: (high: UInt64, low: UInt64)) {
    let sum = low.addingReportingOverflow(product.low)
    low = sum.partialValue
    high &+= product.high &+ (sum.overflow ? 1 : 0)
  }

  @inline(__always)
  fileprivate mutating func add(_ other: PageHash) { add((other.high, other.low)) }
}
