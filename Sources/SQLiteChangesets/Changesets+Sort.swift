import BuckiaBytes

extension Changesets {
  /// Sorts a changeset or patchset of any size in bounded memory; see ``sorted(_:)``.
  ///
  /// - Parameters:
  ///   - changeset: The changeset or patchset.
  ///   - summary: What is known of it.
  ///   - output: Where the result is added.
  ///   - limits: How much is held in memory.
  ///   - poll: Is called every few thousand changes. May throw to stop.
  /// - Returns: The tables that stay in author's order.
  /// - Throws: `ByteStreamError` when a temporary file cannot be read or written; whatever `poll` throws. The output may
  ///   then hold a part of the result.
  @discardableResult
  package static func sort(
    _ changeset: TemporaryBuffer, _ summary: ChangesetSummary, into output: TemporaryBuffer,
    limits: ChangeSorter.Limits = ChangeSorter.Limits(), poll: () throws -> Void = {}
  ) throws -> [ChangesetTable] {
    var tablesInAuthorOrder: [ChangesetTable] = []
    for (table, sections) in zip(summary.tables, summary.sectionsByTable) {
      try output.write(table.header)
      let parts = try OperationParts(
        ChangeSorter(table.table, sections: sections, of: changeset, limits: limits, poll: poll), of: table.table,
        .equalKeys, like: changeset, poll: poll)
      if let parts {
        for part in [parts.deletes, parts.updates, parts.inserts] { try output.write(contentsOf: part) }
      } else {
        tablesInAuthorOrder.append(table.table)
        for section in sections { try changeset.forEachPiece(section) { try output.write($0) } }
      }
    }
    return tablesInAuthorOrder
  }

  /// Whether the changes of a table change each row once, so that the order in which they are applied does not matter to any
  /// row by itself.
  ///
  /// A DELETE and an INSERT whose keys are equal and not the same bytes count as changes of two rows. Rows with NULL in
  /// the key, which names no row, count as one.
  ///
  /// - Parameters:
  ///   - sections: The bytes of the table's changes, as a `ChangesetSummary` has found them.
  ///   - changeset: The buffer that holds them.
  /// - Throws: `ByteStreamError` when a temporary file cannot be read or written.
  package static func changesEachRowOnce(
    _ table: ChangesetTable, sections: [Range<Int>], of changeset: TemporaryBuffer
  ) throws -> Bool {
    var sorter = try ChangeSorter(table, sections: sections, of: changeset)
    var rows = SingleChanges(of: table, .equalKeysUnlessReplaced)
    while try sorter.advance() {
      rows.beginStretch()
      let areSingle = sorter.bytes.withRawSpan { bytes in
        while let change = sorter.next(in: bytes) {
          guard rows.admits(change, in: bytes) else { return false }
        }
        return true
      }
      guard areSingle else { return false }
    }
    return true
  }
}
