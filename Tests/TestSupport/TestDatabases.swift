import SQLiteConnections

/// Creates, reads and compares small databases.
public enum TestDatabases {
  /// Runs statements on a database file, which is created if it does not exist.
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

  /// Every row of a query as one line of text, with values in SQL notation.
  public static func rows(_ sql: String, on path: String) throws -> [String] {
    try rows(sql, on: SQLiteConnection(opening: path, as: .readOnly))
  }

  private static func rows(_ sql: String, on connection: borrowing SQLiteConnection) throws -> [String] {
    try lines(sql, on: connection) { Self.text(of: $0, at: $1) }
  }

  /// Every row of a query as readable text: the columns separated by bars, `NULL` for nothing.
  public static func texts(_ sql: String, on path: String) throws -> [String] {
    try texts(sql, on: SQLiteConnection(opening: path, as: .readOnly))
  }

  /// Every row of a query on a connection, in the form of `texts(_:on:)`.
  package static func texts(
    _ sql: String, binding values: [String] = [], on connection: borrowing SQLiteConnection
  ) throws -> [String] {
    try lines(sql, binding: values, on: connection) { $0.text(at: $1) ?? "NULL" }
  }

  private static func lines(
    _ sql: String, binding values: [String] = [], on connection: borrowing SQLiteConnection,
    _ text: (borrowing SQLiteStatement, Int) -> String
  ) throws -> [String] {
    var lines: [String] = []
    try connection.forEachRow(of: sql, binding: values) { row in
      lines.append((0..<row.columnCount).map { text(row, $0) }.joined(separator: "|"))
    }
    return lines
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

  /// The names of the ordinary tables, without ours and SQLite's own.
  public static func tables(of path: String) throws -> [String] {
    try tables(of: SQLiteConnection(opening: path, as: .readOnly))
  }

  private static func tables(of connection: borrowing SQLiteConnection) throws -> [String] {
    let query = """
      SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'
        AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name NOT LIKE 'buckia\\_%' ESCAPE '\\' ORDER BY name
      """
    return try texts(query, on: connection)
  }

  /// The size of a database in bytes of pages, including those that are still in its write-ahead log.
  public static func size(of path: String) throws -> Int64 {
    let connection = try SQLiteConnection(opening: path, as: .readOnly)
    return try connection.integer("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size") ?? 0
  }

  /// The contents of all ordinary tables: for each its sorted rows, with columns by name.
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
