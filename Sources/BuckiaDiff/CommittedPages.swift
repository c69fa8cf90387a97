import SQLiteChangesets
import SQLiteConnections
import SQLiteFiles
import SQLiteSchemas

/// The pages of a database as it was committed last, read by a write transaction that has just begun.
///
/// As long as it lasts nobody else commits. Its own changes can move pages, or begin the log anew, so all is to be read before it
/// writes anything.
package struct CommittedPages {
  private let pages: DatabasePages
  private let roots: RootPages

  /// - Parameter connection: One inside a write transaction that has not written anything yet.
  /// - Returns: nil where the pages cannot be read.
  /// - Throws: `SQLiteError`.
  package init?(on connection: borrowing SQLiteConnection) throws {
    let source = try PageSource(ofNewWriteTransaction: connection)
    do {
      guard let pages = try source.open(nil) else { return nil }
      self.pages = pages
    } catch is DatabaseFileError {
      return nil
    }
    roots = try RootPages(connection)
  }

  /// How many bytes a page has.
  package var pageSize: Int { pages.header.pageSize }

  /// From how many bytes on a second thread takes one of two b-trees.
  private static let threadBytes = 8 << 20

  /// What the leaves of a table hold, and those by which its rows are found by their primary key.
  ///
  /// - Parameters:
  ///   - table: A rowid table; nil where only the key is asked for.
  ///   - index: The b-tree in which rows are found by their key; nil where only the table is asked for.
  ///   - key: The secret of the hashes.
  /// - Returns: `leaves` is nil for a table that has only one page, or cannot be read; `keys` where the b-tree is such a one, where text is
  ///   stored as UTF-16, or where a leaf begins with a key that has NULL or does not fit on its page.
  /// - Throws: `SQLiteError`.
  package func prints(
    of table: TableName?, _ index: KeyIndex?, key: [UInt8]
  ) throws -> (leaves: [LeafPrint]?, keys: [KeyPrint]?) {
    let root = table.flatMap { roots[$0] }
    guard let root, let index, pages.pageCount * pageSize >= Self.threadBytes, let both = try pages.forTwoThreads()
    else {
      return try (
        root.flatMap { try Self.leafPrints(pages, $0, key) }, index.flatMap { try Self.keyPrints(pages, $0, key) }
      )
    }
    let keys = BackgroundTask(with: both.1) { try Self.keyPrints($0, index, key) }
    let leaves = Result { try Self.leafPrints(both.0, root, key) }
    let found = try keys.join()
    return try (leaves.get(), found)
  }

  private static func leafPrints(_ pages: DatabasePages, _ root: Int, _ key: [UInt8]) throws -> [LeafPrint]? {
    do {
      let prints = try LeafPrints.read(pages, root: root, key: key)
      return prints.isEmpty ? nil : prints
    } catch is DatabaseFileError {
      // SQLite says what is wrong when it reads the rows, if it minds.
      return nil
    }
  }

  private static func keyPrints(_ pages: DatabasePages, _ index: KeyIndex, _ key: [UInt8]) throws -> [KeyPrint]? {
    guard pages.header.encoding == .utf8 || pages.header.encoding == .undecided else { return nil }
    let record = RecordReader(limit: index.columns.count)
    var found: [(first: [UInt8]?, hash: PageHash)] = []
    var hasNull = false
    do {
      try LeafPrints.readEntries(pages, root: index.root, key: key) { first, page, hash in
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
      return KeyPrint(span: span, hash: found[place].hash)
    }
  }

  /// The key of an entry, its values in the format of changesets.
  ///
  /// - Returns: nil for a key with NULL.
  private static func key(in record: RecordReader, of index: KeyIndex) -> [UInt8]? {
    var writer = ChangesetWriter()
    for column in index.columns.indices {
      guard let value = record.value(at: column).map(RowValue.init), !value.isNull else { return nil }
      value.append(to: &writer)
    }
    return writer.bytes
  }
}
