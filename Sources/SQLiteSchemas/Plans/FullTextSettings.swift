import SQLiteConnections

/// What commands such as `rank` have set for a full-text table, which does not travel.
///
/// See <https://sqlite.org/fts5.html#special_insert_commands>.
package enum FullTextSettings {
  /// Reads the settings of a table, by name.
  ///
  /// - Returns: Each with its value as SQL; nil for a table of another kind, and where they cannot be read.
  /// - Throws: `SQLiteError` when the database fails.
  package static func read(
    of table: TableDefinition, on connection: borrowing SQLiteConnection
  ) throws -> [(name: String, value: String)]? {
    guard case .fullText = table.module else { return nil }
    let source = SQLText.identifier(table.name + "_config")
    let query = "SELECT k, quote(k) || quote(v) FROM main.\(source) WHERE k <> 'version' ORDER BY k"
    // Damage inside the table is reported when its rows are read.
    guard try connection.failure(ofPreparing: query) == nil else { return nil }
    var settings: [(name: String, value: String)] = []
    try connection.forEachRow(of: query) { settings.append(($0.text(at: 0) ?? "", $0.text(at: 1) ?? "")) }
    return settings
  }
}
