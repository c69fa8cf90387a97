import BuckiaApply
import BuckiaDiff
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The keys and hashes of the rows of a table in the shadow of a share, for the state digests of its stream.
final class ShadowRows {
  private let entry: ShadowEntry
  private let columns: [String]
  private let seeds: [StreamRowHash.Seed]
  private let connection: SQLiteConnection

  /// - Parameter columns: The columns that the hashes cover.
  init(_ entry: ShadowEntry, columns: [String], on connection: borrowing SQLiteConnection) {
    self.entry = entry
    self.columns = columns
    seeds = columns.map { StreamRowHash.Seed(of: $0) }
    self.connection = SQLiteConnection(sharing: connection)
  }

  private lazy var results = columns.map { SQLText.identifier($0) }.joined(separator: ", ")
  /// The statement that reads the row with a key; nil until it is first needed.
  private var query: String?

  /// The hash of the shadow's row with the same key as another row; nil if there is none.
  ///
  /// - Throws: `SQLiteError`.
  func hash(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws -> UInt64? {
    let sql = query ?? "SELECT \(results) FROM main.\(entry.name.quoted) WHERE \(table.condition(from: 1))"
    query = sql
    let prepared = try connection.cached(sql)
    defer {
      prepared.statement.reset()
      prepared.statement.clearBindings()
    }
    try table.bindKey(row, bytes, to: prepared.statement)
    guard try prepared.statement.step() else { return nil }
    return StreamRowHash(of: prepared.statement, from: 0, seeds).value
  }

  /// Calls `body` with the key and the hash of each row whose key has no NULL.
  ///
  /// - Throws: `SQLiteError`; what `body` throws.
  func forEach(of table: KeyedTable, _ body: ([UInt8], UInt64) throws -> Void) throws {
    let keys = table.local.keySQL.joined(separator: ", ")
    let query = "SELECT \(keys), \(results) FROM main.\(entry.name.quoted)"
    try connection.forEachRow(of: query) { row in
      guard let key = ChangesetWriter.key(of: row, count: table.keyPlaces.count) else { return }
      try body(key, StreamRowHash(of: row, from: table.keyPlaces.count, seeds).value)
    }
  }
}
