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

  /// Appends an UPDATE of a row that is here to the values of another.
  mutating func appendUpdate(of here: LocalRow, to row: [ValueSlice], _ bytes: RawSpan, _ header: ChangesetTable) {
    here.values.withRawSpan { mine in
      appendUpdate(of: here.changedPlaces(row, bytes, header), to: row, bytes, header) {
        $1.append(here.slices[$0], of: mine)
      }
    }
  }

  /// Appends how a row differs from the one here that it is known to be, where it is not known what was there: where something is, it is a
  /// conflict.
  mutating func appendUpdate(
    ofUnknown here: LocalRow, to row: [ValueSlice], _ bytes: RawSpan, _ header: ChangesetTable
  ) {
    appendUpdate(of: here.changedPlaces(row, bytes, header), to: row, bytes, header) {
      if header.isKey($0) { $1.append(row[$0], of: bytes) } else { $1.appendNull() }
    }
  }

  /// Appends the edit of a row that is gone here: a conflict.
  mutating func appendUpdate(ofMissing row: [ValueSlice], _ bytes: RawSpan, _ header: ChangesetTable) {
    let places = row.indices.filter { !header.isKey($0) && row[$0].isDefined }
    appendUpdate(of: places, to: row, bytes, header) {
      if header.isKey($0) { $1.append(row[$0], of: bytes) } else { $1.appendNull() }
    }
  }
}
