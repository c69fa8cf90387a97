import BuckiaApply
import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// A table of the database whose rows are identified by keys, and the layout of its changes in a diff.
///
/// Statements and layouts are built once.
final class KeyedTable {
  /// The local definition.
  let local: TableDefinition
  let name: TableName
  let sql: String
  /// The places in the changeset of the key columns, in the order of the key.
  let keyPlaces: [Int]
  /// The names of the changeset's columns.
  let columns: [String]
  /// The places in the changeset of the columns that refer to other rows.
  private(set) lazy var referringPlaces = columns.indices.filter { place in
    local.foreignKeys.contains { $0.columns.contains { ASCIIName.matches($0, columns[place]) } }
  }
  /// True if the changeset has each local column.
  private(set) lazy var hasAllColumns = local.columns.allSatisfy { column in
    columns.contains { ASCIIName.matches($0, column.name) }
  }
  /// The initial values for the hashes of the columns.
  let seeds: [StreamRowHash.Seed]
  private let keySQL: [String]
  private var conditions: [Int: String] = [:]
  /// The statement that finds the row with a key.
  private(set) lazy var lookup = "SELECT 1 FROM \(sql) WHERE \(condition(from: 1))"
  /// The statement that finds the row with a key, compared by bytes.
  private(set) lazy var exactLookup = "SELECT 1 FROM \(sql) WHERE \(exactCondition(from: 1))"
  /// True if keys are equal only if their text is the same, byte by byte.
  private(set) lazy var comparesKeysByBytes = ClockKey(of: local).sortsByBytes
  /// The query for the row with a key, in the columns of the changeset; nil if the table lacks any of them.
  private(set) lazy var rowQuery: String? = {
    guard columns.allSatisfy({ local.column(named: $0) != nil }) else { return nil }
    let results = columns.map { SQLText.identifier($0) }.joined(separator: ", ")
    return "SELECT \(results) FROM \(sql) WHERE \(condition(from: 1))"
  }()
  /// An SQL condition for the row with a key in the provenance tables.
  private(set) lazy var provenanceCondition = keyPlaces.indices.map { "k\($0) = ?\($0 + 1)" }.joined(separator: " AND ")

  /// - Returns: nil if rows have no key, or the local key is another one.
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

  /// True if a row has a key without NULL. Other rows are identified by their content.
  func hasKey(_ row: [ValueSlice]) -> Bool {
    keyPlaces.allSatisfy { row[$0].kind != .null && row[$0].isDefined }
  }

  /// True if a deleted row has more values than its key.
  func isWhole(_ row: [ValueSlice]) -> Bool {
    keyPlaces.count == row.count || row.indices.contains { !keyPlaces.contains($0) && row[$0].kind != .null }
  }

  /// The values of a row's key, in the format of changesets.
  func key(_ row: [ValueSlice], _ bytes: RawSpan) -> [UInt8] {
    if keyPlaces.count == 1 { return bytes.array(row[keyPlaces[0]].encoded) }
    return keyPlaces.flatMap { place in bytes.array(row[place].encoded) }
  }

  /// The integer key of a row; nil for other keys.
  func integerKey(of row: [ValueSlice], _ bytes: RawSpan) -> Int64? {
    guard keyPlaces.count == 1, row[keyPlaces[0]].kind == .integer else { return nil }
    return row[keyPlaces[0]].integer(in: bytes)
  }

  /// True if the table has a row with an integer key.
  func hasRow(withKey key: Int64, on connection: borrowing SQLiteConnection) throws -> Bool {
    let connection = SQLiteConnection(sharing: connection)
    return try withRow(forKey: key) { try finds(lookup, $0, $1, on: connection) }
  }

  /// Calls `body` with a row of which only the integer key is known.
  func withRow<Result>(forKey key: Int64, _ body: ([ValueSlice], RawSpan) throws -> Result) rethrows -> Result {
    try IntegerKey.encoded(key).withRawSpan { try body(row(withKey: $0), $0) }
  }

  /// A normalized key: keys that SQLite takes for the same are equal. Nil if the key has a collating sequence other
  /// than BINARY and NOCASE.
  func comparable(_ key: [UInt8]) -> [UInt8]? {
    if comparesKeysByBytes { return key }
    return hasKnownCollations ? key.map { ASCIIName.folded($0) } : nil
  }

  /// True if the columns of the key have the collating sequences BINARY and NOCASE only.
  private lazy var hasKnownCollations = local.primaryKey.allSatisfy {
    ["binary", "nocase"].contains(ASCIIName.folded(local.columns[$0].collation))
  }

  /// The key under which the sums and the notes of streams have a row. Spellings that SQLite takes for the same key have
  /// one, as far as the collating sequences are known.
  func folded(_ key: [UInt8]) -> [UInt8] { comparable(key) ?? key }

  /// The same for the key of a row.
  func foldedKey(_ row: [ValueSlice], _ bytes: RawSpan) -> [UInt8] { folded(key(row, bytes)) }

  /// A row of which only the key is known.
  ///
  /// - Parameter key: The values of the key, in the format of changesets.
  func row(withKey key: RawSpan) -> [ValueSlice] {
    var row = Array(repeating: ValueSlice.undefined, count: columns.count)
    var position = 0
    for place in keyPlaces { row[place] = ValueSlice(verified: key, at: &position) }
    return row
  }

  /// An SQL condition for the row with a key, whose values are bound from this parameter on, counted from 1.
  func condition(from start: Int, in table: String? = nil) -> String {
    if table == nil, let known = conditions[start] { return known }
    let prefix = table.map { "\($0)." } ?? ""
    let condition = keySQL.enumerated().map { "\(prefix)\($1) = ?\(start + $0)" }.joined(separator: " AND ")
    if table == nil { conditions[start] = condition }
    return condition
  }

