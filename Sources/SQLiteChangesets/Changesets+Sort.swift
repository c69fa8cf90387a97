import BuckiaByteStreams

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
      var sorter = try ChangeSorter(table.table, sections: sections, of: changeset, limits: limits, poll: poll)
      if let parts = try byOperation(&sorter, table.table, like: changeset, poll: poll) {
        for part in parts { try output.write(contentsOf: part) }
      } else {
        tablesInAuthorOrder.append(table.table)
        for section in sections { try changeset.forEachPiece(section) { try output.write($0) } }
      }
    }
    return tablesInAuthorOrder
  }

  /// Divides sorted changes into DELETEs, UPDATEs and INSERTs; nil when two have equal keys.
  private static func byOperation(
    _ sorter: inout ChangeSorter, _ table: ChangesetTable, like changeset: TemporaryBuffer, poll: () throws -> Void
  ) throws -> [TemporaryBuffer]? {
    let (deletes, updates, inserts) = (changeset.makeEmpty(), changeset.makeEmpty(), changeset.makeEmpty())
    let key = KeyLayout(table)
    let walk = ChangeWalk(0..<0, of: table)
    while try sorter.advance() {
      try poll()
      let areDistinct = try sorter.bytes.withRawSpan { bytes in
        var previous: Int?
        while let change = sorter.next(in: bytes) {
          if let previous, key.order(previous, change.start, in: bytes) == 0 { return false }
          previous = change.start
          let part =
            switch change.operation {
            case .delete: deletes
            case .update: updates
            case .insert: inserts
            }
          try part.write(bytes.extracting(change.start..<walk.end(of: change, in: bytes)))
        }
        return true
      }
      guard areDistinct else { return nil }
    }
    return [deletes, updates, inserts]
  }
}
