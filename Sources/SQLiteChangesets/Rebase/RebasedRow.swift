/// A row that is changed on either side, and what becomes of it.
struct RebasedRow {
  /// What its key is known by.
  let key: [UInt8]
  let localChanges: [SidedChange]
  /// What each side has done; nil for nothing.
  let local: RowEdit?
  let incoming: RowEdit?
  let reversion: RowReversion
  let merge: RowMerge

  /// The row that a side has inserted and that is left out, or replaced by one of the other side; nil if there is none.
  func lostRow(of side: RebasePolicy) -> [ValueSlice]? {
    let edit = side == .keepLocal ? local : incoming
    guard let edit, edit.old == nil else { return nil }
    let isReverted = !(side == .keepLocal ? reversion.local : reversion.incoming).isEmpty
    return isReverted || merge.conflict?.kind == .insertedByBoth ? edit.new : nil
  }
}
