import SQLiteSchemas
import SQLiteChangesets

extension RowIdentity {
  /// The identity of the row that a change is about: its key, or all of its values where the key holds NULL.
  init(of change: DecodedChange, in table: ChangesetTable, _ bytes: RawSpan) {
    let columns = (0..<table.columnCount).filter { change.hasNullKey || table.isKey($0) }
    self.init(columns.map { change.row($0) }, in: bytes)
  }
}
