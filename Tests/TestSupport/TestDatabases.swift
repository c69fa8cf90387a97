import SQLiteConnections

/// Makes, reads and compares small databases.
public enum TestDatabases {
  /// Runs statements on a database file, which is made when it is not there.
  @discardableResult
  public static func run(_ sql: String, on path: String) throws -> String {
    let connection = try SQLiteConnection(opening: path, as: .create)
    try connection.execute(sql)
    return path
  }

  /// Runs many statements, one after the other.
  public static func run(_ statements: [String], on path: String) throws {
    try run("PRAGMA journal_mode = MEMORY; \(statements.joined(separator: ";\n"))", on: path)
  }

  /// Every row of a query as one line of text; values in SQL notation.
  public static func rows(_ sql: String, on path: String) throws -> [String] {
    try rows(sql, on: SQLiteConnection(opening: path, as: .readOnly))
  }

  private static func rows(_ sql: String, on connection: borrowing SQLiteConnection) throws -> [String] {
    var rows: [String] = []
    try connection.forEachRow(of: sql) { row in
      rows.append((0..<row.columnCount).map { Self.text(of: row, at: $0) }.joined(separator: "|"))
    }
    return rows
  }

  private static func text(of row: borrowing SQLiteStatement, at column: Int) -> String {
    switch row.storageClass(at: column) {
    case .null: "NULL"
    case .integer: "\(row.integer(at: column))"
    case .real: "r\(row.real(at: column).bitPattern)"
    case .text: "'\(Array(row.textBytes(at: column)).map(String.init).joined(separator: "."))'"
    case .blob: "x\(row.blob(at: column))"
    }
  }

  /// The names of the ordinary tables, ours and SQLite's own left out.
  public static func tables(of path: String) throws -> [String] {
    try tables(of: SQLiteConnection(opening: path, as: .readOnly))
  }

  private static func tables(of connection: borrowing SQLiteConnection) throws -> [String] {
    var names: [String] = []
    let query = """
      SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'
        AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name NOT LIKE 'buckia\\_%' ESCAPE '\\' ORDER BY name
      """
    try connection.forEachRow(of: query) { names.append($0.text(at: 0) ?? "") }
    return names
  }

  /// Everything in the ordinary tables: for each its sorted rows, columns by name.
  public static func content(of path: String) throws -> [String: [String]] {
    let connection = try SQLiteConnection(opening: path, as: .readOnly)
    var content: [String: [String]] = [:]
    for table in try tables(of: connection) {
      let quoted = "\"\(table.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\""))\""
      var columns: [String] = []
      try connection.forEachRow(of: "SELECT name FROM pragma_table_xinfo(?1) ORDER BY name", binding: [table]) { row in
        let name = row.text(at: 0) ?? ""
        columns.append("\"\(name.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\""))\"")
      }
      content[table] = try rows("SELECT \(columns.joined(separator: ", ")) FROM \(quoted)", on: connection).sorted()
    }
    return content
  }
}
