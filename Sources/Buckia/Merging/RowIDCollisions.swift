import BuckiaSchemaPlans
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Tells, for one table without a key, which incoming rows have the rowid of another row here.
struct RowIDCollisions {
  /// How many there were so far.
  private(set) var count = 0
  private let query: PreparedStatement
  /// For each column of the query where it stands in the changeset.
  private let places: [Int]
  /// Whether every incoming column is here, so that two rows can be told to be equal.
  private let isComplete: Bool
  /// The greatest rowid of both sides, and of those given out since.
  private var greatest: Int64

  /// - Parameters:
  ///   - table: The table of the other database.
  ///   - schema: The schema here.
  ///   - incoming: The other database.
  ///   - connection: The database here.
  /// - Returns: nil where rows have a key, or there is no such table here.
  init?(
    _ table: TableDefinition, in schema: SchemaReader, from incoming: borrowing SQLiteConnection,
    on connection: borrowing SQLiteConnection
  ) throws {
    guard table.isKeyedByRowID, table.module == nil, let rowIDName = table.rowIDName,
      let entry = schema.entry(named: TableName(table.name)), entry.kind == .table
    else { return nil }
    let local = try schema.definition(of: entry)
    guard local.isKeyedByRowID, let localRowIDName = local.rowIDName else { return nil }
    let lookup = ColumnLookup(local.columns)
    var names: [String] = []
    var places: [Int] = []
    for (place, column) in table.columns.enumerated() {
      guard let found = lookup[column.name] else { continue }
      names.append(SQLText.identifier(local.columns[found].name))
      places.append(place + 1)
    }
    self.places = places
    isComplete = names.count == table.columns.count
    let name = SQLText.identifier(local.name)
    let results = ["1"] + names
    let sql = "SELECT \(results.joined(separator: ", ")) FROM main.\(name) WHERE \(localRowIDName) = ?1"
    query = PreparedStatement(try connection.prepare(sql, isPersistent: true))
    let mine = try connection.integer("SELECT max(\(localRowIDName)) FROM main.\(name)") ?? 0
    let others = "SELECT max(\(rowIDName)) FROM main.\(SQLText.identifier(table.name))"
    greatest = max(0, mine, try incoming.integer(others) ?? 0)
  }

  /// Whether an incoming row has the rowid of another row here.
  ///
  /// - Parameters:
  ///   - row: Its values, the rowid first.
  ///   - longBytes: All bytes of a value of which only the beginning is in `bytes`; nil where all are.
  mutating func meets(
    _ row: [ValueSlice], in bytes: RawSpan, longBytes: (ValueSlice) throws -> [UInt8]?
  ) throws -> Bool {
    guard let rowID = row.first, rowID.kind == .integer else { return false }
    defer { query.statement.reset() }
    try query.statement.bind(rowID.integer(in: bytes), at: 0)
    guard try query.statement.step() else { return false }
    if isComplete, try isSame(row, in: bytes, longBytes) { return false }
    count += 1
    return true
  }

  private func isSame(
    _ row: [ValueSlice], in bytes: RawSpan, _ longBytes: (ValueSlice) throws -> [UInt8]?
  ) throws -> Bool {
    for (column, place) in places.enumerated() {
      let isEqual: Bool
      switch query.statement.storageClass(at: column + 1) {
      case .null: isEqual = row[place].kind == .null
      case .integer:
        isEqual =
          row[place].kind == .integer && row[place].integer(in: bytes) == query.statement.integer(at: column + 1)
      case .real:
        isEqual =
          row[place].kind == .real && row[place].bits(in: bytes) == query.statement.real(at: column + 1).bitPattern
      case .text:
        isEqual =
          try row[place].kind == .text
          && isSame(row[place], as: query.statement.textBytes(at: column + 1), in: bytes, longBytes)
      case .blob:
        isEqual =
          try row[place].kind == .blob
          && isSame(row[place], as: query.statement.blobBytes(at: column + 1), in: bytes, longBytes)
      }
      guard isEqual else { return false }
    }
    return true
  }

  private func isSame(
    _ value: ValueSlice, as local: UnsafeRawBufferPointer, in bytes: RawSpan,
    _ longBytes: (ValueSlice) throws -> [UInt8]?
  ) throws -> Bool {
    if let long = try longBytes(value) { return long.elementsEqual(local) }
    return bytes.extracting(value.payloadRange).withUnsafeBytes { $0.elementsEqual(local) }
  }

  /// A rowid that neither side uses; nil where the greatest one is taken.
  mutating func nextRowID() -> Int64? {
    guard greatest < .max else { return nil }
    greatest += 1
    return greatest
  }
}
