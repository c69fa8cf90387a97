import BuckiaApply
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The provenance of a table's rows in a stream: the rows that the stream has sent, in the form of the ledger.
///
/// Writes may be delayed until ``flush()``; reads see them at once.
protocol TableProvenance: AnyObject {
  /// The ledger's entry for the stream and table.
  var entry: ProvenanceEntry { get }
  /// True if the ledger had no rows of the stream and table before.
  var isNew: Bool { get }

  /// Finds a row by its key.
  ///
  /// - Returns: The row's provenance; nil if the stream has not sent it.
  func find(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws -> RowProvenance?
  /// Calls `body` with each row and its key in the format of changesets. Rows may be read meanwhile, and must not be
  /// changed.
  func forEach(_ body: ([UInt8], RowProvenance) throws -> Void) throws
  /// Adds a row, or changes the hash of one that is there.
  func add(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, _ found: RowProvenance) throws
  /// Removes a row.
  func remove(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws
  /// Writes all delayed changes.
  func flush() throws
}

/// The provenance of a row.
struct RowProvenance {
  /// True if the row was here before the stream sent it.
  let isOwn: Bool
  /// The hash of the stream's version.
  let hash: UInt64
}

extension RowProvenance {
  /// Reads the provenance from two columns of a row of the ledger.
  init(_ row: borrowing SQLiteStatement, at column: Int) {
    self.init(isOwn: row.integer(at: column) != 0, hash: UInt64(bitPattern: row.integer(at: column + 1)))
  }
}

/// The provenance of rows with integer keys: a row of the ledger for each block of neighbouring keys. The last block
/// stays in memory.
final class IntegerKeyProvenance: TableProvenance {
  let entry: ProvenanceEntry
  let isNew: Bool

  private let connection: SQLiteConnection
  private let reading: PreparedStatement
  private let writing: PreparedStatement
  private let removing: PreparedStatement

  /// The block in memory, and its number.
  private var block = ProvenanceBlock()
  private var number: Int64?
  private var isChanged = false

  /// - Throws: `SQLiteError`.
  init(_ entry: ProvenanceEntry, isNew: Bool, on connection: borrowing SQLiteConnection) throws {
    self.entry = entry
    self.isNew = isNew
    self.connection = SQLiteConnection(sharing: connection)
    reading = try connection.cached("SELECT present FROM \(entry.name) WHERE block = ?1 AND provenance = ?2")
    writing = try connection.cached("INSERT OR REPLACE INTO \(entry.name) VALUES (?1, ?2, ?3)")
    removing = try connection.cached("DELETE FROM \(entry.name) WHERE block = ?1 AND provenance = ?2")
  }

  func find(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws -> RowProvenance? {
    try load(row, bytes, table).flatMap { block[$0] }
  }

  func add(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, _ found: RowProvenance) throws {
    guard let place = try load(row, bytes, table) else { return }
    block.add(found, at: place)
    isChanged = true
  }

  func remove(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws {
    guard let place = try load(row, bytes, table), block[place] != nil else { return }
    block.remove(at: place)
    isChanged = true
  }

  func forEach(_ body: ([UInt8], RowProvenance) throws -> Void) throws {
    try flush()
    let query = try connection.prepare(
      "SELECT block, present FROM \(entry.name) WHERE provenance = \(entry.number) ORDER BY block")
    while try query.step() {
      let (number, block) = (query.integer(at: 0), ProvenanceBlock(query.blobBytes(at: 1)))
      for place in 0..<ProvenanceEntry.blockWidth {
        guard let row = block[place] else { continue }
        try body(IntegerKey.encoded(number << ProvenanceEntry.blockBits | Int64(place)), row)
      }
    }
  }

  /// The number of a row's block and the place in it; nil for a key that is not an integer, which no row of the table
  /// has.
  @inline(__always)
  static func place(of row: [ValueSlice], _ bytes: RawSpan, in table: KeyedTable) -> (block: Int64, place: Int)? {
    let value = row[table.keyPlaces[0]]
    guard value.kind == .integer else { return nil }
    let key = value.integer(in: bytes)
    return (key >> ProvenanceEntry.blockBits, Int(key & Int64(ProvenanceEntry.blockWidth - 1)))
  }

  /// Loads the block of a row.
  ///
  /// - Returns: The row's place in the block; nil if the row cannot have one.
  @inline(__always)
  private func load(_ row: [ValueSlice], _ bytes: RawSpan, _ table: KeyedTable) throws -> Int? {
    guard let (wanted, place) = Self.place(of: row, bytes, in: table) else { return nil }
    if number != wanted { try load(wanted) }
    return place
  }

  private func load(_ wanted: Int64) throws {
    try flush()
    number = nil
    defer { reading.statement.reset() }
    try reading.statement.bind(wanted, at: 0)
    try reading.statement.bind(entry.number, at: 1)
    block = try reading.statement.step() ? ProvenanceBlock(reading.statement.blobBytes(at: 0)) : ProvenanceBlock()
    number = wanted
  }

  func flush() throws {
    guard isChanged, let number else { return }
    isChanged = false
    let statement = block.isEmpty ? removing : writing
    try statement.statement.bind(number, at: 0)
    try statement.statement.bind(entry.number, at: 1)
    if !block.isEmpty { try statement.statement.bind(block.encoded, at: 2) }
    try statement.statement.run()
  }
}

/// Neighbouring keys of a stream: 8 bytes with a bit for each key that is present, 8 bytes with a bit for each row that
/// was here before, and the hashes of the present rows in the order of their keys; all little-endian.
struct ProvenanceBlock {
  private var present: UInt64 = 0
  private var own: UInt64 = 0
  private var hashes: [UInt64] = []

  /// A block without keys.
  init() {}

  /// Reads what ``encoded`` has written; a block without keys for anything shorter.
  init(_ bytes: UnsafeRawBufferPointer) {
    func number(_ place: Int) -> UInt64 {
      UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 8 * place, as: UInt64.self))
    }
    guard bytes.count >= 16, bytes.count >= 16 + 8 * number(0).nonzeroBitCount else { return }
    present = number(0)
    own = number(1)
    hashes = (0..<present.nonzeroBitCount).map { number(2 + $0) }
  }

  var isEmpty: Bool { present == 0 }

  var encoded: [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(16 + 8 * hashes.count)
    for number in [present, own] + hashes { withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) } }
    return bytes
  }

