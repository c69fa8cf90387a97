import BuckiaApply
import BuckiaLedger
import BuckiaSchemaPlans
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Which rows the streams of others have brought, and which of them were here before.
///
/// A row that one of them withdraws goes only when it is here on account of that stream alone.
final class Vouchers {
  private let connection: SQLiteConnection
  private var known: [TableName: [VouchEntry]] = [:]

  init(on connection: borrowing SQLiteConnection) { self.connection = SQLiteConnection(sharing: connection) }

  /// Forgets what has been looked up: it may have been rolled back.
  func reload() { known = [:] }

  /// What streams have brought of a table.
  func entries(of table: KeyedTable) throws -> [VouchEntry] {
    if let found = known[table.name] { return found }
    let found = try VouchEntry.all(of: table.local, on: connection)
    known[table.name] = found
    return found
  }

  /// Whether a row that is about to be inserted is here already, and not only because streams have brought it.
  func isOwn(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws -> Bool {
    let isHere = "SELECT 1 FROM \(table.sql) WHERE \(table.condition(from: 1))"
    guard try table.finds(isHere, row, bytes, on: connection) else { return false }
    var isBrought = false
    for entry in try entries(of: table) {
      let own = "SELECT 1 FROM \(entry.name) WHERE \(table.vouchCondition(from: 1))"
      guard try table.finds(own, row, bytes, on: connection) else { continue }
      if try table.finds("\(own) AND is_own", row, bytes, on: connection) { return true }
      isBrought = true
    }
    return !isBrought
  }

  /// Whether a row stays when streams withdraw it: it was here before, or another stream has it, too.
  func stays(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, withoutStreams streams: [[UInt8]], from sender: String
  ) throws -> Bool {
    for entry in try entries(of: table) {
      let isOfStream = entry.sender == sender && streams.contains(entry.stream)
      let query = "SELECT 1 FROM \(entry.name) WHERE \(table.vouchCondition(from: 1))\(isOfStream ? " AND is_own" : "")"
      if try table.finds(query, row, bytes, on: connection) { return true }
    }
    return false
  }

  /// Whether a row is here on account of a sender's streams.
  func brought(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, by senders: Set<String>) throws -> Bool {
    for entry in try entries(of: table) where senders.contains(entry.sender) {
      let query = "SELECT 1 FROM \(entry.name) WHERE \(table.vouchCondition(from: 1)) AND NOT is_own"
      if try table.finds(query, row, bytes, on: connection) { return true }
    }
    return false
  }

  /// The hash of a row as a stream has brought it last; nil where none has.
  func hash(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, streams: [[UInt8]], from sender: String
  ) throws -> UInt64? {
    for stream in streams {
      guard let entry = try knownEntry(of: table, stream: stream, from: sender) else { continue }
      let prepared = try connection.cached("SELECT hash FROM \(entry.name) WHERE \(table.vouchCondition(from: 1))")
      defer {
        prepared.statement.reset()
        prepared.statement.clearBindings()
      }
      try table.bindKey(row, bytes, to: prepared.statement)
      if try prepared.statement.step() { return UInt64(bitPattern: prepared.statement.integer(at: 0)) }
    }
    return nil
  }

  /// The keys of the rows that streams have brought, in the format of changesets.
  func keys(of table: KeyedTable, streams: [[UInt8]], from sender: String) throws -> Set<[UInt8]> {
    var keys: Set<[UInt8]> = []
    let columns = table.keyPlaces.indices.map { "k\($0)" }.joined(separator: ", ")
    for stream in streams {
      guard let entry = try knownEntry(of: table, stream: stream, from: sender) else { continue }
      try connection.forEachRow(of: "SELECT \(columns) FROM \(entry.name)") { row in
        var writer = ChangesetWriter()
        for column in table.keyPlaces.indices { writer.append(column: column, of: row) }
        keys.insert(writer.bytes)
      }
    }
    return keys
  }

  /// Notes that a stream has brought a row.
  func add(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, stream: [UInt8], from sender: String, isOwn: Bool
  ) throws {
    let entry = try entry(of: table, stream: stream, from: sender)
    let count = table.keyPlaces.count
    let values = (1...(count + 1)).map { "?\($0)" }
    let prepared = try connection.cached(
      """
      INSERT INTO \(entry.name) VALUES (\(values.dropLast().joined(separator: ", ")), \(isOwn ? 1 : 0), ?\(count + 1)) \
      ON CONFLICT DO UPDATE SET hash = excluded.hash
      """)
    defer { prepared.statement.clearBindings() }
    try table.bindKey(row, bytes, to: prepared.statement)
    try prepared.statement.bind(
      Int64(bitPattern: StreamRowHash(row, bytes, of: table.columns).value), at: count)
    try prepared.statement.run()
  }

  /// Notes that a stream has changed a row.
  func update(
    _ reader: ChangesetReader, _ bytes: RawSpan, of table: KeyedTable, stream: [UInt8], from sender: String
  ) throws {
    guard let entry = try knownEntry(of: table, stream: stream, from: sender),
      let known = try hash(reader.old, bytes, of: table, streams: [stream], from: sender)
    else { return }
    var difference = StreamRowHash()
    for (place, column) in table.columns.enumerated() where reader.new[place].isDefined {
      if reader.old[place].isDefined { difference.remove(reader.old[place], bytes, column) }
      difference.add(reader.new[place], bytes, column)
    }
    let count = table.keyPlaces.count
    let prepared = try connection.cached(
      "UPDATE \(entry.name) SET hash = ?\(count + 1) WHERE \(table.vouchCondition(from: 1))")
    defer { prepared.statement.clearBindings() }
    try table.bindKey(reader.old, bytes, to: prepared.statement)
    try prepared.statement.bind(Int64(bitPattern: known &+ difference.value), at: count)
    try prepared.statement.run()
  }

  /// Forgets what a stream has brought of a table.
  func forget(_ stream: [UInt8], from sender: String, _ table: TableName) throws {
    try VouchEntry.remove(stream, from: sender, table, on: connection)
    known[table] = nil
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

  /// Notes that a stream does not have a row any more.
  func remove(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, stream: [UInt8], from sender: String
  ) throws {
    guard let entry = try entries(of: table).first(where: { $0.stream == stream && $0.sender == sender }) else {
      return
    }
    let prepared = try connection.cached("DELETE FROM \(entry.name) WHERE \(table.vouchCondition(from: 1))")
    defer { prepared.statement.clearBindings() }
    try table.bindKey(row, bytes, to: prepared.statement)
    try prepared.statement.run()
  }

  private func knownEntry(of table: KeyedTable, stream: [UInt8], from sender: String) throws -> VouchEntry? {
    try entries(of: table).first { $0.stream == stream && $0.sender == sender }
  }

  private func entry(of table: KeyedTable, stream: [UInt8], from sender: String) throws -> VouchEntry {
    if let found = try knownEntry(of: table, stream: stream, from: sender) { return found }
    let made = try VouchEntry.make(for: table.local, sender: sender, stream: stream, on: connection)
    known[table.name, default: []].append(made)
    return made
  }
}
