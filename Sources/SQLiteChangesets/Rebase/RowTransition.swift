/// The changes that make one state of a row of another.
struct RowTransition {
  /// The row before and after; nil for none. What is not known is undefined.
  let old: [ValueSlice]?
  let new: [ValueSlice]?
  let isIndirect: Bool

  init(from old: [ValueSlice]?, to new: [ValueSlice]?, isIndirect: Bool) {
    self.old = old
    self.new = new
    self.isIndirect = isIndirect
  }

  /// Writes nothing where the states are equal, a DELETE and an INSERT where the key becomes another that compares equal, else one
  /// change.
  func write(to writer: inout ChangesetWriter, in table: ChangesetTable, _ bytes: RawSpan) {
    guard let old, let new else {
      if let old { write(.delete, old, to: &writer, bytes) }
      if let new { write(.insert, new, to: &writer, bytes) }
      return
    }
    let changed = new.indices.filter {
      new[$0].isDefined && !new[$0].isIdentical(to: old[$0], in: bytes, otherIn: bytes)
    }
    guard !changed.isEmpty else { return }
    if changed.contains(where: { table.isKey($0) }) {
      write(.delete, old, to: &writer, bytes)
      write(.insert, new, to: &writer, bytes)
      return
    }
    let isChanged = Set(changed)
    writer.beginChange(.update, isIndirect: isIndirect)
    for column in old.indices {
      writer.append(table.isKey(column) || isChanged.contains(column) ? old[column] : .undefined, of: bytes)
    }
    for column in new.indices { writer.append(isChanged.contains(column) ? new[column] : .undefined, of: bytes) }
  }

  private func write(
    _ operation: ChangeOperation, _ row: [ValueSlice], to writer: inout ChangesetWriter, _ bytes: RawSpan
  ) {
    writer.beginChange(operation, isIndirect: isIndirect)
    for value in row { writer.append(value, of: bytes) }
  }
}
