import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Decides if changes are applied in another order than that of the file.
///
/// The session extension records changes in hash order, which is the slowest: every row touches another page. Buckia's
/// own diffs are in key order, but have the deletes before the updates.
///
/// Only tables whose rows are independent of each other are sorted: tables without UNIQUE other than the key, and
/// without keys that are different in the changeset and equal in the table. In all other tables, the order decides
/// which of two rows a constraint refuses, and the author's order counts.
enum ApplyOrder {
  /// - Returns: True if the changes of a table may be applied by key, and are not in that order.
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

  /// True if deletes and updates, each by key, would visit the same pages of the table one after the other. The pages
  /// of a large table are then read and written twice, because they have left the page cache.
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
  // There are two kinds of such keys: a key that only compares equal (`apple` and `Apple` under NOCASE, 2.0 and 2), and
  // keys that the local table makes equal (`'1'` and `'01'` in an INTEGER column). Changing a key in this way deletes
  // one row and inserts another. Our own diffs have the DELETE first. Changes that SQLite records or inverts, or other
  // programs write, may have the INSERT first: it would meet a conflict, and the DELETE would then delete the only row,
  // or the new one if the old row is missing.

  /// True if the changes of a table may have such keys.
  static func mayCollide(_ table: ChangesetSummary.Table, in match: TableMatch) -> Bool {
    table.hasDeleteBehindInsert
      && (!keepsKeysApart(of: table, in: match) || table.keyKinds.contains { $0.contains(.real) })
  }

  /// Finds the rows whose INSERT waits.
  ///
  /// No INSERT waits if a row is changed twice, because the second change could find the row missing.
  ///
  /// - Parameters:
  ///   - table: The table's place in the summary.
  ///   - match: The mapping to the local columns.
  ///   - summary: The summary of all changes.
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
