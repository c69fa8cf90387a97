import SQLiteChangesets
import SQLiteConnections
import SQLiteFiles
import SQLiteSchemas

/// The `pages` method: only rows on pages that differ are looked at.
///
/// Both tables' rows on such pages are gone through together, in the order of their trees. Rows that are stored in the same
/// bytes cancel out. What is left is paired by key: at once where the tree is in the order of the key, else when all of it
/// has been gathered and sorted.
final class PageMerge {
  private let table: TableDefinition
  private let rows: PageComparison.ChangedRows
  private let older: StoredRow
  private let newer: StoredRow
  private let changes: ChangeCollector
  private let count: Int
  private let isKey: [Bool]
  private let key: [Int]
  /// Key columns that can hold NULL.
  private let nullable: [Int]
  /// Whether the rows of the table have rowids, and whether they are told apart by them.
  private let hasRowIDs: Bool
  private let isKeyRowID: Bool
  /// The order of a WITHOUT ROWID table, and whether it is that of the changes.
  private let order: [StoredOrder]?
  private let isInKeyOrder: Bool
  /// Which columns differ between the two rows in hand.
  private var changed: [Bool]

  /// Rows that have found no partner yet, as changes: those of the older database as DELETE, of the newer as INSERT; and
  /// UPDATEs that only have to be brought in order.
  private let pending = ChangesetSpool()
  private var writer = ChangesetWriter()
  private var pendingCount = 0
  private var withoutKey = KeylessRows()

  private static let flushLimit = 1 << 20

  /// - Parameters:
  ///   - table: The table, the same in both databases.
  ///   - older: How it lies in the older database.
  ///   - newer: How it lies in the newer database; the signatures are equal.
  ///   - comparison: The pages of both.
  ///   - changes: Gets the difference.
  init(
    _ table: TableDefinition, older: StoredTable, newer: StoredTable, _ comparison: PageComparison,
    into changes: ChangeCollector
  ) throws {
    self.table = table
    self.changes = changes
    rows = try comparison.changedRows(older: older.root, newer: newer.root, isTable: newer.hasRowIDs)
    let missing = MissingValues(newer, isStrict: table.isStrict)
    self.older = StoredRow(rows.older, of: older, missing: missing)
    self.newer = StoredRow(rows.newer, of: newer, missing: missing)
    count = table.changesetColumns.count
    key = table.keyPlaces
    let key = key
    isKey = (0..<count).map { key.contains($0) }
    nullable = table.nullableKeyColumns.compactMap { table.column(named: $0.name) }.filter { newer.fields[$0] != nil }
    changed = [Bool](repeating: false, count: count)
    isKeyRowID = newer.hasRowIDs && key.count == 1 && newer.fields[key[0]] == nil
    order = newer.order
    isInKeyOrder = newer.order.map { $0.allSatisfy(\.isPlain) } ?? false
    hasRowIDs = newer.hasRowIDs
  }

  /// Writes the difference into the collector.
  ///
  /// - Throws: `DatabaseFileError` for damage, `MissingValues.Unknown`; then nothing of what was collected is of use.
  func run() throws {
    if hasRowIDs { try mergeByRowID() } else if let order { try merge(by: order) } else { try gatherAll() }
    try settlePending()
    try withoutKey.write(into: changes)
  }

  // MARK: Going through

  private func mergeByRowID() throws {
    var hasOld = try rows.older.next()
    var hasNew = try rows.newer.next()
    while hasOld || hasNew {
      let isOld = hasOld && (!hasNew || rows.older.rowID <= rows.newer.rowID)
      let isNew = hasNew && (!hasOld || rows.newer.rowID <= rows.older.rowID)
      if isOld, isNew {
        if try !rows.isSameRecord() { try pair() }
      } else if isOld {
        try older.read()
        try gone(older, .delete)
      } else {
        try newer.read()
        try gone(newer, .insert)
      }
      if isOld { hasOld = try rows.older.next() }
      if isNew { hasNew = try rows.newer.next() }
    }
  }

  /// Two rows with one rowid that are stored differently.
  private func pair() throws {
    try older.read()
    try newer.read()
    if try isKeyRowID || hasSameKey() { return try update() }
    try gone(older, .delete)
    try gone(newer, .insert)
  }

  /// Whether the keys of both present rows are the same, and name a row at all.
  private func hasSameKey() throws -> Bool {
    try !hasNullKey(older) && key.allSatisfy { try older.value($0).isIdentical(to: newer.value($0)) }
  }

  private func hasNullKey(_ row: StoredRow) throws -> Bool {
    try nullable.contains { try row.value($0).isNull }
  }

  /// A row that is in one database only, or seems to be.
  private func gone(_ row: StoredRow, _ operation: ChangeOperation) throws {
    if isKeyRowID || isInKeyOrder { return try changes.add(operation) { try append(row, to: &$0) } }
    if try hasNullKey(row) {
      var content = ChangesetWriter()
      try append(row, to: &content)
      withoutKey.add(content.bytes, operation)
      return
    }
    writer.beginChange(operation)
    try append(row, to: &writer)
    try endPending()
  }

