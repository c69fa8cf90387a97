import SQLiteConnections
import SQLiteSchemas

/// A row of the table `buckia_shadow`: in which table of the database the rows of a table are kept that the receivers of a share
/// are known to have.
package struct ShadowEntry: Equatable, Sendable {
  static let definition = """
    CREATE TABLE main.buckia_shadow(
      shadow INTEGER PRIMARY KEY,
      share INTEGER NOT NULL,
      table_name TEXT NOT NULL COLLATE NOCASE,
      columns TEXT NOT NULL,
      UNIQUE (share, table_name)
    );
    """

  /// Its number.
  package let number: Int64
  /// The table whose rows it has.
  package let table: TableName
  /// How its columns are defined.
  package let columns: String

  /// The table that has the rows.
  package var name: TableName { TableName("buckia_shadow_\(number)") }

  /// The shadows of all shares that have rows of a table.
  ///
  /// - Throws: `SQLiteError`.
  package static func all(
    ofRowsIn table: TableName, on connection: borrowing SQLiteConnection
  ) throws -> [ShadowEntry] {
    var found: [ShadowEntry] = []
    let query = "SELECT shadow, columns FROM main.buckia_shadow WHERE table_name = ?1 ORDER BY shadow"
    try connection.forEachRow(ofCached: query, binding: [table.text]) { row in
      found.append(ShadowEntry(number: row.integer(at: 0), table: table, columns: row.text(at: 1) ?? ""))
    }
    return found
  }

  /// Whether it has a column.
  ///
  /// - Throws: `SQLiteError`.
  package func hasColumn(_ column: String, on connection: borrowing SQLiteConnection) throws -> Bool {
    var isThere = false
    let query = "SELECT 1 FROM pragma_table_info(?1, 'main') WHERE name = ?2 COLLATE NOCASE"
    try connection.forEachRow(ofCached: query, binding: [name.text, column]) { _ in isThere = true }
    return isThere
  }

  /// The shadows of a share.
  ///
  /// - Throws: `SQLiteError`.
  package static func all(of share: Int64, on connection: borrowing SQLiteConnection) throws -> [ShadowEntry] {
    let query = try connection.prepare(
      "SELECT shadow, table_name, columns FROM main.buckia_shadow WHERE share = ?1 ORDER BY shadow")
    try query.bind(share, at: 0)
    var found: [ShadowEntry] = []
    while try query.step() {
      found.append(
        ShadowEntry(
          number: query.integer(at: 0), table: TableName(query.text(at: 1) ?? ""), columns: query.text(at: 2) ?? ""))
    }
    return found
  }

  /// Makes a shadow without rows.
  ///
  /// - Parameters:
  ///   - table: The table whose rows it will have.
  ///   - columns: How its columns are defined: what follows the name in its CREATE TABLE.
  ///   - share: The share.
  /// - Throws: `SQLiteError`.
  package static func make(
    for table: TableName, columns: String, of share: Int64, on connection: borrowing SQLiteConnection
  ) throws -> ShadowEntry {
    try connection.run(
      cached: "INSERT INTO main.buckia_shadow(share, table_name, columns) VALUES (?1, ?2, ?3)", share, table.text,
      columns)
    let number = try connection.cachedInteger("SELECT last_insert_rowid()") ?? 0
    let entry = ShadowEntry(number: number, table: table, columns: columns)
    try connection.execute("CREATE TABLE main.\(entry.name.quoted)\(columns)")
    try SharedView.refresh(on: connection)
    return entry
  }

  /// The shadows that a share had before the snapshot which is being made, or that the replica had which this database is a copy of.
  ///
  /// - Throws: `SQLiteError`.
  package static func former(of share: Int64, on connection: borrowing SQLiteConnection) throws -> [ShadowEntry] {
    try all(of: -share, on: connection)
  }

  /// Makes the shadow of a share a former one.
  ///
  /// - Throws: `SQLiteError`.
  package func setAside(from share: Int64, on connection: borrowing SQLiteConnection) throws {
    for former in try Self.former(of: share, on: connection) where former.table == table {
      try former.remove(on: connection)
    }
    try PrintEntry.remove(of: number, on: connection)
    try connection.run(cached: "UPDATE main.buckia_shadow SET share = ?1 WHERE shadow = ?2", -share, number)
    try SharedView.refresh(on: connection)
  }

  /// Drops the shadow with its rows.
  ///
  /// - Throws: `SQLiteError`.
  package func remove(on connection: borrowing SQLiteConnection) throws {
    try PrintEntry.remove(of: number, on: connection)
    try connection.execute("DROP TABLE IF EXISTS main.\(name.quoted)")
    try connection.run(cached: "DELETE FROM main.buckia_shadow WHERE shadow = ?1", number)
    try SharedView.refresh(on: connection)
  }
}
