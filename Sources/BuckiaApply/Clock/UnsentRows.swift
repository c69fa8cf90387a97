import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The rows of one table that were changed here and not sent to anybody: what was done to each, and how the others know it.
///
/// They are in a TEMP table, which a rolled-back transaction takes back with the rows.
final class UnsentRows {
  /// What was done to a row.
  enum Operation: Int64 {
    case insert = 1
    case update
    case delete
    /// It was done for nothing: the others have deleted the row, too, or instead.
    case void
  }

  /// What was done to a row, and how the others know it.
  struct Edit {
    /// The key as it is spelled here.
    let key: ClockKeyRecord
    let operation: Operation
    /// The places in the local layout that were set.
    let columns: ColumnSet
    /// The row as the others know it, as a record of the local layout; undefined in columns where it is as here. Nil
    /// where they have none.
    let shared: [UInt8]?
  }

  let table: TableDefinition
  private let key: ClockKey
  private let name: String
  private let connection: SQLiteConnection

  /// Takes the changes of a table from a changeset that leads back to what was sent.
  ///
  /// - Parameters:
  ///   - table: The local table, whose columns the changes have.
  ///   - number: Tells its TEMP table apart from those of others.
  init(
    of table: TableDefinition, takenBackBy changes: TableSections, number: Int,
    on connection: borrowing SQLiteConnection
  ) throws {
    self.table = table
    name = "temp.buckia_unsent_\(number)"
    key = ClockKey(of: table)
    self.connection = SQLiteConnection(sharing: connection)
    try connection.execute("DROP TABLE IF EXISTS \(name)")
    try connection.execute(
      key.creation(
        of: name, with: "operation INTEGER NOT NULL, columns BLOB NOT NULL, shared BLOB, is_met INTEGER NOT NULL"))
    let places = Array(table.changesetColumns.indices)
    let keys = ClockKeys(key, places: places, storesUTF16: true)
    let parameters = (1...(keys.count + 4)).map { "?\($0)" }.joined(separator: ", ")
    let insert = try connection.prepare("REPLACE INTO \(name) VALUES (\(parameters))", isPersistent: true)
    try changes.forEachChange(of: TableName(table.name)) { change, bytes in
      guard !change.hasNullKey else { return }
      var columns = ColumnSet()
      var shared = ChangesetWriter()
      for place in places {
        if change.operation == .update, change.new(place).isDefined { columns.insert(place) }
        shared.append(change.new(place), of: bytes)
      }
      try keys.bind(change, bytes, to: insert)
      let operation: Operation =
        switch change.operation {
        case .insert: .delete
        case .update: .update
        case .delete: .insert
        }
      try insert.bind(operation.rawValue, at: keys.count)
      try insert.bind(columns.bytes, at: keys.count + 1)
      try insert.bind(operation == .insert ? nil : shared.bytes, at: keys.count + 2)
      try insert.bind(Int64(0), at: keys.count + 3)
      try insert.run()
    }
  }

  private var condition: String {
    key.names().enumerated().map { "\($1) = ?\($0 + 1)" }.joined(separator: " AND ")
  }

  /// What was done to a row; nil for nothing.
  func edit(of row: ClockKeyRecord) throws -> Edit? {
    let names = key.names().joined(separator: ", ")
    let query = try connection.cached("SELECT operation, columns, shared, \(names) FROM \(name) WHERE \(condition)")
    defer { query.statement.reset() }
    try row.bind(to: query.statement, from: 0)
    guard try query.statement.step(), let operation = Operation(rawValue: query.statement.integer(at: 0)),
      operation != .void
    else { return nil }
    var own = ChangesetWriter()
    for column in 3..<query.statement.columnCount { own.append(column: column, of: query.statement) }
    return Edit(
      key: ClockKeyRecord(bytes: own.bytes), operation: operation,
      columns: ColumnSet(bytes: query.statement.blob(at: 1)),
      shared: query.statement.isNull(at: 2) ? nil : query.statement.blob(at: 2))
  }

