extension ShareReport {
  /// The sent rows of a difference.
  ///
  /// - Parameters:
  ///   - difference: The sent difference.
  ///   - departed: The rows that have left the scope.
  ///   - onLeave: What becomes of them.
  ///   - listingChanges: True if the rows are listed.
  /// - Throws: `ChangesetError`, `ByteStreamError`.
  static func tables(
    _ difference: DatabaseDifference, _ departed: DepartedRows, onLeave: LeavePolicy, listingChanges: Bool
  ) throws -> [Table] {
    var tables = difference.tables.map { table in
      let name = TableName(table.definition.name)
      let left = departed.counts[name] ?? 0
      let withdrawn = onLeave == .withdraw ? left : 0
      return Table(
        name: name.text, columns: table.definition.columns.map(\.name), inserted: table.inserted,
        updated: table.updated,
        deleted: table.deleted - withdrawn, withdrawn: withdrawn, kept: left - withdrawn, changes: [])
    }
    guard listingChanges else { return tables }
    let places = Dictionary(tables.enumerated().map { (TableName($1.name), $0) }) { first, _ in first }
    try Changesets.forEachChange(of: difference.changeset) { change, reader, bytes in
      guard let table = reader.table, let place = places[TableName(table.name)] else { return }
      let row = change.operation == .insert ? reader.new : reader.old
      let keyed = row.indices.filter { table.isKey($0) && row[$0].kind != .null }
      let key = (keyed.isEmpty ? Array(row.indices) : keyed).map { ChangesetValue(row[$0], in: bytes) ?? .null }
      tables[place].changes.append(Change(operation: change.operation, key: key))
    }
    return tables
  }
}
