import SQLiteChangesets
import SQLiteConnections
import SQLiteFiles
import SQLiteSchemas

/// The committed pages of a database, read by a write transaction that has just begun.
///
/// While it lasts, no other connection can commit. Its own changes can move pages, or restart the log, which is why
/// everything must be read before it writes anything.
package struct CommittedPages {
  private let pages: DatabasePages
  private let roots: [TableName: Int]

  /// - Parameter connection: A connection inside a write transaction that has not written anything yet.
  /// - Returns: nil if the pages cannot be read.
  /// - Throws: `SQLiteError`.
  package init?(on connection: borrowing SQLiteConnection) throws {
    let source = try PageSource(ofNewWriteTransaction: connection)
    do {
      guard let pages = try source.open(nil) else { return nil }
      self.pages = pages
    } catch is DatabaseFileError {
      return nil
    }
    roots = try rootPages(connection)
  }

  /// The size of a page in bytes.
  package var pageSize: Int { pages.header.pageSize }

  /// From how many bytes on a second thread takes one of two b-trees.
  private static let threadBytes = 8 << 20

  /// The digests of the leaves of a table, and of its primary key's index.
  ///
  /// - Parameters:
  ///   - table: A rowid table; nil if only the key is asked for.
  ///   - index: The b-tree of the key; nil for the table only.
  ///   - key: The secret of the hashes.
  /// - Returns: `leaves` is nil for a table that has only one page, or cannot be read; `keys` where the b-tree is such a one, where text is
  ///   stored as UTF-16, or where a leaf begins with a key that has NULL or does not fit on its page.
  /// - Throws: `SQLiteError`.
  package func digests(
    of table: TableName?, _ index: KeyIndex?, key: [UInt8]
  ) throws -> (leaves: [LeafDigest]?, keys: [KeyLeafDigest]?) {
    let root = table.flatMap { roots[$0] }
    guard let root, let index, pages.pageCount * pageSize >= Self.threadBytes, let both = try pages.forTwoThreads()
    else {
      return try (
        root.flatMap { try Self.leafDigests(pages, $0, key) }, index.flatMap { try Self.keyDigests(pages, $0, key) }
      )
    }
    let keys = BackgroundTask(with: both.1) { try Self.keyDigests($0, index, key) }
    let leaves = Result { try Self.leafDigests(both.0, root, key) }
    let found = try keys.join()
    return try (leaves.get(), found)
  }

  private static func leafDigests(_ pages: DatabasePages, _ root: Int, _ key: [UInt8]) throws -> [LeafDigest]? {
    do {
      let digests = try pages.leafDigests(root: root, key: key)
      return digests.isEmpty ? nil : digests
    } catch is DatabaseFileError {
      // SQLite reports errors when it reads the rows.
      return nil
    }
  }

  private static func keyDigests(_ pages: DatabasePages, _ index: KeyIndex, _ key: [UInt8]) throws -> [KeyLeafDigest]? {
    guard pages.header.encoding == .utf8 || pages.header.encoding == .undecided else { return nil }
    let record = RecordReader(limit: index.columns.count)
    var found: [(first: [UInt8]?, hash: PageHash)] = []
    var hasNull = false
    do {
      try pages.forEachEntryDigest(root: index.root, key: key) { first, page, hash in
        guard let first else { return found.append((nil, hash)) }
        try record.read(first, page: page)
        let key = self.key(in: record, of: index)
        hasNull = hasNull || key == nil
        found.append((key, hash))
      }
    } catch is DatabaseFileError {
      return nil
    }
    guard !found.isEmpty, !hasNull else { return nil }
    return found.indices.map { place in
      let span = KeySpan(from: found[place].first, to: place + 1 < found.count ? found[place + 1].first : nil)
      return KeyLeafDigest(span: span, hash: found[place].hash)
    }
  }

  /// The key of an entry, its values in the format of changesets.
  ///
  /// - Returns: nil for a key with NULL.
  private static func key(in record: RecordReader, of index: KeyIndex) -> [UInt8]? {
    var writer = ChangesetWriter()
    for column in index.columns.indices {
      guard let value = record.value(at: column), !value.isNull else { return nil }
      value.append(to: &writer)
    }
    return writer.bytes
  }
}

