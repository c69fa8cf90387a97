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
}
