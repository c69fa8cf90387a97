import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The tables that record which diff last wrote the rows and columns of a table: `buckia_clock` lists the user's tables
/// with a clock, `buckia_clock_column` their columns, `buckia_row_version` the changes of diffs.
///
/// Each clock has three tables of its own, which compare keys as the user's table does: `buckia_clock_N` has a row for
/// each row that was written, `buckia_clock_N_run` one for neighbours that were written alike, and
/// `buckia_clock_N_pending` has columns of rows that are not there.
package enum RowClocks {
  static let definition = """
    CREATE TABLE main.buckia_clock(
      clock INTEGER PRIMARY KEY,
      table_name TEXT NOT NULL UNIQUE COLLATE NOCASE,
      key TEXT NOT NULL
    );
    CREATE TABLE main.buckia_clock_column(
      clock INTEGER NOT NULL,
      position INTEGER NOT NULL,
      name TEXT NOT NULL COLLATE NOCASE,
      PRIMARY KEY (clock, position)
    ) WITHOUT ROWID;
    CREATE TABLE main.buckia_row_version(
      row_version INTEGER PRIMARY KEY,
      clock INTEGER NOT NULL,
      diff TEXT NOT NULL,
      operation TEXT NOT NULL,
      columns BLOB NOT NULL,
      is_own INTEGER NOT NULL,
      carrier TEXT
    );
    CREATE INDEX main.buckia_row_version_diff ON buckia_row_version(clock, diff);
    """

  /// The tables that have a clock.
  package static func tables(on connection: borrowing SQLiteConnection) throws -> [TableName] {
    guard try Ledger.exists(on: connection) else { return [] }
    return try connection.rows(of: "SELECT table_name FROM main.buckia_clock ORDER BY clock") {
      TableName($0.text(at: 0) ?? "")
    }
  }

  /// The greatest diff in any clock, own diffs included; nil for none.
  package static func newestID(on connection: borrowing SQLiteConnection) throws -> KSUID? {
    guard try Ledger.exists(on: connection) else { return nil }
    return try connection.text("SELECT max(diff) FROM main.buckia_row_version").flatMap { KSUID($0) }
  }

  /// The number of a table's clock; nil for none, or one for an earlier key of the table.
  package static func number(of table: TableDefinition, on connection: borrowing SQLiteConnection) throws -> Int64? {
    try connection.cachedInteger(
      "SELECT clock FROM main.buckia_clock WHERE table_name = ?1 AND key = ?2", table.name,
      ClockKey(of: table).definition)
  }

  /// Creates the clock of a table, unless it has one.
  ///
  /// A clock for an earlier key of the table is dropped, because no row can be found by it.
  ///
  /// - Returns: True if the tables of a clock were made.
  @discardableResult
  package static func require(for table: TableDefinition, on connection: borrowing SQLiteConnection) throws -> Bool {
    if try number(of: table, on: connection) != nil { return false }
    if let outdated = try connection.integer(
      "SELECT clock FROM main.buckia_clock WHERE table_name = ?1", binding: [table.name])
    {
      try connection.execute(
        """
        DROP TABLE IF EXISTS main.buckia_clock_\(outdated);
        DROP TABLE IF EXISTS main.buckia_clock_\(outdated)_run;
        DROP TABLE IF EXISTS main.buckia_clock_\(outdated)_pending;
        DELETE FROM main.buckia_clock WHERE clock = \(outdated);
        DELETE FROM main.buckia_clock_column WHERE clock = \(outdated);
        DELETE FROM main.buckia_row_version WHERE clock = \(outdated);
        """)
      try TombstoneAcknowledgements.drop(outdated, on: connection)
    }
    let key = ClockKey(of: table)
    try connection.run(
      cached: "INSERT INTO main.buckia_clock(table_name, key) VALUES (?1, ?2)", table.name, key.definition)
    guard let clock = try connection.integer("SELECT last_insert_rowid()") else { return false }
    try connection.execute(key.creation(of: "main.buckia_clock_\(clock)", with: "row_versions NOT NULL"))
    try connection.execute(key.runCreation(of: "main.buckia_clock_\(clock)_run"))
    try connection.execute(key.pendingCreation(of: "buckia_clock_\(clock)_pending"))
    return true
  }

  /// The columns of a clock by their positions.
  package static func columns(of clock: Int64, on connection: borrowing SQLiteConnection) throws -> [String] {
    try connection.rows(ofCached: "SELECT name FROM main.buckia_clock_column WHERE clock = ?1 ORDER BY position", clock)
    { $0.text(at: 0) ?? "" }
  }

  /// The positions of columns in a clock. New columns are added to it.
  package static func positions(
    of columns: [String], in clock: Int64, on connection: borrowing SQLiteConnection
  ) throws -> [Int] {
    var known = try self.columns(of: clock, on: connection)
    return try columns.map { name in
      if let position = known.firstIndex(where: { ASCIIName.matches($0, name) }) { return position }
      try connection.run(
        cached: "INSERT INTO main.buckia_clock_column VALUES (?1, ?2, ?3)", clock, Int64(known.count), name)
      known.append(name)
      return known.count - 1
    }
  }

  /// The greatest diff in a clock; nil for none.
  package static func newestID(in clock: Int64, on connection: borrowing SQLiteConnection) throws -> KSUID? {
    try connection.first(ofCached: "SELECT max(diff) FROM main.buckia_row_version WHERE clock = ?1", clock) {
      KSUID($0.text(at: 0) ?? "")
    } ?? nil
  }

  // MARK: Row versions

  /// The row version with a number.
  package static func rowVersion(_ number: Int64, on connection: borrowing SQLiteConnection) throws -> RowVersion? {
    let query = "SELECT diff, operation, columns FROM main.buckia_row_version WHERE row_version = ?1"
    return try connection.first(ofCached: query, number) { row in
      KSUID(row.text(at: 0) ?? "").map { diff in
        RowVersion(
          number: number, diff: diff, operation: ChangeOperation(word: row.text(at: 1) ?? "") ?? .update,
          columns: ColumnSet(bytes: row.blob(at: 2)))
      }
    } ?? nil
  }

  /// True if a clock has any diff of another database.
  package static func knowsOthers(in clock: Int64, on connection: borrowing SQLiteConnection) throws -> Bool {
    try connection.hasRow(
      cached: "SELECT 1 FROM main.buckia_row_version WHERE clock = ?1 AND is_own <> 1 AND diff <> ?2 LIMIT 1", clock,
      KSUID.minimum.description)
  }

  /// True if a row version is that of a diff that was made from this database.
  package static func isOwn(_ number: Int64, on connection: borrowing SQLiteConnection) throws -> Bool {
    try source(of: number, on: connection) == .own
  }

  /// The source of a row version.
  package enum Source: Equatable, Sendable {
    /// The diff itself was applied here.
    case applied
    /// The diff was made from this database.
    case own
    /// Another diff, the carrier, claims it, which any diff can. Nil if the carrier is unknown.
    case claimed(in: KSUID?)

    /// The number that the table has for it.
    fileprivate var number: Int64 {
      switch self {
      case .applied: 0
      case .own: 1
      case .claimed: 2
      }
    }

    fileprivate var carrier: String? {
      if case .claimed(let carrier) = self { carrier?.description } else { nil }
    }
  }

  /// The source of a row version; nil if the row version does not exist.
  package static func source(of number: Int64, on connection: borrowing SQLiteConnection) throws -> Source? {
    try connection.first(ofCached: "SELECT is_own, carrier FROM main.buckia_row_version WHERE row_version = ?1", number)
    { row in
      switch row.integer(at: 0) {
      case 0: .applied
      case 1: .own
      default: .claimed(in: row.text(at: 1).flatMap { KSUID($0) })
      }
    } ?? nil
  }

  /// The row version of a diff for an operation and columns, which is created if it is missing.
  ///
  /// - Parameter source: The source of the row version.
  package static func rowVersion(
    in clock: Int64, by diff: KSUID, _ operation: ChangeOperation, _ columns: ColumnSet, _ source: Source,
    on connection: borrowing SQLiteConnection
  ) throws -> RowVersion {
    let known = try connection.cachedInteger(
      """
      SELECT row_version FROM main.buckia_row_version
      WHERE clock = ?1 AND diff = ?2 AND operation = ?3 AND columns = ?4 AND is_own = ?5 AND carrier IS ?6
      """, clock, diff.description, operation.word, columns.bytes, source.number, source.carrier)
    if let known { return RowVersion(number: known, diff: diff, operation: operation, columns: columns) }
    try connection.run(
      cached:
        "INSERT INTO main.buckia_row_version(clock, diff, operation, columns, is_own, carrier) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
      clock, diff.description, operation.word, columns.bytes, source.number, source.carrier)
    let made = try connection.cachedInteger("SELECT last_insert_rowid()") ?? 0
    return RowVersion(number: made, diff: diff, operation: operation, columns: columns)
  }

  /// Records that a diff of this database has deleted the row with an integer key.
  package static func noteDeletion(
    of key: Int64, by diff: KSUID, in clock: Int64, on connection: borrowing SQLiteConnection
  ) throws {
    let version = try rowVersion(in: clock, by: diff, .delete, ColumnSet(), .own, on: connection)
    try connection.run(
      cached: "REPLACE INTO main.buckia_clock_\(clock)(k0, row_versions) VALUES (?1, ?2)", key, version.number)
  }
}

