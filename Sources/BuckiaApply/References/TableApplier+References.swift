import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Changes after which a reference would lead nowhere.
extension TableApplier {
  /// Leaves out the parts of the present change that must not be made.
  ///
  /// - Returns: True if a part of the change remains.
  func keepReferences(_ staying: StayingRows, _ bytes: RawSpan) throws -> Bool {
    guard let local = try writer.currentRow(bytes) else { return true }
    defer { local.release() }
    let key = ChangesetWriter.record(of: statements.match.local.keyIndexes.map { local.value(at: $0) })
    guard let row = staying[key] else { return true }
    let incident = ConflictIncident(kind: .foreignKey, change: change, local: local, message: row.reason)
    switch change.operation {
    case .delete:
      guard row.isReferredTo else { return true }
      staying.noteKept(key, as: RowKey(of: header).bytes(of: change, bytes))
      try record(incident, .keptLocal, bytes)
      return false
    case .insert:
      guard !holdsNew(local, bytes) else { return true }
      try record(incident, .keptLocal, bytes)
      return false
    case .update:
      let columns = stayingColumns(row)
      guard !columns.isEmpty else { return true }
      let isLeft = columns != change.changed
      // A change that a constraint postpones gets here again.
      if staying.noteRecorded(key) { try record(incident, isLeft ? .merged : .keptLocal, bytes) }
      change.leaveOut(columns)
      return isLeft
    }
  }

  /// The columns that the UPDATE in hand is to change and that keep their values.
  private func stayingColumns(_ row: StayingRows.Row) -> ColumnMask {
    var columns = ColumnMask()
    for column in 0..<statements.columnCount
    where change.changed.contains(column) && row.places.contains(statements.match.columns[column]) {
      columns.insert(column)
    }
    return columns
  }

  /// True if the change in hand may be done as a whole.
  func mayChangeReferences(_ staying: StayingRows, _ bytes: RawSpan) throws -> Bool {
    guard change.operation == .update, let local = try writer.currentRow(bytes) else { return true }
    defer { local.release() }
    let key = ChangesetWriter.record(of: statements.match.local.keyIndexes.map { local.value(at: $0) })
    return staying[key].map { stayingColumns($0).isEmpty } ?? true
  }
}
