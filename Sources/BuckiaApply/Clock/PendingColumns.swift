import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections

/// Columns of rows that are not here: an UPDATE has arrived before the INSERT of its row, or the row was deleted by a
/// diff before the one that has set them. They are written when the row appears.
final class PendingColumns {
  /// What is kept of one diff for one row.
  struct Item {
    let stamp: Int64
    /// A value for each column of the stamp, in the order of their positions.
    let values: [ChangesetValue?]
  }

  private let number: Int64
  private let key: ClockKey
  private let keys: ClockKeys
  private let connection: SQLiteConnection
  /// Whether anything is kept for any row.
  private(set) var exist: Bool

  init(_ number: Int64, _ key: ClockKey, _ keys: ClockKeys, on connection: borrowing SQLiteConnection) throws {
    self.number = number
    self.key = key
    self.keys = keys
    self.connection = SQLiteConnection(sharing: connection)
    exist = try connection.cachedInteger("SELECT 1 FROM main.buckia_clock_\(number)_pending LIMIT 1") != nil
  }

  private var table: String { "main.buckia_clock_\(number)_pending" }
  private var parameters: [String] { (1...keys.count).map { "?\($0)" } }
  private var condition: String {
    zip(key.names(), parameters).map { "\($0) = \($1)" }.joined(separator: " AND ")
  }

  /// Keeps values for the row of a change.
  ///
  /// - Parameter values: A record with a value for each column of the stamp, in the order of their positions.
  func keep(_ values: [UInt8], by stamp: Int64, for change: DecodedChange, _ bytes: RawSpan) throws {
    let names = key.names().joined(separator: ", ")
    let statement = try connection.cached(
      """
      REPLACE INTO \(table)(\(names), stamp, "values")
      VALUES (\(parameters.joined(separator: ", ")), ?\(keys.count + 1), ?\(keys.count + 2))
      """)
    try keys.bind(change, bytes, to: statement.statement)
    try statement.statement.bind(stamp, at: keys.count)
    try statement.statement.bind(values, at: keys.count + 1)
    // A key that no row can have, such as one that is no number, is kept for none.
    if try statement.statement.attempt() == nil { exist = true }
  }

  /// What is kept for the row of a change.
  func items(for change: DecodedChange, _ bytes: RawSpan) throws -> [Item] {
    guard exist else { return [] }
    let query = try connection.cached("SELECT stamp, \"values\" FROM \(table) WHERE \(condition)")
    defer { query.statement.reset() }
    try keys.bind(change, bytes, to: query.statement)
    var found: [Item] = []
    while try query.statement.step() {
      found.append(
        Item(
          stamp: query.statement.integer(at: 0), values: try ChangesetValue.record(query.statement.blob(at: 1))))
    }
    return found
  }

  /// Removes what is kept for the row of a change.
  func remove(for change: DecodedChange, _ bytes: RawSpan) throws {
    let statement = try connection.cached("DELETE FROM \(table) WHERE \(condition)")
    try keys.bind(change, bytes, to: statement.statement)
    try statement.statement.run()
  }
}
