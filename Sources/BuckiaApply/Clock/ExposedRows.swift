import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Rows with unsent edits, while a diff is applied that changes them, too.
///
/// An unsent edit is first rolled back to the row that the recipients have. The diff is merged with that row, as at
/// every other replica. Then the edit is made again, because it counts as later. The next diff sends the difference.
final class ExposedRows {
  private struct Row {
    let key: ClockKeyRecord
    let edit: UnsentRows.Edit
    /// The local row with the edit, and the row that the recipients have.
    let own: [UInt8]?
    var shared: [UInt8]?
  }

  /// Records a conflict.
  typealias Record = (
    ConflictKind, ConflictOutcome, RecordedRowLayout, _ base: [UInt8]?, _ local: [UInt8]?, _ incoming: [UInt8]?
  ) throws -> Void

  /// The unsent edits; nil if only the sharing participant knows them.
  private let unsent: UnsentRows?
  private let sharing: (any SharingParticipant)?
  private let table: TableDefinition
  private let rows: TableRows
  private let layout: RecordedRowLayout
  private var exposed: [Row] = []
  private var keys: Set<[UInt8]> = []
  private var hasExposedAll = false

  init(
    of table: TableDefinition, unsent: UnsentRows?, knownTo sharing: (any SharingParticipant)? = nil,
    keeping indexes: IndexMaintenance?, on connection: borrowing SQLiteConnection
  ) {
    let table = unsent?.table ?? table
    self.table = table
    self.unsent = unsent
    self.sharing = sharing
    rows = TableRows(table, keeping: indexes, in: connection)
    layout = RecordedRowLayout(table: TableName(table.name), columns: table.changesetColumns, key: table.keyIndexes)
  }

  /// True to roll back edits only if the row differs from what the author of a change saw, because each lookup is
  /// expensive.
  var isAskedLate: Bool { unsent == nil }

  /// The unsent edit of a row, or its edit since a share has sent it to the author of the diff.
  private func knownEdit(of row: ClockKeyRecord) throws -> UnsentRows.Edit? {
    if let unsent { return try unsent.edit(of: row) }
    guard let sent = try sharing?.valuesBeforeEdits(ofRow: row.bytes, in: TableName(table.name)), !sent.isEmpty else {
      return nil
    }
    var columns = ColumnSet()
    var shared = ChangesetWriter()
    for (place, column) in table.changesetColumns.enumerated() {
      if let value = sent[ASCIIName.folded(column)] {
        columns.insert(place)
        shared.append(encoded: value)
      } else {
        shared.appendUndefined()
      }
    }
    return UnsentRows.Edit(key: row, operation: .update, columns: columns, shared: shared.bytes)
  }

  /// The diffs that have sent a row to the author of the present changes, as ``SharingParticipant`` has them.
  func sendingDiffs(of row: ClockKeyRecord) throws -> [String: KSUID] {
    try sharing?.sendingDiffs(ofRow: row.bytes, in: TableName(table.name)) ?? [:]
  }

  /// Rolls back the unsent edit of the row with a key, if there is one.
  func expose(_ key: ClockKeyRecord) throws {
    if let edit = try knownEdit(of: key) { try expose([edit]) }
  }

  /// Rolls back an unsent edit of a row.
  ///
  /// - Returns: True if the row has changed.
  func expose(_ edit: UnsentRows.Edit) throws -> Bool {
    try expose([edit])
    return keys.contains(edit.key.bytes)
  }

  /// Rolls back all unsent edits of some columns, and all insertions and deletions. A UNIQUE constraint needs this,
  /// because it decides about rows that the diff does not name.
  ///
  /// - Parameter places: The places of the columns in the local layout.
  func exposeAll(touching places: Set<Int>) throws {
    guard !hasExposedAll else { return }
    hasExposedAll = true
    // Edits that only a lookup for each row would find are ignored here.
    let edits = try unsent?.edits() ?? []
    try expose(edits.filter { $0.operation != .update || $0.columns.positions.contains { places.contains($0) } })
  }

  private func expose(_ edits: [UnsentRows.Edit]) throws {
    let start = exposed.count
    var targets: [Target] = []
    for edit in edits where !keys.contains(edit.key.bytes) {
      let own = try rows.row(edit.key)
      targets.append((key: edit.key, row: try edit.shared?.filled(from: own)))
      keys.insert(edit.key.bytes)
      exposed.append(Row(key: edit.key, edit: edit, own: own, shared: nil))
    }
    // A constraint may refuse the old row. The diff then meets the edited row.
    for refused in try write(targets, makingRoom: { _ in false }) {
      keys.remove(refused.key.bytes)
      exposed.removeAll { $0.key.bytes == refused.key.bytes }
    }
    for index in start..<exposed.count {
      exposed[index].shared = try rows.row(exposed[index].key)
    }
  }

  /// The unsent edit that the row with a key contains; nil for none.
  func edit(of key: ClockKeyRecord) throws -> UnsentRows.Edit? {
    guard let edit = try knownEdit(of: key), !keys.contains(edit.key.bytes) else { return nil }
    return edit
  }

  // MARK: Writing several rows

  /// A wanted row; nil to delete it.
  private typealias Target = (key: ClockKeyRecord, row: [UInt8]?)

