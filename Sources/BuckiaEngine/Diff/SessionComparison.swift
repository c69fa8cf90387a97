import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The `session` method: SQLite's own `sqlite3session_diff`, kept as the oracle of the tests.
///
/// It knows no tables without a key, ignores rows with NULL in the key, and takes `a` and `A` for equal in a NOCASE
/// column, as it does 1 and 1.0: <https://sqlite.org/session/sqlite3session_diff.html>.
enum SessionComparison {
  private static let olderName = "buckia_older"

  /// Compares one table; returns false when the method cannot do it and `rows` must.
  ///
  /// A connection of its own attaches both files: a session compares two databases of one connection.
  static func run(
    _ newer: TableDefinition, _ older: TableDefinition, olderPath: String, newerPath: String,
    into changes: ChangeCollector
  ) throws -> Bool {
    guard newer.module == nil, !newer.goesByRowID, newer.generated.isEmpty, older.generated.isEmpty,
      newer.name == older.name,
      newer.columns.map(\.name) == older.columns.map(\.name), newer.primaryKey == older.primaryKey
    else { return false }
    let connection = try SnapshotReader.open(newerPath)
    try connection.attach(olderPath, as: olderName)
    let transaction = try SQLiteTransaction(.deferred, on: connection)
    if try hasNullKeys(newer, in: "main", on: connection) || hasNullKeys(older, in: olderName, on: connection) {
      return false
    }
    let session = try SQLiteSession(on: connection)
    try session.attach(newer.name)
    guard try record(newer.name, in: session) else { return false }
    let recorded = try session.changeset()
    transaction.rollback()
    let sorted = try recorded.withRawSpan { try Changesets.sorted($0) }
    try sorted.withBytes { bytes in
      var reader = ChangesetReader()
      while let change = try reader.next(in: bytes) {
        // The collector writes the two bytes of the change itself.
        let values = bytes.array((change.range.lowerBound + 2)..<change.range.upperBound)
        try changes.add(change.operation) { $0.append(encoded: values) }
      }
    }
    return true
  }

  /// Records the difference; false when the session extension finds that the two tables do not fit.
  private static func record(_ table: String, in session: borrowing SQLiteSession) throws(SQLiteError) -> Bool {
    do {
      try session.recordDifference(from: olderName, table: table)
      return true
    } catch {
      guard error.isSchemaMismatch else { throw error }
      return false
    }
  }

  private static func hasNullKeys(
    _ table: TableDefinition, in schema: String, on connection: borrowing SQLiteConnection
  ) throws -> Bool {
    guard let condition = table.hasNullKeySQL else { return false }
    let query = "SELECT 1 FROM \(schema).\(SQLText.identifier(table.name)) WHERE \(condition) LIMIT 1"
    return try connection.integer(query) != nil
  }
}
