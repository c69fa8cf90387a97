import BuckiaApply
import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Checks the maintained sums against the rows.
extension StateEntry {
  /// The states whose sums do not match their rows, because another program has written to the tables of the ledger.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` when sums are damaged.
  package static func altered(on connection: borrowing SQLiteConnection) throws -> [StateEntry] {
    let schema = try SchemaReader(connection)
    return try all(on: connection).filter { entry in
      guard let definition = try schema.table(named: entry.table) else { return false }
      guard let table = KeyedTable(definition, definition) else { return false }
      let state = try TableState(entry, at: connection.path)
      let fresh = TableState(entry.owner, stream: entry.stream, entry.table, columns: [])
      switch entry.owner {
      case .share(let share):
        guard try addSent(of: share, table, state.columns, to: fresh, on: connection) else { return false }
      case .sender(let sender):
        try addBrought(from: sender, table, to: fresh, on: connection)
      }
      return fresh.sums != state.sums
    }
  }

  private static func addBrought(
    from sender: String, _ table: KeyedTable, to state: TableState, on connection: borrowing SQLiteConnection
  ) throws {
    let provenance = Provenance(on: connection)
    let number = try provenance.number(of: table, stream: state.entry.stream, from: sender)
    let others = try number.map { try MappedRows(of: $0).all(on: connection) } ?? [:]
    for (key, row) in others {
      if let hash = row.hash { state.replace(key, nil, by: hash) }
    }
    let hidden = Set(others.keys).union(others.values.map(\.local))
    try provenance.forEach(of: table, stream: state.entry.stream, from: sender) { key, row in
      if !hidden.contains(table.folded(key)) { state.replace(key, nil, by: row.hash) }
    }
  }

  /// - Returns: True if there is a baseline to compare with.
  private static func addSent(
    of share: Int64, _ table: KeyedTable, _ columns: [String], to state: TableState,
    on connection: borrowing SQLiteConnection
  ) throws -> Bool {
    guard let baseline = try BaselineEntry.all(of: share, on: connection).first(where: { $0.table == table.name })
    else {
      return false
    }
    var asides = try RowNotes(.aside, of: table.name, for: share).states(on: connection)
    try BaselineRows(baseline, columns: columns, on: connection).forEach(of: table) { key, hash in
      let said = asides.removeValue(forKey: table.folded(key)).map { $0.hash } ?? hash
      if let said { state.replace(key, nil, by: said) }
    }
    for (key, row) in asides {
      if let hash = row.hash { state.replace(key, nil, by: hash) }
    }
    return true
  }
}
