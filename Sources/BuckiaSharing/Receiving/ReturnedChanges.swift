import BuckiaApply
import BuckiaByteStreams
import BuckiaKSUID
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections

/// Changes that were made here, and come back in the stream of somebody who has passed them on: they do nothing, whatever has become of
/// their rows since.
struct ReturnedChanges {
  private let runs: [OriginRun]
  /// The diffs that were made here.
  private let own: Set<KSUID>

  /// - Returns: nil where none come back.
  /// - Throws: `SQLiteError`.
  init?(_ runs: [OriginRun], on connection: borrowing SQLiteConnection) throws {
    var own: Set<KSUID> = []
    for diff in runs.reduce(into: Set<KSUID>(), { $0.formUnion($1.diffs) })
    where try OutboxEntry.share(of: diff, on: connection) != nil { own.insert(diff) }
    guard !own.isEmpty else { return nil }
    self.runs = runs
    self.own = own
  }

  /// The changes that are left.
  ///
  /// - Parameters:
  ///   - changes: All of them.
  ///   - staying: The numbers of others that are left out, from 1.
  /// - Throws: `ChangesetError`, `ByteStreamError`.
  func rest(of changes: IncomingChanges, without staying: Set<Int64>) throws -> TemporaryBuffer {
    let output = changes.changeset.makeEmpty()
    var origins = OriginRuns(runs)
    var ordinal: Int64 = 0
    var last: ChangesetTable?
    try Changesets.forEachChange(of: changes.changeset, knowing: changes.feed.summary()) { change, reader, bytes in
      let origin = origins.next()
      ordinal += 1
      guard !staying.contains(ordinal), let header = reader.table else { return }
      var writer = ChangesetWriter()
      if let origin {
        try write(change, reader, bytes, header, origin, into: &writer)
      } else {
        writer.append(change.range, of: bytes)
      }
      guard writer.count > 0 else { return }
      if last != header {
        var beginning = ChangesetWriter()
        beginning.beginTable(header)
        try output.write(beginning.bytes)
        last = header
      }
      try output.write(writer.bytes)
    }
    return output
  }

  private func write(
    _ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, _ header: ChangesetTable, _ origin: OriginRun,
    into writer: inout ChangesetWriter
  ) throws {
    let columns = reader.new.indices.filter { reader.new[$0].isDefined && !header.isKey($0) }
    let returned =
      change.operation == .delete ? [] : columns.filter { own.contains(origin.diff(of: $0, change.operation)) }
    let isWhole =
      switch change.operation {
      case .delete: own.contains(origin.diff) && !origin.isWithdrawal
      case .insert: own.contains(origin.diff) && returned.count == columns.count
      case .update: returned.count == columns.count
      }
    if isWhole { return }
    guard change.operation == .update, !returned.isEmpty else { return writer.append(change.range, of: bytes) }
    let isReturned = Set(returned)
    writer.beginChange(.update, isIndirect: change.isIndirect)
    for row in [reader.old, reader.new] {
      for place in row.indices {
        if isReturned.contains(place) { writer.appendUndefined() } else { writer.append(row[place], of: bytes) }
      }
    }
  }
}
