import BuckiaApply
import BuckiaLedger
import BuckiaSchemaPlans
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// A table of the database whose rows are known by their keys, and how the changes of a diff name those.
struct KeyedTable {
  /// The table as it is here.
  let local: TableDefinition
  /// For each column of the key, in its order, the place in the changeset.
  let keyPlaces: [Int]
  /// The names of the changeset's columns.
  let columns: [String]

  /// - Returns: nil where rows are not known by a key, or the key is another one here.
  init?(_ author: TableDefinition, _ local: TableDefinition) {
    guard !author.isKeyedByRowID, !local.isKeyedByRowID, local.module == nil, author.hasSameKey(as: local) else {
      return nil
    }
    self.local = local
    keyPlaces = author.keyIndexes
    columns = author.changesetColumns
  }

  var name: TableName { TableName(local.name) }
  var sql: String { "main.\(name.quoted)" }

  /// Whether a row has a key without NULL. Others are known by their content alone.
  func hasKey(_ row: [ValueSlice]) -> Bool {
    keyPlaces.allSatisfy { row[$0].kind != .null && row[$0].isDefined }
  }

  /// The values of a row's key, in the format of changesets.
  func key(_ row: [ValueSlice], _ bytes: RawSpan) -> [UInt8] {
    keyPlaces.flatMap { place in bytes.extracting(row[place].encoded).withUnsafeBytes { Array($0) } }
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
    let prefix = table.map { "\($0)." } ?? ""
    return local.keySQL.enumerated().map { "\(prefix)\($1) = ?\(start + $0)" }.joined(separator: " AND ")
  }

  /// The same, by the bytes of the key: one that only compares equal is another row.
  func exactCondition(from start: Int) -> String {
    let isSame = local.keySQL.enumerated().map { "\($1) IS ?\(start + $0) COLLATE BINARY" }
    return ([condition(from: start)] + isSame).joined(separator: " AND ")
  }

  /// Chooses the row with a key among those that a stream has brought.
  func vouchCondition(from start: Int) -> String {
    keyPlaces.indices.map { "k\($0) = ?\(start + $0)" }.joined(separator: " AND ")
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
struct KeyedTables {
  private var tables: [TableName: KeyedTable] = [:]

  /// - Throws: `SQLiteError`.
  init(_ definitions: [TableDefinition], _ schema: SchemaReader) throws {
    for definition in definitions {
      let name = TableName(definition.name)
      guard let entry = schema.entry(named: name), entry.kind == .table else { continue }
      tables[name] = KeyedTable(definition, try schema.definition(of: entry))
    }
  }

  subscript(name: TableName) -> KeyedTable? { tables[name] }
}
