import SQLiteChangesets
import SQLiteFiles
import SQLiteSchemas

/// The `pages` method: looks only at rows on pages that differ.
///
/// The rows of both tables on such pages are read side by side, in the order of their trees. Rows with the same stored
/// bytes cancel out. The others are paired by key: at once if the tree is in the order of the key, otherwise after all
/// of them have been collected and sorted.
final class PageMerge {
  private let rows: PageComparison.ChangedRows
  private let older: StoredRow
  private let newer: StoredRow
  private let changes: ChangeCollector
  /// Sorts changes that are not found in the order of the key; nil if all are.
  private let pairing: ChangePairing?
  private let progress: ProgressReporter
  private let key: [Int]
  /// Key columns that can hold NULL.
  private let nullable: [Int]
  private let hasRowIDs: Bool
  /// True if the rowid is the key.
  private let isKeyRowID: Bool
  /// The order of a WITHOUT ROWID table; empty if unknown.
  private let order: [KeyPartOrder]
  private var rowsWithNullKey: RowMultiset

  /// - Parameters:
  ///   - table: The table, the same in both databases.
  ///   - older: How it is stored in the older database.
  ///   - newer: How it is stored in the newer database; the signatures are equal.
  ///   - comparison: The pages of both.
  ///   - changes: Gets the difference.
  init(
    _ table: TableDefinition, older: TableStorage, newer: TableStorage, _ comparison: PageComparison,
    into changes: ChangeCollector, _ progress: ProgressReporter
  ) throws {
    self.changes = changes
    self.progress = progress
    rowsWithNullKey = RowMultiset(of: table)
    rows = try comparison.changedRows(older: older.root, newer: newer.root, isTable: newer.hasRowIDs)
    let defaults = AddedColumnDefaults(newer)
    self.older = StoredRow(rows.older, of: older, defaults: defaults)
    self.newer = StoredRow(rows.newer, of: newer, defaults: defaults)
    key = table.keyIndexes
    nullable = table.nullableKeyColumns.compactMap { table.column(named: $0.name) }.filter { newer.fields[$0] != nil }
    hasRowIDs = newer.hasRowIDs
    isKeyRowID = newer.hasRowIDs && key.count == 1 && newer.fields[key[0]] == nil
    order = newer.order ?? []
    let isInKeyOrder = isKeyRowID || !order.isEmpty && order.allSatisfy(\.isPlain)
    pairing = isInKeyOrder ? nil : ChangePairing(of: table)
  }

  /// Writes the difference into the collector.
  ///
  /// - Throws: `DatabaseFileError` for damage, `AddedColumnDefaults.Unknown`; then nothing of what was collected is of use.
  func run() throws {
    var counter = RowCounter(progress)
    var hasOld = try older.next()
    var hasNew = try newer.next()
    while hasOld || hasNew {
      try counter.count()
      let order = try !hasOld ? 1 : !hasNew ? -1 : orderOfRows()
      switch order {
      case nil: break
      case 0: try addPair()
      case let order? where order < 0: try addUnpaired(older, .delete)
      default: try addUnpaired(newer, .insert)
      }
      if order ?? 0 <= 0 { hasOld = try older.next() }
      if order ?? 0 >= 0 { hasNew = try newer.next() }
    }
    counter.finish()
    try pairing?.finish(into: changes, progress)
    try rowsWithNullKey.write(into: changes)
  }

  /// The order of the two rows in the trees; nil if both have the same stored bytes.
  @inline(__always)
  private func orderOfRows() throws -> Int? {
    if hasRowIDs {
      let (mine, theirs) = (older.rowID, newer.rowID)
      if mine != theirs { return mine < theirs ? -1 : 1 }
      return try rows.isSameRecord() ? nil : 0
    }
    if try rows.isSameRecord() { return nil }
    try older.read()
    try newer.read()
    for part in order {
      let order = try part.order(older.value(part.column), newer.value(part.column))
      if order != 0 { return order }
    }
    return 0
  }

  /// Adds two rows in one place of both trees that are stored differently.
  private func addPair() throws {
    try older.read()
    try newer.read()
    guard try isKeyRowID || hasSameKey() else {
      try addUnpaired(older, .delete)
      return try addUnpaired(newer, .insert)
    }
    if let pairing {
      try pairing.addUpdate(from: older, to: newer)
    } else {
      try changes.addUpdate(from: older, to: newer)
    }
  }

  /// True if the keys of both rows are the same, and identify a row at all.
  private func hasSameKey() throws -> Bool {
    try !hasNullKey(older) && key.allSatisfy { try older.value($0).isIdentical(to: newer.value($0)) }
  }

  private func hasNullKey(_ row: StoredRow) throws -> Bool { try nullable.contains { try row.value($0).isNull } }

  /// Adds a row that has no counterpart in this place of the other tree.
  private func addUnpaired(_ row: StoredRow, _ operation: ChangeOperation) throws {
    try row.read()
    guard let pairing else { return try changes.add(operation, row) }
    if try hasNullKey(row) { try rowsWithNullKey.add(operation, row) } else { try pairing.add(operation, row) }
  }
}

/// The rows of a cursor, with their values by the columns of the changeset.
final class StoredRow: RowValues {
  private let cursor: BTreeCursor
  private let table: TableStorage
  private let defaults: AddedColumnDefaults
  private let record: RecordReader
  private var isRead = false

  /// - Parameter defaults: What rows have that were written before a column was added.
  init(_ cursor: BTreeCursor, of table: TableStorage, defaults: AddedColumnDefaults) {
    self.cursor = cursor
    self.table = table
    self.defaults = defaults
    record = RecordReader(limit: table.fieldLimit)
  }

  /// The row's rowid; 0 if it has none.
  var rowID: Int64 { cursor.rowID }

  /// Goes on to the next row.
  ///
  /// - Returns: False after the last one.
  func next() throws -> Bool {
    isRead = false
    return try cursor.next()
  }

  /// Reads the header of the row's record; to be called before its values are asked for.
  func read() throws {
    if isRead { return }
    try record.read(try cursor.payload(), page: cursor.page)
    isRead = true
  }

  /// The value of a column of the changeset.
  ///
  /// - Throws: `AddedColumnDefaults.Unknown` when the row is too short, and only SQLite can say what takes the place.
  func value(_ column: Int) throws -> RowValue {
    guard let field = table.fields[column] else { return .integer(cursor.rowID) }
    guard field < record.columnCount else { return try defaults.value(column) }
    switch record.storageClass(field) {
    case .null: return .null
    case .integer:
      let value = record.integer(field)
      return table.isReal[column] ? .real(Double(value)) : .integer(value)
    case .real: return .real(record.real(field))
    case .text: return .text(record.payload(field))
    case .blob: return .blob(record.payload(field))
    }
  }
}
