import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The rows of one table that a UNIQUE constraint keeps out of it under the policy `latest`.
///
/// Of two rows with the same value, the one whose columns under UNIQUE a later diff has set stays. The other is kept
/// with the columns that wait for a row, and comes back when the value is free. Which rows are in the table therefore
/// depends on the set of arrived changes, and not on their order.
final class UniqueParking {
  /// The precedence of a row: the diff that has set the columns under UNIQUE last, then the key.
  private struct Precedence: Comparable {
    let diff: KSUID
    let key: [UInt8]

    static func < (one: Precedence, other: Precedence) -> Bool {
      one.diff == other.diff ? one.key.lexicographicallyPrecedes(other.key) : one.diff < other.diff
    }
  }

  private let clock: TableClock
  private let writer: RowWriter
  private let rows: TableRows
  private let blocking: BlockingRows
  private let exposed: ExposedRows?
  /// The places in the local layout of the columns under UNIQUE, without the key.
  let places: Set<Int>
  /// The parked rows that have not come back.
  private var lost: [(key: ClockKeyRecord, row: [UInt8], winner: ClockKeyRecord?)] = []
  private var isChanged = false

  /// - Returns: nil for a table without a UNIQUE constraint other than its key.
  init?(_ writer: RowWriter, _ clock: TableClock, _ blocking: BlockingRows, exposing exposed: ExposedRows?) throws {
    let statements = writer.statements
    guard statements.match.local.module == nil, let places = try Self.uniquePlaces(of: statements) else { return nil }
    self.places = places
    self.clock = clock
    self.writer = writer
    self.blocking = blocking
    self.exposed = exposed
    rows = writer.tableRows
  }

  /// The places of the columns under UNIQUE; nil if there are none.
  private static func uniquePlaces(of statements: TableStatements) throws -> Set<Int>? {
    let local = statements.match.local
    let names = local.changesetColumns
    var places: Set<Int> = []
    var isUnique = false
    let query = """
      SELECT l."partial", x.name FROM pragma_index_list(?1, 'main') AS l, pragma_index_xinfo(l.name, 'main') AS x
      WHERE l."unique" AND l.origin <> 'pk' AND x.key
      """
    try statements.connection.forEachRow(of: query, binding: [local.name]) { row in
      isUnique = true
      // Any column may be part of an expression or a condition.
      guard row.integer(at: 0) == 0, let name = row.text(at: 1), let place = names.firstIndex(of: name) else {
        places.formUnion(names.indices)
        return
      }
      places.insert(place)
    }
    return isUnique ? places.subtracting(local.keyIndexes) : nil
  }

  /// Decides between the refused row of a change and the rows that block it.
  ///
  /// - Parameter local: The changed local row, if it exists.
  /// - Returns: True if the row is in the table now; nil if the clock cannot decide.
  func decide(_ change: DecodedChange, local: [UInt8]?, _ bytes: RawSpan) throws -> Bool? {
    guard change.operation != .delete, let key = clock.key(of: change, bytes) else { return nil }
    if let local { try displace(key, local) }
    try clock.keep(change, bytes)
    isChanged = true
    let isHere = try place(key)
    if isHere, local != nil {
      // The row was removed and inserted again.
      writer.counts.deleted -= 1
      writer.counts.inserted -= 1
      writer.counts.updated += 1
    }
    // The record of the change has its own row.
    lost.removeAll { $0.key.bytes == key.bytes }
    return isHere
  }

  /// Removes an inserted row because a column that waited for it does not fit beside another row.
  func withdraw(_ change: DecodedChange, _ bytes: RawSpan) throws {
    guard let key = clock.key(of: change, bytes), let row = try rows.row(key) else { return }
    try displace(key, row)
    lost.removeAll { $0.key.bytes == key.bytes }
  }

