import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The present row of a statement, which is read in place and copied only if necessary.
///
/// Good until ``release()``. Writing the row meanwhile does no harm: SQLite holds the values that were read.
struct CurrentRow {
  private let prepared: PreparedStatement
  /// The query for the values from `width` on, if one query cannot return all.
  private let rest: PreparedStatement?
  private let width: Int

  /// Creates the row to which the statements of `TableStatements.select` have just stepped.
  init(_ queries: [PreparedStatement]) {
    prepared = queries[0]
    rest = queries.count > 1 ? queries[1] : nil
    width = rest == nil ? .max : prepared.statement.columnCount
  }

  /// Lets go of the row.
  func release() {
    prepared.statement.reset()
    rest?.statement.reset()
  }

  /// The query with a value, and its column there.
  @inline(__always)
  private func source(_ place: Int) -> (query: PreparedStatement, column: Int) {
    if place >= width, let rest { return (rest, place - width) }
    return (prepared, place)
  }

  /// A copy of one value.
  func value(at place: Int) -> ChangesetValue {
    let (query, column) = source(place)
    return switch query.statement.storageClass(at: column) {
    case .null: .null
    case .integer: .integer(query.statement.integer(at: column))
    case .real: .real(query.statement.real(at: column))
    case .text: .text(query.statement.text(at: column) ?? "")
    case .blob: .blob(query.statement.blob(at: column))
    }
  }

  /// True if the value at a place is NULL.
  func isNull(at place: Int) -> Bool {
    let (query, column) = source(place)
    return query.statement.isNull(at: column)
  }

  /// Binds a copy of a value to a parameter of another statement.
  func bind(_ place: Int, to statement: borrowing SQLiteStatement, at index: Int) throws(SQLiteError) {
    let (query, column) = source(place)
    try statement.bind(column: column, of: query.statement, at: index)
  }

  /// Adds the first `count` values to a record.
  func append(_ count: Int, to writer: inout ChangesetWriter) {
    for place in 0..<count {
      let (query, column) = source(place)
      writer.append(column: column, of: query.statement)
    }
  }

  /// The size of text and blobs in the first `count` values, in bytes.
  func byteCount(_ count: Int) -> Int {
    (0..<count).reduce(0) { sum, place in
      let (query, column) = source(place)
      return switch query.statement.storageClass(at: column) {
      case .text: sum + query.statement.textBytes(at: column).count
      case .blob: sum + query.statement.blobBytes(at: column).count
      default: sum
      }
    }
  }

  /// The whole row, the hidden rowid included, to be put back later.
  func copied() throws -> RowCopy {
    var writer = ChangesetWriter()
    append(prepared.statement.columnCount + (rest?.statement.columnCount ?? 0), to: &writer)
    return try RowCopy(record: writer.bytes)
  }

  /// True if the column would store the change's value as the value at `place`: the same class and bytes.
  ///
  /// An INTEGER or NUMERIC column stores 1.0 as 1, a REAL one 1 as 1.0 and -0.0 as 0.0
  /// (<https://sqlite.org/datatype3.html#type_affinity>). Elsewhere these are different values.
  func holds(_ value: ValueSlice, in bytes: RawSpan, at place: Int, affinity: Affinity) -> Bool {
    let (prepared, place) = source(place)
    let kind = prepared.statement.storageClass(at: place)
    switch (kind, value.kind, affinity) {
    case (.integer, .real, .integer), (.integer, .real, .numeric):
      return Int64(exactly: value.real(in: bytes)) == prepared.statement.integer(at: place)
    case (.real, .integer, .real): return prepared.statement.real(at: place) == Double(value.integer(in: bytes))
    case (.real, .real, .real): return prepared.statement.real(at: place) == value.real(in: bytes)
    case (.null, .null, _): return true
    case (.integer, .integer, _): return prepared.statement.integer(at: place) == value.integer(in: bytes)
    case (.real, .real, _): return prepared.statement.real(at: place).bitPattern == value.bits(in: bytes)
    case (.text, .text, _):
      return Self.isEqual(prepared.statement.textBytes(at: place), to: value, in: bytes)
    case (.blob, .blob, _):
      return Self.isEqual(prepared.statement.blobBytes(at: place), to: value, in: bytes)
    default: return false
    }
  }

  private static func isEqual(_ mine: UnsafeRawBufferPointer, to value: ValueSlice, in bytes: RawSpan) -> Bool {
    guard mine.count == value.count else { return false }
    return bytes.extracting(value.payloadRange).withUnsafeBytes { mine.byteOrder(against: $0) == 0 }
  }
}

/// A copy of a local row as encoded values, in the order of the table's layout, from which the row is restored after it
/// has been removed from the table.
struct RowCopy {
  /// The values, one after the other, as in a changeset. Behind the layout's there may be the hidden rowid.
  let record: [UInt8]
  /// The position of each value in the record.
  let values: [ValueSlice]

  /// Splits a record.
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

  /// Inserts the row by a statement of `TableStatements.probing`, which returns the blocking row.
  ///
  /// - Returns: The number of the blocking row; nil if the row is refused for another reason.
  func probe(with prepared: PreparedStatement) throws -> UInt64? {
    try record.withRawSpan { bytes in
      defer {
        prepared.statement.reset()
        prepared.statement.clearBindings()
      }
      try prepared.statement.bind(values, in: bytes)
      do throws(SQLiteError) {
        return try prepared.statement.step() ? prepared.statement.rowNumber() : nil
      } catch {
        guard error.isConstraint else { throw error }
        return nil
      }
    }
  }
}

extension RowCopy {
  /// True if the row has the new values of a change, as far as the change has any.
  ///
  /// - Parameters:
  ///   - columns: The columns of the change that count.
  ///   - match: How they meet the table that the row is of.
  func holds(_ columns: [Int], of change: DecodedChange, _ bytes: RawSpan, _ match: TableMatch) -> Bool {
    record.withRawSpan { own in
      columns.allSatisfy { column in
        let value = change.new(column)
        return !value.isDefined || values[match.columns[column]].isSame(as: value, own, bytes)
      }
    }
  }
}

extension ValueSlice {
  /// True if a stored value is one of a change: the same bytes, or the same number in the storage class that its column's affinity
  /// has given it.
  fileprivate func isSame(as value: ValueSlice, _ own: RawSpan, _ bytes: RawSpan) -> Bool {
    switch (kind, value.kind) {
    case (.integer, .real): Int64(exactly: value.real(in: bytes)) == integer(in: own)
    case (.real, .integer): real(in: own) == Double(value.integer(in: bytes))
    case (.real, .real): real(in: own) == value.real(in: bytes) || bits(in: own) == value.bits(in: bytes)
    default: own.array(encoded) == bytes.array(value.encoded)
    }
  }
}
