import BuckiaBytes
import BuckiaLedger
import SQLiteConnections
import SQLiteSchemas

/// The ranges from which a database gives out the keys of its AUTOINCREMENT tables, so that several replicas never give out the same.
///
/// SQLite gives a new row the key behind the greatest one that the table has or ever had
/// (<https://sqlite.org/autoinc.html>). Once rows of somebody else have come with greater keys, a range can only go on above them. So the keys
/// are divided into epochs, and in each a replica has a block of its own: above the keys of others it goes on in the next epoch.
/// `Schemas/replicas.md` has the numbers.
package struct KeyRanges {
  /// How many bits of a key say which of its block it is, and which block of its epoch.
  private static let keyBits: Int64 = 20
  private static let blockBits: Int64 = 20
  private static let blockKeys: Int64 = 1 << keyBits
  private static let epochKeys: Int64 = 1 << (keyBits + blockBits)
  private static let setting = "key_ranges"

  /// The number of the block that the replica has in each epoch.
  let block: Int64

  /// - Parameter block: From 0 to 2^20 - 1.
  init(block: Int64) { self.block = block }

  /// The ranges of a database.
  ///
  /// - Returns: nil where it gives out keys as SQLite does, or is not known to be a replica.
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  init?(of connection: borrowing SQLiteConnection) throws {
    guard try Self.areUsed(by: connection), let replica = try ReplicaIdentity.read(on: connection) else { return nil }
    // Incarnations are random, so a restored or copied database has another block by itself.
    block = replica.incarnation.prefix(3).reduce(0) { $0 << 8 | Int64($1) } >> (24 - Self.blockBits)
  }

  /// True if a database uses ranges of its own.
  ///
  /// - Throws: `SQLiteError`.
  package static func areUsed(by connection: borrowing SQLiteConnection) throws -> Bool {
    guard try Ledger.exists(on: connection) else { return false }
    return try LedgerSettings.integer(setting, on: connection) == 1
  }

  /// Makes a database use ranges of its own, or go on where its tables are.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  package static func use(_ isUsed: Bool, on connection: borrowing SQLiteConnection) throws {
    try LedgerSettings.set(setting, to: Int64(isUsed ? 1 : 0), on: connection)
    try move(on: connection)
  }

  /// Moves the tables of a database that uses ranges into them, where keys of others have come behind them. To be called in the
  /// transaction that has written rows, or given the database another incarnation.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  package static func move(on connection: borrowing SQLiteConnection) throws {
    guard let ranges = try KeyRanges(of: connection) else { return }
    let schema = try SchemaReader(connection)
    for entry in schema.entries where entry.kind == .table && entry.mentionsAutoIncrement {
      let table = try schema.definition(of: entry)
      if table.isAutoIncrement { try ranges.move(table, on: connection) }
    }
  }

  private func move(_ table: TableDefinition, on connection: borrowing SQLiteConnection) throws {
    let key = table.keySQL.first ?? "rowid"
    let greatest = try connection.integer("SELECT max(\(key)) FROM main.\(SQLText.identifier(table.name))")
    let sequence = try connection.integer(
      "SELECT max(seq) FROM main.sqlite_sequence WHERE name = ?1", binding: [table.name])
    guard let start = start(behind: max(greatest ?? 0, sequence ?? 0)) else { return }
    // Without a row there was never one in the table.
    let statement =
      sequence == nil
      ? "INSERT INTO main.sqlite_sequence(seq, name) VALUES (?1, ?2)"
      : "UPDATE main.sqlite_sequence SET seq = ?1 WHERE name = ?2"
    try connection.run(cached: statement, start, table.name)
  }

  /// Where the sequence of a table has to go on whose greatest key is known: the next key is one greater.
  ///
  /// - Returns: nil where it can go on as it is.
  func start(behind greatest: Int64) -> Int64? {
    let greatest = max(0, greatest)
    let start = greatest / Self.epochKeys * Self.epochKeys + block * Self.blockKeys
    if start > greatest { return start }
    // As long as a quarter of the block is left.
    if greatest - start < Self.blockKeys / 4 * 3 { return nil }
    let (next, isOver) = start.addingReportingOverflow(Self.epochKeys)
    return isOver ? nil : next
  }
}

extension SchemaEntry {
  /// True if the statement that made the table may say AUTOINCREMENT.
  fileprivate var mentionsAutoIncrement: Bool { ASCIIName.folded(sql).contains("autoincrement") }
}

/// The counters of AUTOINCREMENT tables, which keep an id from being given out twice.
///
/// SQLite moves a counter on when a row is inserted, at the end of the statement. It does not when the statement ends at a
/// refused row (`OR FAIL`), nor for a row that was updated, replaced where it stood, or left out. The author of an INSERT has used
/// its id all the same. A change that meets no row moves no counter: anybody can name any id. See
/// <https://sqlite.org/autoinc.html>.
package enum AutoIncrement {
  /// The greatest id that an INSERT may bring into a table. An INSERT of a greater one would leave the table too few ids for new rows:
  /// once the last is used, SQLite refuses every INSERT without an id, also when the row is deleted.
  package static let greatestIncomingID = Int64.max - (1 << 32)

  /// Makes sure that the next id of a table is greater than one that has travelled.
  ///
  /// - Throws: `SQLiteError`.
  package static func raise(_ table: TableName, to rowID: Int64, on connection: borrowing SQLiteConnection) throws {
    guard rowID > 0 else { return }
    // SQLite compares the name byte for byte, and takes what is no number for 0.
    try connection.run(
      cached: "UPDATE main.sqlite_sequence SET seq = ?1 WHERE name = ?2 AND coalesce(CAST(seq AS INTEGER), 0) < ?1",
      rowID, table.text)
    guard connection.changes == 0 else { return }
    try connection.run(
      cached: """
        INSERT INTO main.sqlite_sequence(seq, name) SELECT ?1, ?2
        WHERE NOT EXISTS (SELECT 1 FROM main.sqlite_sequence WHERE name = ?2)
        """, rowID, table.text)
  }
}
