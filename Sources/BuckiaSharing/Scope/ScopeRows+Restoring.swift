import BuckiaDiff
import SQLiteConnections
import SQLiteSchemas

extension ScopeRows {
  /// Selects the rows by which a database gets those of a scope back from an earlier state of it.
  ///
  /// They are the rows that either database has in the scope. Of tables that the scope does not name, they are the rows
  /// that scope rows refer to and that the present database no longer has.
  ///
  /// - Parameters:
  ///   - present: The rows of the present database.
  ///   - deletes: True if rows that the earlier database does not have are selected, too.
  /// - Returns: The selections for both databases, as long as their connections are open.
  /// - Throws: `SQLiteError`.
  package func selections(
    restoring present: ScopeRows, deletes: Bool
  ) throws -> (earlier: [TableName: RowSelection], present: [TableName: RowSelection]) {
    var (earlier, now) = (selections, present.selections)
    for (place, table) in schema.tables.enumerated() {
      guard let other = present.schema.tables.first(where: { $0.name == table.name }), other.key == table.key else {
        continue
      }
      // Rows without a key are the same if their content is, so they meet a condition in both databases or in none.
      let hasKey = !table.definition.primaryKey.isEmpty
      if table.isNamed, deletes, !hasKey || table.rows == .all && earlier[table.name] == nil { continue }
      let keys = KeyTable(
        "temp.\(SQLiteConnection.temporaryPrefix)restored_\(place)", of: table.definition.name, columns: table.key)
      try keys.create(on: connection)
      try keys.create(on: present.connection)
      try keys.add(from: connection, table, earlier[table.name], to: connection)
      if table.isNamed {
        if hasKey { try keys.add(from: present.connection, other, now[table.name], to: connection) }
        let kept = deletes ? keys.all : keys.existing(in: table)
        try keys.add(from: connection, kept, to: present.connection)
      } else {
        try keys.add(from: connection, keys.all, to: present.connection)
        try keys.remove(existingIn: other, on: present.connection)
        try connection.execute("DELETE FROM \(keys.name)")
        try keys.add(from: present.connection, keys.all, to: connection)
      }
      let selection = RowSelection(
        where: keys.condition, omitting: table.isNamed ? table.selected.omittedColumns : [])
      earlier[table.name] = selection
      now[table.name] = selection
    }
    return (earlier, now)
  }
}

extension ScopeSchema.Table {
  /// The columns of the primary key, as SQL; all columns if there is none.
  fileprivate var key: [String] {
    let places = definition.primaryKey.isEmpty ? Array(definition.columns.indices) : definition.primaryKey
    return places.map { SQLText.identifier(definition.columns[$0].name) }
  }
}

/// A TEMP table of keys of a table, which two connections have.
private struct KeyTable {
  let name: String
  private let table: String
  private let key: [String]
  private let columns: [String]

  init(_ name: String, of table: String, columns key: [String]) {
    self.name = name
    self.table = SQLText.identifier(table)
    self.key = key
    columns = key.indices.map { "k\($0)" }
  }

  private var list: String { columns.joined(separator: ", ") }
  private var keyList: String { key.joined(separator: ", ") }
  /// The keys as a query.
  var all: String { "SELECT \(list) FROM \(name)" }
  /// True for a row whose key is in the table, as SQL. Rows without a key can have NULL in any column.
  var condition: String {
    let terms = zip(columns, key).map { "\($0) IS \(table).\($1)" }
    return "EXISTS (\(all) WHERE \(terms.joined(separator: " AND ")))"
  }
  /// The keys that rows of a table have, as a query.
  func existing(in table: ScopeSchema.Table) -> String { "SELECT \(keyList) FROM \(table.sql) WHERE \(condition)" }

  func create(on connection: borrowing SQLiteConnection) throws {
    try connection.execute("CREATE TABLE \(name)(\(list), PRIMARY KEY (\(list)))")
  }

  /// Adds the keys of the selected rows of a table.
  func add(
    from source: borrowing SQLiteConnection, _ table: ScopeSchema.Table, _ selection: RowSelection?,
    to target: borrowing SQLiteConnection
  ) throws {
    let condition = selection?.condition.map { " WHERE \($0)\n" } ?? ""
    try add(from: source, "SELECT \(keyList) FROM \(table.sql)\(condition)", selection, to: target)
  }

  /// Adds the results of a query.
  func add(
    from source: borrowing SQLiteConnection, _ query: String, _ selection: RowSelection? = nil,
    to target: borrowing SQLiteConnection
  ) throws {
    let rows = try source.prepare(query)
    try selection?.bindParameters(to: rows)
    let places = columns.map { _ in "?" }.joined(separator: ", ")
    let insertion = try target.prepare("INSERT OR IGNORE INTO \(name) VALUES (\(places))")
    while try rows.step() {
      for index in columns.indices { try insertion.bind(column: index, of: rows, at: index) }
      try insertion.run()
    }
  }

  /// Removes the keys that rows of a table have.
  func remove(existingIn table: ScopeSchema.Table, on connection: borrowing SQLiteConnection) throws {
    try connection.execute(
      "DELETE FROM \(name) WHERE (\(list)) IN (\(existing(in: table)))")
  }
}
