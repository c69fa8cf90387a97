import SQLiteConnections
import SQLiteSchemas

/// Where the tree of each table of a database begins.
struct RootPages {
  private var pages: [TableName: Int] = [:]

  /// Reads `sqlite_schema` once: it has no index, and a database may have ten thousand tables.
  init(_ connection: borrowing SQLiteConnection) throws {
    try connection.forEachRow(of: "SELECT name, rootpage FROM main.sqlite_schema WHERE type = 'table'") { row in
      let page = Int(row.integer(at: 1))
      if page > 0 { pages[TableName(row.text(at: 0) ?? "")] = page }
    }
  }

  /// The first page of a table; nil for one that has no tree.
  subscript(_ table: TableName) -> Int? { pages[table] }
}
