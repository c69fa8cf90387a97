import BuckiaBytes
import BuckiaApply
import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// A table of the database whose rows are known by their keys, and how the changes of a diff name those.
///
/// What is said of each of many rows is put together once.
final class KeyedTable {
  /// The table as it is here.
  let local: TableDefinition
  let name: TableName
  let sql: String
  /// For each column of the key, in its order, the place in the changeset.
  let keyPlaces: [Int]
  /// The names of the changeset's columns.
  let columns: [String]
  /// The places in the changeset of the columns that refer to other rows.
  private(set) lazy var referringPlaces = columns.indices.filter { place in
    local.foreignKeys.contains { $0.columns.contains { ASCIIName.matches($0, columns[place]) } }
  }
  /// True if the changeset has each column that the table has here.
  private(set) lazy var hasAllColumns = local.columns.allSatisfy { column in
    columns.contains { ASCIIName.matches($0, column.name) }
  }
  /// Where the hashes of the columns start.
  let seeds: [StreamRowHash.Seed]
  private let keySQL: [String]
  private var conditions: [Int: String] = [:]
  /// Looks up the row with a key.
  private(set) lazy var lookup = "SELECT 1 FROM \(sql) WHERE \(condition(from: 1))"
  /// Looks up the row with a key, by the key's bytes.
  private(set) lazy var exactLookup = "SELECT 1 FROM \(sql) WHERE \(exactCondition(from: 1))"
  /// Reads the columns of the changeset of the row with a key; nil where the table does not have all of them.
  private(set) lazy var rowQuery: String? = {
    guard columns.allSatisfy({ local.column(named: $0) != nil }) else { return nil }
    let results = columns.map { SQLText.identifier($0) }.joined(separator: ", ")
    return "SELECT \(results) FROM \(sql) WHERE \(condition(from: 1))"
  }()
  /// Chooses the row with a key among those that a stream has brought.
  private(set) lazy var vouchCondition = keyPlaces.indices.map { "k\($0) = ?\($0 + 1)" }.joined(separator: " AND ")

  /// - Returns: nil where rows are not known by a key, or the key is another one here.
  init?(_ author: TableDefinition, _ local: TableDefinition) {
    guard !author.isKeyedByRowID, !local.isKeyedByRowID, local.module == nil, author.hasSameKey(as: local) else {
      return nil
    }
    self.local = local
    name = TableName(local.name)
    sql = "main.\(name.quoted)"
    keyPlaces = author.keyIndexes
    columns = author.changesetColumns
    seeds = columns.map { StreamRowHash.Seed(of: $0) }
    keySQL = local.keySQL
  }

  /// Whether a row has a key without NULL. Others are known by their content alone.
  func hasKey(_ row: [ValueSlice]) -> Bool {
    keyPlaces.allSatisfy { row[$0].kind != .null && row[$0].isDefined }
  }

  /// True if more is known of a deleted row than its key.
  func isWhole(_ row: [ValueSlice]) -> Bool {
    keyPlaces.count == row.count || row.indices.contains { !keyPlaces.contains($0) && row[$0].kind != .null }
  }

  /// The values of a row's key, in the format of changesets.
  func key(_ row: [ValueSlice], _ bytes: RawSpan) -> [UInt8] {
    if keyPlaces.count == 1 { return bytes.array(row[keyPlaces[0]].encoded) }
    return keyPlaces.flatMap { place in bytes.array(row[place].encoded) }
  }

  /// The integer that is the key of a row; nil for any other key.
  func integerKey(of row: [ValueSlice], _ bytes: RawSpan) -> Int64? {
    guard keyPlaces.count == 1, row[keyPlaces[0]].kind == .integer else { return nil }
    return row[keyPlaces[0]].integer(in: bytes)
  }

  /// Does something with a row of which only the key is known, an integer.
  func withRow<Result>(forKey key: Int64, _ body: ([ValueSlice], RawSpan) throws -> Result) rethrows -> Result {
    var writer = ChangesetWriter()
    writer.append(integer: key)
    return try writer.bytes.withRawSpan { try body(row(withKey: $0), $0) }
  }

  /// A key such that keys which SQLite takes for the same are equal; nil where that cannot be told, because of a collating sequence
  /// that is neither BINARY nor NOCASE.
  func comparable(_ key: [UInt8]) -> [UInt8]? {
    let collations = local.primaryKey.map { ASCIIName.folded(local.columns[$0].collation) }
    if collations.allSatisfy({ $0 == "binary" }) { return key }
    return collations.allSatisfy({ $0 == "binary" || $0 == "nocase" }) ? key.map { ASCIIName.folded($0) } : nil
  }

  /// A row of which only the key is known.
  ///
  /// - Parameter key: The values of the key, in the format of changesets.
  func row(withKey key: RawSpan) -> [ValueSlice] {
    var row = Array(repeating: ValueSlice.undefined, count: columns.count)
    var position = 0
    for place in keyPlaces { row[place] = ValueSlice(verified: key, at: &position) }
    return row
  }

  /// Chooses the row of the table with a key, whose values are bound from a parameter on, counted from 1.
  func condition(from start: Int, in table: String? = nil) -> String {
    if table == nil, let known = conditions[start] { return known }
    let prefix = table.map { "\($0)." } ?? ""
    let condition = keySQL.enumerated().map { "\(prefix)\($1) = ?\(start + $0)" }.joined(separator: " AND ")
    if table == nil { conditions[start] = condition }
    return condition
  }

  /// The same, by the bytes of the key: one that only compares equal is another row.
  private func exactCondition(from start: Int) -> String {
    let isSame = keySQL.enumerated().map { "\($1) IS ?\(start + $0) COLLATE BINARY" }
    return ([condition(from: start)] + isSame).joined(separator: " AND ")
  }

  /// Binds a row's key.
  ///
  /// - Parameter start: The index of the first parameter, from 0.
  func bindKey(
    _ row: [ValueSlice], _ bytes: RawSpan, to statement: borrowing SQLiteStatement, from start: Int = 0
  ) throws {
    for (index, place) in keyPlaces.enumerated() { try statement.bind(row[place], in: bytes, at: start + index) }
  }

  /// Runs a statement about a row's key, and says whether it has a result.
  func finds(
    _ sql: String, _ row: [ValueSlice], _ bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws -> Bool {
    let prepared = try connection.cached(sql)
    defer {
      prepared.statement.reset()
      prepared.statement.clearBindings()
    }
    try bindKey(row, bytes, to: prepared.statement)
    return try prepared.statement.step()
  }
}

/// The tables of a diff, as they are known by keys here.
final class KeyedTables {
  private var tables: [TableName: KeyedTable] = [:]
  /// The one that was asked for last, as a changeset names it: its changes stand together.
  private var last: (header: ChangesetTable, table: KeyedTable?)?

  /// - Throws: `SQLiteError`.
  init(_ definitions: [TableDefinition], _ schema: SchemaReader) throws {
    for definition in definitions {
      let name = TableName(definition.name)
      guard let entry = schema.entry(named: name), entry.kind == .table else { continue }
      tables[name] = KeyedTable(definition, try schema.definition(of: entry))
    }
  }

  /// Whether a condition holds for any of the tables.
  func contains(where condition: (KeyedTable) throws -> Bool) rethrows -> Bool {
    try tables.values.contains(where: condition)
  }

  subscript(name: TableName) -> KeyedTable? { tables[name] }

  /// The table of a change.
  func table(of header: ChangesetTable) -> KeyedTable? {
    if let last, last.header == header { return last.table }
    let found = tables[TableName(header.name)]
    last = (header, found)
    return found
  }
}
