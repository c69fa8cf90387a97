import SQLiteConnections

/// Keys of rows, in the format of changesets: in memory while they are few, in a TEMP table beyond.
final class KeySet {
  private static let memoryLimit = 1 << 15

  private let sets: KeySets
  private var keys: Set<[UInt8]> = []
  /// What its keys in the TEMP table have for a number; nil while they are in memory.
  private var number: Int64?

  fileprivate init(_ sets: KeySets) { self.sets = sets }

  /// Adds a key, unless it is there.
  ///
  /// - Throws: `SQLiteError`.
  func insert(_ key: [UInt8]) throws {
    if number == nil, keys.count < Self.memoryLimit {
      keys.insert(key)
    } else {
      try store(key, number ?? moveToTable())
    }
  }

  private func moveToTable() throws -> Int64 {
    try sets.makeTable()
    let next = try 1 + (sets.connection.cachedInteger("SELECT max(number) FROM \(sets.table)") ?? 0)
    number = next
    for key in keys.sorted(by: { $0.lexicographicallyPrecedes($1) }) { try store(key, next) }
    keys = []
    return next
  }

  private func store(_ key: [UInt8], _ number: Int64) throws {
    let insertion = try sets.connection.cached("INSERT OR IGNORE INTO \(sets.table) VALUES (?1, ?2)")
    try insertion.statement.bind(number, at: 0)
    try insertion.statement.bind(key, at: 1)
    try insertion.statement.run()
  }

  /// True if a key is there.
  ///
  /// - Throws: `SQLiteError`.
  func contains(_ key: [UInt8]) throws -> Bool {
    guard let number else { return keys.contains(key) }
    let query = try sets.connection.cached("SELECT 1 FROM \(sets.table) WHERE number = ?1 AND key = ?2")
    defer { query.statement.reset() }
    try query.statement.bind(number, at: 0)
    try query.statement.bind(key, at: 1)
    return try query.statement.step()
  }

  /// Gives each key. None may be added meanwhile.
  ///
  /// - Throws: `SQLiteError`; what `body` throws.
  func forEach(_ body: ([UInt8]) throws -> Void) throws {
    guard let number else { return try keys.forEach(body) }
    try sets.connection.forEachRow(of: "SELECT key FROM \(sets.table) WHERE number = \(number)") {
      try body($0.blob(at: 0))
    }
  }
}

/// Makes sets of keys, and empties the TEMP table that they share.
final class KeySets {
  fileprivate let table: String
  fileprivate let connection: SQLiteConnection
  private var hasTable = false

  /// - Parameter name: Tells apart what is needed at the same time.
  init(_ name: String, on connection: borrowing SQLiteConnection) {
    table = "temp.\(SQLiteConnection.temporaryPrefix)key_set_\(name)"
    self.connection = SQLiteConnection(sharing: connection)
  }

  func make() -> KeySet { KeySet(self) }

  fileprivate func makeTable() throws {
    hasTable = true
    let columns = "number INTEGER NOT NULL, key BLOB NOT NULL, PRIMARY KEY (number, key)"
    try connection.execute("CREATE TABLE IF NOT EXISTS \(table)(\(columns)) WITHOUT ROWID")
  }

  /// Forgets the keys of all sets, none of which may be used any more.
  ///
  /// - Throws: `SQLiteError`.
  func clear() throws {
    guard hasTable else { return }
    // A rollback may have taken the table away.
    try makeTable()
    try connection.execute("DELETE FROM \(table)")
    hasTable = false
  }
}

extension Dictionary where Value == KeySet {
  /// Adds a key to the set of something.
  ///
  /// - Throws: `SQLiteError`.
  mutating func insert(_ key: [UInt8], of name: Key, in sets: KeySets) throws {
    let set = self[name] ?? sets.make()
    self[name] = set
    try set.insert(key)
  }
}
