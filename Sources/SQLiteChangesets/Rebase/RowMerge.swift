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
  /// Whether too little is known of the row to say what the local changes are: they stay as they are.
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

  /// Whether the values of some columns are as a side has set them.
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
