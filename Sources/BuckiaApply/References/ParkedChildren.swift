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
  private var references: [TableName: [ForeignKeyCheck]] = [:]
  /// The keys of those rows.
  private(set) var written: [TableName: KeyStore] = [:]

  /// - Parameter entry: The ledger entry of the diff.
  init(of entry: Int64, keeping indexes: IndexMaintenance?, in session: ApplySession) {
    self.session = session
    connection = SQLiteConnection(sharing: session.connection)
    self.indexes = indexes
    self.entry = entry
  }

  /// Returns the rows to their tables that the changes may concern: those that have the key or a UNIQUE value of a changed
  /// row, or refer to it. The first time in a session, those whose missing row is there by now return, too.
  ///
  /// - Parameters:
  ///   - sections: The changes.
  ///   - matches: The tables that they change.
  ///   - decisions: Records the rows.
  func returnRows(
    beside sections: TableSections, _ matches: [TableName: TableMatch], _ decisions: ReferenceDecisions
  ) throws {
    guard session.keepsLedger, try ParkedRows.exist(on: connection) else { return }
    var open: Set<Int64> = []
    if try !session.hasTriedParked() { try findComplete(&open) }
    for (name, match) in matches { try find(of: name, match, in: sections, &open) }
    var tried: Set<Int64> = []
    while !open.isEmpty {
      tried.formUnion(open)
      let rows = try open.compactMap { number in
        try ParkedRows.row(number, on: connection).map { (number: number, row: $0) }
      }
      open = []
      let inOrder = rows.sorted {
        $0.row.table == $1.row.table
          ? $0.row.key.lexicographicallyPrecedes($1.row.key) : $0.row.table.text < $1.row.table.text
      }
      for (number, row) in inOrder { try returnRow(row, number, decisions, &open) }
      open.subtract(tried)
    }
  }

  /// Returns a row to its table, and finds those that refer to it.
  private func returnRow(
    _ row: ParkedRows.Row, _ number: Int64, _ decisions: ReferenceDecisions, _ open: inout Set<Int64>
  ) throws {
    guard let table = try session.schema().table(named: row.table) else { return }
    let rows = TableRows(table, keeping: indexes, in: connection)
    // A row with the same key that was inserted here since takes its place.
    guard try table.isKeyedByRowID || rows.row(ClockKeyRecord(bytes: row.key)) == nil else {
      return try ParkedRows.remove(row.key, of: row.table, on: connection)
    }
    let record = try row.record(in: table)
    guard try rows.write(record, to: ClockKeyRecord(bytes: row.key)) == nil else {
      return try ParkedRows.noteRefused(number, on: connection)
    }
    let key =
      try table.isKeyedByRowID ? ChangesetWriter.record(of: [.integer(session.greatestRowID(of: table))]) : row.key
    returned[row.table, default: [:]][key] = row.key
    let store =
      try written[row.table] ?? KeyStore("parked_\(written.count)", for: table, table.primaryKey, on: connection)
    written[row.table] = store
    let insert = try store.insertion(on: connection)
    try ClockKeyRecord(bytes: key).bind(to: insert, from: 0)
    try insert.run()
    try decisions.noteNew(key, of: table, on: connection)
    for value in ParkedLookup.values(of: try RowCopy(record: record), in: table) {
      open.formUnion(try ParkedRows.numbers(foundBy: value, on: connection))
    }
  }

  /// Finds the rows that no longer wait for a row that is missing.
  private func findComplete(_ open: inout Set<Int64>) throws {
    let schema = try session.schema()
    for name in try ParkedRows.tables(on: connection) {
      // Its foreign keys were dropped.
      guard let table = try schema.table(named: name), try references(of: table).isEmpty else { continue }
      open.formUnion(try ParkedRows.numbers(of: name, on: connection))
    }
    var next: [UInt8] = []
    while let missing = try ParkedRows.firstMissing(from: next, on: connection) {
      if let parent = try ParkedLookup.table(of: missing, in: schema),
        let column = ParkedLookup.columns(of: parent).first(where: {
          $0.count == 1 && missing.starts(with: ParkedLookup.range($0[0], of: parent).from)
        })?.first
      {
        // One query for all values of a column.
        let range = ParkedLookup.range(column, of: parent)
        open.formUnion(
          try ParkedRows.numbers(
            waitingFor: range, in: TableName(parent.name), parent.columns[column].name, on: connection))
        next = range.end
      } else {
        for number in try ParkedRows.numbers(foundBy: missing, on: connection) {
          if let row = try ParkedRows.row(number, on: connection), try isComplete(row, missing) { open.insert(number) }
        }
        next = missing + [0]
      }
    }
  }

  /// True if the values are there that a row waits for, or none of its foreign keys refers to them any more.
  private func isComplete(_ row: ParkedRows.Row, _ missing: [UInt8]) throws -> Bool {
    guard let table = try session.schema().table(named: row.table) else { return false }
    let copy = try RowCopy(record: row.record(in: table))
    for check in try references(of: table) where !check.childColumns.contains(-1) {
      let values = copy.record(of: check.childColumns.map { $0 + table.columnOffset })
      guard try ParkedLookup.value(of: check, values) == missing else { continue }
      return try check.parentKey(of: values) != nil
    }
    return true
  }

  private func references(of table: TableDefinition) throws -> [ForeignKeyCheck] {
    let name = TableName(table.name)
    if let known = references[name] { return known }
    let schema = try session.schema()
    let found = try table.foreignKeys.compactMap { try ForeignKeyCheck($0, of: table, in: schema, session) }
    references[name] = found
    return found
  }

  /// Finds the rows that the changes of a table may concern.
  private func find(
    of name: TableName, _ match: TableMatch, in sections: TableSections, _ open: inout Set<Int64>
  ) throws {
    let table = match.local
    // A change finds a row without a key by its content.
    let isByContent =
      try table.isKeyedByRowID && sections.takeAway(from: name)
      && ParkedRows.exist(of: TableName(table.name), on: connection)
    guard let header = sections.table(named: name),
      try isByContent || ParkedRows.exist(below: ParkedLookup.prefix(of: table), on: connection)
    else { return }
    let statements = try session.statements(for: match, header: header)
    let places = table.columns.indices.map { match.columns.firstIndex(of: $0 + table.columnOffset) }
    let lookups = ParkedLookup.columns(of: table)
    let references = try isByContent ? references(of: table) : []
    try sections.forEachChange(of: name) { change, bytes in
      var local: RowCopy?
      for columns in lookups {
        let value = try ParkedLookup.value(columns, of: table) { place in
          let column = columns[place]
          if let place = places[column] {
            let value = change.new(place).isDefined ? change.new(place) : change.row(place)
            if value.isDefined { return ChangesetValue(value, in: bytes) }
          }
          if change.operation == .update, local == nil { local = try statements.copyOfRow(of: change, bytes) }
          guard let local else { return nil }
          return local.record.withRawSpan { ChangesetValue(local.values[column + table.columnOffset], in: $0) }
        }
        if let value { open.formUnion(try ParkedRows.numbers(foundBy: value, on: connection)) }
      }
      guard change.operation != .insert else { return }
      for check in references {
        let value = ParkedLookup.value(check.parentColumns, of: check.parent) { place in
          let column = check.childColumns[place]
          guard column >= 0, let place = places[column] else { return nil }
          return ChangesetValue(change.old(place), in: bytes)
        }
        if let value { open.formUnion(try ParkedRows.numbers(foundBy: value, on: connection)) }
      }
    }
  }

  /// Parks a row outside its table until the row exists that it refers to.
  ///
  /// - Parameters:
  ///   - key: The key of the row.
  ///   - check: The foreign key by which it refers to nothing.
  ///   - values: The values by which it refers.
  /// - Returns: The row; nil if it is not there, or cannot be taken out.
  func park(
    _ key: [UInt8], waitingBy check: ForeignKeyCheck, _ values: [UInt8]
  ) throws -> (row: [UInt8], wasParked: Bool)? {
    let table = check.child
    // SQLite has no room for all columns of the widest tables in one result.
    guard table.changesetColumns.count <= connection.columnLimit else { return nil }
    let rows = TableRows(table, keeping: indexes, in: connection)
    let name = TableName(table.name)
    let record = ClockKeyRecord(bytes: key)
    guard let row = try rows.row(record) else { return nil }
    try holdVersions(of: record, in: table)
    guard try rows.write(nil, to: record) == nil, try rows.row(record) == nil else { return nil }
    let parked = returned[name]?.removeValue(forKey: key)
    if session.keepsLedger {
      // The rowid is free for other rows meanwhile.
      let key =
        parked
        ?? (table.isKeyedByRowID ? ChangesetWriter.record(of: [.integer(Int64.random(in: Int64.min..<0))]) : key)
      try ParkedRows.add(
        ParkedRows.Row(table: name, key: key, entry: entry, columns: table.changesetColumns, values: row),
        foundBy: ParkedLookup.values(of: RowCopy(record: row), in: table),
        waitingFor: ParkedLookup.value(of: check, values) ?? [],
        check.parentColumns.count == 1 ? ChangesetValue.record(values)[0] : nil, on: connection)
    }
    return (row, wasParked: parked != nil)
  }

  /// Keeps the row versions of a row that is parked, because runs apply only to existing rows.
  private func holdVersions(of key: ClockKeyRecord, in table: TableDefinition) throws {
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
