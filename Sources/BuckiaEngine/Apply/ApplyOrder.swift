import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The order in which changes are applied.
///
/// The session extension records them in hash order, the slowest there is: every row touches another page. Buckia's own
/// diffs are in key order, so this is for changesets that other tools have made.
///
/// Only tables whose rows have nothing to do with each other are put in order: no UNIQUE but the key, and no key in
/// which different bytes can be equal. Everywhere else the order decides which of two rows a constraint refuses, and
/// that is the author's to say.
enum ApplyOrder {
  /// Up to how many bytes a changeset is put in order, which takes some 100 bytes of memory for each change.
  private static let byteLimit = 512 << 20

  /// The changes by table, operation and key; as they are where they stand so already, or are too many.
  ///
  /// - Throws: `ChangesetError` when the bytes are no changeset, `ChangesetSpool.Failure` when there is no room,
  ///   `SQLiteError` when the schema cannot be read.
  static func quickest(
    _ changeset: ChangesetSpool, into matches: [TableName: TableMatch], on connection: borrowing SQLiteConnection
  ) throws -> ChangesetSpool {
    guard changeset.count <= byteLimit else { return changeset }
    var independent: Set<TableName> = []
    for (name, match) in matches where try hasIndependentRows(match.local, on: connection) { independent.insert(name) }
    return try changeset.withBytes { bytes in
      let isSorted = { (table: ChangesetTable) in independent.contains(TableName(table.name)) }
      guard try !ChangesetOrder.isByKey(bytes, where: isSorted) else { return changeset }
      let sorted = ChangesetSpool()
      try ChangesetOrder(byKeyOf: bytes, where: isSorted).write(bytes, into: sorted)
      return sorted
    }
  }

  private static func hasIndependentRows(
    _ table: TableDefinition, on connection: borrowing SQLiteConnection
  ) throws -> Bool {
    let isPlainKey = table.primaryKey.allSatisfy { index in
      ASCIIName.matches(table.columns[index].collation, "BINARY") && table.affinity(at: index) != .numeric
    }
    let query = "SELECT 1 FROM pragma_index_list(?1, 'main') WHERE \"unique\" AND origin <> 'pk'"
    return try isPlainKey && connection.integer(query, binding: [table.name]) == nil
  }
}
