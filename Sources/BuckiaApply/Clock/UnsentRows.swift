import BuckiaByteStreams
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The rows of one table that were changed here and not sent to anybody: under the policy `latest` they count as later than all that
/// arrives, since the diff that sends them will be.
///
/// They are in a TEMP table, which a rolled-back transaction takes back with the rows.
final class UnsentRows {
  /// What was done to a row.
  struct Edit {
    let operation: ChangeOperation
    fileprivate let columns: [String]

    /// Whether a column was set.
    func has(_ name: String) -> Bool {
      operation == .insert || columns.contains { ASCIIName.matches($0, name) }
    }
  }

  private let name: String
  private let key: ClockKey
  private let connection: SQLiteConnection

  /// Takes the changes of a table from a changeset of all that was not sent.
  ///
  /// - Parameters:
  ///   - table: The local table, whose columns the changes have.
  ///   - suffix: Tells the TEMP table apart from those of others.
  ///   - isReversed: Whether the changes lead back to what was sent.
  init(
    of table: TableDefinition, from changes: TableSections, isReversed: Bool, suffix: Int,
    on connection: borrowing SQLiteConnection
  ) throws {
    name = "temp.buckia_unsent_\(suffix)"
    key = ClockKey(of: table)
    self.connection = SQLiteConnection(sharing: connection)
    try connection.execute("DROP TABLE IF EXISTS \(name)")
    try connection.execute(key.creation(of: name, with: "operation INTEGER NOT NULL, columns BLOB NOT NULL"))
    let places = Array(table.changesetColumns.indices)
    let names = table.changesetColumns
    let keys = ClockKeys(key, places: places, storesUTF16: true)
    let parameters = (1...(keys.count + 2)).map { "?\($0)" }.joined(separator: ", ")
    let insert = try connection.prepare("REPLACE INTO \(name) VALUES (\(parameters))", isPersistent: true)
    try changes.forEachChange(of: TableName(table.name)) { change, bytes in
      guard !change.hasNullKey else { return }
      var columns = ChangesetWriter()
      for column in places where change.operation == .update && change.new(column).isDefined {
        columns.append(text: names[column])
      }
      try keys.bind(change, bytes, to: insert)
      let operation = isReversed ? change.operation.inverse : change.operation
      try insert.bind(Int64(operation.rawValue), at: keys.count)
      try insert.bind(columns.bytes, at: keys.count + 1)
      try insert.run()
    }
  }

  /// What was done to the row of a change; nil for nothing.
  func edit(of change: DecodedChange, at keys: ClockKeys, _ bytes: RawSpan) throws -> Edit? {
    let query = try connection.cached("SELECT operation, columns FROM \(name) WHERE \(condition)")
    defer { query.statement.reset() }
    try keys.bind(change, bytes, to: query.statement)
    guard try query.statement.step() else { return nil }
    return Edit(
      operation: ChangeOperation(rawValue: UInt8(truncatingIfNeeded: query.statement.integer(at: 0))) ?? .update,
      columns: try ChangesetValue.record(query.statement.blob(at: 1)).compactMap {
        if case .text(let name) = $0 { name } else { nil }
      })
  }

  /// Forgets what was done to the row of a change: it is gone.
  func forget(_ change: DecodedChange, at keys: ClockKeys, _ bytes: RawSpan) throws {
    let statement = try connection.cached("DELETE FROM \(name) WHERE \(condition)")
    try keys.bind(change, bytes, to: statement.statement)
    try statement.statement.run()
  }

  private var condition: String {
    key.names().enumerated().map { "\($1) = ?\($0 + 1)" }.joined(separator: " AND ")
  }
}

extension ChangeOperation {
  /// What takes it back.
  fileprivate var inverse: ChangeOperation {
    switch self {
    case .insert: .delete
    case .delete: .insert
    case .update: .update
    }
  }
}
