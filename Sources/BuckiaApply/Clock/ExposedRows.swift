import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Rows that were changed here and not sent, while one diff is applied that changes them, too.
///
/// Such a row is first made what the others know. So the diff is merged with that alone, here as everywhere, whatever
/// was done here. Then what was done here is done again: it counts as later. The next diff says what is different then.
final class ExposedRows {
  private struct Row {
    let key: ClockKeyRecord
    let edit: UnsentRows.Edit
    /// The row as it was here, and as the others knew it.
    let own: [UInt8]?
    let shared: [UInt8]?
  }

  private let unsent: UnsentRows
  private let rows: UnsentRows.Rows
  private let layout: RecordedRowLayout
  private var exposed: [Row] = []
  private var keys: Set<[UInt8]> = []

  init(_ unsent: UnsentRows, on connection: borrowing SQLiteConnection) {
    self.unsent = unsent
    rows = UnsentRows.Rows(unsent.table, in: connection)
    layout = RecordedRowLayout(
      table: TableName(unsent.table.name), columns: unsent.table.changesetColumns, key: unsent.table.keyIndexes)
  }

  /// Makes the row with a key what the others know, if anything was done to it here.
  func expose(_ key: ClockKeyRecord) throws {
    guard let edit = try unsent.edit(of: key), keys.insert(edit.key.bytes).inserted else { return }
    let key = edit.key
    let own = try rows.row(key)
    // A constraint may refuse what the others know: then the diff meets the row as it is.
    guard try rows.write(edit.shared, to: key) == nil else { return }
    exposed.append(Row(key: key, edit: edit, own: own, shared: try rows.row(key)))
  }

  /// Does again what was done here.
  ///
  /// - Parameter record: Is told of each row that the diff has changed otherwise: kind, outcome, and the row as the
  ///   others knew it, as it was here, and as the diff has made it.
  func cover(
    _ record: (
      ConflictKind, ConflictOutcome, RecordedRowLayout, _ base: [UInt8]?, _ local: [UInt8]?, _ incoming: [UInt8]?
    ) throws -> Void
  ) throws {
    for row in exposed {
      let shared = try rows.row(row.key)
      let wasChanged = shared != row.shared
      switch row.edit.operation {
      case .void: break
      case .delete:
        guard shared != nil else {
          try unsent.note(.void, ColumnSet(), shared: nil, of: row.key)
          continue
        }
        _ = try rows.write(nil, to: row.key)
        if wasChanged { try record(.notFound, .omitted, layout, row.shared, nil, shared) }
        try unsent.note(.delete, ColumnSet(), shared: shared, of: row.key)
      case .update where shared == nil:
        // A DELETE beats every edit.
        try record(.data, .tookIncoming, layout, row.shared, row.own, nil)
        try unsent.note(.void, ColumnSet(), shared: nil, of: row.key)
      case .insert, .update:
        let columns = row.edit.operation == .insert ? allColumns : row.edit.columns
        let refusal = try rows.write(row.own.map { try masked($0, by: columns) }, to: row.key)
        let isAlike = try refusal == nil && !isDisputed(row, shared, columns)
        if wasChanged && !isAlike || refusal != nil {
          let kind: ConflictKind = refusal != nil ? .constraint : row.edit.operation == .insert ? .conflict : .data
          try record(kind, refusal == nil ? .keptLocal : .tookIncoming, layout, row.shared, row.own, shared)
        }
        // What others have inserted, too, is an edit of their row.
        let operation: UnsentRows.Operation = shared == nil ? .insert : .update
        try unsent.note(refusal == nil ? operation : .void, columns, shared: shared, of: row.key)
      }
    }
    exposed.removeAll()
    keys.removeAll()
  }

  private var allColumns: ColumnSet {
    var columns = ColumnSet()
    for place in layout.columns.indices where !layout.key.contains(place) { columns.insert(place) }
    return columns
  }

  /// Whether the diff has set a column to another value than somebody here.
  private func isDisputed(_ row: Row, _ shared: [UInt8]?, _ columns: ColumnSet) throws -> Bool {
    guard let own = row.own, let shared else { return false }
    let before = try row.shared.map { try ChangesetValue.record($0) }
    let (mine, theirs) = (try ChangesetValue.record(own), try ChangesetValue.record(shared))
    return columns.positions.contains { place in
      mine.indices.contains(place) && theirs.indices.contains(place) && mine[place] != theirs[place]
        && before?[place] != theirs[place]
    }
  }

  /// A row without the columns that were not set; the key stays.
  private func masked(_ record: [UInt8], by columns: ColumnSet) throws -> [UInt8] {
    let row = try RowCopy(record: record)
    var writer = ChangesetWriter()
    record.withRawSpan { bytes in
      for (place, value) in row.values.enumerated() {
        let isWanted = columns.contains(place) || layout.key.contains(place)
        writer.append(isWanted ? value : .undefined, of: bytes)
      }
    }
    return writer.bytes
  }
}
