import SQLiteChangesets
import SQLiteConnections

/// One change taken apart: where each of its values lies, and which columns have one.
///
/// Made once for a table and filled again and again. The rules are those of `ChangesetReader`: the key of an UPDATE is
/// among its old values only, and an old value of a column that it leaves alone is none.
final class DecodedChange {
  /// What the change does.
  private(set) var operation = ChangeOperation.insert
  /// The columns outside the key that have an old value to compare with.
  private(set) var compared = ColumnMask()
  /// The columns that an UPDATE sets.
  private(set) var changed = ColumnMask()
  /// The columns of the key in which the row, old where there is an old one, holds NULL.
  private(set) var nullKeys = ColumnMask()

  private let columnCount: Int
  private let isKey: [Bool]
  private let isPatchset: Bool
  private let keepsUnchanged: Bool
  private let values: UnsafeMutableBufferPointer<ValueSlice>

  /// - Parameter keepsUnchanged: True to compare old values of columns that an UPDATE leaves alone, too, as those of a row without a key have them.
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

  /// The old value of a column: as its author saw it.
  @inline(__always)
  func old(_ column: Int) -> ValueSlice { values[column] }

  /// The new value of a column.
  @inline(__always)
  func new(_ column: Int) -> ValueSlice { values[columnCount + column] }

  /// The value that the row has in a column before the change; for an INSERT, after it.
  @inline(__always)
  func row(_ column: Int) -> ValueSlice { operation == .insert ? new(column) : old(column) }

  /// All new values, undefined where there is none.
  var newRow: [ValueSlice] { Array(values[columnCount...]) }

  /// Whether the row has NULL in its key, so that nothing but its content tells it apart.
  var hasNullKey: Bool { !nullKeys.isEmpty }

  /// Takes a change apart.
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

  /// Makes an UPDATE leave some columns as they are.
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
