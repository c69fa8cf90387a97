import SQLiteChangesets
import SQLiteSchemas

/// Encodes the changes of one table: a DELETE or an INSERT with all values of a row, an UPDATE with the key and with what
/// differs between two rows.
final class ChangeEncoder {
  private let columnCount: Int
  private let isKey: [Bool]
  private let otherColumns: [Int]
  /// True if an UPDATE has all old values: a rowid alone does not tell for sure which row it is about.
  private let hasAllOldValues: Bool
  /// Which columns differ between the rows that were compared last.
  private let differs: UnsafeMutableBufferPointer<Bool>

  init(of table: TableDefinition) {
    hasAllOldValues = table.isKeyedByRowID && table.module == nil
    columnCount = table.changesetColumns.count
    isKey = table.keyFlags.map { $0 != 0 }
    otherColumns = isKey.indices.filter { [isKey] in !isKey[$0] }
    differs = .allocate(capacity: columnCount)
    differs.initialize(repeating: false)
  }

  // Sound: allocated in init, with a trivial element type, and touched through indices of columns only.
  deinit { differs.deallocate() }

  /// Adds all values of a row.
  @inline(__always)
  func append<Row: RowValues & ~Copyable>(_ row: borrowing Row, to writer: inout ChangesetWriter) throws {
    for column in 0..<columnCount { try row.append(column, to: &writer) }
  }

  /// Compares two rows of one key; the next `appendUpdate` is about them.
  ///
  /// - Returns: Whether they differ.
  @inline(__always)
  func compare<Row: RowValues & ~Copyable>(_ old: borrowing Row, _ new: borrowing Row) throws -> Bool {
    var isAnyDifferent = false
    for column in otherColumns {
      let isDifferent = try !old.value(column).isIdentical(to: new.value(column))
      differs[column] = isDifferent
      if isDifferent { isAnyDifferent = true }
    }
    return isAnyDifferent
  }

  /// Adds the values of an UPDATE that makes one row the other: the key and what was different before, then what it is now. Of a table
  /// without a primary key, all values from before.
  func appendUpdate<Row: RowValues & ~Copyable>(
    from old: borrowing Row, to new: borrowing Row, in writer: inout ChangesetWriter
  ) throws {
    for column in 0..<columnCount {
      if hasAllOldValues || isKey[column] || differs[column] {
        try old.append(column, to: &writer)
      } else {
        writer.appendUndefined()
      }
    }
    for column in 0..<columnCount {
      if differs[column] { try new.append(column, to: &writer) } else { writer.appendUndefined() }
    }
  }
}
