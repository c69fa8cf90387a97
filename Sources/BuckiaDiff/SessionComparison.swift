import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The `session` method: SQLite's own `sqlite3session_diff`, kept as the oracle of the tests.
///
/// It knows no tables without a key, ignores rows with NULL in the key, and takes `a` and `A` for equal in a NOCASE
/// column, as it does 1 and 1.0: <https://sqlite.org/session/sqlite3session_diff.html>.
///
/// A session compares two databases of one connection. Therefore one connection attaches both files, with a read
/// transaction for all tables.
final class SessionComparison {
  private static let olderName = "buckia_older"
  /// The most columns that a table may have: SQLite's query names those of both tables as its results, and compares them
  /// in an expression that nests as deep as they are many.
  private static let columnLimit = 900

  private let connection: SQLiteConnection

  /// Opens both files; their text must be stored in one encoding.
  init(olderPath: String, newerPath: String) throws {
    connection = try SQLiteConnection.reading(newerPath)
    try connection.attach(olderPath, as: Self.olderName)
    // Ends with the connection.
    try connection.execute("BEGIN")
  }

  /// Compares one table; returns false when the method cannot do it and `rows` must.
  func compare(_ newer: TableDefinition, _ older: TableDefinition, into changes: ChangeCollector) throws -> Bool {
    guard newer.module == nil, !newer.isKeyedByRowID, newer.generated.isEmpty, older.generated.isEmpty,
      newer.columns.count <= Self.columnLimit, newer.name.utf8.elementsEqual(older.name.utf8),
      newer.hasSameColumns(as: older),
      newer.primaryKey == older.primaryKey, (newer.columns + older.columns).allSatisfy(\.hasKnownCollation)
    else { return false }
    if try hasNullKeys(newer, in: "main") || hasNullKeys(older, in: Self.olderName) { return false }
    let session = try SQLiteSession(on: connection)
    try session.attach(newer.name)
    guard try record(newer.name, in: session) else { return false }
    try Changesets.sorted(session.changeset()).withRawSpan { bytes in
      try bytes.withUnsafeBytes { buffer in
        var reader = ChangesetReader()
        while let change = try reader.next(in: bytes) {
          // The collector writes the two bytes in front of the values itself.
          let values = (change.range.lowerBound + 2)..<change.range.upperBound
          try changes.add(change.operation, encoded: UnsafeRawBufferPointer(rebasing: buffer[values]))
        }
      }
    }
    return true
  }

  /// Records the difference; false when the session extension finds that the two tables do not fit.
  private func record(_ table: String, in session: borrowing SQLiteSession) throws(SQLiteError) -> Bool {
    do {
      try session.recordDifference(from: Self.olderName, table: table)
      return true
    } catch {
      guard error.isSchemaMismatch else { throw error }
      return false
    }
  }

  private func hasNullKeys(_ table: TableDefinition, in schema: String) throws -> Bool {
    guard let condition = table.hasNullKeySQL else { return false }
    let query = "SELECT 1 FROM \(schema).\(SQLText.identifier(table.name)) WHERE \(condition) LIMIT 1"
    return try connection.integer(query) != nil
  }
}
