import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Finds the foreign keys that a diff has broken, after it was applied with enforcement off.
///
/// Enforcement is off while applying on a connection of ours, because the changes already hold what the author's
/// foreign-key actions did; a second cascade here would take rows that only exist here. So what is broken is looked up
/// (<https://sqlite.org/pragma.html#pragma_foreign_key_check>) and reported. Violations that have nothing to do with
/// the changes were there before, and are left out.
struct ForeignKeyAudit {
  /// A row that refers to one that is not there.
  struct Violation {
    let table: TableName
    let columns: [String]
    let key: Set<Int>
    let row: [UInt8]
    let message: String
  }

  /// The most violations that are written down for one table.
  private static let limit = 10_000

  /// The tables that were changed, with the changes.
  let changed: [TableName: TableMatch]

  /// Looks at every table that was changed, or refers to one that was.
  func violations(in bytes: RawSpan, on connection: borrowing SQLiteConnection) throws -> [Violation] {
    let schema = try SchemaReader(connection)
    var found: [Violation] = []
    for entry in schema.entries where entry.kind == .table && entry.name.refusal == nil {
      let name = entry.name.text
      guard try connection.integer("SELECT 1 FROM pragma_foreign_key_list(?1, 'main') LIMIT 1", binding: [name]) != nil
      else { continue }
      let table = try schema.definition(of: entry, on: connection)
      let concerns = changed[entry.name] != nil || table.foreignKeys.contains { changed[TableName($0.parent)] != nil }
      guard concerns else { continue }
      let rows = try brokenRows(of: table, on: connection)
      guard !rows.isEmpty else { continue }
      found += try blamed(rows, table, schema, bytes, on: connection)
    }
    return found
  }

  private struct BrokenRow {
    let rowID: Int64
    let parent: String
    let key: Int
  }

  private func brokenRows(
    of table: TableDefinition, on connection: borrowing SQLiteConnection
  ) throws -> [BrokenRow] {
    var rows: [BrokenRow] = []
    let statement = try connection.prepare("PRAGMA main.foreign_key_check(\(SQLText.identifier(table.name)))")
    // A parent table that does not exist, or has no fitting key, breaks every row: that is the schema's fault.
    while rows.count < Self.limit, try statement.step() {
      guard !statement.isNull(at: 1) else { continue }
      rows.append(
        BrokenRow(
          rowID: statement.integer(at: 1), parent: statement.text(at: 2) ?? "", key: Int(statement.integer(at: 3))))
    }
    return rows
  }

  /// The broken rows that the changes wrote, or whose parent they took away.
  private func blamed(
    _ rows: [BrokenRow], _ table: TableDefinition, _ schema: borrowing SchemaReader, _ bytes: RawSpan,
    on connection: borrowing SQLiteConnection
  ) throws -> [Violation] {
    let name = TableName(table.name)
    let ownKey = table.goesByRowID ? [0] : table.primaryKey
    let written = try touchedKeys(of: name, layout: ownKey, in: bytes) { $0 != .delete }
    guard let rowID = RowMerge.rowIDName(of: table) else { return [] }
    let layout = table.changesetColumns.enumerated().map { index, column in
      table.goesByRowID && index == 0 ? rowID : SQLText.identifier(column)
    }
    let select = try connection.prepare(
      "SELECT \(layout.joined(separator: ", ")) FROM main.\(name.quoted) WHERE \(rowID) = ?1")
    var removed: [Int: Set<[UInt8]>] = [:]
    var violations: [Violation] = []
    // PRAGMA foreign_key_list numbers the keys from the last one declared.
    let keys = Array(table.foreignKeys.reversed())
    for row in rows where keys.indices.contains(row.key) {
      let key = keys[row.key]
      try select.bind(row.rowID, at: 0)
      guard try select.step() else {
        select.reset()
        continue
      }
      let local = try LocalRow(copying: select)
      select.reset()
      let offset = table.goesByRowID ? 1 : 0
      let own = key.columns.compactMap { table.column(named: $0).map { $0 + offset } }
      if removed[row.key] == nil {
        removed[row.key] = try removedParents(of: key, schema, in: bytes, on: connection)
      }
      let isWritten = written.contains(Self.encoded(ownKey.map { local.values[$0] }, of: local.record.span.bytes))
      let lostParent = removed[row.key]?.contains(
        Self.encoded(own.map { local.values[$0] }, of: local.record.span.bytes))
      guard isWritten || lostParent == true else { continue }
      violations.append(
        Violation(
          table: name, columns: table.changesetColumns, key: Set(ownKey), row: local.record,
          message: "a row of table \"\(name)\" refers to a row of \"\(key.parent)\" that is not there"))
    }
    return violations
  }

  private func removedParents(
    of key: ForeignKey, _ schema: borrowing SchemaReader, in bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws -> Set<[UInt8]> {
    let name = TableName(key.parent)
    guard changed[name] != nil, let entry = schema.entry(named: name), entry.kind == .table else { return [] }
    let parent = try schema.definition(of: entry, on: connection)
    let offset = parent.goesByRowID ? 1 : 0
    let columns =
      key.parentColumns.isEmpty
      ? parent.primaryKey : key.parentColumns.compactMap { parent.column(named: $0).map { $0 + offset } }
    return try touchedKeys(of: name, layout: columns, in: bytes) { $0 != .insert }
  }

  /// The values that the changes of a table hold in some columns, given by their places in the local layout.
  private func touchedKeys(
    of name: TableName, layout: [Int], in bytes: RawSpan, where isWanted: (ChangeOperation) -> Bool
  ) throws -> Set<[UInt8]> {
    guard let match = changed[name] else { return [] }
    let columns = layout.compactMap { place in match.columns.firstIndex(of: place) }
    var keys: Set<[UInt8]> = []
    var reader = ChangesetReader()
    var isTable = false
    while let change = try reader.next(in: bytes) {
      if change.startsTable { isTable = reader.table.map { TableName($0.name) == name } ?? false }
      guard isTable, isWanted(change.operation) else { continue }
      let row = change.operation == .insert ? reader.new : reader.old
      keys.insert(Self.encoded(columns.map { row[$0] }, of: bytes))
    }
    return keys
  }

  private static func encoded(_ values: [ValueSlice], of bytes: RawSpan) -> [UInt8] {
    var writer = ChangesetWriter()
    for value in values { writer.append(value, of: bytes) }
    return writer.bytes
  }
}
