import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections

/// Applies the changes of a table with the policy `latest`, in whatever order they arrive.
extension TableApplier {
  /// The message for a change whose row a later diff has deleted.
  private static let wasDeleted = Array("a later diff has deleted the row".utf8)
  /// The message for an UPDATE whose row is missing.
  private static let isKept = Array("the row is not here; the new values are kept until it is".utf8)

  /// All columns.
  var columns: ColumnMask {
    var columns = ColumnMask()
    for column in 0..<statements.columnCount { columns.insert(column) }
    return columns
  }

  /// The columns that the present change must not set because a later diff has, among tables with a clock.
  func laterColumns(by clock: TableClock, _ bytes: RawSpan) throws -> ColumnMask {
    guard change.operation != .delete else { return ColumnMask() }
    let later = try clock.laterColumns(of: change, bytes)
    guard !later.isEmpty, layout.columnPolicies != nil else { return later }
    var counting = ColumnMask()
    for column in 0..<statements.columnCount
    where later.contains(column) && layout.policy(at: statements.match.columns[column]) == .latest {
      counting.insert(column)
    }
    return counting
  }

  /// The key columns that an INSERT spells differently from the local row with the same key: `a` and `A` under
  /// `NOCASE`. The later INSERT decides.
  func otherKeyColumns(_ local: CurrentRow, _ bytes: RawSpan) throws -> ColumnMask {
    var others = ColumnMask()
    for column in 0..<statements.columnCount
    where statements.isKey[column] && !holds(local, change.new(column), at: column, bytes) { others.insert(column) }
    guard !others.isEmpty, let clock, let key = clock.key(of: change, bytes) else { return ColumnMask() }
    try clock.recordSent(key, exposed)
    return try clock.isInsertedLater(change, bytes) ? ColumnMask() : others
  }

  /// Row versions a newly inserted row.
  func didInsert(_ bytes: RawSpan) throws {
    guard let clock else { return }
    try clock.rowVersion(columns, of: change, isNew: true, bytes)
    guard followsClock else { return }
    let values = try clock.pendingValues(for: change, bytes)
    if let refusal = try writer.update(values, bytes) {
      // Rows that another constraint refuses were recorded when they arrived.
      if refusal.isUniqueness { try uniqueParking.get()?.withdraw(change, bytes) }
    } else {
      try clock.takePending(for: change, bytes)
    }
  }

  /// True if the row of an INSERT is missing because a later diff has deleted it.
  func isDeletedLater(by clock: TableClock, _ bytes: RawSpan) throws -> Bool {
    guard try clock.isDeletedLater(change, bytes) else { return false }
    let local = try writer.currentRow(bytes)
    defer { local?.release() }
    return local == nil
  }

  /// Leaves out an INSERT whose row a later diff has deleted.
  func omitDeleted(_ bytes: RawSpan) throws -> Refused? {
    let incident = ConflictIncident(kind: .notFound, change: change, local: nil, message: Self.wasDeleted)
    return try resolveChanged(incident, bytes) { .noRow }
  }

  /// Keeps the values of an UPDATE whose row is missing, unless a later diff has deleted it.
  ///
  /// - Returns: The message for the conflict record.
  func keepForLater(by clock: TableClock, _ bytes: RawSpan) throws -> [UInt8] {
    if try clock.isDeletedLater(change, bytes) { return Self.wasDeleted }
    try clock.keep(change, bytes)
    return Self.isKept
  }

  /// Keeps a row whose insertion is later than its deletion.
  func keepInserted(_ bytes: RawSpan) throws -> Refused? {
    let local = try writer.currentRow(bytes)
    defer { local?.release() }
    guard local != nil else {
      counts.unchanged += 1
      return nil
    }
    var incident = ConflictIncident(kind: .data, change: change, local: local)
    incident.isOutdated = true
    return try resolveChanged(incident, bytes) { try writer.delete(bytes, guardedBy: .none) }
  }

  /// Keeps the later columns of a row that is about to be deleted.
  func keepLaterColumns(by clock: TableClock, _ bytes: RawSpan) throws {
    guard let local = try writer.currentRow(bytes) else { return }
    defer { local.release() }
    try clock.keepLaterColumns(of: local, change, bytes)
  }

  /// True if a change may be written as a whole, because no part of it is earlier than the local row.
  func mayPark(_ bytes: RawSpan) throws -> Bool {
    if let staying, try !mayChangeReferences(staying, bytes) { return false }
    guard followsClock, let clock, change.operation != .delete else { return true }
    return try laterColumns(by: clock, bytes).isEmpty
  }

  /// Row versions a row that had temporary values and now has those of its change.
  func didWriteParked(_ bytes: RawSpan) throws {
    try clock?.rowVersion(change.operation == .insert ? columns : change.changed, of: change, bytes)
  }

  // MARK: UNIQUE

  /// The message for a parked row.
  private static let hasLostItsPlace = Array("a later diff has given one of its UNIQUE values to another row".utf8)

  /// Decides by the clock between the refused row of a change and the rows that block it.
  ///
  /// - Returns: True if the row is in the table now; nil if the clock does not decide.
  func decideByClock(_ local: CurrentRow?, _ bytes: RawSpan) throws -> Bool? {
    guard followsClock, let uniqueParking = try uniqueParking.get() else { return nil }
    let row = local.map { row in
      var writer = ChangesetWriter()
      row.append(statements.layout.count, to: &writer)
      return writer.bytes
    }
    return try uniqueParking.decide(change, local: row, bytes)
  }

  /// The rows that have lost their place since the last call.
  func takeGivenWay() -> [GivenWay] {
    defer { gaveWay = [] }
    return gaveWay
  }

  /// Puts back rows whose UNIQUE values are free now, and records parked rows.
  func settleParked() throws {
    guard followsClock, let clock, clock.pending.includeInserts, let uniqueParking = try uniqueParking.get() else {
      return
    }
    try uniqueParking.settle { row, winner in
      counts.conflicts += 1
      if let winner { gaveWay.append((row, winner)) }
      try decider.record(
        .constraint, .tookIncoming, layout.recorded, base: nil, local: row, incoming: nil,
        because: Self.hasLostItsPlace)
    }
  }
}
