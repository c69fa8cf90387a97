import BuckiaBytes
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// Whether changes are better applied in another order than they come in.
///
/// The session extension records them in hash order, the slowest there is: every row touches another page. Buckia's own
/// diffs are in key order, but have the deletes before the updates.
///
/// Only tables whose rows have nothing to do with each other are put in order: no UNIQUE but the key, and no key in
/// which values that are not equal in the changeset are equal in the table. Everywhere else the order decides which of
/// two rows a constraint refuses, and that is the author's to say.
enum ApplyOrder {
  /// - Returns: Whether the changes of a table may be applied by key, and are not by key as they stand.
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

  /// Whether deletes and updates, each by key, would go over the same pages of the table one after the other. Of a large table
  /// each page is read and written twice then: it has left the page cache when its turn comes again.
  private static func goesOverPagesAgain(_ table: ChangesetSummary.Table) -> Bool {
    table.descents > 0 && min(table.deleted, table.updated) >= fewChanges
      && table.deleted + table.updated >= table.inserted
  }

  /// Whether the local table keeps all keys apart that are not equal in the changeset.
  static func keepsKeysApart(of table: ChangesetSummary.Table, in match: TableMatch) -> Bool {
    let keyColumns = table.table.keyFlags.indices.filter { table.table.isKey($0) }
    let offset = match.local.isKeyedByRowID ? 1 : 0
    return zip(keyColumns, table.keyKinds).allSatisfy { column, kinds in
      let place = match.columns[column] - offset
      guard place >= 0 else { return true }
      let isBinary = ASCIIName.matches(match.local.columns[place].collation, "BINARY")
      return isBinary && keepApart(kinds, in: match.local.affinity(at: place))
    }
  }

  /// Whether a column of this affinity keeps values of these kinds apart as the changeset does: it makes no number of a
  /// text and no text of a number. See <https://sqlite.org/datatype3.html#type_affinity>.
  private static func keepApart(_ kinds: ValueKinds, in affinity: Affinity) -> Bool {
    switch affinity {
    case .blob: true
    case .text: kinds.isDisjoint(with: [.integer, .real])
    case .integer, .real, .numeric: kinds.isDisjoint(with: .text)
    }
  }
}
