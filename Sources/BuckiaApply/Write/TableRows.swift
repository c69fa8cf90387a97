import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Reads, writes and deletes rows of one table by key, without counting or reporting them. ``RowWriter`` explains its
/// users.
final class TableRows {
  private let table: String
  private let layout: [String]
  private let keyPlaces: [Int]
  private let connection: SQLiteConnection
  /// Maintains the indexes over the table in place of triggers.
  private let indexes: IndexMaintenance?

  init(_ table: TableDefinition, keeping indexes: IndexMaintenance? = nil, in connection: borrowing SQLiteConnection) {
    self.table = "main.\(SQLText.identifier(table.name))"
    layout = table.changesetColumnsSQL
    keyPlaces = table.keyIndexes
    self.indexes = indexes
    self.connection = SQLiteConnection(sharing: connection)
  }

  private var condition: String {
    keyPlaces.enumerated().map { "\(layout[$1]) = ?\($0 + 1)" }.joined(separator: " AND ")
  }

  /// A row as a record of the layout; nil where there is none.
  func row(_ key: ClockKeyRecord) throws -> [UInt8]? {
    let query = try connection.cached("SELECT \(layout.joined(separator: ", ")) FROM \(table) WHERE \(condition)")
    defer { query.statement.reset() }
    try key.bind(to: query.statement, from: 0)
    guard try query.statement.step() else { return nil }
    return query.statement.record(of: layout.indices)
  }

  /// Writes the defined columns of a record to a row, or deletes the row if the record is nil.
  ///
  /// - Parameter replacesOthers: True if rows with the same UNIQUE values are deleted.
  /// - Returns: The reason of a refusal; nil on success.
  func write(
    _ record: [UInt8]?, to key: ClockKeyRecord, replacingOthers replacesOthers: Bool = false
  ) throws -> SQLiteRefusal? {
    guard let record else {
      let statement = try connection.cached("DELETE FROM \(table) WHERE \(condition)")
      try key.bind(to: statement.statement, from: 0)
      return try run(statement)
    }
    let row = try RowCopy(record: record)
    let isThere = try self.row(key) != nil
    let places = row.values.indices.filter { row.values[$0].isDefined && !(isThere && keyPlaces.contains($0)) }
    guard !places.isEmpty else { return nil }
    let offset = isThere ? keyPlaces.count : 0
    let parameters = places.indices.map { "?\($0 + 1 + offset)" }
    let clause = replacesOthers ? "OR REPLACE" : "OR ABORT"
    let sql =
      if isThere {
        "UPDATE \(clause) \(table) SET "
          + zip(places, parameters).map { "\(layout[$0]) = \($1)" }.joined(separator: ", ") + " WHERE \(condition)"
      } else {
        "INSERT \(clause) INTO \(table)(\(places.map { layout[$0] }.joined(separator: ", "))) "
          + "VALUES (\(parameters.joined(separator: ", ")))"
      }
    let statement = try connection.cached(sql)
    defer { statement.statement.clearBindings() }
    if isThere { try key.bind(to: statement.statement, from: 0) }
    for (index, place) in places.enumerated() { try row.bind(place, to: statement.statement, at: offset + index) }
    return try run(statement)
  }

  private func run(_ prepared: PreparedStatement) throws -> SQLiteRefusal? {
    if let indexes { try indexes.attempt(prepared.statement) } else { try prepared.statement.attempt() }
  }

  /// SQLite's message about the last refusal.
  var lastMessage: [UInt8] { connection.withLastMessage { Array($0) } }
}
