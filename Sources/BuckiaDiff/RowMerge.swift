import BuckiaSchemaPlans
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The `rows` method: both tables are read once in key order, and the two scans are merged.
///
/// Storage class and bytes decide what is equal: 1 and 1.0 differ, and so do `a` and `A` in a NOCASE column. A row
/// whose key changed only so is a delete and an insert.
struct RowMerge {
  /// The table in the newer database; its columns are those of the changeset.
  let newer: TableDefinition
  /// The table in the older database, or nil when it is not there.
  let older: OlderTable?
  /// Whether text is compared in a collation of ours, because a database is not in UTF-8.
  let needsByteCollation: Bool
  /// Whether rows are told apart by all that is in them, and the rowid, which is then NULL, does not matter.
  let goesByContent: Bool

  private enum Rows { case keyed, withoutKey }

  /// The columns that tell rows apart, in the order in which rows are sorted: those that both tables have come first.
  private var identity: [Int] {
    guard goesByContent else { return newer.keyPlaces }
    let known = older.map { ColumnLookup($0.definition.columns) }
    let places = newer.columns.indices.map { ($0 + 1, known?[newer.columns[$0].name] != nil) }
    return places.filter(\.1).map(\.0) + places.filter { !$0.1 }.map(\.0)
  }

  /// A query for the columns of the changeset, in its order.
  ///
  /// - Parameters:
  ///   - table: The table, with the names of the changeset.
  ///   - stored: The same with its own names.
  private func query(
    _ table: TableDefinition, stored: TableDefinition, _ rows: Rows, on connection: borrowing SQLiteConnection
  ) throws -> RowScan? {
    let hasNullKey = stored.hasNullKeySQL
    if rows == .withoutKey, hasNullKey == nil { return nil }
    var results: [String] = []
    if table.goesByRowID {
      guard let name = stored.rowIDName else { return nil }
      results.append(goesByContent ? "NULL" : name)
    }
    let places = ColumnLookup(table.columns)
    var isStored = [Bool](repeating: false, count: results.count)
    for column in newer.columns {
      if let index = places[column.name] {
        results.append(SQLText.identifier(stored.columns[index].name))
        isStored.append(true)
      } else {
        isStored.append(false)
        results.append(try AddedColumnValue.literal(of: column, isStrict: newer.isStrict))
      }
    }
    var source = "FROM main.\(SQLText.identifier(stored.name))"
    switch rows {
    case .keyed:
      // Written so that SQLite's index skips the other rows, which it does not do for NOT (…).
      let isSet = stored.nullableKeyColumns.map { "\(SQLText.identifier($0.name)) IS NOT NULL" }
      if !isSet.isEmpty { source += " WHERE " + isSet.joined(separator: " AND ") }
      let collation = needsByteCollation ? SQLiteConnection.byteCollation : "BINARY"
      let key =
        table.goesByRowID && !goesByContent
        ? [results[0]]
        : identity.filter { isStored[$0] }.map { "\(results[$0]) COLLATE \(collation)" }
      if !key.isEmpty { source += " ORDER BY " + key.joined(separator: ", ") }
    case .withoutKey:
      if let hasNullKey { source += " WHERE \(hasNullKey)" }
    }
    let isUTF16 = try needsByteCollation && connection.text("PRAGMA main.encoding") != "UTF-8"
    return try RowScan(results, source, isUTF16: isUTF16, on: connection)
  }

  /// Writes the difference into the collector.
  ///
  /// - Returns: The columns with text that is no valid UTF-16 in a database that stores it so, and travels as SQLite converts
  ///   it.
  func run(
    older olderConnection: borrowing SQLiteConnection, newer newerConnection: borrowing SQLiteConnection,
    into changes: ChangeCollector
  ) throws -> Set<Int> {
    guard let newerRows = try query(newer, stored: newer, .keyed, on: newerConnection) else { return [] }
    var brokenText: Set<Int> = []
    if let older,
      let olderRows = try query(older.definition, stored: older.stored, .keyed, on: olderConnection)
    {
      try merge(olderRows, newerRows, into: changes)
      brokenText = olderRows.brokenText
    } else {
      while try newerRows.step() { try addWhole(.insert, newerRows, to: changes) }
    }
    brokenText.formUnion(newerRows.brokenText)
    return try brokenText.union(compareRowsWithoutKey(olderConnection, newerConnection, into: changes))
  }

