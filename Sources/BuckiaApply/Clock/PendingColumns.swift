import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections

/// Columns of missing rows, which are written when the row appears: an UPDATE has arrived before the INSERT of its row,
/// the row was deleted by an earlier diff than the one that has set them, or a UNIQUE constraint keeps the row out.
final class PendingColumns {
  /// The columns of one row that one diff has set.
  struct Item {
    let rowVersion: Int64
    /// A value for each column of the row version, in the order of their positions.
    let values: [ChangesetValue?]
    /// True if the diff has inserted the row, which only a UNIQUE constraint keeps out.
    let isOfInsert: Bool
  }

  private let number: Int64
  private let key: ClockKey
  private let connection: SQLiteConnection
  /// True if columns of any row are kept.
  private(set) var exist: Bool
  private(set) var includeInserts: Bool

  init(_ number: Int64, _ key: ClockKey, on connection: borrowing SQLiteConnection) throws {
    self.number = number
    self.key = key
    self.connection = SQLiteConnection(sharing: connection)
    let table = "main.buckia_clock_\(number)_pending"
    exist = try connection.cachedInteger("SELECT 1 FROM \(table) LIMIT 1") != nil
    includeInserts = try exist && connection.cachedInteger("SELECT 1 FROM \(table) WHERE is_insert LIMIT 1") != nil
  }

  private var table: String { "main.buckia_clock_\(number)_pending" }
  private var names: [String] { key.names() }
  private var condition: String { names.enumerated().map { "\($1) = ?\($0 + 1)" }.joined(separator: " AND ") }

  /// Keeps values for a row.
  ///
  /// - Parameters:
  ///   - values: A record with a value for each column of the row version, in the order of their positions.
  ///   - isOfInsert: True if the values are those of an INSERT.
  func keep(_ values: [UInt8], by rowVersion: Int64, isOfInsert: Bool = false, for row: ClockKeyRecord) throws {
    let parameters = (1...(names.count + 3)).map { "?\($0)" }.joined(separator: ", ")
    let statement = try connection.cached(
      "REPLACE INTO \(table)(\(names.joined(separator: ", ")), row_version, is_insert, \"values\") VALUES (\(parameters))"
    )
    try row.bind(to: statement.statement, from: 0)
    try statement.statement.bind(rowVersion, at: names.count)
    try statement.statement.bind(Int64(isOfInsert ? 1 : 0), at: names.count + 1)
    try statement.statement.bind(values, at: names.count + 2)
    // Nothing is kept for a key that no row can have, such as a text for a rowid.
    guard try statement.statement.attempt() == nil else { return }
    exist = true
    if isOfInsert { includeInserts = true }
  }

  /// The kept columns of a row.
  func items(for row: ClockKeyRecord) throws -> [Item] {
    guard exist else { return [] }
    let query = try connection.cached("SELECT row_version, \"values\", is_insert FROM \(table) WHERE \(condition)")
    defer { query.statement.reset() }
    try row.bind(to: query.statement, from: 0)
    var found: [Item] = []
    while try query.statement.step() {
      found.append(
        Item(
          rowVersion: query.statement.integer(at: 0), values: try ChangesetValue.record(query.statement.blob(at: 1)),
          isOfInsert: query.statement.integer(at: 2) != 0))
    }
    return found
  }

  /// The keys of the rows that only a UNIQUE constraint keeps out.
  func insertedKeys() throws -> [ClockKeyRecord] {
    guard includeInserts else { return [] }
    let names = names.joined(separator: ", ")
    return try connection.rows(ofCached: "SELECT DISTINCT \(names) FROM \(table) WHERE is_insert") {
      ClockKeyRecord(bytes: $0.record(of: 0..<$0.columnCount))
    }
  }

  /// Deletes the kept columns of a row.
  func remove(for row: ClockKeyRecord) throws {
    let statement = try connection.cached("DELETE FROM \(table) WHERE \(condition)")
    try row.bind(to: statement.statement, from: 0)
    try statement.statement.run()
  }

  /// Deletes the kept columns of a row that diffs before another have set.
  func remove(for row: ClockKeyRecord, before diff: KSUID) throws {
    let statement = try connection.cached(
      """
      DELETE FROM \(table) WHERE \(condition)
        AND row_version IN (SELECT row_version FROM main.buckia_row_version WHERE clock = ?\(names.count + 1) AND diff < ?\(names.count + 2))
      """)
    try row.bind(to: statement.statement, from: 0)
    try statement.statement.bind(number, at: names.count)
    try statement.statement.bind(diff.description, at: names.count + 1)
    try statement.statement.run()
  }
}
