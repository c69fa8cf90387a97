import BuckiaBytes

/// A changeset that was rebased, and what it and the other did not agree on.
public struct RebasedChangeset: Sendable {
  /// The changes; empty when nothing is left to be done.
  public let changeset: [UInt8]
  /// The rows that both have changed, and who won.
  public let conflicts: RebaseConflicts
}

extension Changesets {
  /// Rebases a changeset onto another that was made from the same state: applied after that one, the result gives what both want.
  ///
  /// Rows are merged three ways, by column. What both have done is left out, edits of different columns stay, and where the two contradict
  /// each other, the policy decides. No conflict is met then where `incoming` was applied to the common state.
  ///
  /// | local | incoming INSERT | incoming UPDATE | incoming DELETE |
  /// | --- | --- | --- | --- |
  /// | INSERT | UPDATE, or nothing | as it is, or nothing | as it is |
  /// | UPDATE | UPDATE, or nothing | what the incoming one has not set, or all | INSERT, or nothing |
  /// | DELETE | DELETE, or nothing | DELETE, or nothing | nothing |
  ///
  /// The first is what becomes of the local change with `keepLocal`, the second with `takeIncoming`. Keys that are the same number are the same
  /// key, also if one is stored as a real: a DELETE and an INSERT of such keys are one edit of one row.
  ///
  /// The definitions of the tables are not known here. So rows that have the same values in UNIQUE columns are not found, and keys of text
  /// are compared byte by byte.
  ///
  /// - Parameters:
  ///   - local: The changes to rebase.
  ///   - incoming: The changes that are applied before them.
  ///   - policy: Who wins where they contradict each other.
  /// - Throws: `ChangesetError` when the bytes are no changesets; with code `needsChangeset` for a patchset, and `incompatibleTables` when
  ///   a table has other columns or another key in the other changeset.
  public static func rebased(
    _ local: [UInt8], onto incoming: [UInt8], policy: RebasePolicy = .keepLocal
  ) throws -> RebasedChangeset {
    var conflicts = RebaseConflicts()
    let bytes = try inMemory {
      conflicts = try rebase(TemporaryBuffer(local), onto: TemporaryBuffer(incoming), policy, into: $0)
    }
    return RebasedChangeset(changeset: bytes, conflicts: conflicts)
  }

  /// Rebases a changeset of any size in bounded memory; see ``rebased(_:onto:policy:)``.
  ///
  /// With the definitions of the tables, more is right: text keys and UNIQUE values are compared as their columns compare them. If both
  /// sides have given the same UNIQUE values to different rows, the row of the side that does not win gives way: its INSERT is
  /// left out, or its UPDATE does not set the columns of the constraint. Rows of that side which refer to a row that is left out give way,
  /// too. What gives way is held in memory.
  ///
  /// - Parameters:
  ///   - local: The changes to rebase.
  ///   - incoming: The changes that are applied before them.
  ///   - policy: Who wins where they contradict each other.
  ///   - definitions: What is known of the tables.
  ///   - output: Where the result is added.
  ///   - limits: How much is held in memory.
  ///   - poll: Is called every few thousand changes. May throw to stop.
  /// - Returns: What the two do not agree on.
  /// - Throws: `ChangesetError`, as ``rebased(_:onto:policy:)``; `ByteStreamError` when a temporary file cannot be read or written;
  ///   whatever `poll` throws. The output may then hold a part of the result.
  package static func rebase(
    _ local: TemporaryBuffer, onto incoming: TemporaryBuffer, _ policy: RebasePolicy,
    definitions: [RebaseTable] = [], into output: TemporaryBuffer, limits: ChangeSorter.Limits = ChangeSorter.Limits(),
    poll: () throws -> Void = {}
  ) throws -> RebaseConflicts {
    let sides = try RebaseSides(local: local, incoming: incoming, limits: limits, poll: poll)
    let tables = try sides.tables.map { table in
      try TableRebase(
        table.table, definitions.table(named: table.table.name), local: table.local, incoming: table.incoming, policy,
        limits: limits, poll: poll)
    }
    for table in tables { try table.settleUniqueValues(poll: poll) }
    try settleReferences(among: tables, definitions, poll: poll)
    var conflicts = RebaseConflicts()
    for (table, entry) in zip(tables, sides.tables) {
      var changes = PlacedChanges(like: local, limits: limits)
      conflicts.add(try table.write(to: &changes, poll: poll))
      guard !changes.isEmpty else { continue }
      try output.write(entry.header)
      try changes.write(to: output, poll: poll)
    }
    return conflicts
  }

  /// Lets rows give way that refer to rows which are left out, and those that refer to these.
  private static func settleReferences(
    among tables: [TableRebase], _ definitions: [RebaseTable], poll: () throws -> Void
  ) throws {
    guard definitions.contains(where: { !$0.references.isEmpty }) else { return }
    var lost = LostRows(definitions)
    while true {
      let known = lost.count
      for table in tables { try table.addLostRows(to: &lost, poll: poll) }
      guard lost.count > known else { return }
      for table in tables { try table.settleReferences(to: lost, poll: poll) }
    }
  }
}

extension [RebaseTable] {
  /// The description of the table that a header names.
  func table(named name: String) -> RebaseTable? { first { ASCIIName.matches($0.name, name) } }
}

extension ValueSlice {
  /// Appends bytes that are the same for values which SQLite takes for equal, and for no others.
  func appendComparable(_ collation: RebaseTable.Collation, in bytes: RawSpan, to output: inout [UInt8]) {
    output.append(kind.rawValue)
    switch kind {
    case .undefined, .null: break
    case .integer: Self.append(bits(in: bytes), to: &output)
    case .real:
      // A number has one form, whether it is stored as an integer or as a real.
      if let integer = Int64(exactly: real(in: bytes)) {
        output[output.count - 1] = ValueKind.integer.rawValue
        Self.append(UInt64(bitPattern: integer), to: &output)
      } else {
        Self.append(bits(in: bytes), to: &output)
      }
    case .blob:
      Self.append(UInt64(count), to: &output)
      output += bytes.array(payloadRange)
    case .text:
      var text = bytes.array(payloadRange)
      switch collation {
      case .binary: break
      case .noCase: text = text.map(ASCIIName.folded)
      case .rightTrim: while text.last == UInt8(ascii: " ") { text.removeLast() }
      }
      Self.append(UInt64(text.count), to: &output)
      output += text
    }
  }

  private static func append(_ number: UInt64, to output: inout [UInt8]) {
    withUnsafeBytes(of: number.bigEndian) { output.append(contentsOf: $0) }
  }
}