  /// Puts back rows whose UNIQUE values are free now, the latest first.
  ///
  /// - Parameters:
  ///   - isFree: True if values may have become free without a change of this diff.
  ///   - record: Called with each row that was parked by another.
  func settle(
    afterEdits isFree: Bool = false, recording record: (_ row: [UInt8], _ winner: ClockKeyRecord?) throws -> Void
  ) throws {
    if clock.pending.includeInserts, isFree || isChanged || writer.counts.updated + writer.counts.deleted > 0 {
      var waiting = try clock.pending.insertedKeys().map { try ($0, precedence(ofKept: $0)) }
      waiting.sort { $0.1 < $1.1 }
      while let (key, _) = waiting.popLast() {
        let count = lost.count
        _ = try place(key)
        guard lost.count > count else { continue }
        for (key, _, _) in lost[count...] { waiting.append((key, try precedence(ofKept: key))) }
        waiting.sort { $0.1 < $1.1 }
      }
    }
    for (key, row, winner) in lost where try rows.row(key) == nil { try record(row, winner) }
    lost.removeAll()
    isChanged = false
  }

  /// Makes room for a row with an unsent edit, which counts as later than all others.
  ///
  /// - Parameter row: The wanted row, which was just refused.
  /// - Returns: True if blocking rows were removed.
  func makeRoom(for row: [UInt8]) throws -> Bool {
    let others = try blocking.find(rows.lastMessage, row: row)
    guard try !others.isEmpty && others.allSatisfy({ try !isEditedHere($0) }) else { return false }
    for other in others {
      if let row = try rows.row(other) { try displace(other, row) }
    }
    isChanged = true
    return true
  }

  // MARK: One row

  private func precedence(ofKept key: ClockKeyRecord) throws -> Precedence {
    try precedence(of: try clock.keptRow(key)?.rowVersions ?? VersionVector(), key)
  }

  private func precedence(of rowVersions: VersionVector, _ key: ClockKeyRecord) throws -> Precedence {
    var diff = rowVersions.insertion ?? .minimum
    for (position, place) in try clock.placesOfColumns() where places.contains(place) {
      if let setter = rowVersions.setter(of: position) { diff = max(diff, setter) }
    }
    return Precedence(diff: diff, key: key.bytes)
  }

  /// True if an unsent edit has set a UNIQUE value of a row.
  private func isEditedHere(_ key: ClockKeyRecord) throws -> Bool {
    guard let edit = try exposed?.edit(of: key) else { return false }
    return edit.operation == .insert || edit.columns.positions.contains { places.contains($0) }
  }

  /// Displaces a row: removes it from the table, and keeps it.
  private func displace(_ key: ClockKeyRecord, _ row: [UInt8], by winner: ClockKeyRecord? = nil) throws {
    try clock.recordSent(key, exposed)
    try clock.keep(row, for: key)
    guard try rows.write(nil, to: key) == nil else { return }
    isChanged = true
    lost.append((key, row, winner))
    try writer.didWrite(.delete, key, before: row, after: nil)
  }

  /// Puts a kept row into the table, unless a later row blocks it; earlier rows are parked.
  ///
  /// - Returns: True if the row is in the table now.
  private func place(_ key: ClockKeyRecord) throws -> Bool {
    guard let kept = try clock.keptRow(key) else { return false }
    guard try rows.row(key) == nil else { return true }
    let own = try precedence(of: kept.rowVersions, key)
    let row = try record(of: kept, key)
    while try rows.write(row, to: key) != nil {
      let others = try blocking.find(rows.lastMessage, row: row)
      guard !others.isEmpty else { return false }
      for other in others {
        try clock.recordSent(other, exposed)
        let isEarlier = try precedence(of: clock.rowVersions(ofRow: other), other) < own
        guard try isEarlier && !isEditedHere(other) else { return false }
      }
      for other in others {
        try exposed?.expose(other)
        guard let row = try rows.row(other) else { continue }
        let count = lost.count
        try displace(other, row, by: key)
        // A row that cannot be removed still blocks.
        guard lost.count > count else { return false }
      }
    }
    try clock.takePending(kept.items, for: key)
    isChanged = true
    try writer.didWrite(.insert, key, before: nil, after: rows.row(key))
    return true
  }

