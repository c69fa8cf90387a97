import SQLiteConnections
import SQLiteSchemas

/// A row of the table `buckia_vouch`: in which table of the database the keys of the rows are kept that a stream of somebody else has
/// brought of a table.
///
/// As long as one stream has a row, the others may withdraw it and it stays.
package struct VouchEntry: Hashable, Sendable {
  static let definition = """
    CREATE TABLE main.buckia_vouch(
      vouch INTEGER PRIMARY KEY,
      sender TEXT NOT NULL,
      stream BLOB NOT NULL,
      table_name TEXT NOT NULL COLLATE NOCASE,
      key TEXT NOT NULL,
      UNIQUE (sender, stream, table_name)
    );
    """

  /// Its number.
  package let number: Int64
  /// Whose stream it is: the verified key; empty for unsigned diffs.
  package let sender: String
  /// The stream.
  package let stream: [UInt8]
  /// The table.
  package let table: TableName
  /// The definition of the key's columns: what tells whether the table has another key now.
  package let key: String

  /// The table that has the keys, in the columns `k0`, `k1` …; `is_own`: whether the row was here before
  /// the stream has brought it; and `hash`, of the row as the stream has it. If the key is an integer, it has them in blocks of
  /// neighbouring keys: `block`, the number of the block, and `vouched`.
  package var name: String { "main.buckia_vouch_\(number)" }

  /// How many bits of a key say which row of its block it is.
  package static let blockBits: Int64 = 7
  /// How many keys a block has.
  package static let blockWidth = 1 << Int(blockBits)

  /// Whether the keys of a table are kept in blocks.
  package static func hasBlocks(for table: TableDefinition) -> Bool { ClockKey(of: table).isRowID }

  /// What all streams have brought of a table, as long as it has the same key.
  ///
  /// - Throws: `SQLiteError`.
  package static func all(
    of table: TableDefinition, on connection: borrowing SQLiteConnection
  ) throws -> [VouchEntry] {
    let query = try connection.cached(
      "SELECT vouch, sender, stream, key FROM main.buckia_vouch WHERE table_name = ?1 AND key = ?2 ORDER BY vouch")
    defer { query.statement.reset() }
    try query.statement.bind(table.name, at: 0)
    try query.statement.bind(ClockKey(of: table).definition, at: 1)
    var found: [VouchEntry] = []
    while try query.statement.step() {
      found.append(
        VouchEntry(
          number: query.statement.integer(at: 0), sender: query.statement.text(at: 1) ?? "",
          stream: query.statement.blob(at: 2), table: TableName(table.name), key: query.statement.text(at: 3) ?? ""))
    }
    return found
  }

  /// The tables of which a stream has brought rows.
  ///
  /// - Throws: `SQLiteError`.
  package static func tables(
    of stream: [UInt8], from sender: String, on connection: borrowing SQLiteConnection
  ) throws -> [TableName] {
    let query = try connection.prepare(
      "SELECT table_name FROM main.buckia_vouch WHERE sender = ?1 AND stream = ?2 ORDER BY vouch")
    try query.bind(sender, at: 0)
    try query.bind(stream, at: 1)
    var found: [TableName] = []
    while try query.step() { found.append(TableName(query.text(at: 0) ?? "")) }
    return found
  }

  /// The numbers of what a stream has brought, by table.
  ///
  /// - Throws: `SQLiteError`.
  package static func numbers(
    of stream: [UInt8], from sender: String, on connection: borrowing SQLiteConnection
  ) throws -> [TableName: Int64] {
    let query = try connection.prepare(
      "SELECT table_name, vouch FROM main.buckia_vouch WHERE sender = ?1 AND stream = ?2")
    try query.bind(sender, at: 0)
    try query.bind(stream, at: 1)
    var found: [TableName: Int64] = [:]
    while try query.step() { found[TableName(query.text(at: 0) ?? "")] = query.integer(at: 1) }
    return found
  }

  /// The streams of a sender that have brought rows.
  ///
  /// - Throws: `SQLiteError`.
  package static func streams(from sender: String, on connection: borrowing SQLiteConnection) throws -> [[UInt8]] {
    let query = try connection.prepare(
      """
      SELECT stream FROM main.buckia_vouch WHERE sender = ?1
      UNION SELECT stream FROM main.buckia_stream_author WHERE sender = ?1 ORDER BY stream
      """)
    try query.bind(sender, at: 0)
    var found: [[UInt8]] = []
    while try query.step() { found.append(query.blob(at: 0)) }
    return found
  }

  /// Makes what a stream has brought that of another key, which has replaced its sender's.
  ///
  /// - Throws: `SQLiteError`.
  package static func handOver(
    _ stream: [UInt8], from former: String, to sender: String, on connection: borrowing SQLiteConnection
  ) throws {
    // There is none unless the new key has used the stream itself.
    for table in try tables(of: stream, from: sender, on: connection) {
      try remove(stream, from: sender, table, on: connection)
    }
    try StateEntry.remove(stream, from: sender, nil, on: connection)
    for table in ["buckia_vouch", "buckia_state", "buckia_stream_author"] {
      try connection.run(
        cached: "UPDATE OR REPLACE main.\(table) SET sender = ?3 WHERE sender = ?1 AND stream = ?2", former, stream, sender)
    }
    try SharedView.refresh(on: connection)
  }

  /// Begins to keep what a stream has brought of a table; what was kept under another key is dropped.
  ///
  /// - Throws: `SQLiteError`.
  package static func make(
    for table: TableDefinition, sender: String, stream: [UInt8], on connection: borrowing SQLiteConnection
  ) throws -> VouchEntry {
    try remove(stream, from: sender, TableName(table.name), on: connection)
    let key = ClockKey(of: table)
    try connection.run(
      cached: "INSERT INTO main.buckia_vouch(sender, stream, table_name, key) VALUES (?1, ?2, ?3, ?4)", sender, stream,
      table.name, key.definition)
    let entry = VouchEntry(
      number: try connection.cachedInteger("SELECT last_insert_rowid()") ?? 0, sender: sender, stream: stream,
      table: TableName(table.name), key: key.definition)
    try connection.execute(
      key.isRowID
        ? "CREATE TABLE \(entry.name)(block INTEGER PRIMARY KEY, vouched BLOB NOT NULL)"
        : key.creation(of: entry.name, with: "is_own INTEGER NOT NULL, hash INTEGER NOT NULL"))
    try SharedView.refresh(on: connection)
    return entry
  }

  /// Forgets what a stream has brought of a table.
  ///
  /// - Throws: `SQLiteError`.
  package static func remove(
    _ stream: [UInt8], from sender: String, _ table: TableName, on connection: borrowing SQLiteConnection
  ) throws {
    let query = try connection.prepare(
      "SELECT vouch FROM main.buckia_vouch WHERE sender = ?1 AND stream = ?2 AND table_name = ?3")
    try query.bind(sender, at: 0)
    try query.bind(stream, at: 1)
    try query.bind(table.text, at: 2)
    var numbers: [Int64] = []
    while try query.step() { numbers.append(query.integer(at: 0)) }
    query.reset()
    for number in numbers { try remove(number, on: connection) }
    if !numbers.isEmpty { try SharedView.refresh(on: connection) }
    try StateEntry.remove(stream, from: sender, table, on: connection)
  }

  private static func remove(_ number: Int64, on connection: borrowing SQLiteConnection) throws {
    try connection.execute("DROP TABLE IF EXISTS main.buckia_vouch_\(number)")
    try connection.run(cached: "DELETE FROM main.buckia_vouch WHERE vouch = ?1", number)
    try TranslatedRows(of: number).removeAll(on: connection)
    try UntakenRows(of: number).removeAll(on: connection)
  }
}
