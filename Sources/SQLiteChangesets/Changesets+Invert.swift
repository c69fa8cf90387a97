import BuckiaBytes

extension Changesets {
  /// Turns a changeset of any size into the one that undoes it; see ``inverted(_:)``.
  ///
  /// - Parameters:
  ///   - changeset: The changeset.
  ///   - output: Where the result is added.
  ///   - limits: How much is held in memory.
  ///   - keepsOrder: Whether the order of a table's changes means something, though it changes each row once: to triggers and
  ///     foreign-key actions. Then it is reversed.
  ///   - poll: Is called every few thousand changes. May throw to stop.
  /// - Returns: The tables whose changes are DELETEs, UPDATEs and INSERTs now, each in key order.
  /// - Throws: `ChangesetError`, as ``inverted(_:)``, before anything is written; `ByteStreamError` when the input cannot be
  ///   read or the output cannot be written; whatever `poll` throws. The output may then hold a part of the result.
  @discardableResult
  package static func invert(
    _ changeset: TemporaryBuffer, into output: TemporaryBuffer, limits: ChangeSorter.Limits = ChangeSorter.Limits(),
    keepsOrder: (ChangesetTable) -> Bool = { _ in false }, poll: () throws -> Void = {}
  ) throws -> [ChangesetTable] {
    let summary = try invertibleSummary(of: changeset, poll: poll)
    let sections = summary.sectionsByTable
    var reversal = SectionReversal(of: changeset, summary)
    var tablesInKeyOrder: [ChangesetTable] = []
    var isWritten = [Bool](repeating: false, count: summary.tables.count)
    var previous: Int?
    for place in summary.sections.indices.reversed() {
      let number = summary.sections[place].table
      guard !isWritten[number] else { continue }
      let table = summary.tables[number].table
      if number != previous { try output.write(summary.tables[number].header) }
      previous = number
      if !reversal.holds(number) {
        if !keepsOrder(table),
          let parts = try OperationParts(
            ChangeSorter(table, sections: sections[number], of: changeset, limits: limits, poll: poll), of: table,
            .equalKeysUnlessReplaced, like: changeset, poll: poll)
        {
          for part in [parts.inserts, parts.updates, parts.deletes] {
            try invert(part, of: table, into: output, poll: poll)
          }
          isWritten[number] = true
          tablesInKeyOrder.append(table)
          continue
        }
        try reversal.add(number, poll: poll)
      }
      try reversal.write(place, to: output)
    }
    return tablesInKeyOrder
  }

  /// Inverts changes of one table in the order in which they stand.
  private static func invert(
    _ changes: TemporaryBuffer, of table: ChangesetTable, into output: TemporaryBuffer, poll: () throws -> Void
  ) throws {
    var inverter = ChangeInverter(table)
    var stretches = ChangeStretches(0..<changes.count, of: table, in: ChangesetWindow(changes))
    while try stretches.advance() {
      try poll()
      try stretches.window.withBytes { bytes in
        while let change = stretches.next(in: bytes) {
          try inverter.write(change, endingAt: stretches.changeEnd, in: bytes, to: output)
        }
      }
    }
    try inverter.flush(to: output)
  }

  /// Reads and checks a changeset that is to be inverted.
  private static func invertibleSummary(
    of changeset: TemporaryBuffer, poll: () throws -> Void
  ) throws -> ChangesetSummary {
    var builder = ChangesetSummary.Builder()
    var scan = ChangesetScan(changeset)
    while try scan.advance() {
      try poll()
      try scan.window.withBytes { bytes in
        while let change = try scan.next(in: bytes) {
          try checkInvertible(change, scan.reader)
          try builder.add(change, scan.reader, in: bytes, endingAt: scan.range(of: change).upperBound)
        }
      }
    }
    return builder.finish(byteCount: changeset.count)
  }

  private static func checkInvertible(_ change: Change, _ reader: ChangesetReader) throws(ChangesetError) {
    if change.startsTable, let table = reader.table, table.format == .patchset {
      throw ChangesetError(
        .needsChangeset, offset: reader.base + reader.headerRange.lowerBound, table: table.name)
    }
    if reader.lacksOldValues {
      throw ChangesetError(
        .misplacedValue, offset: reader.base + change.range.lowerBound, table: reader.table?.name)
    }
  }
}
