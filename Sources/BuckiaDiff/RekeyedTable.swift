import SQLiteConnections
import SQLiteSchemas

extension TableDefinition {
  /// The table as if it had the primary key of its newer form, so that their rows can be compared: those who adopt the newer schema
  /// make that key before they apply the changes.
  ///
  /// - Parameters:
  ///   - newer: The newer table.
  ///   - connection: The database of this one.
  /// - Returns: nil where both have the same key, or the newer one does not tell this table's rows apart.
  func rekeyed(like newer: TableDefinition, on connection: borrowing SQLiteConnection) throws -> TableDefinition? {
    guard module == nil, newer.module == nil, !newer.hasSameKey(as: self) else { return nil }
    let key = newer.primaryKey.compactMap { column(named: newer.columns[$0].name) }
    guard key.count == newer.primaryKey.count, !newer.isKeyedByRowID || !isWithoutRowID && rowIDName != nil else {
      return nil
    }
    var table = self
    table.primaryKey = key
    table.isWithoutRowID = false
    if newer.isKeyedByRowID { return table }
    let columns = newer.primaryKey.map { newer.columns[$0] }
    guard columns.allSatisfy(\.hasKnownCollation) else { return nil }
    let names = columns.map { SQLText.identifier($0.name) }
    let terms = zip(columns, names).map { "\($1) COLLATE \($0.collation)" }.joined(separator: ", ")
    let twice = try connection.integer(
      """
      SELECT 1 FROM main.\(SQLText.identifier(name)) WHERE \(names.map { "\($0) IS NOT NULL" }.joined(separator: " AND "))
      GROUP BY \(terms) HAVING count(*) > 1 LIMIT 1
      """)
    return twice == nil ? table : nil
  }
}
