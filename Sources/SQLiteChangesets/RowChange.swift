/// One change of one row, taken apart, and what becomes of two that follow each other.
///
/// All values are slices of the same bytes: joining changes picks values and never makes one.
struct RowChange {
  var operation: ChangeOperation
  var isIndirect: Bool
  /// As in `ChangesetReader`: one for each column, undefined where there is none.
  var old: [ValueSlice]
  var new: [ValueSlice]

  /// Takes apart the next change of a reader; nil at the end.
  init?(next reader: inout ChangesetReader, in bytes: RawSpan) throws(ChangesetError) {
    guard let change = try reader.next(in: bytes) else { return nil }
    operation = change.operation
    isIndirect = change.isIndirect
    old = reader.old
    new = reader.new
  }

  /// The one change that does what this one and then `next` do, or nil when nothing is left to do.
  ///
  /// | first | then INSERT | then UPDATE | then DELETE |
  /// | --- | --- | --- | --- |
  /// | INSERT | (first) | INSERT | nothing |
  /// | UPDATE | (first) | UPDATE | DELETE |
  /// | DELETE | UPDATE | (first) | (first) |
  ///
  /// In parentheses: this cannot happen to one row, and the first stands, as in
  /// [`sqlite3changegroup_add`](https://sqlite.org/session/sqlite3changegroup_add.html). The result is indirect when both
  /// are. An UPDATE of a changeset loses the columns that end as they began, and with the last of them itself; a patchset
  /// knows no old values, so its UPDATEs stay.
  func followed(by next: RowChange, in table: ChangesetTable, bytes: RawSpan) -> RowChange? {
    var result = self
    result.isIndirect = isIndirect && next.isIndirect
    switch (operation, next.operation) {
    case (.insert, .delete):
      return nil
    case (.insert, .update):
      result.new = zip(new, next.new).map { $1.isDefined ? $1 : $0 }
    case (.update, .update):
      result.old = zip(old, next.old).map { $0.isDefined ? $0 : $1 }
      result.new = zip(new, next.new).map { $1.isDefined ? $1 : $0 }
      return result.withoutEqualColumns(in: table, bytes: bytes)
    case (.update, .delete):
      result.operation = .delete
      result.old = zip(old, next.old).map { $0.isDefined ? $0 : $1 }
      result.new = next.new
    case (.delete, .insert):
      result.operation = .update
      result.new = next.new.indices.map { table.isKey($0) ? .undefined : next.new[$0] }
      return result.withoutEqualColumns(in: table, bytes: bytes)
    case (.insert, .insert), (.update, .insert), (.delete, .update), (.delete, .delete):
      return self
    }
    return result
  }

  private func withoutEqualColumns(in table: ChangesetTable, bytes: RawSpan) -> RowChange? {
    guard table.format == .changeset else { return self }
    var result = self
    var isNeeded = false
    for column in new.indices where !table.isKey(column) {
      if old[column].isIdentical(to: new[column], in: bytes, otherIn: bytes) {
        result.old[column] = .undefined
        result.new[column] = .undefined
      } else {
        isNeeded = true
      }
    }
    return isNeeded ? result : nil
  }

  /// Adds the change to a writer that is among the changes of its table.
  func write(to writer: inout ChangesetWriter, in table: ChangesetTable, bytes: RawSpan) {
    writer.beginChange(operation, isIndirect: isIndirect)
    let isPatchset = table.format == .patchset
    if operation == .delete || (operation == .update && !isPatchset) {
      for column in old.indices where !isPatchset || table.isKey(column) { writer.append(old[column], of: bytes) }
    }
    if operation != .delete {
      for column in new.indices {
        // A patchset's UPDATE is one record that holds the key too.
        let isKey = isPatchset && operation == .update && table.isKey(column)
        writer.append(isKey ? old[column] : new[column], of: bytes)
      }
    }
  }
}
