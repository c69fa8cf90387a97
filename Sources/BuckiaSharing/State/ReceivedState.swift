import BuckiaApply
import BuckiaLedger
import BuckiaSchemaPlans
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// What the stream of somebody else has brought: the sums of the rows that are noted of it, which must be those that its sender says.
final class ReceivedState {
  private let sender: String
  private let place: StreamPlace
  private let replica: [UInt8]?
  private let connection: SQLiteConnection
  private var states: [TableName: TableState] = [:]
  /// The tables of which rows were noted before there were sums, or with columns that are gone.
  private var unknown: Set<TableName> = []

  private let resent: ResentRows

  /// Reads the sums of the tables of a diff, and brings them to the columns that the diff has.
  ///
  /// - Returns: nil for a diff without a place in a stream.
  /// - Throws: `SQLiteError`; `LedgerError` when they are damaged.
  init?(
    _ changes: IncomingChanges, _ resent: ResentRows, _ tables: KeyedTables, _ schema: SchemaReader,
    on connection: borrowing SQLiteConnection
  ) throws {
    guard let place = changes.place else { return nil }
    sender = changes.key.sender
    self.place = place
    self.resent = resent
    replica = changes.claims.replica
    self.connection = SQLiteConnection(sharing: connection)
    var known: [TableName: TableState] = [:]
    for entry in try StateEntry.all(of: .sender(sender), stream: place.stream, on: connection) {
      known[entry.table] = try TableState(entry, at: connection.path)
    }
    for definition in changes.definitions ?? [] {
      let name = TableName(definition.name)
      guard let table = tables[name] else { continue }
      try begin(table, definition, known[name])
    }
    let others = try KeyedTables.withLocal(resent.tables, changes.definitions ?? [], schema)
    for name in resent.tables where states[name] == nil {
      if let table = others[name] { try begin(table, nil, known[name]) }
    }
  }

  /// - Parameter definition: The table as it travels; nil where the diff has no rows of it.
  private func begin(_ table: KeyedTable, _ definition: TableDefinition?, _ known: TableState?) throws {
    let vouch = try VouchEntry.all(of: table.local, on: connection).first {
      $0.stream == place.stream && $0.sender == sender
    }
    guard let known else {
      if vouch != nil, !resent.coverAll(of: table.name) { unknown.insert(table.name) }
      states[table.name] = TableState(
        .sender(sender), stream: place.stream, table.name, columns: definition?.changesetColumns ?? table.columns)
      return
    }
    states[table.name] = known
    let columns = try definition?.changesetColumns ?? known.columns
    let change = try definition.map { try ColumnChange(from: known.columns, to: $0) } ?? .none
    if resent.coverAll(of: table.name) {
      known.removeAll(columns: columns)
    } else if change == .removed {
      unknown.insert(table.name)
    } else if change != .none || resent.concern(table.name) {
      try rebuild(known, of: table, columns, vouch, shift: change.shift)
    }
  }

  /// Makes the sums anew from the rows that stay, whose hashes are brought to the columns of today.
  private func rebuild(
    _ state: TableState, of table: KeyedTable, _ columns: [String], _ vouch: VouchEntry?, shift: UInt64
  ) throws {
    state.removeAll(columns: columns)
    guard let vouch else { return }
    var rows: [(key: [UInt8], hash: UInt64)] = []
    try VouchedHashes.forEach(of: vouch, table, on: connection) { rows.append(($0, $1 &+ shift)) }
    for row in rows {
      if !resent.cover(row.key, of: table.name) { state.restore(row.key, row.hash) }
      if shift != 0 { try VouchedHashes.write(row.hash, row.key, of: vouch, table, on: connection) }
    }
  }

  /// Whether a row takes the place of whatever is noted under its key.
  func isNew(_ key: @autoclosure () -> [UInt8], of table: KeyedTable) -> Bool {
    place.isSnapshot || !resent.isEmpty && resent.cover(key(), of: table.name)
  }

