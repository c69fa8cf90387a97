import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The rows that wait outside their table for a row that they refer to, in `buckia_parked`, `buckia_parked_value` and
/// `buckia_parked_reference`.
///
/// Each row is stored once, with the values that it would have in its table. Beside it stand the values by which other
/// rows, and changes, find it: those of its key and its UNIQUE constraints, and those that it refers to in vain.
package enum ParkedRows {
  static let definition = """
    CREATE TABLE main.buckia_parked(
      parked INTEGER PRIMARY KEY,
      table_name TEXT NOT NULL COLLATE NOCASE,
      key BLOB NOT NULL,
      entry INTEGER NOT NULL,
      columns BLOB NOT NULL,
      "row" BLOB NOT NULL,
      UNIQUE (table_name, key)
    );
    CREATE TABLE main.buckia_parked_value(
      value BLOB NOT NULL,
      parked INTEGER NOT NULL,
      PRIMARY KEY (value, parked)
    ) WITHOUT ROWID;
    CREATE INDEX main.buckia_parked_value_row ON buckia_parked_value(parked);
    CREATE TABLE main.buckia_parked_reference(
      missing BLOB NOT NULL,
      parked INTEGER NOT NULL UNIQUE,
      value,
      PRIMARY KEY (missing, parked)
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

  /// The rows of a table that wait, in the order of their keys.
  ///
  /// - Throws: `SQLiteError`; `ChangesetError` when the ledger is damaged.
  package static func all(of table: TableName, on connection: borrowing SQLiteConnection) throws -> [Row] {
    var rows: [Row] = []
    let query = "SELECT \(columns) FROM main.buckia_parked WHERE table_name = ?1 ORDER BY key"
    try connection.forEachRow(of: query, binding: [table.text]) { rows.append(try row($0)) }
    return rows
  }

  /// The row with a number; nil if there is none.
  ///
  /// - Throws: `SQLiteError`; `ChangesetError` when the ledger is damaged.
  package static func row(_ number: Int64, on connection: borrowing SQLiteConnection) throws -> Row? {
    try connection.first(ofCached: "SELECT \(columns) FROM main.buckia_parked WHERE parked = ?1", number) {
      try row($0)
    }
  }

  private static let columns = "table_name, key, entry, columns, \"row\""

  private static func row(_ found: borrowing SQLiteStatement) throws -> Row {
    Row(
      table: TableName(found.text(at: 0) ?? ""), key: found.blob(at: 1), entry: found.integer(at: 2),
      columns: try ChangesetValue.record(found.blob(at: 3)).map { value in
        if case .text(let name)? = value { name } else { "" }
      }, values: found.blob(at: 4))
  }

  /// Stores a row, in place of its earlier version.
  ///
  /// - Parameters:
  ///   - lookups: The values by which it is found.
  ///   - missing: The values that it refers to in vain, as a lookup value.
  ///   - value: The value that it refers to in vain; nil if there are several.
  /// - Throws: `SQLiteError`.
  package static func add(
    _ row: Row, foundBy lookups: [[UInt8]], waitingFor missing: [UInt8], _ value: ChangesetValue?,
    on connection: borrowing SQLiteConnection
  ) throws {
    try remove(row.key, of: row.table, on: connection)
    var columns = ChangesetWriter()
    for name in row.columns { columns.append(.text(name)) }
    try connection.run(
      cached: """
        INSERT INTO main.buckia_parked(table_name, key, entry, columns, "row") VALUES (?1, ?2, ?3, ?4, ?5)
        """, row.table.text, row.key, row.entry, columns.bytes, row.values)
    let number = try connection.cachedInteger("SELECT last_insert_rowid()") ?? 0
    for value in lookups {
      try connection.run(cached: "INSERT OR IGNORE INTO main.buckia_parked_value VALUES (?1, ?2)", value, number)
    }
    let insert = try connection.cached("INSERT INTO main.buckia_parked_reference VALUES (?1, ?2, ?3)")
    defer { insert.statement.clearBindings() }
    try insert.statement.bind(missing, at: 0)
    try insert.statement.bind(number, at: 1)
    try insert.statement.bind(value ?? .null, at: 2)
    try insert.statement.run()
  }

  /// Records that a constraint keeps out a row, although what it refers to is there.
  ///
  /// - Throws: `SQLiteError`.
  package static func noteRefused(_ number: Int64, on connection: borrowing SQLiteConnection) throws {
    try connection.run(
      cached: "UPDATE main.buckia_parked_reference SET missing = x'', value = NULL WHERE parked = ?1", number)
  }

  /// Deletes a row.
  ///
  /// - Throws: `SQLiteError`.
  package static func remove(_ key: [UInt8], of table: TableName, on connection: borrowing SQLiteConnection) throws {
    let query = "SELECT parked FROM main.buckia_parked WHERE table_name = ?1 AND key = ?2"
    let found = try connection.first(ofCached: query, table.text, key) { $0.integer(at: 0) }
    guard let number = found else { return }
    for part in ["parked_value", "parked_reference", "parked"] {
      try connection.run(cached: "DELETE FROM main.buckia_\(part) WHERE parked = ?1", number)
    }
  }

  /// The tables of which rows wait.
  ///
  /// - Throws: `SQLiteError`.
  package static func tables(on connection: borrowing SQLiteConnection) throws -> [TableName] {
    try connection.rows(of: "SELECT DISTINCT table_name FROM main.buckia_parked") { TableName($0.text(at: 0) ?? "") }
  }

  /// The numbers of the rows of a table that wait.
  ///
  /// - Throws: `SQLiteError`.
  package static func numbers(of table: TableName, on connection: borrowing SQLiteConnection) throws -> [Int64] {
    try connection.rows(of: "SELECT parked FROM main.buckia_parked WHERE table_name = ?1", table.text) {
      $0.integer(at: 0)
    }
  }

  // MARK: Lookups

  /// True if a row of a table waits.
  ///
  /// - Throws: `SQLiteError`.
  package static func exist(of table: TableName, on connection: borrowing SQLiteConnection) throws -> Bool {
    try connection.hasRow(cached: "SELECT 1 FROM main.buckia_parked WHERE table_name = ?1", table.text)
  }

  /// True if a row that waits has lookup values that begin with some bytes, of which the last is zero.
  ///
  /// - Throws: `SQLiteError`.
  package static func exist(below prefix: [UInt8], on connection: borrowing SQLiteConnection) throws -> Bool {
    try connection.hasRow(
      cached: """
        SELECT 1 FROM main.buckia_parked_value WHERE value >= ?1 AND value < ?2
        UNION ALL SELECT 1 FROM main.buckia_parked_reference WHERE missing >= ?1 AND missing < ?2
        """, prefix, prefix.dropLast() + [1])
  }

  /// The numbers of the rows that a lookup value finds.
  ///
  /// - Throws: `SQLiteError`.
  package static func numbers(foundBy value: [UInt8], on connection: borrowing SQLiteConnection) throws -> [Int64] {
    try connection.rows(
      ofCached: """
        SELECT parked FROM main.buckia_parked_value WHERE value = ?1
        UNION ALL SELECT parked FROM main.buckia_parked_reference WHERE missing = ?1
        """, value
    ) { $0.integer(at: 0) }
  }

  /// The first lookup value that a row waits for, from another one on; nil if there is none.
  ///
  /// - Throws: `SQLiteError`.
  package static func firstMissing(
    from value: [UInt8], on connection: borrowing SQLiteConnection
  ) throws -> [UInt8]? {
    try connection.first(
      ofCached: "SELECT missing FROM main.buckia_parked_reference WHERE missing >= ?1 ORDER BY missing LIMIT 1", value
    ) { $0.blob(at: 0) }
  }

  /// The numbers of the rows that wait for lookup values in a range, and for a value that a table has in a column.
  ///
  /// - Parameters:
  ///   - table: The table.
  ///   - column: Its column, which has an index.
  /// - Throws: `SQLiteError`.
  package static func numbers(
    waitingFor range: (from: [UInt8], end: [UInt8]), in table: TableName, _ column: String,
    on connection: borrowing SQLiteConnection
  ) throws -> [Int64] {
    try connection.rows(
      of: """
        SELECT parked FROM main.buckia_parked_reference AS r WHERE missing >= ?1 AND missing < ?2
        AND EXISTS (SELECT 1 FROM main.\(table.quoted) AS p WHERE p.\(SQLText.identifier(column)) = +r.value)
        """, range.from, range.end
    ) { $0.integer(at: 0) }
  }
}
