import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// A TEMP table for keys or other identifying values of rows, which compares them as a local table does.
struct KeyStore {
  /// The prefix of the tables' names.
  private static let prefix = "\(SQLiteConnection.temporaryPrefix)keys_"

  /// The name of the table, without that of its schema, which is `temp`.
  let name: String
  private let columnCount: Int

  /// Creates a table with a column `k0`, `k1` … for each of some columns, in which each row stands once. For a table
  /// without a key it holds the rowid.
  ///
  /// - Parameters:
  ///   - suffix: A suffix that distinguishes tables in use at the same time; an existing table with it is emptied.
  ///   - table: The local table.
  ///   - columns: The columns' places in it; none for the rowid.
  /// - Throws: `SQLiteError` when it cannot be made.
  init(
    _ suffix: String, for table: TableDefinition, _ columns: [Int], on connection: borrowing SQLiteConnection
  ) throws {
    var clauses = columns.enumerated().map { index, column in
      "k\(index) \(table.affinity(at: column).rawValue) COLLATE \(SQLText.identifier(table.columns[column].collation))"
    }
    if clauses.isEmpty { clauses = ["k0 INTEGER"] }
    let names = clauses.indices.map { "k\($0)" }.joined(separator: ", ")
    let definition = "(\(clauses.joined(separator: ", ")), UNIQUE (\(names)))"
    // Named after its definition: the table stays, empty, for the next file, and is dropped with the connection.
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in definition.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    name = "\(Self.prefix)\(String(hash, radix: 16))_\(suffix)"
    columnCount = clauses.count
    try connection.execute("CREATE TEMP TABLE IF NOT EXISTS \(name)\(definition)")
    try clear(on: connection)
  }

  /// The name of the table with that of its schema.
  var qualifiedName: String { "temp.\(name)" }

  /// Prepares a statement that adds the values bound to it, unless they are there.
  func insertion(on connection: borrowing SQLiteConnection) throws -> SQLiteStatement {
    let values = (1...columnCount).map { "?\($0)" }.joined(separator: ", ")
    return try connection.prepare("INSERT OR IGNORE INTO \(qualifiedName) VALUES (\(values))", isPersistent: true)
  }

  /// Prepares a query that has a row if the values bound to it are there.
  func lookup(on connection: borrowing SQLiteConnection) throws -> SQLiteStatement {
    let equal = (1...columnCount).map { "k\($0 - 1) = ?\($0)" }.joined(separator: " AND ")
    return try connection.prepare("SELECT 1 FROM \(qualifiedName) WHERE \(equal)", isPersistent: true)
  }

  /// Empties the table.
  func clear(on connection: borrowing SQLiteConnection) throws {
    try connection.execute("DELETE FROM \(qualifiedName)")
  }
}