  /// The number of present keys before a place.
  private func count(before place: Int) -> Int { (present & (1 << UInt64(place) - 1)).nonzeroBitCount }

  /// The row at a place; nil if there is none.
  subscript(place: Int) -> RowProvenance? {
    guard present >> UInt64(place) & 1 == 1 else { return nil }
    return RowProvenance(isOwn: own >> UInt64(place) & 1 == 1, hash: hashes[count(before: place)])
  }

  /// Adds a row, or changes the hash of one that is there.
  mutating func add(_ row: RowProvenance, at place: Int) {
    let index = count(before: place)
    guard present >> UInt64(place) & 1 == 0 else { return hashes[index] = row.hash }
    present |= 1 << UInt64(place)
    if row.isOwn { own |= 1 << UInt64(place) }
    hashes.insert(row.hash, at: index)
  }

  /// Removes the row at a place, which must be present.
  mutating func remove(at place: Int) {
    hashes.remove(at: count(before: place))
    present &= ~(1 << UInt64(place))
    own &= ~(1 << UInt64(place))
  }
}

/// The provenance of rows with other keys: a row of the ledger for each. Each statement is prepared once.
final class RecordKeyProvenance: TableProvenance {
  let entry: ProvenanceEntry
  let isNew: Bool

  private let connection: SQLiteConnection
  private let keyCount: Int
  private let condition: String
  private var finding: PreparedStatement?
  private var removing: PreparedStatement?
  /// The statements that add several rows, by the number of rows.
  private var adding: [Int: PreparedStatement] = [:]

