import BuckiaBytes

/// Rebases the local changes of one table onto the incoming ones.
final class TableRebase {
  /// More rounds than this are not made to find out which rows have to give way to others; what is left is named then.
  private static let roundLimit = 16

  let table: ChangesetTable
  let rules: RebaseTable?
  private let policy: RebasePolicy
  private let groups: RowGroups
  private let limits: ChangeSorter.Limits
  /// The buffer that others are made like.
  private let model: TemporaryBuffer
  /// The rows of which not all counts, by key.
  private var reversions: [[UInt8]: RowReversion] = [:]
  /// The columns by which the rows refer to rows that are left out, by key.
  private var orphans: [[UInt8]: Set<Int>] = [:]
  /// What is known of UNIQUE values in the end; nil where there is nothing to know.
  private var claims: UniqueClaims?

  init(
    _ table: ChangesetTable, _ rules: RebaseTable?, local: TableChanges, incoming: TableChanges?,
    _ policy: RebasePolicy, limits: ChangeSorter.Limits, poll: () throws -> Void
  ) throws {
    self.table = table
    self.rules = rules
    self.policy = policy
    self.limits = limits
    model = local.changeset
    groups = try RowGroups(table, rules, local: local, incoming: incoming, limits: limits, poll: poll)
  }

  /// The side that gives way.
  private var loser: RebasePolicy { policy == .keepLocal ? .takeIncoming : .keepLocal }

  /// Lets some columns of a row be as they were without the side that gives way.
  ///
  /// - Returns: false when they are already.
  private func revert(_ columns: Set<Int>, of key: [UInt8]) -> Bool {
    let side: WritableKeyPath<RowReversion, Set<Int>> = loser == .keepLocal ? \.local : \.incoming
    let known = reversions[key, default: RowReversion()][keyPath: side]
    guard !columns.isSubset(of: known) else { return false }
    reversions[key, default: RowReversion()][keyPath: side].formUnion(columns)
    return true
  }

  /// Finds out which rows have to give way, because both sides have given the same UNIQUE values to different rows.
  ///
  /// A row that gives way has other values then, which may be taken, too. So this is repeated until nothing is found.
  func settleUniqueValues(poll: () throws -> Void) throws {
    guard let rules, !rules.unique.isEmpty else { return }
    for _ in 0..<Self.roundLimit {
      var found = UniqueClaims(rules, like: model, limits: limits)
      try forEachRow(poll: poll) { try found.add($0, in: $1) }
      try found.settle(policy, poll: poll)
      claims = found
      var isNew = false
      for (key, columns) in found.losers where revert(columns, of: key) { isNew = true }
      guard isNew else { return }
    }
  }

  // MARK: References

  /// Adds the rows of the side that gives way which are left out, by the columns that others refer to.
  func addLostRows(to lost: inout LostRows, poll: () throws -> Void) throws {
    guard lost.refer(to: table.name) else { return }
    try forEachRow(poll: poll) { row, bytes in
      if let values = row.lostRow(of: loser) { lost.add(values, of: table.name, rules, in: bytes) }
    }
  }

  /// Lets the rows of the side that gives way which refer to a row that is left out give way, too.
  func settleReferences(to lost: LostRows, poll: () throws -> Void) throws {
    guard let rules, !rules.references.isEmpty else { return }
    try forEachRow(poll: poll) { row, bytes in
      guard let merged = row.merge.merged else { return }
      for reference in rules.references
      where row.merge.isSet(reference.columns, by: loser, in: bytes) && lost.contains(merged, reference, in: bytes) {
        guard revert(Set(reference.columns), of: row.key) else { continue }
        orphans[row.key, default: []].formUnion(reference.columns)
      }
    }
  }

  // MARK: Rows

