import BuckiaApply
import SQLiteChangesets

/// Makes one UPDATE of a row's DELETE and INSERT.
final class ChangePairing {
  private let one: DecodedChange
  private let two: DecodedChange
  private let key: [Int]
  private let isKey: [Bool]
  private let walk: ChangeWalk

  init(_ table: ChangesetTable) {
    one = DecodedChange(of: table)
    two = DecodedChange(of: table)
    isKey = table.keyFlags.indices.map { table.isKey($0) }
    key = table.keyFlags.indices.filter { table.isKey($0) }
    walk = ChangeWalk(0..<0, of: table)
  }

  /// Whether an INSERT and a DELETE, in whatever order, speak of the same key, byte for byte.
  func haveSameKey(_ first: ChangePlace, _ second: ChangePlace, in bytes: RawSpan) -> Bool {
    one.read(first, in: bytes)
    two.read(second, in: bytes)
    for column in key where !one.row(column).isIdentical(to: two.row(column), in: bytes, otherIn: bytes) {
      return false
    }
    return true
  }

  /// Writes a change as it stands.
  func add(_ place: ChangePlace, in bytes: RawSpan, into changes: ChangeCollector) throws {
    let values = bytes.array(place.values..<walk.end(of: place, in: bytes))
    try changes.add(place.operation) { $0.append(encoded: values) }
  }

  /// Writes what is different between the row of a DELETE and that of an INSERT with the same key, if anything is.
  func add(
    updateFrom delete: ChangePlace, to insert: ChangePlace, in bytes: RawSpan, into changes: ChangeCollector
  ) throws {
    one.read(delete, in: bytes)
    two.read(insert, in: bytes)
    var isChanged = [Bool](repeating: false, count: isKey.count)
    for column in isKey.indices where !isKey[column] {
      isChanged[column] = !one.old(column).isIdentical(to: two.new(column), in: bytes, otherIn: bytes)
    }
    guard isChanged.contains(true) else { return }
    var update = ChangesetWriter()
    for column in isKey.indices {
      if isKey[column] || isChanged[column] {
        update.append(one.old(column), of: bytes)
      } else {
        update.appendUndefined()
      }
    }
    for column in isKey.indices {
      if isChanged[column] { update.append(two.new(column), of: bytes) } else { update.appendUndefined() }
    }
    let values = update.bytes
    try changes.add(.update) { $0.append(encoded: values) }
  }
}
