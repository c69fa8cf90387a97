import SQLiteFiles

/// The rows that a cursor goes through, their values by the columns of the changeset.
final class StoredRow: RowValues {
  private let cursor: BTreeCursor
  private let table: TableStorage
  private let defaults: AddedColumnDefaults
  private let record: RecordReader
  private var isRead = false

  /// - Parameter defaults: What rows have that were written before a column was added.
  init(_ cursor: BTreeCursor, of table: TableStorage, defaults: AddedColumnDefaults) {
    self.cursor = cursor
    self.table = table
    self.defaults = defaults
    record = RecordReader(limit: table.fieldLimit)
  }

  /// The row's rowid; 0 where it has none.
  var rowID: Int64 { cursor.rowID }

  /// Goes on to the next row.
  ///
  /// - Returns: false behind the last one.
  func next() throws -> Bool {
    isRead = false
    return try cursor.next()
  }

  /// Reads the header of the row's record; to be called before its values are asked for.
  func read() throws {
    if isRead { return }
    try record.read(try cursor.payload(), page: cursor.page)
    isRead = true
  }

  /// The value of a column of the changeset.
  ///
  /// - Throws: `AddedColumnDefaults.Unknown` when the row is too short, and only SQLite can say what takes the place.
  func value(_ column: Int) throws -> RowValue {
    guard let field = table.fields[column] else { return .integer(cursor.rowID) }
    guard field < record.columnCount else { return try defaults.value(column) }
    switch record.storageClass(field) {
    case .null: return .null
    case .integer:
      let value = record.integer(field)
      return table.isReal[column] ? .real(Double(value)) : .integer(value)
    case .real: return .real(record.real(field))
    case .text: return .text(record.payload(field))
    case .blob: return .blob(record.payload(field))
    }
  }
}
