import SQLiteConnections
import SQLiteSchemas

/// A row of the table `buckia_baseline`: the table with the rows that the recipients of a share are known to have.
package struct BaselineEntry: Equatable, Sendable {
  static let definition = """
    CREATE TABLE main.buckia_baseline(
      baseline INTEGER PRIMARY KEY,
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
  package var name: TableName { TableName("buckia_baseline_\(number)") }

  /// The baselines of all shares that have rows of a table.
  ///
  /// - Throws: `SQLiteError`.
  package static func all(
    ofRowsIn table: TableName, on connection: borrowing SQLiteConnection
  ) throws -> [BaselineEntry] {
    let query = "SELECT baseline, columns FROM main.buckia_baseline WHERE table_name = ?1 ORDER BY baseline"
    return try connection.rows(ofCached: query, table.text) { row in
      BaselineEntry(number: row.integer(at: 0), table: table, columns: row.text(at: 1) ?? "")
    }
  }

  /// True if it has a column.
  ///
  /// - Throws: `SQLiteError`.
  package func hasColumn(_ column: String, on connection: borrowing SQLiteConnection) throws -> Bool {
    var isThere = false
    let query = "SELECT 1 FROM pragma_table_info(?1, 'main') WHERE name = ?2 COLLATE NOCASE"
    try connection.forEachRow(ofCached: query, binding: [name.text, column]) { _ in isThere = true }
    return isThere
  }

  /// The baselines of a share.
  ///
  /// - Throws: `SQLiteError`.
  package static func all(of share: Int64, on connection: borrowing SQLiteConnection) throws -> [BaselineEntry] {
    try connection.rows(
      of: "SELECT baseline, table_name, columns FROM main.buckia_baseline WHERE share = ?1 ORDER BY baseline", share
    ) { row in
      BaselineEntry(number: row.integer(at: 0), table: TableName(row.text(at: 1) ?? ""), columns: row.text(at: 2) ?? "")
    }
  }

  /// Creates a baseline without rows.
  ///
  /// - Parameters:
  ///   - table: The table whose rows it will have.
  ///   - columns: The column definitions: the part after the name in its CREATE TABLE.
  ///   - share: The share.
  /// - Throws: `SQLiteError`.
  package static func make(
    for table: TableName, columns: String, of share: Int64, on connection: borrowing SQLiteConnection
  ) throws -> BaselineEntry {
    try connection.run(
      cached: "INSERT INTO main.buckia_baseline(share, table_name, columns) VALUES (?1, ?2, ?3)", share, table.text,
      columns)
    let number = try connection.cachedInteger("SELECT last_insert_rowid()") ?? 0
    let entry = BaselineEntry(number: number, table: table, columns: columns)
    try connection.execute("CREATE TABLE main.\(entry.name.quoted)\(columns)")
    try SharedView.refresh(on: connection)
    return entry
  }

  /// The baselines that a share had before the snapshot which is being made, or that the replica had which this database is a copy of.
  ///
  /// - Throws: `SQLiteError`.
  package static func former(of share: Int64, on connection: borrowing SQLiteConnection) throws -> [BaselineEntry] {
    try all(of: -share, on: connection)
  }

  /// Turns the baseline of a share into a former one.
  ///
  /// - Throws: `SQLiteError`.
  package func setAside(from share: Int64, on connection: borrowing SQLiteConnection) throws {
    for former in try Self.former(of: share, on: connection) where former.table == table {
      try former.remove(on: connection)
    }
    try PageDigestEntry.remove(of: number, on: connection)
    try connection.run(cached: "UPDATE main.buckia_baseline SET share = ?1 WHERE baseline = ?2", -share, number)
    try SharedView.refresh(on: connection)
  }

  /// Drops the baseline with its rows.
  ///
  /// - Throws: `SQLiteError`.
  package func remove(on connection: borrowing SQLiteConnection) throws {
    try PageDigestEntry.remove(of: number, on: connection)
    try connection.execute("DROP TABLE IF EXISTS main.\(name.quoted)")
    try connection.run(cached: "DELETE FROM main.buckia_baseline WHERE baseline = ?1", number)
    try SharedView.refresh(on: connection)
  }
}

/// The page digests of a shared table at the state of its baseline, by which the next share finds rows that may
/// have changed.
///
/// The table `buckia_page_digest_N` has the digests of baseline N in pieces, and the setting `page-digest-N` their basis.
package struct PageDigestEntry: Equatable, Sendable {
  /// The conditions under which digests can be compared: the definition of the table, its shared part, and more.
  package let basis: [UInt8]
  /// The secret of the hash.
  package let key: [UInt8]
  /// The digests in pieces.
  package let pieces: [Place: [UInt8]]

  /// The beginning of a piece.
  package enum Place: Hashable, Sendable {
    /// The rowid of a row, for digests of the leaves of the table.
    case rowID(Int64)
    /// A key, for digests of the leaves by which rows are found by their key; an empty one for the first of these.
    case key([UInt8])
    /// No digests, but a row of the baseline that was changed without being shared, by its key.
    case changedKey([UInt8])
  }

  private static let version: UInt8 = 2
  package static let keyBytes = 16

  /// Describes digests.
  ///
  /// - Parameter key: ``keyBytes`` bytes.
  package init(basis: [UInt8], key: [UInt8], pieces: [Place: [UInt8]]) {
    self.basis = basis
    self.key = key
    self.pieces = pieces
  }

  private static func table(_ baseline: Int64) -> String { "main.buckia_page_digest_\(baseline)" }
  private static func setting(_ baseline: Int64) -> String { "page-digest-\(baseline)" }

  /// The digests of a baseline; nil for none that this version can read.
  ///
  /// - Throws: `SQLiteError`.
  package static func read(of baseline: Int64, on connection: borrowing SQLiteConnection) throws -> PageDigestEntry? {
    guard let value = try LedgerSettings.blob(setting(baseline), on: connection), value.first == version,
      value.count > keyBytes
    else { return nil }
    var pieces: [Place: [UInt8]] = [:]
    try connection.forEachRow(of: "SELECT first, digests FROM \(table(baseline))") { row in
      if let place = Place(row) { pieces[place] = row.blob(at: 1) }
    }
    return PageDigestEntry(basis: Array(value.dropFirst(1 + keyBytes)), key: Array(value[1...keyBytes]), pieces: pieces)
  }

  /// True if there are digests of a baseline.
  ///
  /// - Throws: `SQLiteError`.
  package static func exists(of baseline: Int64, on connection: borrowing SQLiteConnection) throws -> Bool {
    try connection.integer("SELECT 1 FROM main.buckia_settings WHERE name = ?1", binding: [setting(baseline)]) != nil
  }

  /// Stores the digests of a baseline; of their pieces only those that have changed.
  ///
  /// - Parameter known: The stored digests; nil for none.
  /// - Throws: `SQLiteError`.
  package func write(of baseline: Int64, over known: PageDigestEntry?, on connection: borrowing SQLiteConnection) throws
  {
    let table = Self.table(baseline)
    if known == nil {
      try connection.execute("DROP TABLE IF EXISTS \(table)")
      try connection.execute("CREATE TABLE \(table)(first PRIMARY KEY NOT NULL, digests BLOB NOT NULL)")
    }
    if known?.basis != basis || known?.key != key {
      try LedgerSettings.set(Self.setting(baseline), to: [Self.version] + key + basis, on: connection)
    }
    let present = known?.pieces ?? [:]
    if pieces == present { return }
    let writing = try connection.prepare("INSERT OR REPLACE INTO \(table) VALUES (?1, ?2)")
    for (first, digests) in pieces where present[first] != digests {
      try first.bind(to: writing)
      try writing.bind(digests, at: 1)
      try writing.run()
    }
    let removing = try connection.prepare("DELETE FROM \(table) WHERE first = ?1")
    for first in present.keys where pieces[first] == nil {
      try first.bind(to: removing)
      try removing.run()
    }
  }

  /// Deletes the digests of a baseline.
  ///
  /// - Throws: `SQLiteError`.
  package static func remove(of baseline: Int64, on connection: borrowing SQLiteConnection) throws {
    guard try exists(of: baseline, on: connection) else { return }
    try connection.execute("DROP TABLE IF EXISTS \(table(baseline))")
    try connection.run(cached: "DELETE FROM main.buckia_settings WHERE name = ?1", setting(baseline))
  }
}

extension PageDigestEntry.Place {
  /// - Returns: nil for a malformed row.
  fileprivate init?(_ row: borrowing SQLiteStatement) {
    guard row.storageClass(at: 0) == .blob else {
      self = .rowID(row.integer(at: 0))
      return
    }
    let bytes = row.blob(at: 0)
    switch bytes.first {
    case 0: self = .key(Array(bytes.dropFirst()))
    case 1: self = .changedKey(Array(bytes.dropFirst()))
    default: return nil
    }
  }

  fileprivate func bind(to statement: borrowing SQLiteStatement) throws(SQLiteError) {
    switch self {
    case .rowID(let rowID): try statement.bind(rowID, at: 0)
    case .key(let key): try statement.bind([0] + key, at: 0)
    case .changedKey(let key): try statement.bind([1] + key, at: 0)
    }
  }
}