/// The key in the tables of a clock: columns `k0`, `k1` … with the affinity and the collation of the user's table, by
/// which the same keys are equal.
package struct ClockKey: Sendable {
  /// The columns of the key in the layout of the table, in the order of the key.
  package let places: [Int]
  private let clauses: [(affinity: Affinity, collation: String)]
  /// True if the key is a rowid, which its table stores without a column.
  package let isRowID: Bool

  /// The key of a table.
  package init(of table: TableDefinition) {
    places = table.keyIndexes
    guard !table.isKeyedByRowID else {
      clauses = [(.integer, "BINARY")]
      isRowID = true
      return
    }
    clauses = table.primaryKey.map { (table.affinity(at: $0), table.columns[$0].collation) }
    isRowID =
      table.primaryKey.count == 1 && !table.isWithoutRowID
      && ASCIIName.matches(table.columns[table.primaryKey[0]].declaredType, "INTEGER")
  }

  /// True if keys sort by their bytes, if they are text or blobs.
  package var sortsByBytes: Bool { clauses.allSatisfy { ASCIIName.matches($0.collation, "BINARY") } }
  /// The affinity of each column.
  package var affinities: [Affinity] { clauses.map(\.affinity) }

  /// The definition of the columns, which shows if a table has another key now.
  package var definition: String { isRowID ? "k0 INTEGER PRIMARY KEY" : columns("k").joined(separator: ", ") }

  /// The names of the columns, with their own first letter.
  package func names(_ letter: String = "k") -> [String] { clauses.indices.map { "\(letter)\($0)" } }

  /// Names or parameters as one value that SQLite compares in the order of the key.
  package static func row(_ names: [String]) -> String {
    names.count == 1 ? names[0] : "(\(names.joined(separator: ", ")))"
  }

  private func columns(_ letter: String) -> [String] {
    clauses.enumerated().map {
      "\(letter)\($0) \($1.affinity.rawValue) COLLATE \(SQLText.identifier($1.collation))"
    }
  }

  /// The statement that creates a table with a row for each key, or for each key and value of another column.
  package func creation(of table: String, keyed other: String? = nil, with others: String) -> String {
    if isRowID { return "CREATE TABLE \(table)(\(definition), \(others))" }
    let key = (names() + (other.map { [$0] } ?? [])).joined(separator: ", ")
    return "CREATE TABLE \(table)(\(definition), \(others), PRIMARY KEY (\(key))) WITHOUT ROWID"
  }

  func runCreation(of table: String) -> String {
    let key = names("f").joined(separator: ", ")
    return """
      CREATE TABLE \(table)(\((columns("f") + columns("l")).joined(separator: ", ")), row_versions NOT NULL, PRIMARY KEY (\(key)))
      WITHOUT ROWID
      """
  }

  func pendingCreation(of table: String) -> String {
    let key = (names() + ["row_version"]).joined(separator: ", ")
    return """
      CREATE TABLE main.\(table)(\(columns("k").joined(separator: ", ")), row_version INTEGER NOT NULL,
        is_insert INTEGER NOT NULL, "values" BLOB NOT NULL, PRIMARY KEY (\(key))) WITHOUT ROWID;
      CREATE INDEX main.\(table)_insert ON \(table)(is_insert) WHERE is_insert
      """
  }
}
