/// Which b-tree each page of a database belongs to, as far as b-trees have been walked.
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
  ///   - isEqualLeaf: Whether it is a leaf that is equal in both databases, overflow chains included.
  /// - Returns: false when the page was recorded for this b-tree before.
  func claim(_ page: Int, isEqualLeaf: Bool) -> Bool {
    guard owners[page] >> 1 != tree else { return false }
    owners[page] = tree << 1 | (isEqualLeaf ? 1 : 0)
    return true
  }

  /// Whether a page is an equal leaf of a b-tree.
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
