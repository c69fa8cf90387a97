import SQLiteConnections
import SQLiteSchemas

/// What a full-text table has been told by commands such as `rank`: that stays at home.
///
/// See <https://sqlite.org/fts5.html#special_insert_commands>.
package struct FullTextSettings: Equatable, Sendable {
  /// The names of the settings, in order.
  package let names: [String]
  /// Each with its value, as SQL.
  private let values: [String]

  /// None at all.
  package static let none = FullTextSettings(names: [], values: [])

  private init(names: [String], values: [String]) {
    self.names = names
    self.values = values
  }

  /// Reads the settings of a table.
  ///
  /// - Returns: nil for a table of another kind, and where they cannot be read.
  /// - Throws: `SQLiteError` when the database fails.
  package init?(of table: TableDefinition, on connection: borrowing SQLiteConnection) throws {
    guard case .fullText = table.module else { return nil }
    let source = SQLText.identifier(table.name + "_config")
    let query = "SELECT k, quote(k) || quote(v) FROM main.\(source) WHERE k <> 'version' ORDER BY k"
    // A table whose insides are damaged is named when its rows are read.
    guard try connection.failure(ofPreparing: query) == nil else { return nil }
    var names: [String] = []
    var values: [String] = []
    try connection.forEachRow(of: query) { row in
      names.append(row.text(at: 0) ?? "")
      values.append(row.text(at: 1) ?? "")
    }
    self.names = names
    self.values = values
  }
}
