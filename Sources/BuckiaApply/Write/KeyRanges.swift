import BuckiaBytes
import BuckiaLedger
import SQLiteConnections
import SQLiteSchemas

/// The ranges from which a database assigns the keys of AUTOINCREMENT tables, by which several replicas never assign
/// the same key.
///
/// SQLite gives a new row the key after the greatest one that the table has or ever had
/// (<https://sqlite.org/autoinc.html>). After rows with greater keys have arrived, a range can only continue above
/// them. The keys are therefore divided into epochs, and in each epoch a replica has a block of its own: to get above
/// received keys it continues in the next epoch. `Schemas/replicas.md` has the numbers.
package struct KeyRanges {
  /// The numbers of bits of a key for the place in its block, and for the block in its epoch.
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
  /// - Returns: nil if the database assigns keys as SQLite does, or is not known to be a replica.
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  init?(of connection: borrowing SQLiteConnection) throws {
    guard try Self.areUsed(by: connection), let replica = try ReplicaIdentity.read(on: connection) else { return nil }
    // Incarnations are random, which gives a restored or copied database another block.
    block = replica.incarnation.prefix(3).reduce(0) { $0 << 8 | Int64($1) } >> (24 - Self.blockBits)
  }

  /// True if a database uses ranges of its own.
  ///
  /// - Throws: `SQLiteError`.
  package static func areUsed(by connection: borrowing SQLiteConnection) throws -> Bool {
    guard try Ledger.exists(on: connection) else { return false }
    return try LedgerSettings.integer(setting, on: connection) == 1
  }

  /// Turns ranges on or off. Without ranges, the database continues from its present keys.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  package static func use(_ isUsed: Bool, on connection: borrowing SQLiteConnection) throws {
    try LedgerSettings.set(setting, to: Int64(isUsed ? 1 : 0), on: connection)
    try move(on: connection)
  }

  /// Moves AUTOINCREMENT tables into the ranges of the database, if received keys are greater. Call it in the
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

  /// The value for the sequence of a table with a greatest key. The next key is one greater.
  ///
  /// - Returns: nil if the sequence can continue unchanged.
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
  /// True if the table's CREATE statement may contain AUTOINCREMENT.
  fileprivate var mentionsAutoIncrement: Bool { ASCIIName.folded(sql).contains("autoincrement") }
}

/// The counters of AUTOINCREMENT tables, which keep an id from being given out twice.
///
/// SQLite increases a counter at the end of a statement that inserts a row. It does not if the statement ends at a
/// refused row (`OR FAIL`), nor for a row that was updated, replaced in place, or left out. The author of such an
/// INSERT has used its id all the same. A change without a row increases no counter, because a diff can name any id.
/// See <https://sqlite.org/autoinc.html>.
package enum AutoIncrement {
  /// The greatest id that an INSERT may bring into a table. An INSERT of a greater one would leave the table too few ids for new rows:
  /// once the last is used, SQLite refuses every INSERT without an id, also when the row is deleted.
  package static let greatestIncomingID = Int64.max - (1 << 32)

  /// Makes the next id of a table greater than a received one.
  ///
  /// - Throws: `SQLiteError`.
  package static func raise(_ table: TableName, to rowID: Int64, on connection: borrowing SQLiteConnection) throws {
    guard rowID > 0 else { return }
    // SQLite compares the name byte for byte, and reads a value that is not a number as 0.
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
