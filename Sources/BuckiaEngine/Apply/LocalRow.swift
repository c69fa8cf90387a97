import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// A row as it is in the local database, kept as encoded values in the order of the table's layout.
struct LocalRow {
  /// The values, one after the other, as in a changeset. Behind the layout's there may be the hidden rowid.
  let record: [UInt8]
  /// Where each value lies in the record.
  let values: [ValueSlice]

  /// Copies the row a statement stands on.
  init(copying row: borrowing SQLiteStatement) throws {
    var writer = ChangesetWriter()
    for column in 0..<row.columnCount { writer.append(column: column, of: row) }
    try self.init(record: writer.bytes)
  }

  /// Takes a record apart.
  init(record: [UInt8]) throws {
    self.record = record
    values = try record.withRawSpan { (bytes) throws(ChangesetError) in
      var values: [ValueSlice] = []
      var position = 0
      while position < bytes.byteCount { values.append(try ValueSlice(reading: bytes, at: &position)) }
      return values
    }
  }

  /// The first `count` values.
  func prefix(_ count: Int) -> [UInt8] {
    guard values.count > count else { return record }
    return Array(record[..<values[count].start])
  }

  /// Whether the value at `index` is what its column makes of the change's: same class and bytes.
  ///
  /// An INTEGER or NUMERIC column stores 1.0 as 1, a REAL one 1 as 1.0 and -0.0 as 0.0
  /// (<https://sqlite.org/datatype3.html#type_affinity>). Elsewhere these are different values.
  func holds(_ value: ValueSlice, in bytes: RawSpan, at index: Int, affinity: Affinity) -> Bool {
    let mine = values[index]
    return record.withRawSpan { own in
      switch (mine.kind, value.kind, affinity) {
      case (.integer, .real, .integer), (.integer, .real, .numeric):
        return Int64(exactly: value.real(in: bytes)) == mine.integer(in: own)
      case (.real, .integer, .real): return mine.real(in: own) == Double(value.integer(in: bytes))
      case (.real, .real, .real): return mine.real(in: own) == value.real(in: bytes)
      default: return mine.isIdentical(to: value, in: own, otherIn: bytes)
      }
    }
  }

  /// The row with some values replaced by those of a change.
  ///
  /// - Parameter columns: For each value of the change its place in this row.
  func replacing(_ new: [ValueSlice], in bytes: RawSpan, columns: [Int]) throws -> LocalRow {
    var incoming: [Int: ValueSlice] = [:]
    for index in new.indices where new[index].isDefined { incoming[columns[index]] = new[index] }
    var writer = ChangesetWriter()
    record.withRawSpan { own in
      for (index, value) in values.enumerated() {
        if let replacement = incoming[index] {
          writer.append(replacement, of: bytes)
        } else {
          writer.append(value, of: own)
        }
      }
    }
    return try LocalRow(record: writer.bytes)
  }

  /// Runs `body` while the row is bound to a statement, its values where they lie.
  func bound<Result>(to statement: borrowing SQLiteStatement, _ body: () throws -> Result) throws -> Result {
    try record.withRawSpan { bytes in
      try statement.bind(values, in: bytes)
      return try body()
    }
  }
}
