import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteSchemas

/// Knows which rows of a table were changed here and not sent.
protocol UnsentRowSource: AnyObject {
  var table: TableDefinition { get }
  /// Whether it is asked only about rows that are not as the author of a change saw them, because each question costs something.
  var isAskedLate: Bool { get }
  /// What was done to a row; nil for nothing.
  func edit(of row: ClockKeyRecord) throws -> UnsentRows.Edit?
  /// What was done to all rows, as far as it is known without asking about each.
  func edits() throws -> [UnsentRows.Edit]
  /// Notes what is left of what was done to a row, now that the others know it otherwise.
  func note(_ operation: UnsentRows.Operation, _ columns: ColumnSet, shared: [UInt8]?, of row: ClockKeyRecord) throws
}

/// The rows of one table that were edited here since the author of a diff was told of them by a share.
final class RowsEditedSinceShare: UnsentRowSource {
  let table: TableDefinition
  let isAskedLate = true
  private let sharing: any SharingParticipant

  init(of table: TableDefinition, knownTo sharing: any SharingParticipant) {
    self.table = table
    self.sharing = sharing
  }

  func edit(of row: ClockKeyRecord) throws -> UnsentRows.Edit? {
    let told = try sharing.valuesBeforeEdits(ofRow: row.bytes, in: TableName(table.name))
    guard !told.isEmpty else { return nil }
    var columns = ColumnSet()
    var shared = ChangesetWriter()
    for (place, column) in table.changesetColumns.enumerated() {
      if let value = told[ASCIIName.folded(column)] {
        columns.insert(place)
        shared.append(encoded: value)
      } else {
        shared.appendUndefined()
      }
    }
    return UnsentRows.Edit(key: row, operation: .update, columns: columns, shared: shared.bytes)
  }

  func edits() -> [UnsentRows.Edit] { [] }

  /// Whoever shares looks themselves at what the diff has changed.
  func note(_ operation: UnsentRows.Operation, _ columns: ColumnSet, shared: [UInt8]?, of row: ClockKeyRecord) {}
}
