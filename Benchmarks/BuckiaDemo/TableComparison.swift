import SQLiteConnections

/// Compares two databases with plain SQL, independently of the engine.
struct TableComparison {
  /// How many rows of a table are in one database only.
  struct Difference {
    let table: String
    let onlyInFirst: Int64
    let onlyInSecond: Int64
  }

  /// Compares all ordinary tables of the second database with those of the first.
  ///
  /// SQLite's and Buckia's own tables are skipped, and so are virtual tables with their shadow tables. Whole rows are compared,
  /// their columns by name.
  static func differences(between first: String, and second: String) throws -> [Difference] {
    let connection = try SQLiteConnection(opening: first, as: .readOnly)
    try connection.execute("ATTACH \(literal(second)) AS other")
    var tables: [String] = []
    try connection.forEachRow(
      of:
        """
        SELECT name FROM pragma_table_list
        WHERE schema = 'other' AND type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
          AND name NOT LIKE 'buckia\\_%' ESCAPE '\\' ORDER BY name
        """
    ) { row in
      if let name = row.text(at: 0) { tables.append(name) }
    }
    return try tables.compactMap { table in
      var columns: [String] = []
      try connection.forEachRow(of: "SELECT name FROM pragma_table_info(\(literal(table)), 'other')") { row in
        if let name = row.text(at: 0) { columns.append(identifier(name)) }
      }
      let list = columns.joined(separator: ", ")
      func missing(from one: String, in another: String) throws -> Int64 {
        // EXCEPT drops duplicates, so compare the number of equal rows, too.
        let rows = "SELECT \(list), count(*) FROM %.\(identifier(table)) GROUP BY \(list)"
        func side(_ schema: String) -> String { rows.split(separator: "%").joined(separator: schema) }
        return try connection.integer("SELECT count(*) FROM (\(side(another)) EXCEPT \(side(one)))") ?? 0
      }
      let difference = Difference(
        table: table, onlyInFirst: try missing(from: "other", in: "main"),
        onlyInSecond: try missing(from: "main", in: "other"))
      return difference.onlyInFirst + difference.onlyInSecond > 0 ? difference : nil
    }
  }

  private static func literal(_ text: String) -> String { quoted(text, with: "'") }

  private static func identifier(_ text: String) -> String { quoted(text, with: "\"") }

  private static func quoted(_ text: String, with quote: Character) -> String {
    let doubled = text.split(separator: quote, omittingEmptySubsequences: false).joined(separator: "\(quote)\(quote)")
    return "\(quote)\(doubled)\(quote)"
  }
}
