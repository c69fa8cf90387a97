import BuckiaBytes
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// The INSERTs of a table that wait for its other changes, because one of these deletes a row that has their key here.
///
/// There are two such keys: one that only compares equal (`apple` and `Apple` under NOCASE, 2.0 and 2), and any key where
/// the local table makes one of keys that its author tells apart (`'1'` and `'01'` in an INTEGER column). Whoever changes a
/// key so deletes one row and inserts another. Our own diffs have the DELETE first. What SQLite records or inverts or other
/// programs write may have the INSERT first: it would meet a conflict, and the DELETE would then take the only row. Where the
/// row is gone already, it would take the one that has just come.
enum CollidingInserts {
  /// Whether there can be any, as far as the changes of a table are known.
  static func arePossible(among table: ChangesetSummary.Table, in match: TableMatch) -> Bool {
    table.hasDeleteBehindInsert
      && (!ApplyOrder.keepsKeysApart(of: table, in: match) || table.keyKinds.contains { $0.contains(.real) })
  }

  /// Finds the rows whose INSERT waits.
  ///
  /// None waits where a row is changed twice: the second change could find it missing.
  ///
  /// - Parameters:
  ///   - table: The table's place in the summary.
  ///   - match: Where its columns are here.
  ///   - summary: What is known of all changes.
  ///   - changeset: The changes.
  /// - Throws: `SQLiteError`; `ByteStreamError` when a temporary file cannot be read or written.
  static func find(
    of table: Int, _ match: TableMatch, _ summary: ChangesetSummary, in changeset: TemporaryBuffer,
    on connection: borrowing SQLiteConnection
  ) throws -> Set<RowIdentity> {
    let header = summary.tables[table].table
    let name = TableName(header.name)
    let sections = TableSections(summary, of: changeset)
    let key = header.keyFlags.indices.filter { header.isKey($0) }
    let places = match.local.isKeyedByRowID ? [] : key.map { match.columns[$0] }
    let store = try KeyStore("deleted", for: match.local, places, on: connection)
    let insert = try store.insertion(on: connection)
    try sections.forEachChange(of: name) { change, bytes in
      guard change.operation == .delete, !change.hasNullKey else { return }
      for (index, column) in key.enumerated() { try insert.bind(change.old(column), in: bytes, at: index) }
      try insert.run()
    }
    let query = try store.lookup(on: connection)
    var found: Set<RowIdentity> = []
    try sections.forEachChange(of: name) { change, bytes in
      guard change.operation == .insert, !change.hasNullKey else { return }
      for (index, column) in key.enumerated() { try query.bind(change.new(column), in: bytes, at: index) }
      if try query.step() { found.insert(RowIdentity(of: change, in: header, bytes)) }
      query.reset()
    }
    try store.clear(on: connection)
    let ranges = summary.sectionsByTable[table]
    return try !found.isEmpty && Changesets.changesEachRowOnce(header, sections: ranges, of: changeset) ? found : []
  }
}