  /// Follows a change, when it has been noted.
  ///
  /// - Parameter known: The hash of the row before; nil where the stream had not brought it.
  func follow(
    _ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, of table: KeyedTable, after known: UInt64?
  ) {
    guard let state = states[table.name] else { return }
    switch change.operation {
    case .insert:
      state.replace(table.key(reader.new, bytes), known, by: table.contentHash(reader.new, bytes))
    case .update:
      guard let known else { return }
      state.replace(table.key(reader.old, bytes), known, by: known &+ table.contentChange(reader, bytes))
    case .delete:
      state.replace(table.key(reader.old, bytes), known, by: nil)
    }
  }

  /// Compares the sums with those of the sender, and writes them.
  ///
  /// - Parameter claims: What the sender says.
  /// - Returns: What is to be said of the differences.
  /// - Throws: `SQLiteError`.
  func finish(_ claims: [StreamClaims.State]) throws -> [Remark] {
    var remarks: [Remark] = []
    for (name, state) in states {
      if unknown.contains(name) {
        if state.entry.number != 0 { try state.entry.remove(on: connection) }
        continue
      }
      var difference = state.entry.difference
      if let claim = claims.first(where: { TableName($0.table) == name }) {
        difference = state.difference(from: claim)
      }
      state.note(difference: difference, replica: replica)
      try state.write(on: connection)
      if difference != nil { remarks.append(Remark(of: state.entry)) }
    }
    return remarks.sorted { $0.arguments.lexicographicallyPrecedes($1.arguments) }
  }
}

extension TableState {
  /// Where the rows differ from those that a sender says; nil where they do not.
  fileprivate func difference(from claim: StreamClaims.State) -> [UInt8]? {
    if claim.rows == sums.rowCount, claim.digest == sums.digest.bytes { return nil }
    let found = (claim.buckets ?? [:]).filter { Array(sums[$0.key].bytes.prefix(2)) != $0.value }.map(\.key)
    return Set(found + (entry.difference ?? [])).sorted()
  }
}

extension StateEntry {
  /// The first digits of the stream, as people see them.
  package var shortStream: String {
    stream.prefix(4).map { byte in
      let text = String(byte, radix: 16)
      return text.count < 2 ? "0" + text : text
    }.joined()
  }
}

extension Remark {
  /// What is to be said of a table whose rows are other ones at their sender.
  package init(of entry: StateEntry) {
    let count = entry.difference.map { $0.isEmpty ? "an unknown number" : "\($0.count)" } ?? "0"
    self.init(.stateDiffers, entry.table.text, count, entry.shortStream)
  }
}

/// The hashes of the rows that a stream has brought.
enum VouchedHashes {
  /// Gives the key and the hash of each row.
  static func forEach(
    of entry: VouchEntry, _ table: KeyedTable, on connection: borrowing SQLiteConnection,
    _ body: ([UInt8], UInt64) throws -> Void
  ) throws {
    let keys = table.keyPlaces.indices.map { "k\($0)" }.joined(separator: ", ")
    try connection.forEachRow(of: "SELECT \(keys), hash FROM \(entry.name)") { row in
      guard let key = RowHash.key(in: row, count: table.keyPlaces.count) else { return }
      try body(key, UInt64(bitPattern: row.integer(at: table.keyPlaces.count)))
    }
  }

  /// Writes the hash of a row.
  static func write(
    _ hash: UInt64, _ key: [UInt8], of entry: VouchEntry, _ table: KeyedTable,
    on connection: borrowing SQLiteConnection
  ) throws {
    let condition = table.keyPlaces.indices.map { "k\($0) = ?\($0 + 1)" }.joined(separator: " AND ")
    let count = table.keyPlaces.count
    let prepared = try connection.cached("UPDATE \(entry.name) SET hash = ?\(count + 1) WHERE \(condition)")
    defer { prepared.statement.clearBindings() }
    try key.withRawSpan { bytes in
      try table.bindKey(table.row(withKey: bytes), bytes, to: prepared.statement)
      try prepared.statement.bind(Int64(bitPattern: hash), at: count)
      try prepared.statement.run()
    }
  }
}
