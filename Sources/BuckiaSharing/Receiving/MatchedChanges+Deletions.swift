import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Writes deletions: those that a diff names by a version, and those of rows that a snapshot leaves out.
extension MatchedChanges {
  /// Writes the deletion of a row whose values its sender no longer has; nothing if the row is unknown here.
  mutating func writeDeletion(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, _ called: [OriginKeyRuns.Name],
    into writer: inout ChangesetWriter
  ) throws {
    guard let here = try LocalRow(row, bytes, of: table, on: connection),
      let name = try known(called, row, bytes, of: table, isHere: true), let version = name.version
    else { return }
    deleted[table.name, default: [:]][table.key(row, bytes)] = here.hash
    try writeDeletion(row, bytes, of: table, here, version: version, namedBy: name, into: &writer)
  }

  /// Writes the deletion of a version of a row, which is a conflict if the local row is another version.
  private func writeDeletion(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, _ here: LocalRow, version: UInt64,
    namedBy name: OriginKeyRuns.Name? = nil, into writer: inout ChangesetWriter
  ) throws {
    writer.beginChange(.delete)
    if here.hash == version { return writer.append(encoded: here.values) }
    let base = try recovered(version, namedBy: name, of: row, bytes, table, isDeleted: true, beside: here)
    for place in row.indices {
      if let base {
        writer.append(encoded: base.values[place])
      } else if row[place].isDefined {
        writer.append(row[place], of: bytes)
      } else {
        writer.appendNull()
      }
    }
  }

  /// The stream's keys of rows by their local keys, if the two differ.
  private func brought(of table: KeyedTable) throws -> [[UInt8]: [[UInt8]]] {
    guard let number = try provenance.number(of: table, stream: place.stream, from: sender) else { return [:] }
    let rows = try MappedRows(of: number).all(on: connection)
    return Dictionary(grouping: rows.keys) { rows[$0]?.local ?? $0 }
  }

  /// Deletes the rows that only this stream has sent here.
  ///
  /// - Returns: True if any were deleted.
  func writeDeletions(
    of table: KeyedTable, _ author: TableDefinition, except present: KeySet?, into output: TemporaryBuffer
  ) throws -> Bool {
    var writer = ChangesetWriter()
    writer.beginTable(ChangesetTable(name: author.name, keyFlags: author.keyFlags))
    let header = writer.count
    let begin = output.count
    let sent = try resent.isPartial ? brought(of: table) : [:]
    for (number, stream) in streams.enumerated() {
      try provenance.forEach(of: table, stream: stream, from: sender) { key, brought in
        guard (sent[table.folded(key)] ?? [key]).allSatisfy({ resent.cover($0, of: table.name) }),
          let comparable = table.comparable(key), try present?.contains(comparable) != true
        else { return }
        try key.withRawSpan { bytes in
          let row = table.row(withKey: bytes)
          let isWritten =
            try provenance.hash(row, bytes, of: table, streams: Array(streams[..<number]), from: sender) != nil
          guard try !isWritten && !provenance.stays(row, bytes, of: table, withoutStreams: streams, from: sender),
            let here = try LocalRow(row, bytes, of: table, on: connection)
          else { return }
          try writeDeletion(row, bytes, of: table, here, version: brought.hash, into: &writer)
        }
        guard writer.count > 1 << 20 else { return }
        try output.write(writer.bytes)
        writer = ChangesetWriter()
      }
    }
    guard output.count > begin || writer.count > header else { return false }
    try output.write(writer.bytes)
    return true
  }
}
