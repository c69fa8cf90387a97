import BuckiaBytes
import SQLiteConnections
import SQLiteSchemas

/// The foreign keys of a schema, found from either end.
struct SchemaReferences {
  /// A foreign key: a table that refers to another.
  private struct Reference: Hashable {
    let child: TableName
    let parent: TableName
    /// The columns of the parent that it names; empty where it refers to the primary key without naming it.
    let columns: [String]
  }

  private var byChild: [TableName: Set<Reference>] = [:]
  private var byParent: [TableName: Set<Reference>] = [:]

  /// `f`: a foreign key of a table, a row for each of its columns.
  private static let columns = "f.id, f.\"table\", f.\"to\""
  private static let order = "f.id, f.seq"

  /// Reads the foreign keys of all tables of `main`.
  ///
  /// - Throws: `SQLiteError` when the schema cannot be read.
  init(_ connection: borrowing SQLiteConnection) throws {
    let query = """
      SELECT \(Self.columns), t.name FROM main.sqlite_schema AS t, pragma_foreign_key_list(t.name, 'main') AS f
      WHERE t.type = 'table' AND t.sql LIKE '%REFERENCES%' ORDER BY t.rowid, \(Self.order)
      """
    var rows = ReferenceRows()
    try connection.forEachRow(of: query) { rows.add($0, of: $0.text(at: 3) ?? "") }
    insert(rows)
  }

  /// Adds those of a table that has been created since.
  ///
  /// - Throws: `SQLiteError` when the schema cannot be read.
  mutating func add(of table: TableName, on connection: borrowing SQLiteConnection) throws {
    let query = "SELECT \(Self.columns) FROM pragma_foreign_key_list(?1, 'main') AS f ORDER BY \(Self.order)"
    var rows = ReferenceRows()
    try connection.forEachRow(ofCached: query, binding: [table.text]) { rows.add($0, of: table.text) }
    insert(rows)
  }

  private mutating func insert(_ rows: ReferenceRows) {
    for row in rows.found {
      let reference = Reference(child: TableName(row.child), parent: TableName(row.parent), columns: row.columns)
      byChild[reference.child, default: []].insert(reference)
      byParent[reference.parent, default: []].insert(reference)
    }
  }

  /// Whether there are none.
  var isEmpty: Bool { byChild.isEmpty }

  /// The tables that refer to any.
  var children: Set<TableName> { Set(byChild.keys) }

  /// The tables that refer to one.
  func children(of parent: TableName) -> Set<TableName> { Set((byParent[parent] ?? []).map(\.child)) }

  /// The tables that refer to other columns of one than its primary key.
  func children(of parent: TableName, besidesKeyOf definition: TableDefinition) -> Set<TableName> {
    let key = Set(definition.primaryKey.map { ASCIIName.folded(definition.columns[$0].name) })
    let others = (byParent[parent] ?? []).filter { reference in
      !reference.columns.allSatisfy { key.contains(ASCIIName.folded($0)) }
    }
    return Set(others.map(\.child))
  }

  /// Whether a table refers to any.
  func isChild(_ table: TableName) -> Bool { byChild[table] != nil }

  /// Whether any table refers to one.
  func isParent(_ table: TableName) -> Bool { byParent[table] != nil }
}

/// Foreign keys as SQLite lists them, a row for each column.
private struct ReferenceRows {
  private(set) var found: [(child: String, id: Int64, parent: String, columns: [String])] = []

  mutating func add(_ row: borrowing SQLiteStatement, of child: String) {
    let id = row.integer(at: 0)
    if found.last?.child != child || found.last?.id != id {
      found.append((child, id, row.text(at: 1) ?? "", []))
    }
    if let column = row.text(at: 2) { found[found.count - 1].columns.append(column) }
  }
}