  /// A kept row as a record of the local layout, undefined in unknown columns.
  private func record(of kept: TableClock.KeptRow, _ key: ClockKeyRecord) throws -> [UInt8] {
    let local = writer.statements.match.local
    var values = kept.values
    for (place, value) in zip(local.keyIndexes, try ChangesetValue.record(key.bytes)) { values[place] = value }
    var writer = ChangesetWriter()
    for place in local.changesetColumns.indices {
      if let value = values[place] { writer.append(value) } else { writer.appendUndefined() }
    }
    return writer.bytes
  }
}

/// Keeps rows that a UNIQUE constraint has parked, with all their columns and later changes.
extension TableClock {
  /// A kept row.
  struct KeptRow {
    /// The kept columns, by the row versions that have set them.
    let items: [PendingColumns.Item]
    /// The values outside the key, by place in the local layout.
    let values: [Int: ChangesetValue]
    /// The row versions of the row.
    let rowVersions: VersionVector
  }

  /// Row versions a row that was shared before the table had a clock with the diffs that have sent it, as its recipients do.
  func recordSent(_ key: ClockKeyRecord, _ exposed: ExposedRows?) throws {
    guard let exposed else { return }
    var rowVersions = try rowVersions(ofRow: key)
    guard rowVersions.insertion == nil else { return }
    let diffs = try exposed.sendingDiffs(of: key)
    guard let insertion = diffs[SentColumns.allColumns] else { return }
    var columns = [insertion: ColumnSet()]
    for (position, name) in valueColumns where rowVersions.setter(of: position) == nil {
      columns[diffs[ASCIIName.folded(name)] ?? insertion, default: ColumnSet()].insert(position)
    }
    for (diff, columns) in columns {
      let operation: ChangeOperation = diff == insertion ? .insert : .update
      rowVersions.add(try RowClocks.rowVersion(in: number, by: diff, operation, columns, .own, on: connection))
    }
    if let list = RowVersionList(rowVersions.rowVersions.map(\.number)) { try store.write(list, key) }
    isNewest = false
  }

  /// Keeps the row versions of a row that is about to be removed, because runs apply only to existing rows.
  func hold(_ key: ClockKeyRecord) throws {
    if let list = try list(of: key) { try store.write(list, key) }
  }

  /// Keeps a row that is about to be removed.
  func keep(_ row: [UInt8], for key: ClockKeyRecord) throws {
    let before = try list(of: key)
    let rowVersions = try before.map { try self.rowVersions($0) } ?? VersionVector()
    let places = try placesOfColumns()
    let row = try ChangesetValue.record(row).map { $0 ?? .null }
    var unset = ColumnSet()
    for position in places.keys where rowVersions.setter(of: position) == nil { unset.insert(position) }
    for rowVersion in rowVersions.rowVersions where rowVersion.operation != .delete {
      try pending.keep(
        values(of: rowVersion, among: rowVersions) { row[$0] }, by: rowVersion.number,
        isOfInsert: rowVersion.operation == .insert, for: key
      )
    }
    if rowVersions.insertion == nil || !unset.isEmpty {
      // Values that no diff has set are the oldest.
      let origin = try RowClocks.rowVersion(in: number, by: .minimum, .insert, unset, .applied, on: connection)
      var values = ChangesetWriter()
      for position in unset.positions { values.append(places[position].map { row[$0] } ?? .null) }
      try pending.keep(values.bytes, by: origin.number, isOfInsert: true, for: key)
    }
    // Runs apply only to existing rows.
    if let before { try store.write(before, key) }
  }

  /// The kept row with a key; nil if there are only columns that wait for an INSERT.
  func keptRow(_ key: ClockKeyRecord) throws -> KeptRow? {
    let items = try pending.items(for: key)
    guard items.contains(where: \.isOfInsert) else { return nil }
    var rowVersions = VersionVector()
    for item in items {
      if let rowVersion = try RowClocks.rowVersion(item.rowVersion, on: connection) { rowVersions.add(rowVersion) }
    }
    return KeptRow(items: items, values: try pendingValues(items, beside: VersionVector()), rowVersions: rowVersions)
  }

  /// The row versions of the existing row with a key.
  func rowVersions(ofRow key: ClockKeyRecord) throws -> VersionVector {
    try list(of: key).map { try rowVersions($0) } ?? VersionVector()
  }
}