  /// The same by the bytes of the key: a key that only compares equal belongs to another row.
  private func exactCondition(from start: Int) -> String {
    let isSame = keySQL.enumerated().map { "\($1) IS ?\(start + $0) COLLATE BINARY" }
    return ([condition(from: start)] + isSame).joined(separator: " AND ")
  }

  /// The values of a row's key.
  func keyValues(_ row: [ValueSlice]) -> [ValueSlice] { keyPlaces.map { row[$0] } }

  /// Binds a row's key.
  ///
  /// - Parameter start: The index of the first parameter, from 0.
  func bindKey(
    _ row: [ValueSlice], _ bytes: RawSpan, to statement: borrowing SQLiteStatement, from start: Int = 0
  ) throws {
    for (index, place) in keyPlaces.enumerated() { try statement.bind(row[place], in: bytes, at: start + index) }
  }

  /// Runs a statement for a row's key, and returns true if it has a result.
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

/// The tables of a diff whose rows are identified by keys.
final class KeyedTables {
  private var tables: [TableName: KeyedTable] = [:]
  /// The table that was used last, because the changes of a table are adjacent.
  private var last: (header: ChangesetTable, table: KeyedTable?)?

  /// - Parameters:
  ///   - definitions: The tables of the diff.
  ///   - others: The names of further local tables. Tables of the diff, and missing ones, are ignored.
  ///   - schema: The schema of the database.
  /// - Throws: `SQLiteError`.
  init(_ definitions: [TableDefinition], and others: [TableName] = [], _ schema: SchemaReader) throws {
    for definition in definitions {
      let name = TableName(definition.name)
      tables[name] = try schema.table(named: name).flatMap { KeyedTable(definition, $0) }
    }
    let known = Set(definitions.map { TableName($0.name) })
    for name in others where !known.contains(name) {
      tables[name] = try schema.table(named: name).flatMap { KeyedTable($0, $0) }
    }
  }

  /// True if a condition holds for any of the tables.
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

/// A set of keys in the format of changesets: in memory while they are few, otherwise in a TEMP table.
final class KeySet {
  private static let memoryLimit = 1 << 15

  private let sets: KeySets
  private var keys: Set<[UInt8]> = []
  /// The number of the set in the TEMP table; nil while the keys are in memory.
  private var number: Int64?

  fileprivate init(_ sets: KeySets) { self.sets = sets }

  /// Adds a key.
  ///
  /// - Throws: `SQLiteError`.
  func insert(_ key: [UInt8]) throws {
    if number == nil, keys.count < Self.memoryLimit {
      keys.insert(key)
    } else {
      try store(key, number ?? moveToTable())
    }
  }

  private func moveToTable() throws -> Int64 {
    try sets.makeTable()
    let next = try 1 + (sets.connection.cachedInteger("SELECT max(number) FROM \(sets.table)") ?? 0)
    number = next
    for key in keys.sorted(by: { $0.lexicographicallyPrecedes($1) }) { try store(key, next) }
    keys = []
    return next
  }

  private func store(_ key: [UInt8], _ number: Int64) throws {
    try sets.connection.run(cached: "INSERT OR IGNORE INTO \(sets.table) VALUES (?1, ?2)", number, key)
  }

  /// True if the set contains a key.
  ///
  /// - Throws: `SQLiteError`.
  func contains(_ key: [UInt8]) throws -> Bool {
    guard let number else { return keys.contains(key) }
    return try sets.connection.hasRow(
      cached: "SELECT 1 FROM \(sets.table) WHERE number = ?1 AND key = ?2", number, key)
  }

  /// Calls `body` with each key. No key may be added meanwhile.
  ///
  /// - Throws: `SQLiteError`; what `body` throws.
  func forEach(_ body: ([UInt8]) throws -> Void) throws {
    guard let number else { return try keys.forEach(body) }
    try sets.connection.forEachRow(of: "SELECT key FROM \(sets.table) WHERE number = \(number)") {
      try body($0.blob(at: 0))
    }
  }
}

/// Creates sets of keys, and empties the TEMP table that they share.
final class KeySets {
  fileprivate let table: String
  fileprivate let connection: SQLiteConnection
  private var hasTable = false

  /// - Parameter name: A name that distinguishes uses at the same time.
  init(_ name: String, on connection: borrowing SQLiteConnection) {
    table = "temp.\(SQLiteConnection.temporaryPrefix)key_set_\(name)"
    self.connection = SQLiteConnection(sharing: connection)
  }

  func make() -> KeySet { KeySet(self) }

  fileprivate func makeTable() throws {
    hasTable = true
    let columns = "number INTEGER NOT NULL, key BLOB NOT NULL, PRIMARY KEY (number, key)"
    try connection.execute("CREATE TABLE IF NOT EXISTS \(table)(\(columns)) WITHOUT ROWID")
  }

  /// Deletes the keys of all sets, which must not be used any more.
  ///
  /// - Throws: `SQLiteError`.
  func clear() throws {
    guard hasTable else { return }
    // A rollback may have dropped the table.
    try makeTable()
    try connection.execute("DELETE FROM \(table)")
    hasTable = false
  }
}

extension Dictionary where Value == KeySet {
  /// Adds a key to the set with a name.
  ///
  /// - Throws: `SQLiteError`.
  mutating func insert(_ key: [UInt8], of name: Key, in sets: KeySets) throws {
    let set = self[name] ?? sets.make()
    self[name] = set
    try set.insert(key)
  }
}
