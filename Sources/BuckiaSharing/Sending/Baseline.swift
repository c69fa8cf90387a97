import BuckiaApply
import BuckiaDiff
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The rows that the recipients of a share are known to have: a copy of the rows that were sent, in tables of the
/// database itself.
///
/// The next share is the difference from the baseline. The baseline moves in the transaction that records the diff, which
/// keeps the two consistent.
package final class Baseline {
  private let share: Int64
  private let connection: SQLiteConnection
  private var entries: [TableName: BaselineEntry]

  /// Finds the baseline of a share, through a connection that must outlive it.
  ///
  /// - Throws: `SQLiteError`.
  package init(of share: Int64, on connection: borrowing SQLiteConnection) throws {
    self.share = share
    self.connection = SQLiteConnection(sharing: connection)
    let found = try BaselineEntry.all(of: share, on: connection)
    entries = Dictionary(found.map { ($0.table, $0) }) { first, _ in first }
  }

  /// The tables with rows that were sent.
  package var tables: [TableName] { entries.keys.sorted { $0.text < $1.text } }

  func entry(of table: TableName) -> BaselineEntry? { entries[table] }

  /// The rows as one side of a comparison.
  package var source: RowSource {
    RowSource(on: connection, standIns: entries.mapValues(\.name), named: "what was shared")
  }

  /// Begins with no rows, for a snapshot. The rows that were sent before are kept until ``removeFormer()``.
  package func setAside() throws {
    for entry in entries.values { try entry.setAside(from: share, on: connection) }
    entries = [:]
  }

  /// Deletes the rows that were gathered for one snapshot.
  package func clear() throws {
    for entry in entries.values { try entry.remove(on: connection) }
    entries = [:]
  }

  /// Deletes the rows that were sent before a snapshot.
  package func removeFormer() throws {
    for entry in try BaselineEntry.former(of: share, on: connection) { try entry.remove(on: connection) }
  }

  /// Deletes the rows of a table.
  package func forget(_ table: TableName) throws {
    try entries.removeValue(forKey: table)?.remove(on: connection)
  }

  /// Adds rows of which only the key is known. The next difference deletes them.
  ///
  /// - Parameters:
  ///   - keys: Their keys, in the format of changesets.
  ///   - definition: The table as it travels.
  /// - Throws: `SQLiteError`.
  func add(_ keys: [[UInt8]], of definition: TableDefinition) throws {
    let entry = try makeEntry(of: definition)
    let columns = definition.keyIndexes.map { SQLText.identifier(definition.columns[$0].name) }
    let insert = try connection.prepare(
      """
      INSERT OR IGNORE INTO main.\(entry.name.quoted)(\(columns.joined(separator: ", "))) \
      VALUES (\(columns.indices.map { "?\($0 + 1)" }.joined(separator: ", ")))
      """)
    for key in keys {
      try key.withRawSpan { bytes in
        var position = 0
        for place in columns.indices {
          try insert.bind(ValueSlice(verified: bytes, at: &position), in: bytes, at: place)
        }
        try insert.run()
      }
    }
  }

  private func makeEntry(of definition: TableDefinition) throws -> BaselineEntry {
    let name = TableName(definition.name)
    let entry =
      try entries[name]
      ?? BaselineEntry.make(for: name, columns: Self.columns(of: definition), of: share, on: connection)
    entries[name] = entry
    return entry
  }

  /// Sets the number of rows with each of some contents.
  ///
  /// - Parameters:
  ///   - rows: The number of rows with each content.
  ///   - table: The table of contents.
  ///   - definition: The table as it travels.
  /// - Throws: `SQLiteError`.
  func set(_ rows: [[UInt8]: Int64], of table: ContentTable, _ definition: TableDefinition) throws {
    let baseline = try makeEntry(of: definition).name
    guard let rowID = definition.rowIDName else { return }
    // Rows of the baseline have the default in columns that were added since.
    let values = try table.columns.map { name in
      guard let place = definition.column(named: name) else { return "NULL" }
      if try entries[table.name]?.hasColumn(name, on: connection) == true { return SQLText.identifier(name) }
      return try AddedColumnValue.literal(of: definition.columns[place], isStrict: definition.isStrict)
    }
    let places = try values.indices.filter {
      try entries[table.name]?.hasColumn(table.columns[$0], on: connection) == true
    }
    var missing = rows
    var surplus: [Int64] = []
    let condition = definition.hasNullKeySQL.map { " WHERE \($0)" } ?? ""
    let query = "SELECT \(values.joined(separator: ", ")), \(rowID) FROM main.\(baseline.quoted)\(condition)"
    try connection.forEachRow(of: query) { row in
      let content = row.record(of: 0..<values.count)
      guard let count = missing[content] else { return }
      if count > 0 { missing[content] = count - 1 } else { surplus.append(row.integer(at: values.count)) }
    }
    for row in surplus { try connection.run(cached: "DELETE FROM main.\(baseline.quoted) WHERE \(rowID) = ?1", row) }
    let insert = try connection.prepare(
      """
      INSERT INTO main.\(baseline.quoted)(\(places.map { values[$0] }.joined(separator: ", "))) \
      VALUES (\(places.map { "?\($0 + 1)" }.joined(separator: ", ")))
      """)
    for (content, count) in missing.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) where count > 0 {
      try content.withRawSpan { bytes in
        var position = 0
        for place in values.indices {
          let value = ValueSlice(verified: bytes, at: &position)
          if places.contains(place) { try insert.bind(value, in: bytes, at: place) }
        }
        for _ in 0..<count { try insert.run() }
      }
    }
  }

  // MARK: Moving

  /// Applies a difference to the baseline.
  ///
  /// - Parameters:
  ///   - difference: The difference from the baseline to the rows that are shared now.
  ///   - selections: The rows that are shared now.
  ///   - held: Rows that stay although they are not shared now.
  ///   - schema: The schema of the database.
  /// - Throws: `SQLiteError`, `ChangesetError`, `ByteStreamError`. The transaction must be rolled back then.
  package func move(
    by difference: DatabaseDifference, to selections: [TableName: RowSelection], keeping held: HeldDeletions,
    _ schema: SchemaReader
  ) throws {
    let withNullKeys = try Self.tablesWithNullKeys(in: difference)
    var followed: [TableName: BaselineWriter] = [:]
    for table in difference.tables {
      let name = TableName(table.definition.name)
      let columns = Self.columns(of: table.definition)
      if let entry = entries[name], entry.columns == columns, !table.definition.isKeyedByRowID,
        !withNullKeys.contains(name)
      {
        followed[name] = BaselineWriter(entry.name, table.definition, on: connection)
      } else {
        try entries[name]?.remove(on: connection)
        let entry = try BaselineEntry.make(for: name, columns: columns, of: share, on: connection)
        entries[name] = entry
        guard let local = try schema.entry(named: name).map({ try schema.definition(of: $0) }) else { continue }
        // New columns beyond the limit are sent with a later share.
        var selection = selections[name] ?? RowSelection()
        selection.omittedColumns += local.columns.map(\.name).filter { table.definition.column(named: $0) == nil }
        try selection.copyRows(of: local, into: entry.name, on: connection)
        let writer = BaselineWriter(entry.name, table.definition, on: connection)
        try held.forEach(of: name) { try writer.insert($0, $1) }
      }
    }
    if followed.isEmpty { return }
    var last: (table: ChangesetTable, writer: BaselineWriter?)?
    try Changesets.forEachChange(of: difference.changeset) { change, reader, bytes in
      guard let table = reader.table else { return }
      if last?.table != table { last = (table, followed[TableName(table.name)]) }
      try last?.writer?.write(change, reader, bytes)
    }
  }

  /// The tables with changes of rows that have NULL in their key, which does not identify them.
  private static func tablesWithNullKeys(in difference: DatabaseDifference) throws -> Set<TableName> {
    guard difference.tables.contains(where: { !$0.definition.nullableKeyColumns.isEmpty }) else { return [] }
    var found: Set<TableName> = []
    try Changesets.forEachChange(of: difference.changeset) { change, reader, _ in
      guard let table = reader.table else { return }
      let row = change.operation == .insert ? reader.new : reader.old
      if row.indices.contains(where: { table.isKey($0) && row[$0].kind == .null }) {
        found.insert(TableName(table.name))
      }
    }
    return found
  }

  /// The column definitions of a baseline: those of the sent columns, without constraints other than the key.
  private static func columns(of table: TableDefinition) -> String {
    var plain = table
    plain.name = ""
    plain.isAutoIncrement = false
    plain.unique = []
    plain.foreignKeys = []
    plain.generated = []
    for column in plain.columns.indices {
      plain.columns[column].isNotNull = plain.columns[column].isNotNull && plain.primaryKey.contains(column)
      plain.columns[column].defaultValue = nil
      plain.columns[column].hasExpressionDefault = false
    }
    return String(plain.createStatement(siblings: []).dropFirst(#"CREATE TABLE main."" "#.count))
  }
}

/// Writes changes to a baseline whose rows have the old values of these changes.
final class BaselineWriter {
  private let name: String
  private let columns: [String]
  private let key: [Int]
  private let connection: SQLiteConnection

  /// - Parameters:
  ///   - name: The table of the baseline.
  ///   - table: The sent table. Only rows with a key without NULL can be updated or deleted.
  init(_ name: TableName, _ table: TableDefinition, on connection: borrowing SQLiteConnection) {
    self.name = "main.\(name.quoted)"
    columns = table.columns.map { SQLText.identifier($0.name) }
    key = table.keyIndexes
    self.connection = SQLiteConnection(sharing: connection)
  }

  /// Writes one change.
  ///
  /// - Throws: `SQLiteError`.
  func write(_ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan) throws {
    switch change.operation {
    case .insert: try insert(reader.new, bytes)
    case .delete:
      try connection.run(
        cached: "DELETE FROM \(name) WHERE \(condition(from: 0))", key.map { reader.old[$0] }, bytes)
    case .update:
      let changed = reader.new.indices.filter { reader.new[$0].isDefined }
      guard !changed.isEmpty else { return }
      let assignments = changed.enumerated().map { "\(columns[$1]) = ?\($0 + 1)" }.joined(separator: ", ")
      try connection.run(
        cached: "UPDATE \(name) SET \(assignments) WHERE \(condition(from: changed.count))",
        changed.map { reader.new[$0] } + key.map { reader.old[$0] }, bytes)
    }
  }

  /// Writes the row of a change.
  ///
  /// - Throws: `SQLiteError`.
  func insert(_ row: [ValueSlice], _ bytes: RawSpan) throws {
    // The rowid of a row without a key has no meaning at other replicas.
    let values = Array(row.suffix(columns.count))
    let places = values.indices.map { "?\($0 + 1)" }.joined(separator: ", ")
    try connection.run(
      cached: "INSERT INTO \(name)(\(columns.joined(separator: ", "))) VALUES (\(places))", values, bytes)
  }

  /// An SQL condition for the row with a key, whose values are bound from this parameter on, counted from 0. The index
  /// finds the row by its collating sequence, and the comparison of bytes decides.
  private func condition(from start: Int) -> String {
    key.enumerated().map {
      "\(columns[$1]) = ?\(start + $0 + 1) AND \(columns[$1]) IS ?\(start + $0 + 1) COLLATE BINARY"
    }
    .joined(separator: " AND ")
  }

}

extension SQLiteConnection {
  /// Runs a cached statement that returns nothing, with values of a changeset for its parameters.
  ///
  /// - Throws: `SQLiteError`.
  func run(cached sql: String, _ values: [ValueSlice], _ bytes: RawSpan) throws {
    let prepared = try cached(sql)
    defer { prepared.statement.clearBindings() }
    for (index, value) in values.enumerated() { try prepared.statement.bind(value, in: bytes, at: index) }
    try prepared.statement.run()
  }
}

/// The keys and hashes of the rows of a table in the baseline of a share, for the state digests of its stream.
final class BaselineRows {
  private let entry: BaselineEntry
  private let columns: [String]
  private let seeds: [StreamRowHash.Seed]
  private let connection: SQLiteConnection

  /// - Parameter columns: The columns that the hashes cover.
  init(_ entry: BaselineEntry, columns: [String], on connection: borrowing SQLiteConnection) {
    self.entry = entry
    self.columns = columns
    seeds = columns.map { StreamRowHash.Seed(of: $0) }
    self.connection = SQLiteConnection(sharing: connection)
  }

  private lazy var results = columns.map { SQLText.identifier($0) }.joined(separator: ", ")
  /// The statement that reads the row with a key; nil until it is first needed.
  private var query: String?

  /// The hash of the baseline's row with the same key as another row; nil if there is none.
  ///
  /// - Throws: `SQLiteError`.
  func hash(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws -> UInt64? {
    let sql = query ?? "SELECT \(results) FROM main.\(entry.name.quoted) WHERE \(table.condition(from: 1))"
    query = sql
    let prepared = try connection.cached(sql)
    defer {
      prepared.statement.reset()
      prepared.statement.clearBindings()
    }
    try table.bindKey(row, bytes, to: prepared.statement)
    guard try prepared.statement.step() else { return nil }
    return StreamRowHash(of: prepared.statement, from: 0, seeds).value
  }

  /// Calls `body` with the key and the hash of each row whose key has no NULL.
  ///
  /// - Throws: `SQLiteError`; what `body` throws.
  func forEach(of table: KeyedTable, _ body: ([UInt8], UInt64) throws -> Void) throws {
    let keys = table.local.keySQL.joined(separator: ", ")
    let query = "SELECT \(keys), \(results) FROM main.\(entry.name.quoted)"
    try connection.forEachRow(of: query) { row in
      guard let key = ChangesetWriter.key(of: row, count: table.keyPlaces.count) else { return }
      try body(key, StreamRowHash(of: row, from: table.keyPlaces.count, seeds).value)
    }
  }
}
