import SQLiteConnections
import SQLiteSchemas

/// What ANALYZE has found out about indexes: SQLite removes it together with an index, and it is put back with the new one.
///
/// See <https://sqlite.org/fileformat2.html#stat1tab> and <https://sqlite.org/lang_analyze.html>.
struct IndexStatistics {
  private var insertions: [String] = []

  /// Takes over what is known about an index that is to be dropped.
  ///
  /// - Throws: `SQLiteError` when it cannot be read.
  mutating func save(_ index: String, on connection: borrowing SQLiteConnection) throws {
    let tables = "SELECT name FROM main.sqlite_schema WHERE name GLOB 'sqlite_stat[1-4]' ORDER BY name"
    var names: [String] = []
    try connection.forEachRow(of: tables) { names.append($0.text(at: 0) ?? "") }
    for name in names {
      var columns: [String] = []
      try connection.forEachRow(of: "SELECT name FROM pragma_table_info(?1, 'main')", binding: [name]) { row in
        columns.append(SQLText.identifier(row.text(at: 0) ?? ""))
      }
      let values = columns.map { "quote(\($0))" }.joined(separator: " || ', ' || ")
      let query = "SELECT rowid || ', ' || \(values) FROM main.\(name) WHERE idx = ?1"
      try connection.forEachRow(of: query, binding: [index]) { row in
        insertions.append(
          """
          INSERT INTO main.\(name) (rowid, \(columns.joined(separator: ", "))) VALUES (\(row.text(at: 0) ?? ""))
          """)
      }
    }
  }

  /// Puts everything back, and lets this connection plan queries by it.
  ///
  /// - Throws: `SQLiteError` when it cannot be written.
  func restore(on connection: borrowing SQLiteConnection) throws(SQLiteError) {
    guard !insertions.isEmpty else { return }
    for insertion in insertions { try connection.execute(insertion) }
    // Gathers nothing, but reads the statistics again.
    try connection.execute("ANALYZE main.sqlite_schema")
  }
}
