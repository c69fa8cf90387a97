import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

extension OpenConflicts {
  /// Closes the conflicts in which nothing is left to decide.
  ///
  /// - Parameters:
  ///   - session: The session of the transaction in which files were applied or conflicts resolved.
  ///   - time: The present time, in milliseconds since 1970.
  /// - Throws: `SQLiteError`. A record that is damaged, or no longer fits the table, is left unchanged.
  package func close(in session: ApplySession, at time: Int64) throws {
    guard !isEmpty else { return }
    let log = ConflictLog(entry: 0, on: session.connection)
    var tables: [TableName: LocalRows] = [:]
    for conflict in conflicts {
      let statement = statements[Row(table: conflict.table, key: conflict.key, sender: conflict.sender)]
      if conflict.hasLargeValues, statement == nil { continue }
      do {
        guard let entry = try session.schema().entry(named: conflict.table), entry.kind.hasOwnRows else { continue }
        let rows =
          try tables[conflict.table]
          ?? LocalRows(session.schema().definition(of: entry), in: session, keeping: nil, reportingTo: nil)
        tables[conflict.table] = rows
        guard let record = try RecordedConflict.read(conflict.id, on: session.connection), record.resolution == nil
        else { continue }
        let versions = try RowVersions(record, in: rows.table)
        let current = try rows.row(with: versions.key)
        guard Self.isSettled(record, versions, current, statement) else { continue }
        let stored = current.map { $0.flatMap { $0?.bytes ?? [ValueKind.undefined.rawValue] } }
        try log.recordResolution(
          of: conflict.id, .equal, by: "", at: time,
          RecordedRowLayout(table: conflict.table, columns: rows.table.changesetColumns, key: rows.table.keyIndexes),
          before: stored, after: stored)
      } catch is ReplicationError {
        continue
      } catch is ChangesetError {
        continue
      }
    }
  }

  /// True if the local row equals the incoming one, or the sender's later version.
  private static func isSettled(
    _ record: RecordedConflict, _ versions: RowVersions, _ current: RowVersions.Row?, _ statement: Statement?
  ) -> Bool {
    guard versions.lostColumns.isEmpty, let operation = record.operation else { return false }
    let tookIncoming = record.outcome == .tookIncoming || record.outcome == .resolved
    let isIncoming =
      operation == .delete ? current == nil : current != nil && versions.isLike(current, versions.incoming)
    if !tookIncoming, isIncoming { return true }
    // A conflict in which the incoming row was written closes only if the sender sends the earlier local row. Otherwise
    // any later change of the row would close it.
    if tookIncoming, !versions.isLike(current, versions.local) { return false }
    switch statement {
    case nil: return false
    case .deletion: return current == nil
    case .values(let values):
      guard let current else { return false }
      return versions.disputedPlaces.allSatisfy { place in
        values[place].map { said in versions.holds(current[place], said, at: place) } ?? false
      }
    }
  }
}