  private func merge(
    _ old: borrowing RowScan, _ new: borrowing RowScan, into changes: ChangeCollector
  ) throws {
    let key = identity
    let count = newer.changesetColumns.count
    let isKey = (0..<count).map { key.contains($0) }
    var changed = [Bool](repeating: false, count: count)
    var hasOld = try old.step()
    var hasNew = try new.step()
    while hasOld || hasNew {
      let order = !hasOld ? 1 : !hasNew ? -1 : Self.keyOrder(old, new, key)
      if order < 0 {
        try addWhole(.delete, old, to: changes)
        hasOld = try old.step()
        continue
      }
      if order > 0 {
        try addWhole(.insert, new, to: changes)
        hasNew = try new.step()
        continue
      }
      if key.allSatisfy({ RowValue.isIdentical(old, new, at: $0) }) {
        var anyChange = false
        for column in 0..<count where !isKey[column] {
          changed[column] = !RowValue.isIdentical(old, new, at: column)
          if changed[column] { anyChange = true }
        }
        if anyChange { try addUpdate(old, new, isKey: isKey, changed: changed, to: changes) }
      } else {
        try addWhole(.delete, old, to: changes)
        try addWhole(.insert, new, to: changes)
      }
      hasOld = try old.step()
      hasNew = try new.step()
    }
  }

  private static func keyOrder(
    _ old: borrowing RowScan, _ new: borrowing RowScan, _ key: [Int]
  ) -> Int {
    for column in key {
      let order = RowValue.order(old, new, at: column)
      if order != 0 { return order }
    }
    return 0
  }

  private func addWhole(
    _ operation: ChangeOperation, _ row: borrowing RowScan, to changes: ChangeCollector
  ) throws {
    let count = newer.changesetColumns.count
    try changes.add(operation) { writer in
      for column in 0..<count { row.append(column, to: &writer) }
    }
  }

  private func addUpdate(
    _ old: borrowing RowScan, _ new: borrowing RowScan, isKey: [Bool], changed: [Bool],
    to changes: ChangeCollector
  ) throws {
    try changes.add(.update) { writer in
      for column in changed.indices {
        if isKey[column] || changed[column] {
          old.append(column, to: &writer)
        } else {
          writer.appendUndefined()
        }
      }
      for column in changed.indices {
        if changed[column], !isKey[column] { new.append(column, to: &writer) } else { writer.appendUndefined() }
      }
    }
  }

  /// Counts the rows with NULL in the key on both sides.
  private func compareRowsWithoutKey(
    _ olderConnection: borrowing SQLiteConnection, _ newerConnection: borrowing SQLiteConnection,
    into changes: ChangeCollector
  ) throws -> Set<Int> {
    var rows = KeylessRows()
    var brokenText: Set<Int> = []
    let count = newer.changesetColumns.count
    func countAll(_ scan: borrowing RowScan, _ operation: ChangeOperation) throws {
      while try scan.step() {
        var writer = ChangesetWriter()
        for column in 0..<count { scan.append(column, to: &writer) }
        rows.add(writer.bytes, operation)
      }
      brokenText.formUnion(scan.brokenText)
    }
    if let older,
      let scan = try query(older.definition, stored: older.stored, .withoutKey, on: olderConnection)
    {
      try countAll(scan, .delete)
    }
    if let scan = try query(newer, stored: newer, .withoutKey, on: newerConnection) { try countAll(scan, .insert) }
    try rows.write(into: changes)
    return brokenText
  }
}
