import BuckiaBytes
@testable import BuckiaApply
@testable import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Rows that refer to left-out rows of the same changes, found by comparing each with each.
extension ReferenceApplier {
  /// The identity of a row of the changes.
  struct Row: Hashable {
    let table: String
    let key: [RawValue?]

    init(_ change: Change, _ table: Table) {
      self.table = table.name
      let row = change.operation == .insert ? change.new : change.old
      key = table.isKey.indices.filter { table.isKey[$0] }.map { row[$0] }
    }
  }

  /// Records a row that is left out, unless the local row is the same.
  func noteRefused(_ change: Change, _ table: Table, local: [RawValue]?) {
    if let local, zip(zip(change.new, local), table.affinities).allSatisfy({ Self.isSame($0.0, $0.1, $1) }) { return }
    refused.insert(Row(change, table))
  }

  private static func isSame(_ new: RawValue?, _ local: RawValue, _ affinity: Affinity) -> Bool {
    switch (new, local, affinity) {
    case (.real(let new)?, .integer(let local), .integer), (.real(let new)?, .integer(let local), .numeric):
      Int64(exactly: new) == local
    case (.integer(let new)?, .real(let local), .real): Double(new) == local
    case (.real(let new)?, .real(let local), .real): new == local
    case (.real(let new)?, .real(let local), _): new.bitPattern == local.bitPattern
    default: new == local
    }
  }

  /// Finds all rows that refer to a refused one, directly or through others.
  ///
  /// - Returns: True if new ones were found.
  func findOrphans(
    in sections: [(Table, [Change])], on connection: borrowing SQLiteConnection
  ) throws -> Bool {
    let schema = try SchemaReader(connection)
    var found: [Row: Set<Row>] = [:]
    var open = Array(refused)
    var seen = refused
    while let next = open.popLast() {
      guard let (parent, insert) = Self.insert(of: next, in: sections) else { continue }
      for (table, changes) in sections where !table.columns.isEmpty {
        guard let entry = schema.entry(named: TableName(table.name)),
          let target = schema.entry(named: TableName(parent.name))
        else { continue }
        let definition = try schema.definition(of: target)
        for key in try schema.definition(of: entry).foreignKeys where TableName(key.parent) == target.name {
          let matching = try children(changes, table, key, of: insert, parent, definition, on: connection)
          for child in matching where Row(child, table) != next {
            found[Row(child, table), default: []].insert(next)
            if child.operation == .insert, staysOut(table.name), seen.insert(Row(child, table)).inserted {
              open.append(Row(child, table))
            }
          }
        }
      }
    }
    let before = (parents, lost)
    parents.merge(found) { $0.union($1) }
    lost.formUnion(refused.intersection(parents.values.reduce(into: []) { $0.formUnion($1) }))
    return (parents, lost) != before
  }

  /// True if a row must be asked about because it refers to one that is left out.
  func hasLostParent(_ row: Row) -> Bool {
    !taken.contains(row) && parents[row, default: []].contains { lost.contains($0) || !taken.contains($0) }
  }

  private static func insert(of row: Row, in sections: [(Table, [Change])]) -> (Table, Change)? {
    for (table, changes) in sections where table.name == row.table {
      if let change = changes.first(where: { $0.operation == .insert && Row($0, table) == row }) {
        return (table, change)
      }
    }
    return nil
  }

  /// The changes that make their row refer to the given row.
  private func children(
    _ changes: [Change], _ table: Table, _ key: ForeignKey, of row: Change, _ parent: Table,
    _ definition: TableDefinition, on connection: borrowing SQLiteConnection
  ) throws -> [Change] {
    func places(_ names: [String], _ columns: [String]) -> [Int]? {
      let found = names.compactMap { name in columns.firstIndex { ASCIIName.matches($0, name) } }
      return found.count == names.count ? found : nil
    }
    let referred = definition.columns(referredToBy: key)
    guard let columns = places(key.columns, table.columns), referred.count == key.columns.count,
      let own = places(referred.map { definition.columns[$0].name }, parent.columns)
    else { return [] }
    let values = own.map { row.new[$0] }
    guard !values.contains(.null) else { return [] }
    let store = try KeyStore("reference", for: definition, referred, on: connection)
    let insert = try store.insertion(on: connection)
    try bind(values, to: insert)
    try insert.run()
    return try changes.filter { change in
      guard change.operation != .delete, columns.contains(where: { change.new[$0] != nil }) else { return false }
      let local = try localRow(change, table, on: connection)
      var mine: [RawValue?] = []
      for column in columns {
        let value = change.new[column] ?? (table.isKey[column] ? change.old[column] : local?[column])
        guard let value, value != .null else { return false }
        mine.append(value)
      }
      let query = try store.lookup(on: connection)
      try bind(mine, to: query)
      return try query.step()
    }
  }
}