  private func append(_ row: StoredRow, to writer: inout ChangesetWriter) throws {
    for column in 0..<count { try row.value(column).append(to: &writer) }
  }

  /// Writes what has changed in a row, if anything has.
  private func update() throws {
    var anyChange = false
    for column in 0..<count where !isKey[column] {
      changed[column] = try !older.value(column).isIdentical(to: newer.value(column))
      if changed[column] { anyChange = true }
    }
    guard anyChange else { return }
    if isKeyRowID || isInKeyOrder { return try changes.add(.update) { try appendUpdate(to: &$0) } }
    writer.beginChange(.update)
    try appendUpdate(to: &writer)
    try endPending()
  }

  private func appendUpdate(to writer: inout ChangesetWriter) throws {
    for column in 0..<count {
      if isKey[column] || changed[column] {
        try older.value(column).append(to: &writer)
      } else {
        writer.appendUndefined()
      }
    }
    for column in 0..<count {
      if changed[column] { try newer.value(column).append(to: &writer) } else { writer.appendUndefined() }
    }
  }

  private func merge(by keyOrder: [StoredOrder]) throws {
    var hasOld = try rows.older.next()
    var hasNew = try rows.newer.next()
    var isOldRead = false
    var isNewRead = false
    while hasOld || hasNew {
      var order = hasOld ? -1 : 1
      if hasOld, hasNew {
        if try rows.isSameRecord() {
          order = 0
        } else {
          if !isOldRead { try older.read() }
          if !isNewRead { try newer.read() }
          (isOldRead, isNewRead) = (true, true)
          order = try self.order(by: keyOrder)
          if order == 0 {
            if try hasSameKey() {
              try update()
            } else {
              try gone(older, .delete)
              try gone(newer, .insert)
            }
          }
        }
      }
      if order < 0, !isOldRead { try older.read() }
      if order > 0, !isNewRead { try newer.read() }
      if order < 0 { try gone(older, .delete) }
      if order > 0 { try gone(newer, .insert) }
      if order <= 0 { (hasOld, isOldRead) = (try rows.older.next(), false) }
      if order >= 0 { (hasNew, isNewRead) = (try rows.newer.next(), false) }
    }
  }

  private func order(by keyOrder: [StoredOrder]) throws -> Int {
    for part in keyOrder {
      let order = part.order(try older.value(part.column), try newer.value(part.column))
      if order != 0 { return order }
    }
    return 0
  }

  /// A WITHOUT ROWID table in an order that nobody here knows: rows are paired when all of them are there.
  private func gatherAll() throws {
    var hasOld = try rows.older.next()
    var hasNew = try rows.newer.next()
    while hasOld || hasNew {
      if hasOld, hasNew, try rows.isSameRecord() {
        hasOld = try rows.older.next()
        hasNew = try rows.newer.next()
        continue
      }
      if hasOld {
        try older.read()
        try gone(older, .delete)
        hasOld = try rows.older.next()
      }
      if hasNew {
        try newer.read()
        try gone(newer, .insert)
        hasNew = try rows.newer.next()
      }
    }
  }

  // MARK: Pairing what is left

  private func endPending() throws {
    pendingCount += 1
    if writer.count >= Self.flushLimit { try flushPending() }
  }

  private func flushPending() throws {
    try pending.append(writer.bytes)
    writer.removeAll()
  }

  private func settlePending() throws {
    guard pendingCount > 0 else { return }
    try flushPending()
    let header = ChangesetTable(name: table.name, keyFlags: table.keyFlags)
    var sorter = try ChangeSorter(header, sections: [0..<pending.count], of: pending)
    let pairing = ChangePairing(header)
    while try sorter.advance() {
      try sorter.bytes.withRawSpan { try settle(&sorter, pairing, in: $0) }
    }
  }

  /// Goes through changes in the order of the key: a DELETE and an INSERT of one key are one row that changed.
  private func settle(_ sorter: inout ChangeSorter, _ pairing: ChangePairing, in bytes: RawSpan) throws {
    var held: ChangePlace?
    while let place = sorter.next(in: bytes) {
      guard let previous = held else {
        held = place
        continue
      }
      if previous.operation != .update, place.operation != .update, previous.operation != place.operation,
        pairing.haveSameKey(previous, place, in: bytes)
      {
        let (delete, insert) = previous.operation == .delete ? (previous, place) : (place, previous)
        try pairing.add(updateFrom: delete, to: insert, in: bytes, into: changes)
        held = nil
      } else {
        try pairing.add(previous, in: bytes, into: changes)
        held = place
      }
    }
    if let held { try pairing.add(held, in: bytes, into: changes) }
  }
}
