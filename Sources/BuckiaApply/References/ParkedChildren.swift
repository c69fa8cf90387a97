import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// The parked rows while one diff is applied: rows that it may concern return to their tables meanwhile, where its
/// changes find them. Rows that refer to nothing afterwards are parked again.
final class ParkedChildren {
  private let session: ApplySession
  private let connection: SQLiteConnection
  private let indexes: IndexMaintenance?
  private let entry: Int64
  /// The keys of the rows that are in their tables meanwhile, and the keys by which they are parked: rows without a key have any number.
  private var returned: [TableName: [[UInt8]: [UInt8]]] = [:]
  /// The keys of those rows.
  private(set) var written: [TableName: KeyStore] = [:]

  /// - Parameter entry: The ledger entry of the diff.
  init(of entry: Int64, keeping indexes: IndexMaintenance?, in session: ApplySession) {
    self.session = session
    connection = SQLiteConnection(sharing: session.connection)
    self.indexes = indexes
    self.entry = entry
  }

  /// Returns the rows to their tables that the changes may concern, and those that were not tried in this session.
  ///
  /// - Parameters:
  ///   - changed: The tables that the diff changes.
  ///   - decisions: Records the rows.
  func returnRows(beside changed: Set<TableName>, _ decisions: ReferenceDecisions) throws {
    guard session.keepsLedger, try ParkedRows.exist(on: connection) else { return }
    let schema = try session.schema()
    let isTried = try session.hasTriedParked()
    for name in try ParkedRows.tables(on: connection) {
      guard let table = try schema.table(named: name) else { continue }
      let concerned = Set(table.foreignKeys.map { TableName($0.parent) }).union([name])
      guard !isTried || !changed.isDisjoint(with: concerned) else { continue }
      let rows = TableRows(table, keeping: indexes, in: connection)
      let store = try KeyStore("parked_\(written.count)", for: table, table.primaryKey, on: connection)
      let insert = try store.insertion(on: connection)
      written[name] = store
      for row in try ParkedRows.all(of: name, on: connection) {
        // A row with the same key that was inserted here since takes its place.
        guard try table.isKeyedByRowID || rows.row(ClockKeyRecord(bytes: row.key)) == nil else {
          try ParkedRows.remove(row.key, of: name, on: connection)
          continue
        }
        guard try rows.write(row.record(in: table), to: ClockKeyRecord(bytes: row.key)) == nil else { continue }
        let key =
          try table.isKeyedByRowID ? ChangesetWriter.record(of: [.integer(session.greatestRowID(of: table))]) : row.key
        returned[name, default: [:]][key] = row.key
        try ClockKeyRecord(bytes: key).bind(to: insert, from: 0)
        try insert.run()
        try decisions.noteNew(key, of: table, on: connection)
      }
    }
    try session.noteTriedParked()
  }

  /// Parks a row outside its table until the row exists that it refers to.
  ///
  /// - Returns: The row; nil if it is not there, or cannot be taken out.
  func park(_ key: [UInt8], of table: TableDefinition) throws -> (row: [UInt8], wasParked: Bool)? {
    // SQLite has no room for all columns of the widest tables in one result.
    guard table.changesetColumns.count <= connection.columnLimit else { return nil }
    let rows = TableRows(table, keeping: indexes, in: connection)
    let name = TableName(table.name)
    let record = ClockKeyRecord(bytes: key)
    guard let row = try rows.row(record) else { return nil }
    try holdStamps(of: record, in: table)
    guard try rows.write(nil, to: record) == nil, try rows.row(record) == nil else { return nil }
    let parked = returned[name]?.removeValue(forKey: key)
    if session.keepsLedger {
      // The rowid is free for other rows meanwhile.
      let key =
        parked
        ?? (table.isKeyedByRowID ? ChangesetWriter.record(of: [.integer(Int64.random(in: Int64.min..<0))]) : key)
      try ParkedRows.add(
        ParkedRows.Row(table: name, key: key, entry: entry, columns: table.changesetColumns, values: row),
        on: connection)
    }
    return (row, wasParked: parked != nil)
  }

  /// Keeps the stamps of a row that is parked, because runs apply only to existing rows.
  private func holdStamps(of key: ClockKeyRecord, in table: TableDefinition) throws {
    guard session.keepsLedger, try session.hasClocks(),
      let number = try RowClocks.number(of: table, on: connection)
    else { return }
    let clock = try TableClock(
      number, for: TableMatch(unchanged: table), ChangesetTable(name: table.name, keyFlags: table.keyFlags),
      by: .minimum, isAlone: false, findsRuns: false, storesUTF16: session.storesUTF16, on: connection)
    try clock.hold(key)
  }

  /// Deletes the parked rows that are back in their tables, or that the diff has deleted.
  ///
  /// - Parameter didReturn: Called with each row that is back.
  func finish(_ didReturn: (TableDefinition, _ key: [UInt8], _ row: [UInt8]) throws -> Void) throws {
    let schema = try session.schema()
    for (name, keys) in returned.sorted(by: { $0.key.text < $1.key.text }) {
      guard let table = try schema.table(named: name) else { continue }
      let rows = TableRows(table, keeping: indexes, in: connection)
      for (key, parked) in keys.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
        try ParkedRows.remove(parked, of: name, on: connection)
        if let row = try rows.row(ClockKeyRecord(bytes: key)) { try didReturn(table, key, row) }
      }
    }
    for store in written.values { try store.clear(on: connection) }
  }
}

extension ParkedRows.Row {
  /// The row in the present columns of its table, undefined in unknown columns, and without a rowid.
  fileprivate func record(in table: TableDefinition) throws -> [UInt8] {
    let row = try RowCopy(record: values)
    var writer = ChangesetWriter()
    values.withRawSpan { bytes in
      for name in table.changesetColumns {
        if !table.isKeyedByRowID || name != TableDefinition.rowIDColumn,
          let place = columns.firstIndex(where: { ASCIIName.matches($0, name) }), row.values.indices.contains(place)
        {
          writer.append(row.values[place], of: bytes)
        } else {
          writer.appendUndefined()
        }
      }
    }
    return writer.bytes
  }
}