  /// Writes wanted rows in an order that UNIQUE constraints allow, even if rows swap values.
  ///
  /// - Parameter makeRoom: Removes rows that block a refused one, and returns true if it did.
  /// - Returns: The refused rows, which are unchanged.
  private func write(_ targets: [Target], makingRoom makeRoom: (_ row: [UInt8]) throws -> Bool) throws -> [Target] {
    var waiting = targets.filter { $0.row == nil } + targets.filter { $0.row != nil }
    var isStuck = false
    while !waiting.isEmpty, !isStuck {
      var refused: [Target] = []
      for target in waiting where try rows.write(target.row, to: target.key) != nil { refused.append(target) }
      isStuck = refused.count == waiting.count
      waiting = refused
    }
    guard !waiting.isEmpty else { return [] }
    let before = try waiting.map { try rows.row($0.key) }
    if waiting.count > 1 {
      for target in waiting { _ = try rows.write(nil, to: target.key) }
    }
    var refused: [Target] = []
    for (target, before) in zip(waiting, before) {
      var isRefused = try rows.write(target.row, to: target.key) != nil
      while isRefused, let row = target.row, try makeRoom(row) {
        isRefused = try rows.write(row, to: target.key) != nil
      }
      guard isRefused else { continue }
      refused.append(target)
      if waiting.count > 1 { _ = try rows.write(before, to: target.key) }
    }
    return refused
  }

  /// Makes the unsent edits again.
  ///
  /// - Parameters:
  ///   - makeRoom: Removes rows that block a refused one, and returns true if it did.
  ///   - record: Called with each row that the diff has changed differently: the kind, the outcome, and the rows at the
  ///     recipients, here, and after the diff.
  func cover(makingRoom makeRoom: (_ row: [UInt8]) throws -> Bool, _ record: Record) throws {
    let found = try exposed.map { try rows.row($0.key) }
    var targets: [Target] = []
    for (row, shared) in zip(exposed, found) {
      switch row.edit.operation {
      case .void: break
      case .delete: if shared != nil { targets.append((row.key, nil)) }
      // A DELETE beats every edit.
      case .update where shared == nil: break
      case .insert, .update:
        let own = try row.own.map { try masked($0, by: columns(of: row.edit)) }
        targets.append((key: row.key, row: try own?.filled(from: shared)))
      }
    }
    let all = exposed
    exposed.removeAll()
    keys.removeAll()
    hasExposedAll = false
    let refused = Set(try write(targets, makingRoom: makeRoom).map(\.key.bytes))
    for (row, shared) in zip(all, found) {
      try note(row, shared, isRefused: refused.contains(row.key.bytes), record)
    }
  }

  /// Records the outcome for a row, and the rest of its edit.
  private func note(_ row: Row, _ shared: [UInt8]?, isRefused: Bool, _ record: Record) throws {
    let wasChanged = shared != row.shared
    switch row.edit.operation {
    case .void: break
    case .delete where shared == nil:
      try unsent?.note(.void, ColumnSet(), shared: nil, of: row.key)
    case .delete:
      if wasChanged { try record(.notFound, .omitted, layout, row.shared, nil, shared) }
      try unsent?.note(.delete, ColumnSet(), shared: shared, of: row.key)
    case .update where shared == nil:
      try record(.data, .tookIncoming, layout, row.shared, row.own, nil)
      try unsent?.note(.void, ColumnSet(), shared: nil, of: row.key)
    case .insert, .update:
      let columns = columns(of: row.edit)
      if try isRefused || wasChanged && isDisputed(row, shared, columns) {
        let kind: ConflictKind = isRefused ? .constraint : row.edit.operation == .insert ? .conflict : .data
        try record(kind, isRefused ? .tookIncoming : .keptLocal, layout, row.shared, row.own, shared)
      }
      // If the recipients have the row, too, its insertion becomes an edit of their row.
      let operation: UnsentRows.Operation = shared == nil ? .insert : .update
      try unsent?.note(isRefused ? .void : operation, columns, shared: shared, of: row.key)
    }
  }

  /// The columns that an edit has set.
  private func columns(of edit: UnsentRows.Edit) -> ColumnSet {
    edit.operation == .insert ? allColumns : edit.columns
  }

  private var allColumns: ColumnSet {
    var columns = ColumnSet()
    for place in layout.columns.indices where !layout.key.contains(place) { columns.insert(place) }
    return columns
  }

  /// True if the diff has set a column to another value than the edit.
  private func isDisputed(_ row: Row, _ shared: [UInt8]?, _ columns: ColumnSet) throws -> Bool {
    guard let own = row.own, let shared else { return false }
    let before = try row.shared.map { try ChangesetValue.record($0) }
    let (mine, theirs) = (try ChangesetValue.record(own), try ChangesetValue.record(shared))
    return columns.positions.contains { place in
      mine.indices.contains(place) && theirs.indices.contains(place) && mine[place] != theirs[place]
        && before?[place] != theirs[place]
    }
  }

  /// A row with only the columns that were set, and the key.
  private func masked(_ record: [UInt8], by columns: ColumnSet) throws -> [UInt8] {
    let row = try RowCopy(record: record)
    var writer = ChangesetWriter()
    record.withRawSpan { bytes in
      for (place, value) in row.values.enumerated() {
        let isWanted = columns.contains(place) || layout.key.contains(place)
        writer.append(isWanted ? value : .undefined, of: bytes)
      }
    }
    return writer.bytes
  }
}

extension [UInt8] {
  /// A record of a row, with the values of another row in place of missing ones.
  fileprivate func filled(from other: [UInt8]?) throws -> [UInt8] {
    guard let other else { return self }
    let (row, rest) = (try RowCopy(record: self), try RowCopy(record: other))
    var writer = ChangesetWriter()
    for (place, value) in row.values.enumerated() {
      if value.isDefined || !rest.values.indices.contains(place) {
        withRawSpan { writer.append(value, of: $0) }
      } else {
        other.withRawSpan { writer.append(rest.values[place], of: $0) }
      }
    }
    return writer.bytes
  }
}
