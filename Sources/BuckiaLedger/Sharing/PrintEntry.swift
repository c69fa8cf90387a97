import SQLiteConnections

/// What the pages of a shared table held when its shadow was as it is: by this the next share finds where rows may have changed.
///
/// The table `buckia_print_N` has the prints of shadow N in pieces, and the setting `print-N` says what they are of.
package struct PrintEntry: Equatable, Sendable {
  /// What tells whether prints can be compared: the definition of the table, what is shared of it, and more.
  package let basis: [UInt8]
  /// The secret of the hash.
  package let key: [UInt8]
  /// The prints in pieces.
  package let pieces: [Place: [UInt8]]

  /// What a piece begins with.
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

  /// The prints of a shadow; nil where there are none, or none that this version can read.
  ///
  /// - Throws: `SQLiteError`.
  package static func read(of shadow: Int64, on connection: borrowing SQLiteConnection) throws -> PrintEntry? {
    let query = try connection.cached("SELECT value FROM main.buckia_settings WHERE name = ?1")
    defer { query.statement.reset() }
    try query.statement.bind(setting(shadow), at: 0)
    guard try query.statement.step() else { return nil }
    let value = query.statement.blob(at: 0)
    guard value.first == version, value.count > keyBytes else { return nil }
    var pieces: [Place: [UInt8]] = [:]
    try connection.forEachRow(of: "SELECT first, prints FROM \(table(shadow))") { row in
      if let place = Place(row) { pieces[place] = row.blob(at: 1) }
    }
    return PrintEntry(
      basis: Array(value.dropFirst(1 + keyBytes)), key: Array(value[1...keyBytes]), pieces: pieces)
  }

  /// Whether there are prints of a shadow.
  ///
  /// - Throws: `SQLiteError`.
  package static func exists(of shadow: Int64, on connection: borrowing SQLiteConnection) throws -> Bool {
    try connection.integer("SELECT 1 FROM main.buckia_settings WHERE name = ?1", binding: [setting(shadow)]) != nil
  }

  /// Writes the prints of a shadow, and of their pieces only those that differ from what is there.
  ///
  /// - Parameter known: What is there; nil for nothing.
  /// - Throws: `SQLiteError`.
  package func write(
    of shadow: Int64, over known: PrintEntry?, on connection: borrowing SQLiteConnection
  ) throws {
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

  /// Forgets the prints of a shadow.
  ///
  /// - Throws: `SQLiteError`.
  package static func remove(of shadow: Int64, on connection: borrowing SQLiteConnection) throws {
    guard try exists(of: shadow, on: connection) else { return }
    try connection.execute("DROP TABLE IF EXISTS \(table(shadow))")
    try connection.run(cached: "DELETE FROM main.buckia_settings WHERE name = ?1", setting(shadow))
  }
}

extension PrintEntry.Place {
  /// - Returns: nil for a row that nobody here has written.
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