  /// Notes what is left of what was done to a row, now that the others know it otherwise.
  func note(_ operation: Operation, _ columns: ColumnSet, shared: [UInt8]?, of row: ClockKeyRecord) throws {
    let count = key.names().count
    let statement = try connection.cached(
      """
      UPDATE \(name) SET operation = ?\(count + 1), columns = ?\(count + 2), shared = ?\(count + 3), is_met = 1
      WHERE \(condition)
      """)
    try row.bind(to: statement.statement, from: 0)
    try statement.statement.bind(operation.rawValue, at: count)
    try statement.statement.bind(columns.bytes, at: count + 1)
    try statement.statement.bind(shared, at: count + 2)
    try statement.statement.run()
  }

  // MARK: Rows of the user's table

  /// Reads, writes and deletes rows of the table in a database, without regard to what is counted or reported.
  final class Rows {
    private let table: String
    private let layout: [String]
    private let keyPlaces: [Int]
    private let connection: SQLiteConnection

    init(_ table: TableDefinition, in connection: borrowing SQLiteConnection) {
      self.table = "main.\(SQLText.identifier(table.name))"
      layout = table.changesetColumnsSQL
      keyPlaces = table.keyIndexes
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
      var writer = ChangesetWriter()
      for place in layout.indices { writer.append(column: place, of: query.statement) }
      return writer.bytes
    }

    /// Makes a row what a record says, in the columns where it says anything; no row where there is no record.
    ///
    /// - Returns: Why that is refused; nil when it was done.
    func write(_ record: [UInt8]?, to key: ClockKeyRecord) throws -> SQLiteRefusal? {
      guard let record else {
        let statement = try connection.cached("DELETE FROM \(table) WHERE \(condition)")
        try key.bind(to: statement.statement, from: 0)
        return try statement.statement.attempt()
      }
      let row = try RowCopy(record: record)
      let isThere = try self.row(key) != nil
      let places = row.values.indices.filter { row.values[$0].isDefined && !(isThere && keyPlaces.contains($0)) }
      guard !places.isEmpty else { return nil }
      let offset = isThere ? keyPlaces.count : 0
      let parameters = places.indices.map { "?\($0 + 1 + offset)" }
      let sql =
        if isThere {
          "UPDATE OR ABORT \(table) SET "
            + zip(places, parameters).map { "\(layout[$0]) = \($1)" }.joined(separator: ", ") + " WHERE \(condition)"
        } else {
          "INSERT OR ABORT INTO \(table)(\(places.map { layout[$0] }.joined(separator: ", "))) "
            + "VALUES (\(parameters.joined(separator: ", ")))"
        }
      let statement = try connection.cached(sql)
      defer { statement.statement.clearBindings() }
      if isThere { try key.bind(to: statement.statement, from: 0) }
      for (index, place) in places.enumerated() { try row.bind(place, to: statement.statement, at: offset + index) }
      return try statement.statement.attempt()
    }
  }

  /// Makes the rows that others have changed meanwhile, too, what these know, in another database.
  func writeShared(to other: borrowing SQLiteConnection) throws {
    let here = Rows(table, in: connection)
    let there = Rows(table, in: other)
    let names = key.names()
    let query = try connection.prepare(
      "SELECT \(names.joined(separator: ", ")), operation, shared FROM \(name) WHERE is_met")
    while try query.step() {
      var writer = ChangesetWriter()
      for column in names.indices { writer.append(column: column, of: query) }
      let key = ClockKeyRecord(bytes: writer.bytes)
      let isVoid = query.integer(at: names.count) == Operation.void.rawValue
      let shared =
        if isVoid { try here.row(key) } else {
          query.isNull(at: names.count + 1) ? nil : query.blob(at: names.count + 1)
        }
      if let refusal = try there.write(shared, to: key) {
        throw SQLiteError(
          code: refusal.code, message: "a row of \(table.name) cannot be as others know it", path: other.path)
      }
    }
  }

  /// Removes the TEMP table.
  func end() throws { try connection.execute("DROP TABLE IF EXISTS \(name)") }
}
