import SQLiteConnections
import SQLiteSchemas

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
  /// - Returns: nil where there is none, as for an `INTEGER PRIMARY KEY`, or where a column stands in descending order.
  /// - Throws: `SQLiteError`.
  package init?(of table: TableDefinition, on connection: borrowing SQLiteConnection) throws {
    var columns: [String] = []
    var collations: [String] = []
    var root = 0
    var isDescending = false
    try connection.forEachRow(
      of: """
        SELECT x.name, x.coll, x."desc", s.rootpage FROM pragma_index_list(?1, 'main') AS i \
        JOIN pragma_index_xinfo(i.name, 'main') AS x LEFT JOIN main.sqlite_schema AS s ON s.name = \(Self.owner(of: table)) \
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

  /// A WITHOUT ROWID table has an index in name only.
  private static func owner(of table: TableDefinition) -> String { table.isWithoutRowID ? "?1" : "i.name" }
}
