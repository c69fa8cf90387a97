/// Overflow chains. See <https://sqlite.org/fileformat2.html#cell_payload_overflow_pages>.
///
/// Nothing marks a page as an overflow page: it starts with the number of the next one. So a page counts as one when
/// nothing shows that it is something else.
extension PageDifferences {
  /// From this page number on the first byte of the number can be that of a b-tree page type.
  private static let ambiguousPageNumber = 0x0200_0000

  /// Whether a page differs that may be an overflow page. Mostly none does, and then no chain has to be followed.
  func overflowMayDiffer(_ older: DatabasePages, _ newer: DatabasePages) throws -> Bool {
    if differing.isEmpty { return false }
    if words.count > Self.ambiguousPageNumber { return true }
    let trunks = try freelistTrunkPages(newer)
    let isBTreePage: (UInt8) -> Bool = { BTreePageType(rawValue: $0) != nil }
    var mayDiffer = false
    differing.forEach { page in
      if mayDiffer || page == 1 || page > min(older.pageCount, newer.pageCount) { return }
      if isBTreePage(typeByte(page, in: .older)) || isBTreePage(typeByte(page, in: .newer)) { return }
      if older.header.isPointerMap(page) && newer.header.isPointerMap(page) || trunks.contains(page) { return }
      mayDiffer = true
    }
    return mayDiffer
  }

  /// The freelist trunk pages of a database, up to the first invalid page number. See
  /// <https://sqlite.org/fileformat2.html#the_freelist>.
  private func freelistTrunkPages(_ pages: DatabasePages) throws -> Set<Int> {
    var trunks: Set<Int> = []
    let buffer = PageBuffer(size: pages.header.pageSize)
    var page = pages.header.firstFreelistTrunkPage
    while page >= 1, page <= pages.pageCount, trunks.insert(page).inserted {
      try pages.read(page, into: buffer.bytes)
      page = Int(UnsafeRawBufferPointer(buffer.bytes).number32(at: 0))
    }
    return trunks
  }

  /// Whether any page of an overflow chain differs.
  ///
  /// - Parameters:
  ///   - page: The first page of the chain, the same in both databases.
  ///   - bytes: The size of the payload in the chain, in bytes.
  func chainDiffers(from page: Int, bytes: Int) -> Bool {
    if !mayOverflowDiffer { return false }
    // A cell can claim more than the file holds, and its chain can be a cycle.
    guard bytes / (usableSize - 4) < words.count else { return true }
    var page = page
    var left = bytes
    while left > 0 {
      // A chain that ends too early is damage, which is reported when the payload is read.
      guard isEqual(page) else { return true }
      left -= usableSize - 4
      page = Int(words[page])
    }
    return false
  }
}
