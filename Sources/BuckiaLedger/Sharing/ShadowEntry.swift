import SQLiteConnections
import SQLiteSchemas

/// A row of the table `buckia_shadow`: the table with the rows that the recipients of a share are known to have.
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
    let query = "SELECT shadow, columns FROM main.buckia_shadow WHERE table_name = ?1 ORDER BY shadow"
    return try connection.rows(ofCached: query, table.text) { row in
      ShadowEntry(number: row.integer(at: 0), table: table, columns: row.text(at: 1) ?? "")
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

  /// The shadows of a share.
  ///
  /// - Throws: `SQLiteError`.
  package static func all(of share: Int64, on connection: borrowing SQLiteConnection) throws -> [ShadowEntry] {
    try connection.rows(
      of: "SELECT shadow, table_name, columns FROM main.buckia_shadow WHERE share = ?1 ORDER BY shadow", share
    ) { row in
      ShadowEntry(number: row.integer(at: 0), table: TableName(row.text(at: 1) ?? ""), columns: row.text(at: 2) ?? "")
    }
  }

  /// Creates a shadow without rows.
  ///
  /// - Parameters:
  ///   - table: The table whose rows it will have.
  ///   - columns: The column definitions: the part after the name in its CREATE TABLE.
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

  /// Turns the shadow of a share into a former one.
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

/// The page digests (prints) of a shared table at the state of its shadow, by which the next share finds rows that may
/// have changed.
///
/// The table `buckia_print_N` has the prints of shadow N in pieces, and the setting `print-N` their basis.
package struct PrintEntry: Equatable, Sendable {
  /// The conditions under which prints can be compared: the definition of the table, its shared part, and more.
  package let basis: [UInt8]
  /// The secret of the hash.
  package let key: [UInt8]
  /// The prints in pieces.
  package let pieces: [Place: [UInt8]]

  /// The beginning of a piece.
  package enum Place: Hashable, Sendable {
    /// The rowid of a row, for prints of the leaves of the table.
    case rowID(Int64)
    /// A key, for prints of the leaves by which rows are found by their key; an empty one for the first of these.
    case key([UInt8])
    /// No prints, but a row of the shadow that was changed without being shared, by its key.
    case changedKey([UInt8])
  }

  private static let version: UInt8 = 2
  package static let keyBytes = 16

  /// Describes prints.
  ///
  /// - Parameter key: ``keyBytes`` bytes.
  package init(basis: [UInt8], key: [UInt8], pieces: [Place: [UInt8]]) {
    self.basis = basis
    self.key = key
    self.pieces = pieces
  }

  private static func table(_ shadow: Int64) -> String { "main.buckia_print_\(shadow)" }
  private static func setting(_ shadow: Int64) -> String { "print-\(shadow)" }

  /// The prints of a shadow; nil for none that this version can read.
  ///
  /// - Throws: `SQLiteError`.
  package static func read(of shadow: Int64, on connection: borrowing SQLiteConnection) throws -> PrintEntry? {
    guard let value = try LedgerSettings.blob(setting(shadow), on: connection), value.first == version,
      value.count > keyBytes
    else { return nil }
    var pieces: [Place: [UInt8]] = [:]
    try connection.forEachRow(of: "SELECT first, prints FROM \(table(shadow))") { row in
      if let place = Place(row) { pieces[place] = row.blob(at: 1) }
    }
    return PrintEntry(basis: Array(value.dropFirst(1 + keyBytes)), key: Array(value[1...keyBytes]), pieces: pieces)
  }

  /// True if there are prints of a shadow.
  ///
  /// - Throws: `SQLiteError`.
  package static func exists(of shadow: Int64, on connection: borrowing SQLiteConnection) throws -> Bool {
    try connection.integer("SELECT 1 FROM main.buckia_settings WHERE name = ?1", binding: [setting(shadow)]) != nil
  }

  /// Stores the prints of a shadow; of their pieces only those that have changed.
  ///
  /// - Parameter known: The stored prints; nil for none.
  /// - Throws: `SQLiteError`.
  package func write(of shadow: Int64, over known: PrintEntry?, on connection: borrowing SQLiteConnection) throws {
    let table = Self.table(shadow)
    if known == nil {
      try connection.execute("DROP TABLE IF EXISTS \(table)")
      try connection.execute("CREATE TABLE \(table)(first PRIMARY KEY NOT NULL, prints BLOB NOT NULL)")
    }
    if known?.basis != basis || known?.key != key {
      try LedgerSettings.set(Self.setting(shadow), to: [Self.version] + key + basis, on: connection)
    }
    let present = known?.pieces ?? [:]
    if pieces == present { return }
    let writing = try connection.prepare("INSERT OR REPLACE INTO \(table) VALUES (?1, ?2)")
    for (first, prints) in pieces where present[first] != prints {
      try first.bind(to: writing)
      try writing.bind(prints, at: 1)
      try writing.run()
    }
    let removing = try connection.prepare("DELETE FROM \(table) WHERE first = ?1")
    for first in present.keys where pieces[first] == nil {
      try first.bind(to: removing)
      try removing.run()
    }
  }

  /// Deletes the prints of a shadow.
  ///
  /// - Throws: `SQLiteError`.
  package static func remove(of shadow: Int64, on connection: borrowing SQLiteConnection) throws {
    guard try exists(of: shadow, on: connection) else { return }
    try connection.execute("DROP TABLE IF EXISTS \(table(shadow))")
    try connection.run(cached: "DELETE FROM main.buckia_settings WHERE name = ?1", setting(shadow))
  }
}

extension PrintEntry.Place {
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
