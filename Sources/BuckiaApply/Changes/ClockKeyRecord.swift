import SQLiteChangesets
import SQLiteConnections

/// A key: the values of its columns, as a record.
struct ClockKeyRecord {
  var bytes: [UInt8] = []

  /// The key if it is one integer; otherwise nil.
  var integer: Int64? {
    guard bytes.count == 9, bytes[0] == ValueKind.integer.rawValue else { return nil }
    return bytes.withRawSpan { span in
      var position = 0
      return ValueSlice(verified: span, at: &position).integer(in: span)
    }
  }

  /// Binds the values, copying them.
  func bind(to statement: borrowing SQLiteStatement, from start: Int) throws {
    let row = try RowCopy(record: bytes)
    for place in row.values.indices { try row.bind(place, to: statement, at: start + place) }
  }
}
