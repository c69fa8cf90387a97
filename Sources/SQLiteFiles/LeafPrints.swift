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

/// Reads the prints of b-trees.
package enum LeafPrints {
  /// The prints of a rowid table, in the order of the rowids.
  ///
  /// - Parameters:
  ///   - pages: The database.
  ///   - root: The root page of the table.
  ///   - key: The secret of the hash: ``PageHasher/keyBytes`` bytes.
  /// - Returns: None for a table of a single page.
  /// - Throws: `DatabaseFileError` for damage; what the sources throw.
  package static func read(_ pages: DatabasePages, root: Int, key: [UInt8]) throws -> [LeafPrint] {
    let reader = LeafReader(pages, isTable: true, key: key)
    var found: [LeafPrint] = []
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
      found.append(LeafPrint(firstRowID: first ?? 0, hash: hash))
    }
    return found
  }

  /// Reads the prints of the b-tree of an index or a WITHOUT ROWID table, in its order.
  ///
  /// Entries stand between leaves, too: such a one belongs to the leaf behind it.
  ///
  /// - Parameters:
  ///   - pages: The database.
  ///   - root: The root page of the b-tree.
  ///   - key: The secret of the hash: ``PageHasher/keyBytes`` bytes.
  ///   - print: Gets the beginning of the record of the first entry, as far as it is stored without overflow; none of the first
  ///     leaf, which stands for all below it, too; and a keyed hash of the entries. It is not called for a b-tree of a single page.
  /// - Throws: `DatabaseFileError` for damage; what the sources and the callback throw.
  package static func readEntries(
    _ pages: DatabasePages, root: Int, key: [UInt8],
    _ print: (_ first: UnsafeRawBufferPointer?, _ page: Int, _ hash: PageHash) throws -> Void
  ) throws {
    let reader = LeafReader(pages, isTable: false, key: key)
    // The bytes of the page above stay where they are while the leaf behind the entry is read.
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
      try print(opening?.record, page.number, hash)
      opening = nil
    }
  }
}
