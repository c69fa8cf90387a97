import SQLiteSchemas
import SQLiteConnections

/// An index of a table beside its primary key.
struct SecondaryIndex {
  let name: String
  /// Whether no two rows may have the same place in it: then it is more than a way to find rows.
  let isUnique: Bool
  /// The columns that it depends on, as places in the local layout of the table: those of its expressions and its condition
  /// among them.
  let columns: Set<Int>
  /// The column by which it is sorted first, as a place in the local layout; nil for an expression or a generated column.
  let leading: Int?
  /// How many values an entry has, without what tells the row apart.
  let width: Int
  /// How to create it again; nil when that would not give the very same index.
  let creation: IndexCreation?

  /// Reads the indexes of a table, in the order in which they were created.
  ///
  /// - Throws: `SQLiteError` when the schema cannot be read.
  static func all(of table: TableDefinition, on connection: borrowing SQLiteConnection) throws -> [SecondaryIndex] {
    let query = """
      SELECT i.name, i.sql, l."unique" FROM main.sqlite_schema AS i, pragma_index_list(?1, 'main') AS l
      WHERE i.type = 'index' AND i.name = l.name AND l.origin <> 'pk' ORDER BY i.rowid
      """
    var found: [(name: String, isUnique: Bool, creation: IndexCreation?)] = []
    try connection.forEachRow(of: query, binding: [table.name]) { row in
      let isUnique = row.integer(at: 2) != 0
      let name = row.text(at: 0) ?? ""
      // Text that is no valid UTF-8 would not be the same afterwards.
      let isText = row.isWellFormedText(at: 0) && row.isWellFormedText(at: 1)
      let sql = isText && !isUnique ? row.text(at: 1) : nil
      found.append((name, isUnique, sql.flatMap { IndexCreation($0, of: name) }))
    }
    var indexes: [SecondaryIndex] = []
    for index in found {
      indexes.append(
        try SecondaryIndex(index.name, isUnique: index.isUnique, index.creation, of: table, on: connection))
    }
    return indexes
  }

  private init(
    _ name: String, isUnique: Bool, _ creation: IndexCreation?, of table: TableDefinition,
    on connection: borrowing SQLiteConnection
  ) throws {
    let offset = table.isKeyedByRowID ? 1 : 0
    var members: [Int?] = []
    let query = "SELECT name FROM pragma_index_xinfo(?1, 'main') WHERE key"
    try connection.forEachRow(of: query, binding: [name]) { row in
      members.append(row.text(at: 0).flatMap { table.column(named: $0) }.map { $0 + offset })
    }
    let names = creation?.references.names ?? []
    let named = table.columns.indices.filter { names.contains(TableName(table.columns[$0].name)) }
    self.name = name
    self.isUnique = isUnique
    self.creation = creation
    columns = Set(members.compactMap(\.self)).union(named.map { $0 + offset })
    leading = members.first ?? nil
    width = max(1, members.count)
  }
}
