import SQLiteConnections
import SQLiteSchemas

/// A row of the table `buckia_provenance`: a received stream with rows of a table, and the table with their keys.
///
/// All streams keep the keys of a table's rows in one table: a stream with few rows costs little, and one lookup finds
/// all streams of a row. A row that a stream withdraws stays as long as another stream has it.
package struct ProvenanceEntry: Hashable, Sendable {
  static let definition = """
    CREATE TABLE main.buckia_provenance(
      provenance INTEGER PRIMARY KEY,
      sender TEXT NOT NULL,
      stream BLOB NOT NULL,
      table_name TEXT NOT NULL COLLATE NOCASE,
      key TEXT NOT NULL,
      store INTEGER NOT NULL,
      UNIQUE (sender, stream, table_name)
    );
    CREATE INDEX main.buckia_provenance_table ON buckia_provenance(table_name, key, store);
    CREATE INDEX main.buckia_provenance_store ON buckia_provenance(store);
    """

  /// Its number.
  package let number: Int64
  /// Whose stream it is: the verified key; empty for unsigned diffs.
  package let sender: String
  /// The stream.
  package let stream: [UInt8]
  /// The table.
  package let table: TableName
  /// The definition of the key's columns, which shows if the table has another key now.
  package let key: String
  /// The number of the table that has the keys.
  package let store: Int64

  /// The table that has the keys, in the columns `k0`, `k1` …; `provenance`, the number of the stream's entry; `is_own`: true if the row was
  /// here before the stream has brought it; and `hash`, of the row as the stream has it. If the key is an integer, it has them in
  /// blocks of neighbouring keys: `block`, the number of the block, `provenance`, and `present`.
  package var name: String { Self.name(ofStore: store) }

  /// The table that has the keys of a store.
  package static func name(ofStore store: Int64) -> String { "main.buckia_provenance_\(store)" }

  /// The number of bits of a key for its place in a block. Several blocks fit on a page.
  package static let blockBits: Int64 = 6
  /// The number of keys in a block.
  package static let blockWidth = 1 << Int(blockBits)

  /// True if the keys of a table are kept in blocks.
  package static func hasBlocks(for table: TableDefinition) -> Bool { ClockKey(of: table).isRowID }

  /// The number of the table with the keys of a table's rows, as long as it has the same key; nil if no stream has sent
  /// any.
  ///
  /// - Throws: `SQLiteError`.
  package static func store(of table: TableDefinition, on connection: borrowing SQLiteConnection) throws -> Int64? {
    try connection.cachedInteger(
      "SELECT store FROM main.buckia_provenance WHERE table_name = ?1 AND key = ?2 LIMIT 1", table.name,
      ClockKey(of: table).definition)
  }

  private static let columns = "provenance, sender, stream, table_name, key, store"

  private init(_ row: borrowing SQLiteStatement) {
    number = row.integer(at: 0)
    sender = row.text(at: 1) ?? ""
    stream = row.blob(at: 2)
    table = TableName(row.text(at: 3) ?? "")
    key = row.text(at: 4) ?? ""
    store = row.integer(at: 5)
  }

  /// The entry with a number.
  ///
  /// - Throws: `SQLiteError`.
  package init?(number: Int64, on connection: borrowing SQLiteConnection) throws {
    let query = "SELECT \(Self.columns) FROM main.buckia_provenance WHERE provenance = ?1"
    guard let entry = try connection.first(ofCached: query, number, row: { ProvenanceEntry($0) }) else { return nil }
    self = entry
  }

  /// The entry of a stream's table, as long as that has the same key.
  ///
  /// - Throws: `SQLiteError`.
  package init?(
    of table: TableDefinition, stream: [UInt8], from sender: String, on connection: borrowing SQLiteConnection
  ) throws {
    let query =
      "SELECT \(Self.columns) FROM main.buckia_provenance WHERE sender = ?1 AND stream = ?2 AND table_name = ?3 AND key = ?4"
    let key = ClockKey(of: table).definition
    guard
      let entry = try connection.first(ofCached: query, sender, stream, table.name, key, row: { ProvenanceEntry($0) })
    else { return nil }
    self = entry
  }

  /// The entries of a table for the streams of a sender, as long as that has the same key.
  ///
  /// - Throws: `SQLiteError`.
  package static func all(
    of table: TableDefinition, from sender: String, on connection: borrowing SQLiteConnection
  ) throws -> [ProvenanceEntry] {
    try connection.rows(
      of:
        "SELECT \(columns) FROM main.buckia_provenance WHERE sender = ?1 AND table_name = ?2 AND key = ?3 ORDER BY provenance",
      sender, table.name, ClockKey(of: table).definition
    ) { ProvenanceEntry($0) }
  }

  /// True if any stream has brought rows.
  ///
  /// - Throws: `SQLiteError`.
  package static func exist(on connection: borrowing SQLiteConnection) throws -> Bool {
    try connection.integer("SELECT 1 FROM main.buckia_provenance LIMIT 1") != nil
  }

  /// The tables of which a stream has brought rows.
  ///
  /// - Throws: `SQLiteError`.
  package static func tables(
    of stream: [UInt8], from sender: String, on connection: borrowing SQLiteConnection
  ) throws -> [TableName] {
    try connection.rows(
      of: "SELECT table_name FROM main.buckia_provenance WHERE sender = ?1 AND stream = ?2 ORDER BY provenance", sender,
      stream
    ) { TableName($0.text(at: 0) ?? "") }
  }

  /// The numbers of a stream's entries, by table.
  ///
  /// - Throws: `SQLiteError`.
  package static func numbers(
    of stream: [UInt8], from sender: String, on connection: borrowing SQLiteConnection
  ) throws -> [TableName: Int64] {
    var found: [TableName: Int64] = [:]
    try connection.forEachRow(
      of: "SELECT table_name, provenance FROM main.buckia_provenance WHERE sender = ?1 AND stream = ?2",
      binding: [sender, stream]
    ) { row in
      found[TableName(row.text(at: 0) ?? "")] = row.integer(at: 1)
    }
    return found
  }

  /// The streams of a sender that have brought rows.
  ///
  /// - Throws: `SQLiteError`.
  package static func streams(from sender: String, on connection: borrowing SQLiteConnection) throws -> [[UInt8]] {
    try connection.rows(
      of: """
        SELECT stream FROM main.buckia_provenance WHERE sender = ?1
        UNION SELECT stream FROM main.buckia_stream_author WHERE sender = ?1 ORDER BY stream
        """, sender
    ) { $0.blob(at: 0) }
  }

  /// Transfers a stream's entries to a key that has replaced its sender's.
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
    for table in ["buckia_provenance", "buckia_state", "buckia_stream_author"] {
      try connection.run(
        cached: "UPDATE OR REPLACE main.\(table) SET sender = ?3 WHERE sender = ?1 AND stream = ?2", former, stream,
        sender)
    }
  }

  /// Creates the entry of a stream's table; an entry for an earlier key is dropped.
  ///
  /// - Throws: `SQLiteError`.
  package static func make(
    for table: TableDefinition, sender: String, stream: [UInt8], on connection: borrowing SQLiteConnection
  ) throws -> ProvenanceEntry {
    try remove(stream, from: sender, TableName(table.name), on: connection)
    let key = ClockKey(of: table)
    let present = try store(of: table, on: connection)
    let store = try present ?? 1 + (connection.cachedInteger("SELECT max(store) FROM main.buckia_provenance") ?? 0)
    let number = 1 + (try connection.cachedInteger("SELECT max(provenance) FROM main.buckia_provenance") ?? 0)
    try connection.run(
      cached: "INSERT INTO main.buckia_provenance(\(columns)) VALUES (?1, ?2, ?3, ?4, ?5, ?6)", number, sender, stream,
      table.name, key.definition, store)
    guard let entry = try ProvenanceEntry(number: number, on: connection) else {
      throw LedgerError(alteredAt: connection.path)
    }
    guard present == nil else {
      // The rows of a single stream are found without an index.
      try connection.execute(
        "CREATE INDEX IF NOT EXISTS \(entry.name)_stream ON buckia_provenance_\(store)(provenance)")
      return entry
    }
    try connection.execute(
      key.isRowID
        ? """
        CREATE TABLE \(entry.name)(block INTEGER NOT NULL, provenance INTEGER NOT NULL, present BLOB NOT NULL, \
        PRIMARY KEY (block, provenance)) WITHOUT ROWID
        """
        : key.creation(
          of: entry.name, keyed: "provenance",
          with: "provenance INTEGER NOT NULL, is_own INTEGER NOT NULL, hash INTEGER NOT NULL"
        ))
    try SharedView.refresh(on: connection)
    return entry
  }

  /// Deletes the entry of a stream's table.
  ///
  /// - Throws: `SQLiteError`.
  package static func remove(
    _ stream: [UInt8], from sender: String, _ table: TableName, on connection: borrowing SQLiteConnection
  ) throws {
    let query =
      "SELECT provenance, store FROM main.buckia_provenance WHERE sender = ?1 AND stream = ?2 AND table_name = ?3"
    let found = try connection.first(ofCached: query, sender, stream, table.text) {
      (number: $0.integer(at: 0), store: $0.integer(at: 1))
    }
    if let found { try remove(found.number, in: found.store, on: connection) }
    try StateEntry.remove(stream, from: sender, table, on: connection)
  }

  private static func remove(_ number: Int64, in store: Int64, on connection: borrowing SQLiteConnection) throws {
    try connection.run(cached: "DELETE FROM main.buckia_provenance WHERE provenance = ?1", number)
    try MappedRows(of: number).removeAll(on: connection)
    try RowNotes.removeAll(.untaken, for: number, on: connection)
    let isShared = "SELECT 1 FROM main.buckia_provenance WHERE store = \(store) LIMIT 1"
    guard try connection.integer(isShared) == nil else {
      return try connection.execute("DELETE FROM \(name(ofStore: store)) WHERE provenance = \(number)")
    }
    try connection.execute("DROP TABLE IF EXISTS \(name(ofStore: store))")
    try SharedView.refresh(on: connection)
  }
}