  /// The keys of delayed rows, one after the other in the format of changesets.
  private var waitingKeys: [UInt8] = []
  private var waiting: [RowProvenance] = []

  /// The rows of a batch, unless their keys have very many columns.
  private static let batchRows = 32
  private static let parameterLimit = 512

  init(_ entry: ProvenanceEntry, of table: KeyedTable, isNew: Bool, on connection: borrowing SQLiteConnection) {
    self.entry = entry
    self.isNew = isNew
    self.connection = SQLiteConnection(sharing: connection)
    keyCount = table.keyPlaces.count
    condition = "\(table.provenanceCondition) AND provenance = ?\(table.keyPlaces.count + 1)"
  }

  func find(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws -> RowProvenance? {
    try flush()
    let prepared = try finding ?? connection.cached("SELECT is_own, hash FROM \(entry.name) WHERE \(condition)")
    finding = prepared
    defer {
      prepared.statement.reset()
      prepared.statement.clearBindings()
    }
    try table.bindKey(row, bytes, to: prepared.statement)
    try prepared.statement.bind(entry.number, at: keyCount)
    guard try prepared.statement.step() else { return nil }
    return RowProvenance(prepared.statement, at: 0)
  }

  func forEach(_ body: ([UInt8], RowProvenance) throws -> Void) throws {
    try flush()
    let columns = (0..<keyCount).map { "k\($0)" }.joined(separator: ", ")
    try connection.forEachRow(
      of: "SELECT \(columns), is_own, hash FROM \(entry.name) WHERE provenance = \(entry.number)"
    ) { row in
      try body(row.record(of: 0..<keyCount), RowProvenance(row, at: keyCount))
    }
  }

  func remove(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws {
    try flush()
    let prepared = try removing ?? connection.cached("DELETE FROM \(entry.name) WHERE \(condition)")
    removing = prepared
    defer { prepared.statement.clearBindings() }
    try table.bindKey(row, bytes, to: prepared.statement)
    try prepared.statement.bind(entry.number, at: keyCount)
    try prepared.statement.run()
  }

  // MARK: Adding

  private var batchRows: Int { (keyCount + 3) * Self.batchRows <= Self.parameterLimit ? Self.batchRows : 1 }

  func add(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, _ found: RowProvenance) throws {
    for place in table.keyPlaces {
      bytes.extracting(row[place].encoded).withUnsafeBytes { waitingKeys.append(contentsOf: $0) }
    }
    waiting.append(found)
    if waiting.count >= batchRows { try flush() }
  }

  func flush() throws {
    guard !waiting.isEmpty else { return }
    let (rows, keys) = (waiting, waitingKeys)
    waiting.removeAll()
    waitingKeys.removeAll()
    try keys.withRawSpan { bytes in
      var position = 0
      var rest = rows[...]
      while !rest.isEmpty {
        let count = rest.count >= batchRows ? batchRows : 1
        let prepared = try addition(of: count)
        defer { prepared.statement.clearBindings() }
        var parameter = 0
        for row in rest.prefix(count) {
          for _ in 0..<keyCount {
            try prepared.statement.bind(ValueSlice(verified: bytes, at: &position), in: bytes, at: parameter)
            parameter += 1
          }
          try prepared.statement.bind(entry.number, at: parameter)
          try prepared.statement.bind(Int64(row.isOwn ? 1 : 0), at: parameter + 1)
          try prepared.statement.bind(Int64(bitPattern: row.hash), at: parameter + 2)
          parameter += 3
        }
        try prepared.statement.run()
        rest = rest.dropFirst(count)
      }
    }
  }

  private func addition(of rows: Int) throws -> PreparedStatement {
    if let known = adding[rows] { return known }
    let row = "(\(Array(repeating: "?", count: keyCount + 3).joined(separator: ", ")))"
    let made = try connection.cached(
      """
      INSERT INTO \(entry.name) VALUES \(Array(repeating: row, count: rows).joined(separator: ", ")) \
      ON CONFLICT DO UPDATE SET hash = excluded.hash
      """)
    adding[rows] = made
    return made
  }
}
