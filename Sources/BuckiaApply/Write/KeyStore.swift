import SQLiteConnections
import SQLiteSchemas

/// TEMP tables for the keys of rows, and for other values that tell rows apart, which compare them as a local table does.
enum KeyStore {
  /// The names of the tables begin so.
  private static let prefix = "buckia_keys_"

  /// Makes a table with a column `k0`, `k1` … for each of some columns, in which each row stands once. Of a table without a
  /// key it takes the rowid.
  ///
  /// - Parameters:
  ///   - suffix: Tells apart what is needed at the same time; a table that had this one is emptied.
  ///   - table: The local table.
  ///   - columns: The columns' places in it; none for the rowid.
  /// - Returns: The table's name, without that of its schema, which is `temp`.
  /// - Throws: `SQLiteError` when it cannot be made.
  static func make(
    _ suffix: String, for table: TableDefinition, _ columns: [Int], on connection: borrowing SQLiteConnection
  ) throws -> String {
    var clauses = columns.enumerated().map { index, column in
      "k\(index) \(table.affinity(at: column).rawValue) COLLATE \(SQLText.identifier(table.columns[column].collation))"
    }
    if clauses.isEmpty { clauses = ["k0 INTEGER"] }
    let names = clauses.indices.map { "k\($0)" }.joined(separator: ", ")
    let definition = "(\(clauses.joined(separator: ", ")), UNIQUE (\(names)))"
    // Named after its definition: such a table stays, empty, because SQLite drops no table while any statement reads.
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in definition.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    let name = "\(prefix)\(String(hash, radix: 16))_\(suffix)"
    try connection.execute("CREATE TEMP TABLE IF NOT EXISTS \(name)\(definition); DELETE FROM temp.\(name)")
    return name
  }
}
