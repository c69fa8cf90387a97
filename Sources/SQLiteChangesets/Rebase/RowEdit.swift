/// What one side has done to a row: its changes, taken together.
///
/// A key that became another which compares equal is a DELETE and an INSERT, and one edit.
struct RowEdit {
  /// The row as it was; nil where there was none. A column that is not in the changes is undefined.
  var old: [ValueSlice]?
  /// The row as it is; nil where it was deleted. A column that is not in the changes is undefined.
  var new: [ValueSlice]?
  var isIndirect: Bool

  /// The edit that some changes are; nil where they are not one edit of one row.
  init?(_ changes: [RowChange], in table: ChangesetTable) {
    guard let first = changes.first, changes.count <= 2 else { return nil }
    guard changes.count == 2 else {
      isIndirect = first.isIndirect
      old = first.operation == .insert ? nil : first.old
      switch first.operation {
      case .delete: new = nil
      case .insert: new = first.new
      case .update: new = first.new.indices.map { table.isKey($0) ? first.old[$0] : first.new[$0] }
      }
      return
    }
    guard let delete = changes.first(where: { $0.operation == .delete }),
      let insert = changes.first(where: { $0.operation == .insert })
    else { return nil }
    (old, new) = (delete.old, insert.new)
    isIndirect = delete.isIndirect && insert.isIndirect
  }

  /// Whether the edit gives a column another value.
  func sets(_ column: Int, in bytes: RawSpan) -> Bool {
    guard let new, new[column].isDefined else { return false }
    guard let old, old[column].isDefined else { return true }
    return !old[column].isIdentical(to: new[column], in: bytes, otherIn: bytes)
  }

  /// The edit without what it does to some columns; nil where nothing is left of it, because the row is not inserted.
  func reverting(_ columns: Set<Int>) -> RowEdit? {
    guard let old, let new else { return old == nil ? nil : self }
    var result = self
    result.new = new.indices.map { columns.contains($0) && new[$0].isDefined ? old[$0] : new[$0] }
    return result
  }
}
