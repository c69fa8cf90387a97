import SQLiteChangesets

extension ChangesetWriter {
  /// Appends an UPDATE of some columns to the values of a row; nothing where there are none.
  ///
  /// - Parameter old: Writes the old value of a column of the key, or of one that is changed.
  mutating func appendUpdate(
    of changed: [Int], to row: [ValueSlice], _ bytes: RawSpan, _ header: ChangesetTable, isIndirect: Bool = false,
    old: (Int, inout ChangesetWriter) -> Void
  ) {
    guard !changed.isEmpty else { return }
    let isChanged = Set(changed)
    beginChange(.update, isIndirect: isIndirect)
    for place in row.indices {
      if header.isKey(place) || isChanged.contains(place) { old(place, &self) } else { appendUndefined() }
    }
    for place in row.indices {
      if isChanged.contains(place) { append(row[place], of: bytes) } else { appendUndefined() }
    }
  }
}
