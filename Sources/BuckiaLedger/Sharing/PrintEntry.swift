import SQLiteConnections

/// What the pages of a shared table held when its shadow was as it is: by this the next share finds where rows may have changed.
///
/// The table `buckia_print_N` has the prints of shadow N in pieces, and the setting `print-N` says what they are of.
package struct PrintEntry: Equatable, Sendable {
  /// What tells whether prints can be compared: the definition of the table, what is shared of it, and more.
  package let basis: [UInt8]
  /// The secret of the hash.
  package let key: [UInt8]
  /// The prints in the order of the rows, by the key of the first row of each piece.
  package let pieces: [Int64: [UInt8]]

  private static let version: UInt8 = 1
  package static let keyBytes = 16

  /// Describes prints.
  ///
  /// - Parameter key: ``keyBytes`` bytes.
  package init(basis: [UInt8], key: [UInt8], pieces: [Int64: [UInt8]]) {
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
    var pieces: [Int64: [UInt8]] = [:]
    try connection.forEachRow(of: "SELECT first, prints FROM \(table(shadow))") { row in
      pieces[row.integer(at: 0)] = row.blob(at: 1)
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
      try connection.execute("CREATE TABLE \(table)(first INTEGER PRIMARY KEY, prints BLOB NOT NULL)")
    }
    if known?.basis != basis || known?.key != key {
      try LedgerSettings.set(Self.setting(shadow), to: [Self.version] + key + basis, on: connection)
    }
    let present = known?.pieces ?? [:]
    if pieces == present { return }
    let writing = try connection.prepare("INSERT OR REPLACE INTO \(table) VALUES (?1, ?2)")
    for (first, prints) in pieces.sorted(by: { $0.key < $1.key }) where present[first] != prints {
      try writing.bind(first, at: 0)
      try writing.bind(prints, at: 1)
      try writing.run()
    }
    let removing = try connection.prepare("DELETE FROM \(table) WHERE first = ?1")
    for first in present.keys where pieces[first] == nil {
      try removing.bind(first, at: 0)
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
