import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The table `buckia_parked`: rows that wait outside their table for a row that they refer to.
///
/// Each row is stored once, with the values that it would have in its table.
package enum ParkedRows {
  static let definition = """
    CREATE TABLE main.buckia_parked(
      table_name TEXT NOT NULL COLLATE NOCASE,
      key BLOB NOT NULL,
      entry INTEGER NOT NULL,
      columns BLOB NOT NULL,
      "row" BLOB NOT NULL,
      PRIMARY KEY (table_name, key)
    ) WITHOUT ROWID;
    """

  /// A row that waits.
  package struct Row: Sendable {
    /// Its table.
    package let table: TableName
    /// The values of its key, in the format of changesets.
    package let key: [UInt8]
    /// The ledger entry of the diff that has brought it, or changed it last.
    package let entry: Int64
    /// The names of its columns.
    package let columns: [String]
    /// A value for each of them, in the format of changesets.
    package let values: [UInt8]

    /// Creates a row.
    package init(table: TableName, key: [UInt8], entry: Int64, columns: [String], values: [UInt8]) {
      self.table = table
      self.key = key
      self.entry = entry
      self.columns = columns
      self.values = values
    }
  }

  /// True if any row waits.
  ///
  /// - Throws: `SQLiteError`.
  package static func exist(on connection: borrowing SQLiteConnection) throws -> Bool {
    try connection.cachedInteger("SELECT 1 FROM main.buckia_parked LIMIT 1") != nil
  }

  /// The tables of which rows wait.
  ///
  /// - Throws: `SQLiteError`.
  package static func tables(on connection: borrowing SQLiteConnection) throws -> [TableName] {
    try connection.rows(of: "SELECT DISTINCT table_name FROM main.buckia_parked ORDER BY 1") {
      TableName($0.text(at: 0) ?? "")
    }
  }

  /// The rows of a table that wait, in the order of their keys.
  ///
  /// - Throws: `SQLiteError`; `ChangesetError` when the ledger is damaged.
  package static func all(of table: TableName, on connection: borrowing SQLiteConnection) throws -> [Row] {
    var rows: [Row] = []
    let query = "SELECT key, entry, columns, \"row\" FROM main.buckia_parked WHERE table_name = ?1 ORDER BY key"
    try connection.forEachRow(of: query, binding: [table.text]) { row in
      let columns = try ChangesetValue.record(row.blob(at: 2)).map { value in
        if case .text(let name)? = value { name } else { "" }
      }
      rows.append(
        Row(table: table, key: row.blob(at: 0), entry: row.integer(at: 1), columns: columns, values: row.blob(at: 3)))
    }
    return rows
  }

  /// Stores a row, in place of its earlier version.
  ///
  /// - Throws: `SQLiteError`.
  package static func add(_ row: Row, on connection: borrowing SQLiteConnection) throws {
    var columns = ChangesetWriter()
    for name in row.columns { columns.append(.text(name)) }
    try connection.run(
      cached: "INSERT OR REPLACE INTO main.buckia_parked VALUES (?1, ?2, ?3, ?4, ?5)", row.table.text, row.key,
      row.entry, columns.bytes, row.values)
  }

  /// Deletes a row.
  ///
  /// - Throws: `SQLiteError`.
  package static func remove(_ key: [UInt8], of table: TableName, on connection: borrowing SQLiteConnection) throws {
    try connection.run(cached: "DELETE FROM main.buckia_parked WHERE table_name = ?1 AND key = ?2", table.text, key)
  }
}
