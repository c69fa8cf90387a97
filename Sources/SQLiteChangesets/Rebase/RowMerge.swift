/// The three-way merge of one row: what both sides have made of it, and what the local changes are on top of the incoming ones.
struct RowMerge {
  /// What both sides have done; nil where one has not touched the row, or where its edit is not to count.
  private let local: RowEdit?
  private let incoming: RowEdit?
  /// The row where the incoming changes have been applied; nil where there is none. What is not known is undefined.
  let applied: [ValueSlice]?
  /// The row as it is to be in the end, likewise.
  let merged: [ValueSlice]?
  /// What the sides do not agree on.
  private(set) var conflict: (kind: RebaseConflict.Kind, columns: [Int])?
  /// True if too little is known of the row to say what the local changes are: they stay as they are.
  private(set) var isUnknown = false

  /// - Parameters:
  ///   - local: What the local changes do; nil for nothing.
  ///   - incoming: What the incoming changes do; nil for nothing.
  ///   - reversion: What is not to count of either.
  init(
    _ local: RowEdit?, _ incoming: RowEdit?, _ reversion: RowReversion, _ policy: RebasePolicy,
    in table: ChangesetTable, _ bytes: RawSpan
  ) {
    let localEdit = reversion.local.isEmpty ? local : local?.reverting(reversion.local)
    let incomingEdit = reversion.incoming.isEmpty ? incoming : incoming?.reverting(reversion.incoming)
    (self.local, self.incoming) = (localEdit, incomingEdit)
    let base = local?.old ?? incoming?.old
    applied = incoming.map { $0.new.map { $0.filled(from: base) } } ?? base
    switch (localEdit, incomingEdit) {
    case (let one?, let other?):
      let outcome = Self.merge(one, other, policy, in: table, bytes)
      (merged, conflict, isUnknown) = (outcome.row, outcome.conflict, outcome.isUnknown)
    case (let one?, nil): merged = one.new.map { $0.filled(from: base) }
    case (nil, let other?): merged = other.new.map { $0.filled(from: base) }
    // Nothing counts of what inserted it.
    case (nil, nil): merged = incoming == nil ? base : incoming?.old
    }
  }

  private typealias Outcome = (
    row: [ValueSlice]?, conflict: (kind: RebaseConflict.Kind, columns: [Int])?, isUnknown: Bool
  )

  private static func merge(
    _ local: RowEdit, _ incoming: RowEdit, _ policy: RebasePolicy, in table: ChangesetTable, _ bytes: RawSpan
  ) -> Outcome {
    var conflict: (kind: RebaseConflict.Kind, columns: [Int])?
    let differing = differingColumns(local.old, incoming.old, bytes)
    if (local.old == nil) != (incoming.old == nil) || !differing.isEmpty { conflict = (.differentBase, differing) }
    let applied = incoming.new.map { $0.filled(from: local.old) }
    switch (local.new, incoming.new) {
    case (nil, nil): return (nil, conflict, false)
    case (nil, _?):
      return (policy == .keepLocal ? nil : applied, conflict ?? (.deletedByLocal, []), false)
    case (let new?, nil):
      // Without an old row it is another one, with a key that is free now.
      if local.old == nil { return (new, conflict, false) }
      return (policy == .keepLocal ? new.filled(from: incoming.old) : nil, conflict ?? (.deletedByIncoming, []), false)
    case (let new?, let other?):
      guard local.old != nil else {
        if differingColumns(new, other, bytes).isEmpty, incoming.old == nil { return (applied, nil, false) }
        // Where the incoming changes have not inserted the row, they do not tell all of it.
        let isKept = policy == .keepLocal
        return (isKept ? new : applied, conflict ?? (.insertedByBoth, []), isKept && incoming.old != nil)
      }
      var merged = applied ?? other
      var contested: [Int] = []
      for column in new.indices where local.sets(column, in: bytes) {
        if incoming.sets(column, in: bytes) {
          if new[column].isIdentical(to: other[column], in: bytes, otherIn: bytes) { continue }
          contested.append(column)
          if policy == .takeIncoming { continue }
        }
        merged[column] = new[column]
      }
      if !contested.isEmpty { conflict = conflict ?? (.updatedByBoth, contested) }
      return (merged, conflict, false)
    }
  }

  /// The columns that both rows have, with different values.
  private static func differingColumns(_ one: [ValueSlice]?, _ other: [ValueSlice]?, _ bytes: RawSpan) -> [Int] {
    guard let one, let other else { return [] }
    return one.indices.filter {
      one[$0].isDefined && other[$0].isDefined && !one[$0].isIdentical(to: other[$0], in: bytes, otherIn: bytes)
    }
  }

  /// True if the values of some columns are as a side has set them.
  func isSet(_ columns: [Int], by side: RebasePolicy, in bytes: RawSpan) -> Bool {
    guard let merged, let edit = side == .keepLocal ? local : incoming, let new = edit.new else { return false }
    return columns.contains {
      edit.sets($0, in: bytes) && merged[$0].isIdentical(to: new[$0], in: bytes, otherIn: bytes)
    }
  }
}

/// What of the edits of a row is not to count, since another row needs it: the columns, by side.
///
/// Of an INSERT nothing counts then.
struct RowReversion {
  var local: Set<Int> = []
  var incoming: Set<Int> = []

  var isEmpty: Bool { local.isEmpty && incoming.isEmpty }
}

extension [ValueSlice] {
  /// The row with what it lacks taken from another.
  fileprivate func filled(from other: [ValueSlice]?) -> [ValueSlice] {
    guard let other else { return self }
    return indices.map { self[$0].isDefined ? self[$0] : other[$0] }
  }
}

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

  /// True if the edit gives a column another value.
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

extension ChangesetWriter {
  /// Adds the changes that make one state of a row of another: nothing where the states are equal, a DELETE and an INSERT where the key
  /// becomes another that compares equal, else one change.
  ///
  /// - Parameters:
  ///   - old: The row before; nil for none. What is not known is undefined.
  ///   - new: The row after, likewise.
  mutating func append(
    from old: [ValueSlice]?, to new: [ValueSlice]?, isIndirect: Bool, in table: ChangesetTable, _ bytes: RawSpan
  ) {
    let changed = Set(
      (new ?? []).indices.filter { column in
        guard let old, let value = new?[column], value.isDefined else { return false }
        return !value.isIdentical(to: old[column], in: bytes, otherIn: bytes)
      })
    guard let old, let new, !changed.contains(where: { table.isKey($0) }) else {
      if let old { append(.delete, old, isIndirect: isIndirect, bytes) }
      if let new { append(.insert, new, isIndirect: isIndirect, bytes) }
      return
    }
    guard !changed.isEmpty else { return }
    beginChange(.update, isIndirect: isIndirect)
    for column in old.indices {
      append(table.isKey(column) || changed.contains(column) ? old[column] : .undefined, of: bytes)
    }
    for column in new.indices { append(changed.contains(column) ? new[column] : .undefined, of: bytes) }
  }

  private mutating func append(
    _ operation: ChangeOperation, _ row: [ValueSlice], isIndirect: Bool, _ bytes: RawSpan
  ) {
    beginChange(operation, isIndirect: isIndirect)
    for value in row { append(value, of: bytes) }
  }
}

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
