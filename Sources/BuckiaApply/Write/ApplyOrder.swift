import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// True if changes are better applied in another order than they come in.
///
/// The session extension records them in hash order, the slowest there is: every row touches another page. Buckia's own
/// diffs are in key order, but have the deletes before the updates.
///
/// Only tables whose rows have nothing to do with each other are put in order: no UNIQUE but the key, and no key in
/// which values that are not equal in the changeset are equal in the table. Everywhere else the order decides which of
/// two rows a constraint refuses, and that is the author's to say.
enum ApplyOrder {
  /// - Returns: True if the changes of a table may be applied by key, and are not by key as they stand.
  /// - Throws: `SQLiteError` when the schema cannot be read.
  static func isBetterByKey(
    _ table: ChangesetSummary.Table, into match: TableMatch, on connection: borrowing SQLiteConnection
  ) throws -> Bool {
    // An author who sorts deletes, updates and inserts each by key starts over twice.
    let isScattered = table.descents > 2 + table.changeCount / 64
    guard isScattered || goesOverPagesAgain(table) else { return false }
    guard keepsKeysApart(of: table, in: match) else { return false }
    let query = try connection.cached("SELECT 1 FROM pragma_index_list(?1, 'main') WHERE \"unique\" AND origin <> 'pk'")
    defer { query.statement.reset() }
    try query.statement.bind(match.local.name, at: 0)
    return try !query.statement.step()
  }

  /// From how many updates and deletes on it pays to apply them together.
  private static let fewChanges = 1_000

  /// True if deletes and updates, each by key, would go over the same pages of the table one after the other. Of a large table
  /// each page is read and written twice then: it has left the page cache when its turn comes again.
  private static func goesOverPagesAgain(_ table: ChangesetSummary.Table) -> Bool {
    table.descents > 0 && min(table.deleted, table.updated) >= fewChanges
      && table.deleted + table.updated >= table.inserted
  }

  /// True if the local table keeps all keys apart that are not equal in the changeset.
  static func keepsKeysApart(of table: ChangesetSummary.Table, in match: TableMatch) -> Bool {
    let keyColumns = table.table.keyFlags.indices.filter { table.table.isKey($0) }
    return zip(keyColumns, table.keyKinds).allSatisfy { column, kinds in
      let place = match.columns[column] - match.local.columnOffset
      guard place >= 0 else { return true }
      let isBinary = ASCIIName.matches(match.local.columns[place].collation, "BINARY")
      return isBinary && keepApart(kinds, in: match.local.affinity(at: place))
    }
  }

  /// True if a column of this affinity keeps values of these kinds apart as the changeset does: it makes no number of a
  /// text and no text of a number. See <https://sqlite.org/datatype3.html#type_affinity>.
  private static func keepApart(_ kinds: ValueKinds, in affinity: Affinity) -> Bool {
    switch affinity {
    case .blob: true
    case .text: kinds.isDisjoint(with: [.integer, .real])
    case .integer, .real, .numeric: kinds.isDisjoint(with: .text)
    }
  }

  // MARK: Inserts of rows that are there until a later DELETE

  // The INSERTs of a table that wait for its other changes, because one of these deletes a row that has their key here.
  //
  // There are two such keys: one that only compares equal (`apple` and `Apple` under NOCASE, 2.0 and 2), and any key where
  // the local table makes one of keys that its author tells apart (`'1'` and `'01'` in an INTEGER column). Whoever changes a
  // key so deletes one row and inserts another. Our own diffs have the DELETE first. What SQLite records or inverts or other
  // programs write may have the INSERT first: it would meet a conflict, and the DELETE would then take the only row. Where the
  // row is gone already, it would take the one that has just come.

  /// True if there can be any, as far as the changes of a table are known.
  static func mayCollide(_ table: ChangesetSummary.Table, in match: TableMatch) -> Bool {
    table.hasDeleteBehindInsert
      && (!keepsKeysApart(of: table, in: match) || table.keyKinds.contains { $0.contains(.real) })
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
  static func collidingInserts(
    into table: Int, _ match: TableMatch, _ summary: ChangesetSummary, in changeset: TemporaryBuffer,
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