/// The page at which the tree of each table of a database begins; none for a table that has no tree.
///
/// Reads `sqlite_schema` once: it has no index, and a database may have ten thousand tables.
func rootPages(_ connection: borrowing SQLiteConnection) throws -> [TableName: Int] {
  var pages: [TableName: Int] = [:]
  try connection.forEachRow(of: "SELECT name, rootpage FROM main.sqlite_schema WHERE type = 'table'") { row in
    let page = Int(row.integer(at: 1))
    if page > 0 { pages[TableName(row.text(at: 0) ?? "")] = page }
  }
  return pages
}

/// The b-tree in which SQLite finds the rows of a table by their primary key: an index, or the WITHOUT ROWID table itself.
package struct KeyIndex {
  /// The names of its columns, in the order of the key.
  package let columns: [String]
  /// The collating sequences by which they are ordered.
  package let collations: [String]
  /// The first page of the b-tree.
  let root: Int

  /// Finds the b-tree.
  ///
  /// - Returns: nil if there is none, as for an `INTEGER PRIMARY KEY`, or where a column stands in descending order.
  /// - Throws: `SQLiteError`.
  package init?(of table: TableDefinition, on connection: borrowing SQLiteConnection) throws {
    var columns: [String] = []
    var collations: [String] = []
    var root = 0
    var isDescending = false
    // A WITHOUT ROWID table has an index in name only.
    let owner = table.isWithoutRowID ? "?1" : "i.name"
    try connection.forEachRow(
      of: """
        SELECT x.name, x.coll, x."desc", s.rootpage FROM pragma_index_list(?1, 'main') AS i \
        JOIN pragma_index_xinfo(i.name, 'main') AS x LEFT JOIN main.sqlite_schema AS s ON s.name = \(owner) \
        WHERE i.origin = 'pk' AND x.key ORDER BY x.seqno
        """, binding: [table.name]
    ) { row in
      columns.append(row.text(at: 0) ?? "")
      collations.append(row.text(at: 1) ?? "")
      isDescending = isDescending || row.integer(at: 2) != 0
      root = Int(row.integer(at: 3))
    }
    let key = table.keyIndexes.map { table.changesetColumns[$0] }
    guard !isDescending, root > 0, !table.isKeyedByRowID, columns == key else { return nil }
    self.columns = columns
    self.collations = collations
    self.root = root
  }
}

/// The keys from one on, up to another.
package struct KeySpan: Hashable, Sendable {
  /// The first key, its values in the format of changesets; nil for no lower bound.
  package let lower: [UInt8]?
  /// The key that is none of them any more; nil for no upper bound.
  package let upper: [UInt8]?

  package init(from lower: [UInt8]?, to upper: [UInt8]?) {
    self.lower = lower
    self.upper = upper
  }
}

/// The digest of a leaf of the primary key's b-tree.
///
/// Two leaves with the same hash have the same entries. In the b-tree of a WITHOUT ROWID table these are the rows, in any other the
/// keys with the rowids of their rows.
package struct KeyLeafDigest: Hashable, Sendable {
  /// The keys of the leaf.
  package let span: KeySpan
  /// A keyed hash of its entries.
  package let hash: PageHash

  package init(span: KeySpan, hash: PageHash) {
    self.span = span
    self.hash = hash
  }

  /// The keys of the leaves that are not in both of two lists: of the first, and of the second; neighbours together.
  ///
  /// - Returns: nil if so many leaves have changed that it is faster to look at all rows.
  package static func differences(
    of older: [KeyLeafDigest], _ newer: [KeyLeafDigest]
  ) -> (older: [KeySpan], newer: [KeySpan])? {
    // The hash of a leaf includes the entry before it, and therefore also covers the first key.
    let before = Set(older.map(\.hash))
    guard isFew(newer.count { !before.contains($0.hash) }, of: newer.count) else { return nil }
    let now = Set(newer.map(\.hash))
    return (spans(of: older) { !now.contains($0) }, spans(of: newer) { !before.contains($0) })
  }

  /// True if few enough leaves have changed to compare only their rows.
  package static func isFew(_ changed: Int, of all: Int) -> Bool { changed <= all / 8 + 8 }

  private static func spans(of digests: [KeyLeafDigest], where isWanted: (PageHash) -> Bool) -> [KeySpan] {
    var spans: [KeySpan] = []
    for digest in digests where isWanted(digest.hash) {
      if let last = spans.last, let end = last.upper, end == digest.span.lower {
        spans[spans.count - 1] = KeySpan(from: last.lower, to: digest.span.upper)
      } else {
        spans.append(digest.span)
      }
    }
    return spans
  }
}
