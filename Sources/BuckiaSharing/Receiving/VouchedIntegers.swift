import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections

/// The rows of a table whose key is an integer: a row of the ledger for each block of neighbouring keys.
///
/// A block has 16 bytes with a bit for each of its rows, 16 with a bit for each that was here before, and their hashes in the order of
/// the keys; all little-endian. The block that was asked for last stays in memory.
final class VouchedIntegers: VouchedRows {
  let entry: VouchEntry
  let isNew: Bool

  /// How many keys a block has.
  private static let width = VouchEntry.blockWidth

  private let reading: PreparedStatement
  private let writing: PreparedStatement
  private let removing: PreparedStatement
  private let connection: SQLiteConnection

  /// The block in memory: its number, for each key whether it is there and its hash, and whether that is written.
  private var block: Int64?
  private var isPresent = [Bool](repeating: false, count: width)
  private var isOwn = [Bool](repeating: false, count: width)
  private var hashes = [UInt64](repeating: 0, count: width)
  private var isChanged = false

  /// - Throws: `SQLiteError`.
  init(_ entry: VouchEntry, isNew: Bool, on connection: borrowing SQLiteConnection) throws {
    self.entry = entry
    self.isNew = isNew
    self.connection = SQLiteConnection(sharing: connection)
    func prepare(_ sql: String) throws -> PreparedStatement {
      PreparedStatement(try connection.prepare(sql, isPersistent: true))
    }
    reading = try prepare("SELECT vouched FROM \(entry.name) WHERE block = ?1")
    writing = try prepare("INSERT OR REPLACE INTO \(entry.name) VALUES (?1, ?2)")
    removing = try prepare("DELETE FROM \(entry.name) WHERE block = ?1")
  }

  func find(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws -> VouchedRow? {
    guard let place = try load(row, bytes, table), isPresent[place] else { return nil }
    return VouchedRow(isOwn: isOwn[place], hash: hashes[place])
  }

  func add(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, _ found: VouchedRow) throws {
    guard let place = try load(row, bytes, table) else { return }
    if !isPresent[place] {
      isPresent[place] = true
      isOwn[place] = found.isOwn
    }
    hashes[place] = found.hash
    isChanged = true
  }

  func remove(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws {
    guard let place = try load(row, bytes, table), isPresent[place] else { return }
    isPresent[place] = false
    isOwn[place] = false
    isChanged = true
  }

  func forEachKey(_ body: ([UInt8]) throws -> Void) throws {
    try flush()
    let query = try connection.prepare("SELECT block FROM \(entry.name) ORDER BY block")
    var blocks: [Int64] = []
    while try query.step() { blocks.append(query.integer(at: 0)) }
    for block in blocks {
      try load(block)
      for place in 0..<Self.width where isPresent[place] {
        var writer = ChangesetWriter()
        writer.append(ChangesetValue.integer(block << VouchEntry.blockBits | Int64(place)))
        try body(writer.bytes)
      }
    }
  }

  // MARK: Blocks

  /// Loads the block of a row.
  ///
  /// - Returns: The row's place in it; nil for a key that is no integer, which no row of the table has.
  @inline(__always)
  private func load(_ row: [ValueSlice], _ bytes: RawSpan, _ table: KeyedTable) throws -> Int? {
    let value = row[table.keyPlaces[0]]
    guard value.kind == .integer else { return nil }
    let key = value.integer(in: bytes)
    if block != key >> VouchEntry.blockBits { try load(key >> VouchEntry.blockBits) }
    return Int(key & Int64(Self.width - 1))
  }

  private func load(_ number: Int64) throws {
    try flush()
    block = nil
    for place in 0..<Self.width {
      isPresent[place] = false
      isOwn[place] = false
    }
    let query = reading
    defer { query.statement.reset() }
    try query.statement.bind(number, at: 0)
    if try query.statement.step() { read(query.statement.blob(at: 0)) }
    block = number
  }

  private func read(_ bytes: [UInt8]) {
    var position = Self.width / 4
    for place in 0..<Self.width where bytes.count >= position + 8 && Self.bit(place, in: bytes, from: 0) {
      isPresent[place] = true
      isOwn[place] = Self.bit(place, in: bytes, from: Self.width / 8)
      hashes[place] = bytes.withUnsafeBytes {
        UInt64(littleEndian: $0.loadUnaligned(fromByteOffset: position, as: UInt64.self))
      }
      position += 8
    }
  }

  private static func bit(_ place: Int, in bytes: [UInt8], from start: Int) -> Bool {
    bytes[start + (place >> 3)] >> UInt8(place & 7) & 1 == 1
  }

  func flush() throws {
    guard isChanged, let block else { return }
    isChanged = false
    var bytes = [UInt8](repeating: 0, count: Self.width / 4)
    bytes.reserveCapacity(Self.width / 4 + 8 * Self.width)
    for place in 0..<Self.width where isPresent[place] {
      bytes[place >> 3] |= 1 << UInt8(place & 7)
      if isOwn[place] { bytes[Self.width / 8 + (place >> 3)] |= 1 << UInt8(place & 7) }
      withUnsafeBytes(of: hashes[place].littleEndian) { bytes.append(contentsOf: $0) }
    }
    let isEmpty = bytes.count == Self.width / 4
    let statement = isEmpty ? removing : writing
    try statement.statement.bind(block, at: 0)
    if !isEmpty { try statement.statement.bind(bytes, at: 1) }
    try statement.statement.run()
  }
}
