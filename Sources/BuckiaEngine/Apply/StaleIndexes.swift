import SQLiteConnections
import SQLiteSchemas

/// Names the full-text and R-tree indexes that triggers would have kept up to date, had they fired.
enum StaleIndexes {
  static func warnings(changed: [TableName], on connection: borrowing SQLiteConnection) throws -> [String] {
    // Most databases have no such index, and need not have their whole schema read after each diff.
    let virtual = "SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND lower(sql) LIKE 'create virtual%' LIMIT 1"
    guard try connection.cachedInteger(virtual) != nil else { return [] }
    let schema = try SchemaReader(connection)
    var warnings: [String] = []
    for entry in schema.entries {
      guard case .virtual(let module) = entry.kind else { continue }
      let query = """
        SELECT DISTINCT tbl_name FROM main.sqlite_schema
        WHERE type = 'trigger' AND instr(lower(sql), lower(?1)) > 0
        """
      var sources: [TableName] = []
      try connection.forEachRow(of: query, binding: [entry.name.text]) {
        sources.append(TableName($0.text(at: 0) ?? ""))
      }
      for source in sources where changed.contains(source) {
        warnings.append(
          "the \(module) index \"\(entry.name)\" over table \"\(source)\" is kept by triggers, which did not fire: rebuild it"
        )
      }
    }
    return warnings
  }
}
