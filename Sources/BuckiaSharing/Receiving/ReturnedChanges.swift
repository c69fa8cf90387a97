import BuckiaApply
import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections

/// Changes that were made here, and come back in the stream of somebody who has passed them on: they do nothing, whatever has become of
/// their rows since.
struct ReturnedChanges {
  /// The diffs that were made here.
  private let own: Set<KSUID>

  /// - Returns: nil where none come back.
  /// - Throws: `SQLiteError`.
  init?(_ runs: [OriginRun], on connection: borrowing SQLiteConnection) throws {
    var own: Set<KSUID> = []
    for diff in runs.reduce(into: Set<KSUID>(), { $0.formUnion($1.diffs) })
    where try OutboxEntry.share(of: diff, on: connection) != nil { own.insert(diff) }
    guard !own.isEmpty else { return nil }
    self.own = own
  }

  /// Writes what is left of a change.
  ///
  /// - Parameter origin: Where the change comes from.
  /// - Returns: Whether any of it comes back; otherwise nothing is written.
  func write(
    _ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, _ header: ChangesetTable, _ origin: OriginRun,
    into writer: inout ChangesetWriter
  ) -> Bool {
    guard !own.isDisjoint(with: origin.diffs) else { return false }
    let columns = reader.new.indices.filter { reader.new[$0].isDefined && !header.isKey($0) }
    let returned =
      change.operation == .delete ? [] : columns.filter { own.contains(origin.diff(of: $0, change.operation)) }
    let isWhole =
      switch change.operation {
      case .delete: own.contains(origin.diff) && !origin.isWithdrawal
      case .insert: own.contains(origin.diff) && returned.count == columns.count
      case .update: returned.count == columns.count
      }
    if isWhole { return true }
    guard change.operation == .update, !returned.isEmpty else { return false }
    let isReturned = Set(returned)
    writer.beginChange(.update, isIndirect: change.isIndirect)
    for row in [reader.old, reader.new] {
      for place in row.indices {
        if isReturned.contains(place) { writer.appendUndefined() } else { writer.append(row[place], of: bytes) }
      }
    }
    return true
  }
}
