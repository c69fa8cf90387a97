import BuckiaApply
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Which rows the streams of others have brought, and which of them were here before.
///
/// A row that one of them withdraws goes only when it is here on account of that stream alone.
final class Vouchers {
  private let connection: SQLiteConnection
  /// A stream, and the table of which it brings rows.
  private struct StreamTable: Hashable {
    let table: TableName
    let stream: [UInt8]
    let sender: String
  }
  /// The rows of streams that were asked for or noted; nil where there are none.
  private var known: [StreamTable: (any VouchedRows)?] = [:]
  /// Those that were asked for last: the changes of a table stand together.
  private var last: (table: KeyedTable, stream: [UInt8], sender: String, rows: (any VouchedRows)?)?
  /// The table of the ledger with the rows of a table that was asked for last; nil where no stream has brought any.
  private var lastStore: (table: KeyedTable, store: Int64?)?
  /// The blocks of all streams that were read last.
  private var lastBlocks: (store: Int64, number: Int64, blocks: [(stream: Int64, block: VouchedBlock)])?
  /// True if anything was noted that may not be written.
  private var isNoted = false
  private var entries: [Int64: VouchEntry] = [:]
  /// True if tables had rows when that was asked first.
  private var haveRows: [TableName: Bool] = [:]

  init(on connection: borrowing SQLiteConnection) { self.connection = SQLiteConnection(sharing: connection) }

  /// Forgets what has been looked up, and what has not been written: it may have been rolled back.
  func reload() {
    known = [:]
    last = nil
    lastStore = nil
    lastBlocks = nil
    isNoted = false
    entries = [:]
    haveRows = [:]
  }

  /// Writes what waits to be written.
  ///
  /// - Throws: `SQLiteError`.
  func flush() throws {
    guard isNoted else { return }
    isNoted = false
    lastBlocks = nil
    for rows in known.values { try rows?.flush() }
  }

  private func open(_ entry: VouchEntry, of table: KeyedTable, isNew: Bool = false) throws -> any VouchedRows {
    VouchEntry.hasBlocks(for: table.local)
      ? try VouchedIntegers(entry, isNew: isNew, on: connection)
      : VouchedKeys(entry, of: table, isNew: isNew, on: connection)
  }

  private func rows(of table: KeyedTable, stream: [UInt8], from sender: String) throws -> (any VouchedRows)? {
    if let last, last.table === table, last.stream == stream, last.sender == sender { return last.rows }
    let key = StreamTable(table: table.name, stream: stream, sender: sender)
    let found: (any VouchedRows)?
    if let known = known[key] {
      found = known
    } else {
      found = try VouchEntry(of: table.local, stream: stream, from: sender, on: connection).map {
        try open($0, of: table)
      }
      known[key] = .some(found)
    }
    last = (table, stream, sender, found)
    return found
  }

  private func store(of table: KeyedTable) throws -> Int64? {
    if let lastStore, lastStore.table === table { return lastStore.store }
    let found = try VouchEntry.store(of: table.local, on: connection)
    lastStore = (table, found)
    return found
  }

  private func entry(_ number: Int64) throws -> VouchEntry? {
    if let known = entries[number] { return known }
    let found = try VouchEntry(number: number, on: connection)
    entries[number] = found
    return found
  }

