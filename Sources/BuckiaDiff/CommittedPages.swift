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
      guard let pages = try source.open(ProgressReporter { _ in }) else { return nil }
      self.pages = pages
    } catch is DatabaseFileError {
      return nil
    }
    roots = try RootPages(connection)
  }

  /// How many bytes a page has.
  package var pageSize: Int { pages.header.pageSize }

  /// The prints of the leaves of a rowid table.
  ///
  /// - Parameter key: The secret of the hash.
  /// - Returns: nil for a table that has only one page, or cannot be read.
  /// - Throws: `SQLiteError`.
  package func leafPrints(of table: TableName, key: [UInt8]) throws -> [LeafPrint]? {
    guard let root = roots[table] else { return nil }
    do {
      let prints = try LeafPrints.read(pages, root: root, key: key)
      return prints.isEmpty ? nil : prints
    } catch is DatabaseFileError {
      // SQLite says what is wrong when it reads the rows, if it minds.
      return nil
    }
  }

  /// The prints of the b-tree in which rows are found by their primary key.
  ///
  /// - Parameter key: The secret of the hash.
  /// - Returns: nil where it has only one page or cannot be read, where text is stored as UTF-16, or where a leaf begins with a key that has
  ///   NULL or does not fit on its page.
  /// - Throws: `SQLiteError`.
  package func keyPrints(of index: KeyIndex, key: [UInt8]) throws -> [KeyPrint]? {
    guard pages.header.encoding == .utf8 || pages.header.encoding == .undecided else { return nil }
    let record = RecordReader(limit: index.columns.count)
    var found: [(first: [UInt8]?, hash: PageHash)] = []
    var hasNull = false
    do {
      try LeafPrints.readEntries(pages, root: index.root, key: key) { first, page, hash in
        guard let first else { return found.append((nil, hash)) }
        try record.read(first, page: page)
        let key = Self.key(in: record, of: index)
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
