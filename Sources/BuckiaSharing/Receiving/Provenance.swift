import BuckiaApply
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The provenance of rows: which streams have sent them, and which were here before.
///
/// A withdrawn row is removed only if no other stream has sent it and it was not here before.
final class Provenance {
  private let connection: SQLiteConnection
  /// A stream and one of its tables.
  private struct StreamTable: Hashable {
    let table: TableName
    let stream: [UInt8]
    let sender: String
  }
  /// The rows of streams that were read or written; nil for a stream and table without rows.
  private var known: [StreamTable: (any TableProvenance)?] = [:]
  /// The rows that were used last, because the changes of a table are adjacent.
  private var last: (table: KeyedTable, stream: [UInt8], sender: String, rows: (any TableProvenance)?)?
  /// The number of the ledger's table for the table used last; nil if no stream has sent any of its rows.
  private var lastStore: (table: KeyedTable, store: Int64?)?
  /// The blocks of all streams with the number that was read last.
  private var lastBlocks: (store: Int64, number: Int64, blocks: [(stream: Int64, block: ProvenanceBlock)])?
  /// True if any change may still be delayed.
  private var isNoted = false
  private var entries: [Int64: ProvenanceEntry] = [:]
  /// For each table, true if it had rows at the first call.
  private var haveRows: [TableName: Bool] = [:]

  init(on connection: borrowing SQLiteConnection) { self.connection = SQLiteConnection(sharing: connection) }

  /// Discards cached rows and delayed writes, which may have been rolled back.
  func reload() {
    known = [:]
    last = nil
    lastStore = nil
    lastBlocks = nil
    isNoted = false
    entries = [:]
    haveRows = [:]
  }

  /// Writes all delayed changes.
  ///
  /// - Throws: `SQLiteError`.
  func flush() throws {
    guard isNoted else { return }
    isNoted = false
    lastBlocks = nil
    for rows in known.values { try rows?.flush() }
  }

  private func open(_ entry: ProvenanceEntry, of table: KeyedTable, isNew: Bool = false) throws -> any TableProvenance {
    ProvenanceEntry.hasBlocks(for: table.local)
      ? try IntegerKeyProvenance(entry, isNew: isNew, on: connection)
      : RecordKeyProvenance(entry, of: table, isNew: isNew, on: connection)
  }

  private func rows(of table: KeyedTable, stream: [UInt8], from sender: String) throws -> (any TableProvenance)? {
    if let last, last.table === table, last.stream == stream, last.sender == sender { return last.rows }
    let key = StreamTable(table: table.name, stream: stream, sender: sender)
    let found: (any TableProvenance)?
    if let known = known[key] {
      found = known
    } else {
      found = try ProvenanceEntry(of: table.local, stream: stream, from: sender, on: connection).map {
        try open($0, of: table)
      }
      known[key] = .some(found)
    }
    last = (table, stream, sender, found)
    return found
  }

  private func store(of table: KeyedTable) throws -> Int64? {
    if let lastStore, lastStore.table === table { return lastStore.store }
    let found = try ProvenanceEntry.store(of: table.local, on: connection)
    lastStore = (table, found)
    return found
  }

  private func entry(_ number: Int64) throws -> ProvenanceEntry? {
    if let known = entries[number] { return known }
    let found = try ProvenanceEntry(number: number, on: connection)
    entries[number] = found
    return found
  }