  /// True if a row that is about to be inserted is here already, and not only because streams have brought it. Only to be asked before
  /// anything is inserted.
  func isOwn(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws -> Bool {
    guard try isHere(table), try table.finds(table.lookup, row, bytes, on: connection) else { return false }
    let found = try found(row, bytes, of: table)
    return found.isEmpty || found.contains { $0.row.isOwn }
  }

  /// True if a table has any rows. Only to be asked before anything is inserted.
  func isHere(_ table: KeyedTable) throws -> Bool {
    if let known = haveRows[table.name] { return known }
    let hasRows = try connection.integer("SELECT 1 FROM \(table.sql) LIMIT 1") != nil
    haveRows[table.name] = hasRows
    return hasRows
  }

  /// True if streams have brought any rows of a table.
  func haveBrought(_ table: KeyedTable) throws -> Bool { try store(of: table) != nil }

  /// The streams that have brought the row with an integer key.
  func entries(withKey key: Int64, of table: KeyedTable) throws -> [VouchEntry] {
    try table.withRow(forKey: key) { try found($0, $1, of: table).map(\.entry) }
  }

  /// What the streams say of a row that have brought it.
  func found(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable
  ) throws -> [(entry: VouchEntry, row: VouchedRow)] {
    guard let store = try store(of: table) else { return [] }
    try flush()
    let found =
      VouchEntry.hasBlocks(for: table.local)
      ? try inBlocks(row, bytes, of: table, store) : try byKey(row, bytes, of: table, store)
    return try found.compactMap { stream, row in try entry(stream).map { ($0, row) } }
  }

  private func inBlocks(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, _ store: Int64
  ) throws -> [(Int64, VouchedRow)] {
    guard let (number, place) = VouchedIntegers.place(of: row, bytes, in: table) else { return [] }
    if let lastBlocks, lastBlocks.store == store, lastBlocks.number == number {
      return lastBlocks.blocks.compactMap { stream, block in block[place].map { (stream, $0) } }
    }
    let query = "SELECT vouch, vouched FROM \(VouchEntry.name(ofStore: store)) WHERE block = ?1"
    var blocks: [(Int64, VouchedBlock)] = []
    try connection.forEachRow(ofCached: query, binding: [number]) { row in
      blocks.append((row.integer(at: 0), VouchedBlock(row.blobBytes(at: 1))))
    }
    lastBlocks = (store, number, blocks)
    return blocks.compactMap { stream, block in block[place].map { (stream, $0) } }
  }

  private func byKey(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, _ store: Int64
  ) throws -> [(Int64, VouchedRow)] {
    let query = try connection.cached(
      "SELECT vouch, is_own, hash FROM \(VouchEntry.name(ofStore: store)) WHERE \(table.vouchCondition)")
    defer {
      query.statement.reset()
      query.statement.clearBindings()
    }
    try table.bindKey(row, bytes, to: query.statement)
    var found: [(Int64, VouchedRow)] = []
    while try query.statement.step() {
      found.append((query.statement.integer(at: 0), VouchedRow(query.statement, at: 1)))
    }
    return found
  }

  /// Gives the key of each row that streams of some senders have brought, in the format of changesets.
  ///
  /// - Parameter senders: Their keys, as the ledger has them.
  func forEach(of table: KeyedTable, from senders: Set<String>, _ body: ([UInt8], VouchEntry) throws -> Void) throws {
    for sender in senders.sorted() {
      for entry in try VouchEntry.all(of: table.local, from: sender, on: connection) {
        try forEach(of: table, stream: entry.stream, from: sender) { key, _ in try body(key, entry) }
      }
    }
  }

  /// True if a row stays when streams withdraw it: it was here before, or another stream has it, too.
  func stays(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, withoutStreams streams: [[UInt8]], from sender: String
  ) throws -> Bool {
    try found(row, bytes, of: table).contains { entry, found in
      found.isOwn || entry.sender != sender || !streams.contains(entry.stream)
    }
  }

  /// True if a row is here on account of a sender's streams.
  func brought(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, by senders: Set<String>) throws -> Bool {
    try found(row, bytes, of: table).contains { senders.contains($0.entry.sender) && !$0.row.isOwn }
  }

  /// The hash of a row as a stream has brought it last; nil where none has.
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

  /// Gives each row that a stream has brought, and its key in the format of changesets. Rows may be looked up meanwhile, and must not
  /// be changed.
  func forEach(
    of table: KeyedTable, stream: [UInt8], from sender: String, _ body: ([UInt8], VouchedRow) throws -> Void
  ) throws {
    try rows(of: table, stream: stream, from: sender)?.forEach(body)
  }

  /// The number of what is noted of a stream's rows of a table; nil where nothing is.
  func number(of table: KeyedTable, stream: [UInt8], from sender: String) throws -> Int64? {
    try rows(of: table, stream: stream, from: sender)?.entry.number
  }

  // MARK: Noting

  /// Notes that a stream has brought a row.
  func add(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, stream: [UInt8], from sender: String, isOwn: Bool
  ) throws {
    isNoted = true
    let rows = try rows(of: table, stream: stream, from: sender) ?? make(table, stream, sender)
    try rows.add(row, bytes, of: table, VouchedRow(isOwn: isOwn, hash: table.contentHash(row, bytes)))
  }

  private func make(_ table: KeyedTable, _ stream: [UInt8], _ sender: String) throws -> any VouchedRows {
    let entry = try VouchEntry.make(for: table.local, sender: sender, stream: stream, on: connection)
    let made = try open(entry, of: table, isNew: true)
    known[StreamTable(table: table.name, stream: stream, sender: sender)] = .some(made)
    last = nil
    lastStore = nil
    return made
  }

  /// Notes that a stream has changed a row.
  func update(
    _ reader: ChangesetReader, _ bytes: RawSpan, of table: KeyedTable, stream: [UInt8], from sender: String
  ) throws {
    guard let rows = try rows(of: table, stream: stream, from: sender),
      let known = try rows.find(reader.old, bytes, of: table)
    else { return }
    isNoted = true
    let hash = known.hash &+ table.contentChange(reader, bytes)
    try rows.add(reader.old, bytes, of: table, VouchedRow(isOwn: known.isOwn, hash: hash))
  }

  /// Notes the hash of a row that a stream has brought.
  func set(
    _ hash: UInt64, _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, stream: [UInt8], from sender: String
  ) throws {
    guard let rows = try rows(of: table, stream: stream, from: sender), let known = try rows.find(row, bytes, of: table)
    else { return }
    isNoted = true
    try rows.add(row, bytes, of: table, VouchedRow(isOwn: known.isOwn, hash: hash))
  }

  /// Notes that a stream does not have a row any more.
  func remove(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, stream: [UInt8], from sender: String
  ) throws {
    isNoted = true
    try rows(of: table, stream: stream, from: sender)?.remove(row, bytes, of: table)
  }

  /// Forgets what a stream has brought of a table.
  func forget(_ stream: [UInt8], from sender: String, _ table: TableName) throws {
    try flush()
    try VouchEntry.remove(stream, from: sender, table, on: connection)
    known[StreamTable(table: table, stream: stream, sender: sender)] = nil
    last = nil
    lastStore = nil
    lastBlocks = nil
  }

  /// True if a stream has brought rows of a table before the changes that are noted now.
  func hadRows(of table: KeyedTable, stream: [UInt8], from sender: String) throws -> Bool {
    try rows(of: table, stream: stream, from: sender)?.isNew == false
  }

  /// Forgets rows of a table that a stream has brought.
  ///
  /// - Parameters:
  ///   - found: An empty set, which keeps their keys meanwhile.
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
