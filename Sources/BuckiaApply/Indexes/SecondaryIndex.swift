import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// An index of a table beside its primary key.
struct SecondaryIndex {
  let name: String
  /// True if no two rows may have the same place in it: then it is more than a way to find rows.
  let isUnique: Bool
  /// The columns that the index depends on, with those of its expressions and its condition, as places in the local
  /// layout of the table.
  let columns: Set<Int>
  /// The column by which it is sorted first, as a place in the local layout; nil for an expression or a generated column.
  let leading: Int?
  /// About how many bytes sorting takes for a row.
  let sortedBytes: Double
  /// How to create it again; nil if that would not give the very same index.
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
    let query = "SELECT name FROM pragma_index_xinfo(?1, 'main') WHERE key"
    let members = try connection.rows(of: query, name) { row in
      row.text(at: 0).flatMap { table.column(named: $0) }.map { $0 + table.columnOffset }
    }
    let names = creation?.references.names ?? []
    let named = table.columns.indices.filter { names.contains(TableName(table.columns[$0].name)) }
    self.name = name
    self.isUnique = isUnique
    self.creation = creation
    columns = Set(members.compactMap(\.self)).union(named.map { $0 + table.columnOffset })
    leading = members.first ?? nil
    sortedBytes = 20.0 * Double(1 + max(1, members.count))
  }
}

extension TableDefinition {
  /// An upper bound for the number of rows of the table.
  ///
  /// SQLite keeps no count. If rowids are dense, the first and the last one give a close bound; otherwise rows are
  /// counted, up to the limit.
  ///
  /// - Parameter limit: The number at which counting ends.
  /// - Returns: nil when there are more than `limit`.
  /// - Throws: `SQLiteError` when the table cannot be read.
  func rowCountEstimate(upTo limit: Int, on connection: borrowing SQLiteConnection) throws(SQLiteError) -> Int? {
    let table = "main.\(SQLText.identifier(name))"
    if !isWithoutRowID, let rowID = rowIDName {
      // As numbers with a fraction, which do not overflow. The sum of both ends would be a scan.
      let span = try connection.prepare(
        "SELECT (SELECT max(\(rowID)) FROM \(table)) * 1.0 - (SELECT min(\(rowID)) FROM \(table)) + 1")
      guard try span.step(), !span.isNull(at: 0) else { return 0 }
      if span.real(at: 0) <= Double(limit) { return Int(span.real(at: 0)) }
    }
    let count = try connection.integer("SELECT count(*) FROM (SELECT 1 FROM \(table) LIMIT \(limit + 1))") ?? 0
    return count <= limit ? Int(count) : nil
  }
}
