import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// One decoded change: the positions of its values, and the columns that have one.
///
/// It is created once for a table and reused for each change. The rules are those of `ChangesetReader`: the key of an
/// UPDATE is among its old values only, and old values of unchanged columns are ignored.
final class DecodedChange {
  /// The operation.
  private(set) var operation = ChangeOperation.insert
  /// The columns outside the key that have an old value to compare with.
  private(set) var compared = ColumnMask()
  /// The columns that an UPDATE sets.
  private(set) var changed = ColumnMask()
  /// The key columns in which the row, the old one if there is one, has NULL.
  private(set) var nullKeys = ColumnMask()

  private let columnCount: Int
  private let isKey: [Bool]
  private let isPatchset: Bool
  private let keepsUnchanged: Bool
  private let values: UnsafeMutableBufferPointer<ValueSlice>

  /// - Parameter keepsUnchanged: True to compare old values of unchanged columns of an UPDATE, too, as rows without a
  ///   key have them.
  init(of table: ChangesetTable, keepingUnchanged keepsUnchanged: Bool = false) {
    self.keepsUnchanged = keepsUnchanged
    columnCount = table.columnCount
    isKey = table.keyFlags.map { $0 != 0 }
    isPatchset = table.format == .patchset
    values = .allocate(capacity: 2 * table.columnCount)
    values.initialize(repeating: .undefined)
  }

  // Sound: allocated in init, with a trivial element type, and touched through checked indices only.
  deinit { values.deallocate() }

  /// The old value of a column, which its author had.
  @inline(__always)
  func old(_ column: Int) -> ValueSlice { values[column] }

  /// The new value of a column.
  @inline(__always)
  func new(_ column: Int) -> ValueSlice { values[columnCount + column] }

  /// The value that the row has in a column before the change; for an INSERT, after it.
  @inline(__always)
  func row(_ column: Int) -> ValueSlice { operation == .insert ? new(column) : old(column) }

  /// All new values, undefined for columns without one.
  var newRow: [ValueSlice] { Array(values[columnCount...]) }

  /// True if the row has NULL in its key, and only its content identifies it.
  var hasNullKey: Bool { !nullKeys.isEmpty }

  /// Decodes a change.
  func read(_ place: ChangePlace, in bytes: RawSpan) {
    operation = place.operation
    var position = place.values
    var masks = Masks()
    switch place.operation {
    case .insert: readInsert(at: &position, &masks, in: bytes)
    case .delete: readDelete(at: &position, &masks, in: bytes)
    case .update: readUpdate(at: &position, &masks, in: bytes)
    }
    compared = masks.compared
    changed = masks.changed
    nullKeys = masks.nullKeys
  }

  /// The masks while they are gathered: a variable of a class costs a check with each access.
  private struct Masks {
    var compared = ColumnMask()
    var changed = ColumnMask()
    var nullKeys = ColumnMask()
  }

  private func readInsert(at position: inout Int, _ masks: inout Masks, in bytes: RawSpan) {
    clear(0)
    for column in 0..<columnCount {
      let value = ValueSlice(verified: bytes, at: &position)
      values[columnCount + column] = value
      if value.kind == .null, isKey[column] { masks.nullKeys.insert(column) }
    }
  }

  private func readDelete(at position: inout Int, _ masks: inout Masks, in bytes: RawSpan) {
    clear(columnCount)
    for column in 0..<columnCount {
      guard !isPatchset || isKey[column] else {
        values[column] = .undefined
        continue
      }
      let value = ValueSlice(verified: bytes, at: &position)
      values[column] = value
      if !isKey[column] {
        masks.compared.insert(column)
      } else if value.kind == .null {
        masks.nullKeys.insert(column)
      }
    }
  }

  private func readUpdate(at position: inout Int, _ masks: inout Masks, in bytes: RawSpan) {
    if isPatchset {
      clear(0)
    } else {
      for column in 0..<columnCount { values[column] = ValueSlice(verified: bytes, at: &position) }
    }
    for column in 0..<columnCount {
      let value = ValueSlice(verified: bytes, at: &position)
      if isKey[column] {
        if isPatchset { values[column] = value }
        values[columnCount + column] = .undefined
        if values[column].kind == .null { masks.nullKeys.insert(column) }
      } else {
        values[columnCount + column] = value
        if !value.isDefined {
          if keepsUnchanged, values[column].isDefined {
            masks.compared.insert(column)
          } else {
            values[column] = .undefined
          }
        } else {
          masks.changed.insert(column)
          if values[column].isDefined { masks.compared.insert(column) }
        }
      }
    }
  }

  /// Makes the change leave some columns as they are, and compare none of them.
  func leaveOut(_ columns: ColumnMask) {
    for column in 0..<columnCount where columns.contains(column) && !isKey[column] {
      values[column] = .undefined
      values[columnCount + column] = .undefined
    }
    changed = changed.subtracting(columns)
    compared = compared.subtracting(columns)
  }

  private func clear(_ start: Int) {
    for index in start..<(start + columnCount) { values[index] = .undefined }
  }
}

