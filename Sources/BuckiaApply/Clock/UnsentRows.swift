import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The unsent edits of one table, with the rows that the recipients have.
///
/// They are in a TEMP table, which is rolled back together with the rows.
final class UnsentRows {
  /// The operation of an edit.
  enum Operation: Int64 {
    case insert = 1
    case update
    case delete
    /// The edit is void, because the recipients have deleted the row.
    case void
  }

  /// An edit of a row, and the row that the recipients have.
  struct Edit {
    /// The key in its local spelling.
    let key: ClockKeyRecord
    let operation: Operation
    /// The places in the local layout that the edit has set.
    let columns: ColumnSet
    /// The recipients' row as a record of the local layout, undefined in columns that are the same here; nil if they
    /// have none.
    let shared: [UInt8]?
  }

  let table: TableDefinition
  private let key: ClockKey
  private let name: String
  private let connection: SQLiteConnection

  /// Reads the edits of a table from a changeset that leads back to the sent rows.
  ///
  /// - Parameters:
  ///   - table: The local table, whose columns the changes have.
  ///   - number: A number that distinguishes the TEMP table from others.
  init(
    of table: TableDefinition, takenBackBy changes: TableSections, number: Int,
    on connection: borrowing SQLiteConnection
  ) throws {
    self.table = table
    name = "temp.\(SQLiteConnection.temporaryPrefix)unsent_\(number)"
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

  /// The edit of a row; nil for none.
  func edit(of row: ClockKeyRecord) throws -> Edit? {
    let query = try connection.cached("\(selection) WHERE \(condition)")
    defer { query.statement.reset() }
    try row.bind(to: query.statement, from: 0)
    return try query.statement.step() ? edit(query.statement) : nil
  }

  /// The edits of all rows.
  func edits() throws -> [Edit] {
    try connection.rows(ofCached: selection) { edit($0) }.compactMap { $0 }
  }

  private var selection: String {
    "SELECT operation, columns, shared, \(key.names().joined(separator: ", ")) FROM \(name)"
  }

  private func edit(_ row: borrowing SQLiteStatement) -> Edit? {
    guard let operation = Operation(rawValue: row.integer(at: 0)), operation != .void else { return nil }
    return Edit(
      key: ClockKeyRecord(bytes: row.record(of: 3..<row.columnCount)), operation: operation,
      columns: ColumnSet(bytes: row.blob(at: 1)), shared: row.isNull(at: 2) ? nil : row.blob(at: 2))
  }

  /// Records the rest of an edit after the recipients' row has changed.
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

  /// Updates another database to the recipients' versions of the edited rows that received diffs have changed.
  func writeShared(to other: borrowing SQLiteConnection) throws {
    let here = TableRows(table, in: connection)
    let there = TableRows(table, in: other)
    let names = key.names()
    try connection.forEachRow(
      of: "SELECT \(names.joined(separator: ", ")), operation, shared FROM \(name) WHERE is_met"
    ) { row in
      let key = ClockKeyRecord(bytes: row.record(of: names.indices))
      let isVoid = row.integer(at: names.count) == Operation.void.rawValue
      let shared =
        if isVoid { try here.row(key) } else {
          row.isNull(at: names.count + 1) ? nil : row.blob(at: names.count + 1)
        }
      if let refusal = try there.write(shared, to: key, replacingOthers: true) {
        throw SQLiteError(
          code: refusal.code, message: "a row of \(table.name) cannot get its last shared values", path: other.path)
      }
    }
  }
}

/// The unsent edits for the policy `latest`. They count as later than all that arrives, because the diff that sends
/// them will be.
package final class UnsentEdits {
  private let rows: [TableName: UnsentRows]

  /// Reads the unsent edits. Call it outside of the transactions in which files are applied.
  ///
  /// - Parameters:
  ///   - reversal: A changeset that leads from the database back to the sent rows, in the columns of the local tables.
  ///   - definitions: The local tables.
  /// - Throws: `ChangesetError` when the changeset is damaged; `SQLiteError`.
  package init(
    takenBackBy reversal: TemporaryBuffer, _ definitions: [TableDefinition], on connection: borrowing SQLiteConnection
  ) throws {
    let sections = TableSections(try ChangesetSummary.of(reversal), of: reversal)
    var rows: [TableName: UnsentRows] = [:]
    for (index, table) in definitions.enumerated() where table.module == nil {
      rows[TableName(table.name)] = try UnsentRows(of: table, takenBackBy: sections, number: index, on: connection)
    }
    self.rows = rows
  }

  /// The unsent edits of a table; nil for none.
  func rows(of table: TableName) -> UnsentRows? { rows[table] }

  /// Updates the database from which the next diff is made to the recipients' versions of the edited rows that received
  /// diffs have changed.
  package func writeShared(to other: borrowing SQLiteConnection) throws {
    for rows in rows.values { try rows.writeShared(to: other) }
  }
}
