import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas
@testable import BuckiaApply
@testable import SQLiteSchemas

/// Keys that compare equal without being the same, or that the local table makes equal.
extension ReferenceApplier {
  /// The keys whose INSERTs wait: a DELETE follows an INSERT, and each row is changed once. A DELETE and an INSERT
  /// whose keys are equal but not the same change two rows.
  func waitingKeys(
    _ changes: [Change], _ table: Table, on connection: borrowing SQLiteConnection
  ) throws -> Set<[RawValue]> {
    guard let first = changes.firstIndex(where: { $0.operation == .insert }),
      changes[first...].contains(where: { $0.operation == .delete })
    else { return [] }
    var keys: [[RawValue]: [(key: [RawValue], operation: ChangeOperation)]] = [:]
    for change in changes {
      let key = Self.key(of: change, table)
      keys[key.map(Self.comparable), default: []].append((key, change.operation))
    }
    let areSingle = keys.values.allSatisfy { same in
      same.count == 1
        || same.count == 2 && !zip(same[0].key, same[1].key).allSatisfy(Self.isSame)
          && Set(same.map(\.operation)) == [.insert, .delete]
    }
    guard areSingle else { return [] }
    let deleted = changes.filter { $0.operation == .delete }.map { Self.key(of: $0, table) }
    return try Set(
      changes.filter { $0.operation == .insert }.map { Self.key(of: $0, table) }.filter { key in
        try deleted.contains { try areOne(key, $0, table, on: connection) }
      })
  }

  /// True if the table treats two keys as equal.
  private func areOne(
    _ one: [RawValue], _ other: [RawValue], _ table: Table, on connection: borrowing SQLiteConnection
  ) throws -> Bool {
    let schema = try SchemaReader(connection)
    guard let entry = schema.entry(named: TableName(table.name)) else { return false }
    let definition = try schema.definition(of: entry)
    let columns = table.isKey.indices.filter { table.isKey[$0] }
      .compactMap { definition.column(named: table.columns[$0]) }
    let store = try KeyStore("reference", for: definition, columns, on: connection)
    let insert = try store.insertion(on: connection)
    try bind(one, to: insert)
    try insert.run()
    let query = try store.lookup(on: connection)
    try bind(other, to: query)
    return try query.step()
  }

  static func key(of change: Change, _ table: Table) -> [RawValue] {
    let row = change.operation == .insert ? change.new : change.old
    return table.isKey.indices.filter { table.isKey[$0] }.map { row[$0] ?? .null }
  }

  /// True if two values are the same bit for bit.
  private static func isSame(_ one: RawValue, _ other: RawValue) -> Bool {
    if case .real(let mine) = one, case .real(let theirs) = other { return mine.bitPattern == theirs.bitPattern }
    return one == other
  }

  /// The value, in one form for equal numbers.
  private static func comparable(_ value: RawValue) -> RawValue {
    guard case .real(let real) = value else { return value }
    return Int64(exactly: real).map { .integer($0) } ?? value
  }
}