/// A set of columns by their places, cheap to compare and to hash: statements are looked up by such sets for each row.
struct ColumnMask: Hashable {
  /// Columns 0 to 63.
  private var first: UInt64 = 0
  /// The other columns, without zero words at the end, because equal sets must have equal words.
  private var rest: [UInt64] = []

  /// True if no column is in it.
  var isEmpty: Bool { first == 0 && rest.isEmpty }

  /// Adds a column.
  @inline(__always)
  mutating func insert(_ column: Int) {
    if column < 64 { first |= 1 << UInt64(column) } else { insertBeyond(column) }
  }

  private mutating func insertBeyond(_ column: Int) {
    let word = column / 64 - 1
    while rest.count <= word { rest.append(0) }
    rest[word] |= 1 << UInt64(column % 64)
  }

  /// The columns that are in this set, or in another.
  func union(_ other: ColumnMask) -> ColumnMask {
    var union = ColumnMask()
    union.first = first | other.first
    union.rest = (0..<max(rest.count, other.rest.count)).map { word($0) | other.word($0) }
    return union
  }

  /// Adds the columns of another set.
  mutating func formUnion(_ other: ColumnMask) { if !other.isEmpty { self = union(other) } }

  /// The columns that are in this set, and not in another.
  func subtracting(_ other: ColumnMask) -> ColumnMask {
    if other.isEmpty { return self }
    var difference = ColumnMask()
    difference.first = first & ~other.first
    difference.rest = rest.indices.map { rest[$0] & ~other.word($0) }
    while difference.rest.last == 0 { difference.rest.removeLast() }
    return difference
  }

  private func word(_ index: Int) -> UInt64 { index < rest.count ? rest[index] : 0 }

  /// True if a column is in it.
  func contains(_ column: Int) -> Bool {
    if column < 64 { return first >> UInt64(column) & 1 != 0 }
    let word = column / 64 - 1
    return word < rest.count && rest[word] >> UInt64(column % 64) & 1 != 0
  }
}

/// The key of a row as bytes: the values of its columns in the order of the key, as a changeset has them.
struct RowKey {
  private let columns: [Int]

  init(of table: ChangesetTable) {
    columns = table.keyFlags.indices.filter { table.isKey($0) }.sorted { table.keyFlags[$0] < table.keyFlags[$1] }
  }

  /// The key of the row that a change is about.
  func bytes(of change: DecodedChange, _ bytes: RawSpan) -> [UInt8] {
    var writer = ChangesetWriter()
    for column in columns { writer.append(change.row(column), of: bytes) }
    return writer.bytes
  }

  /// The identity of the row of an INSERT or UPDATE among the changes of its table: its key, or all values of the
  /// change if the key has NULL.
  func identity(of change: DecodedChange, _ bytes: RawSpan) -> [UInt8] {
    guard change.hasNullKey else { return self.bytes(of: change, bytes) }
    var writer = ChangesetWriter()
    for value in change.newRow where value.isDefined { writer.append(value, of: bytes) }
    return writer.bytes
  }
}

extension RowIdentity {
  /// The identity of a changed row: its key, or all of its values if the key has NULL.
  init(of change: DecodedChange, in table: ChangesetTable, _ bytes: RawSpan) {
    let columns = (0..<table.columnCount).filter { change.hasNullKey || table.isKey($0) }
    self.init(columns.map { change.row($0) }, in: bytes)
  }
}

/// The positions of each table's changes in a changeset, by which one table can be read alone.
struct TableSections {
  private let summary: ChangesetSummary
  private let changeset: TemporaryBuffer
  private let places: [TableName: Int]

  /// - Parameters:
  ///   - summary: The summary of the changeset.
  ///   - changeset: The changes.
  init(_ summary: ChangesetSummary, of changeset: TemporaryBuffer) {
    self.summary = summary
    self.changeset = changeset
    places = Dictionary(summary.tables.enumerated().map { (TableName($1.table.name), $0) }) { first, _ in first }
  }

  /// The table with a name, as the changeset describes it.
  func table(named name: TableName) -> ChangesetTable? { places[name].map { summary.tables[$0].table } }

  /// True if any change of a table is a DELETE or an UPDATE. Only these can remove a value that others refer to.
  func takeAway(from table: TableName) -> Bool {
    places[table].map { summary.tables[$0].updated + summary.tables[$0].deleted > 0 } ?? false
  }

  /// Passes each change of a table to `body`, in their order.
  func forEachChange(of name: TableName, _ body: (DecodedChange, RawSpan) throws -> Void) throws {
    guard let place = places[name] else { return }
    let table = summary.tables[place].table
    let window = ChangesetWindow(changeset)
    let change = DecodedChange(of: table)
    for section in summary.sections where section.table == place {
      var stretches = ChangeStretches(section.changes, of: table, in: window)
      while try stretches.advance() {
        try window.withBytes { bytes in
          while let place = stretches.next(in: bytes) {
            change.read(place, in: bytes)
            try body(change, bytes)
          }
        }
      }
    }
  }
}
