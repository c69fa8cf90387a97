import BuckiaBytes

extension Changesets {
  /// Makes INSERTs of the UPDATEs of rows that an earlier changeset has deleted.
  ///
  /// Both changesets lead on from the same state. A database with the earlier one no longer has the row
  /// that the other one updates: it was inserted again meanwhile, which the other one cannot tell from an edit. The
  /// INSERT has the values of the row as the DELETE names them, and those that the UPDATE sets.
  ///
  /// - Parameters:
  ///   - changeset: The changeset, each row of which is changed once.
  ///   - earlier: The earlier one. The keys and values of the rows that it deletes are held in memory.
  ///   - output: Where the result is added, in key order. Nothing is, if no change becomes another.
  /// - Returns: How many changes of each table have become INSERTs.
  /// - Throws: `ChangesetError` when one of them is damaged; `ByteStreamError`.
  package static func reinsert(
    _ changeset: TemporaryBuffer, deletedBy earlier: TemporaryBuffer, into output: TemporaryBuffer
  ) throws -> [String: Int] {
    let deleted = try DeletedRows(by: earlier)
    guard !deleted.isEmpty else { return [:] }
    let summary = try ChangesetSummary.of(changeset)
    let changed = TemporaryBuffer()
    var counts: [String: Int] = [:]
    for (number, table) in summary.tables.enumerated() {
      try changed.write(table.header)
      var inserts = ChangesetWriter()
      let sections = summary.sectionsByTable[number]
      guard table.updated > 0, deleted.has(table.table) else {
        for section in sections { try changeset.forEachPiece(section) { try changed.write($0) } }
        continue
      }
      try changeset.forEachChange(in: sections, of: table.table) { change, end, bytes in
        if change.operation == .update, let row = deleted.row(updatedBy: change, of: table.table, in: bytes) {
          inserts.append(encoded: row)
          counts[table.table.name, default: 0] += 1
        } else {
          try changed.write(bytes.extracting(change.start..<end))
        }
      }
      try changed.write(inserts.bytes)
    }
    guard !counts.isEmpty else { return [:] }
    try sort(changed, ChangesetSummary.of(changed), into: output)
    return counts
  }
}

/// The rows that a changeset deletes, by their keys.
private struct DeletedRows {
  private struct Table {
    let columnCount: Int
    var rows: [[UInt8]: [UInt8]] = [:]
  }

  private var tables: [String: Table] = [:]

  var isEmpty: Bool { tables.isEmpty }

  init(by changeset: TemporaryBuffer) throws {
    let summary = try ChangesetSummary.of(changeset)
    for (number, table) in summary.tables.enumerated() where table.deleted > 0 && table.table.format == .changeset {
      var found = Table(columnCount: table.table.columnCount)
      let sections = summary.sectionsByTable[number]
      try changeset.forEachChange(in: sections, of: table.table) { change, end, bytes in
        guard change.operation == .delete else { return }
        found.rows[Self.key(at: change.values, of: table.table, in: bytes)] = bytes.array(change.values..<end)
      }
      tables[table.table.name] = found
    }
  }

  func has(_ table: ChangesetTable) -> Bool { tables[table.name]?.columnCount == table.columnCount }

  /// The INSERT of a row that was deleted, with what an UPDATE sets in it; nil for a row that was not.
  func row(updatedBy change: ChangePlace, of table: ChangesetTable, in bytes: RawSpan) -> [UInt8]? {
    guard let old = tables[table.name]?.rows[Self.key(at: change.values, of: table, in: bytes)] else { return nil }
    var position = change.values
    for _ in 0..<table.columnCount { _ = ValueSlice(verified: bytes, at: &position) }
    var writer = ChangesetWriter()
    writer.beginChange(.insert)
    old.withRawSpan { own in
      var place = 0
      for _ in 0..<table.columnCount {
        let before = ValueSlice(verified: own, at: &place)
        let after = ValueSlice(verified: bytes, at: &position)
        if after.isDefined { writer.append(after, of: bytes) } else { writer.append(before, of: own) }
      }
    }
    return writer.bytes
  }

  private static func key(at start: Int, of table: ChangesetTable, in bytes: RawSpan) -> [UInt8] {
    var position = start
    var key: [UInt8] = []
    for column in 0..<table.columnCount {
      let value = ValueSlice(verified: bytes, at: &position)
      if table.isKey(column) { key += bytes.array(value.encoded) }
    }
    return key
  }
}
