import BuckiaBytes

/// Local and incoming changes, each row changed at most once on either side, brought together by table.
struct RebaseSides {
  /// A table that either side changes.
  struct Table {
    let table: ChangesetTable
    /// The bytes of its header.
    let header: [UInt8]
    let local: TableChanges
    /// The incoming changes; nil for none.
    let incoming: TableChanges?
  }

  /// The tables of the local changes, then those that only the incoming changes have.
  let tables: [Table]

  /// Joins the changes of each row, and checks that the two speak of the same tables.
  ///
  /// - Throws: `ChangesetError`, as ``Changesets/rebased(_:onto:policy:)``; `ByteStreamError` when a temporary file fails; whatever `poll`
  ///   throws.
  init(
    local: TemporaryBuffer, incoming: TemporaryBuffer, limits: ChangeSorter.Limits, poll: () throws -> Void
  ) throws {
    let (mine, mySummary) = try Self.folded(local, limits, poll)
    let (theirs, theirSummary) = try Self.folded(incoming, limits, poll)
    let (mySections, theirSections) = (mySummary.sectionsByTable, theirSummary.sectionsByTable)
    var tables: [Table] = []
    var isPaired = [Bool](repeating: false, count: theirSummary.tables.count)
    for (entry, sections) in zip(mySummary.tables, mySections) {
      let place = theirSummary.tables.firstIndex { ASCIIName.matches($0.table.name, entry.table.name) }
      if let place {
        let other = theirSummary.tables[place].table
        guard other.keyFlags.elementsEqual(entry.table.keyFlags, by: { ($0 != 0) == ($1 != 0) }) else {
          throw ChangesetError(.incompatibleTables, offset: 0, table: entry.table.name)
        }
        isPaired[place] = true
      }
      tables.append(
        Table(
          table: entry.table, header: entry.header, local: TableChanges(changeset: mine, sections: sections),
          incoming: place.map { TableChanges(changeset: theirs, sections: theirSections[$0]) }))
    }
    for (place, entry) in theirSummary.tables.enumerated() where !isPaired[place] {
      tables.append(
        Table(
          table: entry.table, header: entry.header, local: TableChanges(changeset: mine, sections: []),
          incoming: TableChanges(changeset: theirs, sections: theirSections[place])))
    }
    self.tables = tables
  }

  private static func folded(
    _ changeset: TemporaryBuffer, _ limits: ChangeSorter.Limits, _ poll: () throws -> Void
  ) throws -> (TemporaryBuffer, ChangesetSummary) {
    let output = changeset.makeEmpty()
    try Changesets.concatenate([changeset], into: output, limits: limits, poll: poll)
    let summary = try ChangesetSummary.of(output, poll: poll)
    if summary.format == .patchset {
      throw ChangesetError(.needsChangeset, offset: 0, table: summary.tables.first?.table.name)
    }
    return (output, summary)
  }
}