  /// True if a row that is about to be inserted exists and was not sent by streams alone. Call it before anything is
  /// inserted.
  func isOwn(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws -> Bool {
    guard try isHere(table), try table.finds(table.lookup, row, bytes, on: connection) else { return false }
    let found = try found(row, bytes, of: table)
    return found.isEmpty || found.contains { $0.row.isOwn }
  }

  /// True if a table has any rows. Call it before anything is inserted.
  func isHere(_ table: KeyedTable) throws -> Bool {
    if let known = haveRows[table.name] { return known }
    let hasRows = try connection.integer("SELECT 1 FROM \(table.sql) LIMIT 1") != nil
    haveRows[table.name] = hasRows
    return hasRows
  }

  /// True if streams have sent any rows of a table.
  func haveBrought(_ table: KeyedTable) throws -> Bool { try store(of: table) != nil }

  /// The streams that have sent the row with an integer key.
  func entries(withKey key: Int64, of table: KeyedTable) throws -> [ProvenanceEntry] {
    try table.withRow(forKey: key) { try found($0, $1, of: table).map(\.entry) }
  }

  /// The provenance of a row in each stream that has sent it.
  func found(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable
  ) throws -> [(entry: ProvenanceEntry, row: RowProvenance)] {
    guard let store = try store(of: table) else { return [] }
    try flush()
    let found =
      ProvenanceEntry.hasBlocks(for: table.local)
      ? try inBlocks(row, bytes, of: table, store) : try byKey(row, bytes, of: table, store)
    return try found.compactMap { stream, row in try entry(stream).map { ($0, row) } }
  }

  private func inBlocks(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, _ store: Int64
  ) throws -> [(Int64, RowProvenance)] {
    guard let (number, place) = IntegerKeyProvenance.place(of: row, bytes, in: table) else { return [] }
    if let lastBlocks, lastBlocks.store == store, lastBlocks.number == number {
      return lastBlocks.blocks.compactMap { stream, block in block[place].map { (stream, $0) } }
    }
    let query = "SELECT provenance, present FROM \(ProvenanceEntry.name(ofStore: store)) WHERE block = ?1"
    var blocks: [(Int64, ProvenanceBlock)] = []
    try connection.forEachRow(ofCached: query, binding: [number]) { row in
      blocks.append((row.integer(at: 0), ProvenanceBlock(row.blobBytes(at: 1))))
    }
    lastBlocks = (store, number, blocks)
    return blocks.compactMap { stream, block in block[place].map { (stream, $0) } }
  }

  private func byKey(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, _ store: Int64
  ) throws -> [(Int64, RowProvenance)] {
    let query = try connection.cached(
      "SELECT provenance, is_own, hash FROM \(ProvenanceEntry.name(ofStore: store)) WHERE \(table.provenanceCondition)")
    defer {
      query.statement.reset()
      query.statement.clearBindings()
    }
    try table.bindKey(row, bytes, to: query.statement)
    var found: [(Int64, RowProvenance)] = []
    while try query.statement.step() {
      found.append((query.statement.integer(at: 0), RowProvenance(query.statement, at: 1)))
    }
    return found
  }

  /// True if a stream's row was ever accepted.
  func wasTaken(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, _ entry: ProvenanceEntry
  ) throws -> Bool {
    try RowNotes(untakenFrom: entry.number).state(of: table.foldedKey(row, bytes), on: connection) != RowState.absent
  }

  /// True if a version of a row that is not here was here before: a stream has sent it, or a share has.
  ///
  /// - Parameters:
  ///   - hash: The hash of the version.
  ///   - baselines: The baselines of the shares.
  func hasLost(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, _ hash: UInt64, _ baselines: [PeerBaseline]
  ) throws -> Bool {
    let isBrought = try found(row, bytes, of: table).contains { entry, brought in
      try brought.hash == hash && wasTaken(row, bytes, of: table, entry)
    }
    if isBrought { return true }
    return try baselines.contains { try $0.contentHash(row, bytes, of: table) == hash }
  }

  /// Calls `body` with the key of each row that streams of some senders have sent, in the format of changesets.
  ///
  /// - Parameter senders: The senders' keys, in the ledger's form.
  func forEach(of table: KeyedTable, from senders: Set<String>, _ body: ([UInt8], ProvenanceEntry) throws -> Void)
    throws
  {
    for sender in senders.sorted() {
      for entry in try ProvenanceEntry.all(of: table.local, from: sender, on: connection) {
        try forEach(of: table, stream: entry.stream, from: sender) { key, _ in try body(key, entry) }
      }
    }
  }

  /// True if a row stays when streams withdraw it: it was here before, or another stream has sent it, too.
  func stays(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, withoutStreams streams: [[UInt8]], from sender: String
  ) throws -> Bool {
    try found(row, bytes, of: table).contains { entry, found in
      found.isOwn || entry.sender != sender || !streams.contains(entry.stream)
    }
  }

  /// True if streams of some senders have sent a row.
  func brought(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, by senders: Set<String>) throws -> Bool {
    try found(row, bytes, of: table).contains { senders.contains($0.entry.sender) && !$0.row.isOwn }
  }

  /// The hash of the version of a row that a stream has sent last; nil if none has sent it.
  func hash(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, streams: [[UInt8]], from sender: String
  ) throws -> UInt64? {
    for stream in streams {
      if let found = try rows(of: table, stream: stream, from: sender)?.find(row, bytes, of: table) {
        return found.hash
      }
    }
    return nil
  }

  /// Calls `body` with each row that a stream has sent and its key in the format of changesets. Rows may be read
  /// meanwhile, and must not be changed.
  func forEach(
    of table: KeyedTable, stream: [UInt8], from sender: String, _ body: ([UInt8], RowProvenance) throws -> Void
  ) throws {
    try rows(of: table, stream: stream, from: sender)?.forEach(body)
  }

  /// The number of the entry for a stream and table; nil if there is none.
  func number(of table: KeyedTable, stream: [UInt8], from sender: String) throws -> Int64? {
    try rows(of: table, stream: stream, from: sender)?.entry.number
  }

  // MARK: Recording

  /// Records that a stream has sent a row.
  func add(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, stream: [UInt8], from sender: String, isOwn: Bool
  ) throws {
    isNoted = true
    let rows = try rows(of: table, stream: stream, from: sender) ?? make(table, stream, sender)
    try rows.add(row, bytes, of: table, RowProvenance(isOwn: isOwn, hash: table.contentHash(row, bytes)))
  }

  private func make(_ table: KeyedTable, _ stream: [UInt8], _ sender: String) throws -> any TableProvenance {
    let entry = try ProvenanceEntry.make(for: table.local, sender: sender, stream: stream, on: connection)
    let made = try open(entry, of: table, isNew: true)
    known[StreamTable(table: table.name, stream: stream, sender: sender)] = .some(made)
    last = nil
    lastStore = nil
    return made
  }

  /// Records that a stream has changed a row.
  func update(
    _ reader: ChangesetReader, _ bytes: RawSpan, of table: KeyedTable, stream: [UInt8], from sender: String
  ) throws {
    guard let rows = try rows(of: table, stream: stream, from: sender),
      let known = try rows.find(reader.old, bytes, of: table)
    else { return }
    isNoted = true
    let hash = known.hash &+ table.contentChange(reader, bytes)
    try rows.add(reader.old, bytes, of: table, RowProvenance(isOwn: known.isOwn, hash: hash))
  }

  /// Records the hash of a row that a stream has sent.
  func set(
    _ hash: UInt64, _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, stream: [UInt8], from sender: String
  ) throws {
    guard let rows = try rows(of: table, stream: stream, from: sender), let known = try rows.find(row, bytes, of: table)
    else { return }
    isNoted = true
    try rows.add(row, bytes, of: table, RowProvenance(isOwn: known.isOwn, hash: hash))
  }

  /// Records that a stream no longer has a row.
  func remove(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, stream: [UInt8], from sender: String
  ) throws {
    isNoted = true
    try rows(of: table, stream: stream, from: sender)?.remove(row, bytes, of: table)
  }

  /// Deletes the provenance of a table's rows in a stream.
  func forget(_ stream: [UInt8], from sender: String, _ table: TableName) throws {
    try flush()
    try ProvenanceEntry.remove(stream, from: sender, table, on: connection)
    known[StreamTable(table: table, stream: stream, sender: sender)] = nil
    last = nil
    lastStore = nil
    lastBlocks = nil
  }

  /// True if a stream has sent rows of a table before the changes that are being recorded.
  func hadRows(of table: KeyedTable, stream: [UInt8], from sender: String) throws -> Bool {
    try rows(of: table, stream: stream, from: sender)?.isNew == false
  }

  /// Deletes the provenance of some rows of a table in a stream.
  ///
  /// - Parameters:
  ///   - found: An empty set that holds their keys meanwhile.
  ///   - isGone: True for the keys of those rows.
  func remove(
    of table: KeyedTable, stream: [UInt8], from sender: String, noting found: KeySet,
    where isGone: ([UInt8]) throws -> Bool
  ) throws {
    try forEach(of: table, stream: stream, from: sender) { key, _ in if try isGone(key) { try found.insert(key) } }
    try found.forEach { key in
      try key.withRawSpan { bytes in
        try remove(table.row(withKey: bytes), bytes, of: table, stream: stream, from: sender)
      }
    }
  }
}
