import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas
@testable import BuckiaSchemaPlans

/// Keys that only compare equal, or that the local table makes equal.
extension ReferenceApplier {
  /// Whether a DELETE stands behind an INSERT, and each row is changed once. A DELETE and an INSERT of keys that are equal and
  /// not the same are changes of two rows.
  static func mayWait(_ changes: [Change], _ table: Table) -> Bool {
    guard let first = changes.firstIndex(where: { $0.operation == .insert }),
      changes[first...].contains(where: { $0.operation == .delete })
    else { return false }
    var keys: [[RawValue]: [(key: [RawValue], operation: ChangeOperation)]] = [:]
    for change in changes {
      let key = key(of: change, table)
      keys[key.map(comparable), default: []].append((key, change.operation))
    }
    return keys.values.allSatisfy { same in
      same.count == 1
        || same.count == 2 && !zip(same[0].key, same[1].key).allSatisfy(isSame)
          && Set(same.map(\.operation)) == [.insert, .delete]
    }
  }

  private static func key(of change: Change, _ table: Table) -> [RawValue] {
    let row = change.operation == .insert ? change.new : change.old
    return table.isKey.indices.filter { table.isKey[$0] }.map { row[$0] ?? .null }
  }

  /// Whether two values are the same to the last bit.
  private static func isSame(_ one: RawValue, _ other: RawValue) -> Bool {
    if case (.real(let mine), .real(let theirs)) = (one, other) { return mine.bitPattern == theirs.bitPattern }
    return one == other
  }

  /// The value, or of equal numbers one.
  private static func comparable(_ value: RawValue) -> RawValue {
    guard case .real(let real) = value else { return value }
    return Int64(exactly: real).map { .integer($0) } ?? value
  }

  /// Whether a local row has another key than the one that is inserted, bit for bit.
  func hasOtherKey(_ local: [RawValue], _ change: Change, _ table: Table) -> Bool {
    zip(Self.key(of: change, table), table.isKey.indices.filter { table.isKey[$0] })
      .contains { value, place in !Self.isSame(value, local[place]) }
  }

  /// Whether the table may make one of keys that the changes tell apart.
  static func mergesKeys(
    _ changes: [Change], _ table: Table, on connection: borrowing SQLiteConnection
  ) throws -> Bool {
    let schema = try SchemaReader(connection)
    guard let entry = schema.entry(named: TableName(table.name)) else { return false }
    let columns = try schema.definition(of: entry).columns
    for (place, index) in table.isKey.indices.filter({ table.isKey[$0] }).enumerated() {
      let column = columns.first { ASCIIName.matches($0.name, table.columns[index]) }
      if let column, !ASCIIName.matches(column.collation, "BINARY") { return true }
      let isConverted = changes.map { key(of: $0, table)[place] }.contains { value in
        switch (value, table.affinities[index]) {
        case (.text, .integer), (.text, .numeric), (.text, .real): true
        case (.integer, .text), (.real, .text): true
        default: false
        }
      }
      if isConverted { return true }
    }
    return false
  }
}
