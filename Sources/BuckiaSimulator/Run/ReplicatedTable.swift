import SQLiteConnections

/// A table whose rows travel.
struct ReplicatedTable {
  let name: TableName
  let definition: TableDefinition
  /// The replicated columns; the rowid first if it is the key.
  let columns: [String]
  /// The key columns among them.
  let key: [Int]
  /// The statement that made it.
  let sql: String

  private init(_ entry: SchemaEntry, _ definition: TableDefinition) {
    name = entry.name
    self.definition = definition
    sql = entry.sql
    key = definition.keyIndexes
    columns = definition.changesetColumns.enumerated().map { place, column in
      definition.isKeyedByRowID && place == 0 ? definition.rowIDName ?? column : column
    }
  }

  /// The tables of a database whose rows travel, virtual ones left out.
  static func all(in connection: borrowing SQLiteConnection) throws -> [ReplicatedTable] {
    let schema = try SchemaReader(connection)
    return try schema.entries.compactMap { entry in
      guard case .table = entry.kind, !Replicability.isOwn(entry.name), Replicability.refusal(of: entry) == nil
      else { return nil }
      let definition = try schema.definition(of: entry)
      return Replicability.refusal(of: definition) == nil ? ReplicatedTable(entry, definition) : nil
    }
  }

  /// The table's name in SQL.
  var quotedName: String { SQLText.identifier(name.text) }

  /// The name of a column in SQL. The rowid needs no quotes, in which it would be text.
  func quoted(_ column: Int) -> String {
    definition.isKeyedByRowID && column == 0 ? columns[0] : SQLText.identifier(columns[column])
  }

  /// A value as the column's key compares it: to SQLite, keys that differ in the case of a NOCASE column are the same row.
  func comparable(_ value: ChangesetValue, in column: Int) -> ChangesetValue {
    guard case .text(let text) = value, key.contains(column), !definition.isKeyedByRowID else { return value }
    switch ASCIIName.folded(definition.columns[column].collation) {
    case "nocase": return .text(ASCIIName.folded(text))
    case "rtrim": return .text(String(text.reversed().drop { $0 == " " }.reversed()))
    default: return value
    }
  }

  /// True if keys may compare equal that are not the same.
  var foldsKeys: Bool {
    !definition.isKeyedByRowID
      && key.contains { ["nocase", "rtrim"].contains(ASCIIName.folded(definition.columns[$0].collation)) }
  }

  /// A query for all rows.
  var query: String { "SELECT \(columns.indices.map(quoted).joined(separator: ", ")) FROM main.\(quotedName)" }

  /// A query for all rows of a database that may not have got the upgrade: columns that it lacks are NULL. nil if it lacks the table.
  func query(in connection: borrowing SQLiteConnection) throws -> String? {
    let present = try presentColumns(in: connection)
    guard !present.isEmpty else { return nil }
    let terms = columns.indices.map { column in
      let isThere = definition.isKeyedByRowID && column == 0 || present.contains(ASCIIName.folded(columns[column]))
      return isThere ? quoted(column) : "NULL"
    }
    return "SELECT \(terms.joined(separator: ", ")) FROM main.\(quotedName)"
  }

  private func presentColumns(in connection: borrowing SQLiteConnection) throws -> Set<String> {
    var present: Set<String> = []
    try connection.forEachRow(ofCached: "SELECT name FROM pragma_table_info(?1, 'main')", binding: [name.text]) {
      present.insert(ASCIIName.folded($0.text(at: 0) ?? ""))
    }
    return present
  }

  /// The identity of a row.
  func key(of row: [ChangesetValue]) -> [ChangesetValue] {
    let values = key.map { row[$0] }
    // Rows with NULL in the key are identified by their content.
    return values.contains(.null) ? row : values
  }
}

/// The rows of all tables of a database at one moment, by table and key.
struct DatabaseRows: Equatable {
  private(set) var tables: [[[ChangesetValue]: [ChangesetValue]]] = []

  /// Reads all rows.
  ///
  /// - Parameter queries: For each table the query for its rows, which is nil if the database lacks it; nil for those of a database that has got
  ///   the upgrade.
  init(of tables: [ReplicatedTable], by queries: [String?]? = nil, on connection: borrowing SQLiteConnection) throws {
    self.tables.reserveCapacity(tables.count)
    for (place, table) in tables.enumerated() {
      let found = queries.map { $0[place] } ?? table.query
      guard let query = found else {
        self.tables.append([:])
        continue
      }
      var rows: [[ChangesetValue]: [ChangesetValue]] = [:]
      try connection.forEachRow(ofCached: query) { statement in
        let row = statement.values
        rows[table.key(of: row)] = row
      }
      self.tables.append(rows)
    }
  }
}
