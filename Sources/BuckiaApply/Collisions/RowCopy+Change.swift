import SQLiteSchemas
import SQLiteChangesets

extension RowCopy {
  /// Whether the row has the new values of a change, as far as the change has any.
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
  /// Whether a stored value is one of a change: the same bytes, or the same number in the storage class that its column's affinity
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