  private func forEachRow(poll: () throws -> Void, _ body: (RebasedRow, RawSpan) throws -> Void) throws {
    try groups.forEach(poll: poll) { group, bytes in
      let local = RowEdit(group.local.map(\.change), in: table)
      let incoming = RowEdit(group.incoming.map(\.change), in: table)
      if (local == nil) == group.local.isEmpty, (incoming == nil) == group.incoming.isEmpty {
        return try body(row(group.key, group.local, local, incoming, bytes), bytes)
      }
      // More changes than one row can have: those of the same key belong together.
      var rest = group.incoming
      for change in group.local {
        let partner = rest.firstIndex { isSameKey($0.change, change.change, bytes) }
        let incoming = partner.flatMap { RowEdit([rest.remove(at: $0).change], in: table) }
        let local = RowEdit([change.change], in: table)
        try body(row(group.key, [change], local, incoming, bytes), bytes)
      }
      for change in rest {
        try body(row(group.key, [], nil, RowEdit([change.change], in: table), bytes), bytes)
      }
    }
  }

  private func row(
    _ key: [UInt8], _ changes: [SidedChange], _ local: RowEdit?, _ incoming: RowEdit?, _ bytes: RawSpan
  ) -> RebasedRow {
    let reversion = reversions.isEmpty ? RowReversion() : reversions[key] ?? RowReversion()
    return RebasedRow(
      key: key, localChanges: changes, local: local, incoming: incoming, reversion: reversion,
      merge: RowMerge(local, incoming, reversion, policy, in: table, bytes))
  }

  private func isSameKey(_ one: RowChange, _ other: RowChange, _ bytes: RawSpan) -> Bool {
    let (mine, theirs) = (
      one.operation == .insert ? one.new : one.old, other.operation == .insert ? other.new : other.old
    )
    return mine.indices.allSatisfy {
      !table.isKey($0) || mine[$0].isIdentical(to: theirs[$0], in: bytes, otherIn: bytes)
    }
  }

  // MARK: The result

  /// Writes what the local changes are on top of the incoming ones.
  ///
  /// - Returns: What the sides do not agree on.
  func write(to output: inout PlacedChanges, poll: () throws -> Void) throws -> RebaseConflicts {
    var conflicts = RebaseConflicts()
    var writer = ChangesetWriter()
    try forEachRow(poll: poll) { row, bytes in
      addConflicts(of: row, bytes, to: &conflicts)
      if row.localChanges.isEmpty, row.reversion.isEmpty { return }
      // What makes room comes first.
      let place = row.localChanges.first?.place ?? (row.merge.merged == nil ? -1 : 0)
      if row.merge.isUnknown || row.incoming == nil && row.reversion.isEmpty {
        for change in row.localChanges { try output.add(bytes.array(change.range), at: change.place) }
        return
      }
      writer.removeAll()
      writer.append(
        from: row.merge.applied, to: row.merge.merged, isIndirect: row.local?.isIndirect ?? false, in: table, bytes)
      if writer.count > 0 { try output.add(writer.bytes, at: place) }
    }
    return conflicts
  }

  private func addConflicts(of row: RebasedRow, _ bytes: RawSpan, to conflicts: inout RebaseConflicts) {
    func add(_ kind: RebaseConflict.Kind, _ columns: [Int], _ winner: RebasePolicy) {
      let values = row.local?.old ?? row.local?.new ?? row.incoming?.old ?? row.incoming?.new ?? []
      let key = values.indices.filter { table.isKey($0) }.compactMap { ChangesetValue(values[$0], in: bytes) }
      conflicts.add(RebaseConflict(table: table.name, key: key, kind: kind, columns: columns, winner: winner))
    }
    if let conflict = row.merge.conflict {
      add(conflict.kind, conflict.columns, row.merge.isUnknown ? .keepLocal : policy)
    }
    if !row.reversion.isEmpty {
      let orphaned = orphans[row.key] ?? []
      if !orphaned.isEmpty { add(.parentLeftOut, orphaned.sorted(), policy) }
      let others = row.reversion.local.union(row.reversion.incoming).subtracting(orphaned)
      if !others.isEmpty { add(.unique, others.sorted(), policy) }
    }
    if let claims {
      for columns in claims.undecidedColumns(of: row, in: bytes) { add(.undecidedUnique, columns, .keepLocal) }
    }
  }
}
