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
  private var known: [TableName: [any VouchedRows]] = [:]
  /// The table that was asked about last: its changes stand together.
  private var last: (table: KeyedTable, rows: [any VouchedRows])?
  /// The rows that were asked for last.
  private var lastOfStream: (table: KeyedTable, stream: [UInt8], sender: String, rows: any VouchedRows)?
  /// Whether tables had rows when that was asked first.
  private var haveRows: [TableName: Bool] = [:]

  init(on connection: borrowing SQLiteConnection) { self.connection = SQLiteConnection(sharing: connection) }

  /// Forgets what has been looked up, and what has not been written: it may have been rolled back.
  func reload() {
    known = [:]
    last = nil
    lastOfStream = nil
    haveRows = [:]
  }

  /// Writes what waits to be written.
  ///
  /// - Throws: `SQLiteError`.
  func flush() throws {
    for rows in known.values.joined() { try rows.flush() }
  }

  private func open(_ entry: VouchEntry, of table: KeyedTable, isNew: Bool = false) throws -> any VouchedRows {
    VouchEntry.hasBlocks(for: table.local)
      ? try VouchedIntegers(entry, isNew: isNew, on: connection)
      : VouchedKeys(entry, of: table, isNew: isNew, on: connection)
  }

  private func rows(of table: KeyedTable) throws -> [any VouchedRows] {
    if let last, last.table === table { return last.rows }
    let found = try known[table.name] ?? VouchEntry.all(of: table.local, on: connection).map { try open($0, of: table) }
    known[table.name] = found
    last = (table, found)
    return found
  }

  private func rows(of table: KeyedTable, stream: [UInt8], from sender: String) throws -> (any VouchedRows)? {
    if let found = lastOfStream, found.table === table, found.stream == stream, found.sender == sender {
      return found.rows
    }
    guard let found = try rows(of: table).first(where: { $0.entry.stream == stream && $0.entry.sender == sender })
    else { return nil }
    lastOfStream = (table, stream, sender, found)
    return found
  }

  /// Whether a row that is about to be inserted is here already, and not only because streams have brought it. Only to be asked before
  /// anything is inserted.
  func isOwn(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws -> Bool {
    guard try isHere(table), try table.finds(table.lookup, row, bytes, on: connection) else { return false }
    let found = try rows(of: table).compactMap { try $0.find(row, bytes, of: table) }
    return found.isEmpty || found.contains { $0.isOwn }
  }

  /// Whether a table has any rows. Only to be asked before anything is inserted.
  func isHere(_ table: KeyedTable) throws -> Bool {
    if let known = haveRows[table.name] { return known }
    let hasRows = try connection.integer("SELECT 1 FROM \(table.sql) LIMIT 1") != nil
    haveRows[table.name] = hasRows
    return hasRows
  }

  /// Whether streams have brought any rows of a table.
  func haveBrought(_ table: KeyedTable) throws -> Bool { try !rows(of: table).isEmpty }

  /// The streams that have brought the row with an integer key.
  func entries(withKey key: Int64, of table: KeyedTable) throws -> [VouchEntry] {
    try table.withRow(forKey: key) { try found($0, $1, of: table).map(\.entry) }
  }

  /// What the streams say of a row that have brought it.
  func found(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable
  ) throws -> [(entry: VouchEntry, row: VouchedRow)] {
    try rows(of: table).compactMap { rows in try rows.find(row, bytes, of: table).map { (rows.entry, $0) } }
  }

  /// Gives the key of each row that streams of some senders have brought, in the format of changesets.
  ///
  /// - Parameter senders: Their keys, as the ledger has them.
  func forEachKey(of table: KeyedTable, from senders: Set<String>, _ body: ([UInt8], VouchEntry) throws -> Void) throws
  {
    for rows in try rows(of: table) where senders.contains(rows.entry.sender) {
      try rows.forEachKey { try body($0, rows.entry) }
    }
  }

  /// Whether a row stays when streams withdraw it: it was here before, or another stream has it, too.
  func stays(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, withoutStreams streams: [[UInt8]], from sender: String
  ) throws -> Bool {
    for rows in try rows(of: table) {
      guard let found = try rows.find(row, bytes, of: table) else { continue }
      let isOfStream = rows.entry.sender == sender && streams.contains(rows.entry.stream)
      if !isOfStream || found.isOwn { return true }
    }
    return false
  }

  /// Whether a row is here on account of a sender's streams.
  func brought(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, by senders: Set<String>) throws -> Bool {
    for rows in try rows(of: table) where senders.contains(rows.entry.sender) {
      if try rows.find(row, bytes, of: table)?.isOwn == false { return true }
    }
    return false
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

  /// The keys of the rows that streams have brought, in the format of changesets.
  func keys(of table: KeyedTable, streams: [[UInt8]], from sender: String) throws -> Set<[UInt8]> {
    var keys: Set<[UInt8]> = []
    for stream in streams { try forEachKey(of: table, stream: stream, from: sender) { keys.insert($0) } }
    return keys
  }

  /// Gives the keys of the rows that a stream has brought, in the format of changesets.
  func forEachKey(
    of table: KeyedTable, stream: [UInt8], from sender: String, _ body: ([UInt8]) throws -> Void
  ) throws {
    try rows(of: table, stream: stream, from: sender)?.forEachKey(body)
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
    let rows = try rows(of: table, stream: stream, from: sender) ?? make(table, stream, sender)
    try rows.add(row, bytes, of: table, VouchedRow(isOwn: isOwn, hash: table.contentHash(row, bytes)))
  }

  private func make(_ table: KeyedTable, _ stream: [UInt8], _ sender: String) throws -> any VouchedRows {
    let entry = try VouchEntry.make(for: table.local, sender: sender, stream: stream, on: connection)
    let made = try open(entry, of: table, isNew: true)
    known[table.name, default: []].append(made)
    last = nil
    lastOfStream = nil
    return made
  }

  /// Notes that a stream has changed a row.
  func update(
    _ reader: ChangesetReader, _ bytes: RawSpan, of table: KeyedTable, stream: [UInt8], from sender: String
  ) throws {
    guard let rows = try rows(of: table, stream: stream, from: sender),
      let known = try rows.find(reader.old, bytes, of: table)
    else { return }
    let hash = known.hash &+ table.contentChange(reader, bytes)
    try rows.add(reader.old, bytes, of: table, VouchedRow(isOwn: known.isOwn, hash: hash))
  }

  /// Notes the hash of a row that a stream has brought.
  func set(
    _ hash: UInt64, _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, stream: [UInt8], from sender: String
  ) throws {
    guard let rows = try rows(of: table, stream: stream, from: sender), let known = try rows.find(row, bytes, of: table)
    else { return }
    try rows.add(row, bytes, of: table, VouchedRow(isOwn: known.isOwn, hash: hash))
  }

  /// Notes that a stream does not have a row any more.
  func remove(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, stream: [UInt8], from sender: String
  ) throws {
    try rows(of: table, stream: stream, from: sender)?.remove(row, bytes, of: table)
  }

  /// Forgets what a stream has brought of a table.
  func forget(_ stream: [UInt8], from sender: String, _ table: TableName) throws {
    try flush()
    try VouchEntry.remove(stream, from: sender, table, on: connection)
    known[table] = nil
    last = nil
    lastOfStream = nil
  }

  /// Whether a stream has brought rows of a table before the changes that are noted now.
  func hadRows(of table: KeyedTable, stream: [UInt8], from sender: String) throws -> Bool {
    try rows(of: table, stream: stream, from: sender)?.isNew == false
  }

  /// Forgets what a stream has brought of a table, but for some rows.
  ///
  /// - Parameter present: Their keys.
  func keep(_ present: Set<[UInt8]>, of table: KeyedTable, stream: [UInt8], from sender: String) throws {
    for key in try keys(of: table, streams: [stream], from: sender) where !present.contains(key) {
      try key.withRawSpan { bytes in
        try remove(table.row(withKey: bytes), bytes, of: table, stream: stream, from: sender)
      }
    }
  }
}
