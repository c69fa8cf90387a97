import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// A copy of a local row as encoded values, in the order of the table's layout: what the row is restored from when it has
/// been removed from the table.
struct RowCopy {
  /// The values, one after the other, as in a changeset. Behind the layout's there may be the hidden rowid.
  let record: [UInt8]
  /// Where each value lies in the record.
  let values: [ValueSlice]

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

  /// The row with some values replaced by those of a change.
  ///
  /// - Parameter columns: For each value of the change its place in this row.
  func replacing(_ new: [ValueSlice], in bytes: RawSpan, columns: [Int]) throws -> RowCopy {
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
    return try RowCopy(record: writer.bytes)
  }

  /// Binds the value at a place, copying it.
  func bind(_ place: Int, to statement: borrowing SQLiteStatement, at index: Int) throws {
    let value = values[place]
    try record.withUnsafeBytes { bytes in
      let payload = UnsafeRawBufferPointer(rebasing: bytes[value.payloadRange])
      switch value.kind {
      case .undefined, .null: try statement.bindNull(at: index)
      case .integer: try statement.bind(value.integer(in: bytes.bytes), at: index)
      case .real: try statement.bind(value.real(in: bytes.bytes), at: index)
      case .text: try statement.bind(textCopying: payload, at: index)
      case .blob: try statement.bind(blobCopying: payload, at: index)
      }
    }
  }

  /// Inserts the row by a statement of `TableStatements.probing`, which says which row is in its way.
  ///
  /// - Returns: Nil when the row is refused for another reason.
  func probe(with prepared: PreparedStatement) throws -> UInt64? {
    try record.withRawSpan { bytes in
      defer {
        prepared.statement.reset()
        prepared.statement.clearBindings()
      }
      try prepared.statement.bind(values, in: bytes)
      do throws(SQLiteError) {
        return try prepared.statement.step() ? RowNumber.read(prepared.statement, from: 0) : nil
      } catch {
        guard error.isConstraint else { throw error }
        return nil
      }
    }
  }
}
