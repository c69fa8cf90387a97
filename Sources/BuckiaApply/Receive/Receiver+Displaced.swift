import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Rows that a UNIQUE constraint keeps out.
extension Receiver {
  /// Puts back parked rows whose UNIQUE values were freed by local edits, which no diff contains.
  ///
  /// - Returns: Warnings.
  /// - Throws: `SQLiteError`; nothing has been changed then.
  package func settleParked() throws -> [Warning] {
    guard settings.policies.usesLatest, try session.hasClocks() else { return [] }
    let transaction = try SQLiteTransaction(on: session.connection)
    let schema = try SchemaReader(session.connection)
    var warnings: [Warning] = []
    for name in try RowClocks.tables(on: session.connection) where settings.policies.usesLatest(for: name) {
      guard let local = try schema.table(named: name) else { continue }
      guard let number = try RowClocks.number(of: local, on: session.connection),
        try session.connection.cachedInteger(
          "SELECT 1 FROM main.buckia_clock_\(number)_pending WHERE is_insert LIMIT 1") != nil
      else { continue }
      let count = try settleParked(of: local, clock: number)
      if count > 0 { warnings.append(Warning(.rowsReturned, local.name, String(count))) }
    }
    try transaction.commit()
    return warnings
  }

  private func settleParked(of local: TableDefinition, clock number: Int64) throws -> Int {
    let match = TableMatch(unchanged: local)
    let header = ChangesetTable(name: local.name, keyFlags: local.keyFlags)
    let statements = try session.statements(for: match, header: header)
    let clock = try TableClock(
      number, for: match, header, by: .minimum, isAlone: false, findsRuns: false, storesUTF16: session.storesUTF16,
      on: session.connection)
    let name = TableName(local.name)
    let indexes = try session.hasVirtualTables() ? IndexMaintenance.begin(over: [name], in: session) : nil
    let writer = RowWriter(
      statements, header, keeping: indexes,
      searching: ContentSearches(session.contentPolicy, storesUTF16: session.storesUTF16, progress: { _ in }),
      reportingTo: settings.observer)
    let exposed = settings.unsent?.rows(of: name).map {
      ExposedRows(of: local, unsent: $0, keeping: indexes, on: session.connection)
    }
    if let uniqueParking = try UniqueParking(writer, clock, BlockingRows(statements), exposing: exposed) {
      try exposed?.exposeAll(touching: uniqueParking.places)
      try uniqueParking.settle(afterEdits: true) { _, _ in }
      try exposed?.cover(makingRoom: { try uniqueParking.makeRoom(for: $0) }) { _, _, _, _, _, _ in }
    }
    _ = try indexes?.end()
    return writer.counts.inserted
  }
}
