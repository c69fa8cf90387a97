import BuckiaApply
import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The state digests of a received stream: the sums of its recorded rows, which must equal those that its sender
/// states.
final class ReceivedState {
  private let sender: String
  private let place: StreamPlace
  private let replica: [UInt8]?
  private let connection: SQLiteConnection
  private var states: [TableName: TableState] = [:]
  /// The tables with rows that were recorded before there were sums, or with dropped columns.
  private var unknown: Set<TableName> = []
  /// Rows whose local keys differ from the sent ones. The sums cover the sent rows.
  private var mapped: [TableName: MappedTable] = [:]
  /// The table that was used last, because the changes of a table are adjacent.
  private var last: (table: KeyedTable, state: TableState?)?
  /// The keys that the diff has inserted, in tables whose keys can be spelled in several ways.
  var inserted: [TableName: KeySet] = [:]
  private let resent: ResentRows
  private let provenance: Provenance

  /// Reads the sums of the diff's tables, and adapts them to the columns of the diff.
  ///
  /// - Returns: nil for a diff without a place in a stream.
  /// - Throws: `SQLiteError`; `LedgerError` when they are damaged.
  init?(
    _ changes: IncomingChanges, _ resent: ResentRows, _ tables: KeyedTables, _ provenance: Provenance,
    _ schema: SchemaReader, on connection: borrowing SQLiteConnection
  ) throws {
    guard let place = changes.place else { return nil }
    sender = changes.key.sender
    self.place = place
    self.resent = resent
    self.provenance = provenance
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
    let others = try KeyedTables(changes.definitions ?? [], and: resent.tables, schema)
    for name in resent.tables where states[name] == nil {
      if let table = others[name] { try begin(table, nil, known[name]) }
    }
  }

  /// - Parameter definition: The table as it travels; nil if the diff has no rows of it.
  private func begin(_ table: KeyedTable, _ definition: TableDefinition?, _ known: TableState?) throws {
    let provenance = try ProvenanceEntry(of: table.local, stream: place.stream, from: sender, on: connection)
    let rows = try MappedTable(provenance, on: connection)
    mapped[table.name] = rows
    if resent.coverAll(of: table.name) { try rows.removeAll(on: connection) }
    guard let known else {
      if provenance != nil, !resent.coverAll(of: table.name) { unknown.insert(table.name) }
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
      try rebuild(known, of: table, columns, rows, shift: change.shift)
    }
  }

  /// Computes the sums from the remaining rows, whose hashes are adapted to the present columns.
  private func rebuild(
    _ state: TableState, of table: KeyedTable, _ columns: [String], _ rows: MappedTable, shift: UInt64
  ) throws {
    state.removeAll(columns: columns)
    let others = try rows.all(on: connection)
    let hidden = Set(others.keys).union(others.values.map(\.local))
    for (key, row) in others {
      if resent.concern(table.name) { rows.sentKeys[row.local, default: []].append(key) }
      guard !resent.cover(key, of: table.name) else {
        try rows.note(nil, key, on: connection)
        continue
      }
      guard let hash = row.hash else { continue }
      state.restore(key, hash &+ shift)
      if shift != 0 {
        try rows.note(MappedRows.Row(local: row.local, hash: hash &+ shift), key, on: connection)
      }
    }
    var shifted: [(key: [UInt8], hash: UInt64)] = []
    try provenance.forEach(of: table, stream: place.stream, from: sender) { key, row in
      if !hidden.contains(table.folded(key)), !resent.cover(key, of: table.name) {
        state.restore(key, row.hash &+ shift)
      }
      if shift != 0 { shifted.append((key, row.hash &+ shift)) }
    }
    for (key, hash) in shifted {
      try key.withRawSpan { bytes in
        try provenance.set(hash, table.row(withKey: bytes), bytes, of: table, stream: place.stream, from: sender)
      }
    }
  }

  /// The stream's keys of a row before the diff.
  func sentKeys(of local: [UInt8], in table: TableName) -> [[UInt8]] {
    mapped[table]?.sentKeys[local] ?? [local]
  }

  /// True if a row replaces the recorded row under its key.
  ///
  /// - Parameter key: The sent key.
  func isNew(_ key: @autoclosure () -> [UInt8], of table: KeyedTable) -> Bool {
    place.isSnapshot || !resent.isEmpty && resent.cover(key(), of: table.name)
  }

  /// Follows a recorded change.
  ///
  /// - Parameters:
  ///   - known: The hash of the row that was recorded under the local key before; nil for none.
  ///   - sent: The sent change; nil if it equals the local one.
  /// - Throws: `SQLiteError`.
  func follow(
    _ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, of table: KeyedTable, after known: UInt64?,
    as sent: SentChange?
  ) throws {
    guard let state = state(of: table) else { return }
    let row = change.operation == .insert ? reader.new : reader.old
    if let rows = mapped[table.name] {
      let exist = try rows.exist(on: connection)
      if sent != nil || exist {
        let here = SentChange(change, reader, bytes, of: table)
        if exist || sent != here {
          return try follow(sent ?? here, table.folded(here.key), of: table, after: known, rows, state)
        }
      }
    }
    let known = isNew(table.key(row, bytes), of: table) ? nil : known
    switch change.operation {
    case .insert:
      state.replace(table.key(row, bytes), known, by: table.contentHash(reader.new, bytes))
    case .update:
      guard let known else { return }
      state.replace(table.key(row, bytes), known, by: known &+ table.contentChange(reader, bytes))
    case .delete:
      state.replace(table.key(row, bytes), known, by: nil)
    }
  }

  /// Follows a change of a table with mapped keys.
  ///
  /// - Parameter local: The local key of the row.
  private func follow(
    _ change: SentChange, _ local: [UInt8], of table: KeyedTable, after known: UInt64?, _ rows: MappedTable,
    _ state: TableState
  ) throws {
    if rows.number == nil { rows.number = try provenance.number(of: table, stream: place.stream, from: sender) }
    let key = table.folded(change.key)
    let before = isNew(key, of: table) ? nil : try said(key, local, of: table, after: known, rows)
    let former = try rows.row(key, on: connection)?.local
    if key != local, let known { try keepApart(local, known, of: table, rows) }
    switch change.operation {
    case .insert, .update:
      guard change.operation == .insert || before != nil else { return }
      let hash = change.operation == .insert ? change.hash : (before ?? 0) &+ change.hash
      state.replace(key, before, by: hash)
      let isAsHere =
        try key == local && noted(key, of: table) == hash
        && !rows.haveRow(withLocal: key, otherThan: key, on: connection)
      try rows.note(isAsHere ? nil : MappedRows.Row(local: local, hash: hash), key, on: connection)
    case .delete:
      state.replace(key, before, by: nil)
      // The recorded row under this key is another row of the stream, or none.
      let isHidden = try rows.haveRow(withLocal: key, otherThan: key, on: connection)
      let remains = try !isHidden && noted(key, of: table) != nil
      try rows.note(remains ? MappedRows.Row(local: key, hash: nil) : nil, key, on: connection)
    }
    if let former, former != local { try leave(former, of: table, rows) }
  }

  /// Records that the row under a local key no longer belongs to the stream, because the stream's row got another key
  /// here.
  private func leave(_ key: [UInt8], of table: KeyedTable, _ rows: MappedTable) throws {
    guard try rows.row(key, on: connection) == nil, try noted(key, of: table) != nil,
      try !rows.haveRow(withLocal: key, otherThan: key, on: connection)
    else { return }
    try rows.note(MappedRows.Row(local: key, hash: nil), key, on: connection)
  }

  /// The hash of the stream's last version of a row; nil if the stream does not have it.
  private func said(
    _ key: [UInt8], _ local: [UInt8], of table: KeyedTable, after known: UInt64?, _ rows: MappedTable
  ) throws -> UInt64? {
    if let row = try rows.row(key, on: connection) { return row.hash }
    if try rows.sentKeys[key] != nil || rows.haveRow(withLocal: key, otherThan: key, on: connection) { return nil }
    return key == local ? known : try noted(key, of: table)
  }

  /// The hash of the recorded row under a local key.
  private func noted(_ key: [UInt8], of table: KeyedTable) throws -> UInt64? {
    try key.withRawSpan { bytes in
      try provenance.hash(table.row(withKey: bytes), bytes, of: table, streams: [place.stream], from: sender)
    }
  }

  /// Records the stream's version of a row whose local key is about to belong to another of its rows, too.
  private func keepApart(_ key: [UInt8], _ known: UInt64, of table: KeyedTable, _ rows: MappedTable) throws {
    guard rows.sentKeys[key] == nil, try rows.row(key, on: connection) == nil, !isNew(key, of: table),
      try !rows.haveRow(withLocal: key, otherThan: key, on: connection)
    else { return }
    try rows.note(MappedRows.Row(local: key, hash: known), key, on: connection)
  }

  private func state(of table: KeyedTable) -> TableState? {
    if let last, last.table === table { return last.state }
    let found = states[table.name]
    last = (table, found)
    return found
  }

  /// Compares the sums with those of the sender, and stores them.
  ///
  /// - Parameter claims: The sums in the sender's manifest.
  /// - Returns: The warnings about differences.
  /// - Throws: `SQLiteError`.
  func finish(_ claims: [StreamClaims.State]) throws -> [Warning] {
    var warnings: [Warning] = []
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
      if difference != nil { warnings.append(Warning(of: state.entry)) }
    }
    return warnings.sorted { $0.arguments.lexicographicallyPrecedes($1.arguments) }
  }
}

extension TableState {
  /// The buckets in which the rows differ from the sender's; nil if they do not.
  fileprivate func difference(from claim: StreamClaims.State) -> [UInt8]? {
    if claim.rows == sums.rowCount, claim.digest == sums.digest.bytes { return nil }
    let said = claim.buckets ?? [:]
    let found = said.filter { Array(sums[$0.key].bytes.prefix(2)) != $0.value }.map(\.key)
    // Buckets that the sender does not mention are unchanged.
    return Set(found + (entry.difference ?? []).filter { said[$0] == nil }).sorted()
  }
}

extension StateEntry {
  /// The first digits of the stream's id, for messages.
  package var shortStream: String {
    HexText.lowercase(stream.prefix(4))
  }
}

extension Warning {
  /// The warning about a table whose rows differ from the sender's.
  package init(of entry: StateEntry) {
    let count = entry.difference.map { $0.isEmpty ? "an unknown number" : "\($0.count)" } ?? "0"
    self.init(.stateDiffers, entry.table.text, count, entry.shortStream)
  }
}

/// The rows of a table whose local keys differ from the sent ones, while a diff is recorded.
final class MappedTable {
  /// The number of the stream's entry; nil while there is none.
  var number: Int64?
  /// For tables of which rows are sent again: the previously sent keys by their local keys.
  var sentKeys: [[UInt8]: [[UInt8]]] = [:]
  /// True if there are any; nil until that is read.
  private var isKnownToExist: Bool?

  /// - Throws: `SQLiteError`.
  init(_ provenance: ProvenanceEntry?, on connection: borrowing SQLiteConnection) throws {
    number = provenance?.number
    if provenance == nil { isKnownToExist = false }
  }

  private var rows: MappedRows? { number.map { MappedRows(of: $0) } }

  /// True if there are any.
  func exist(on connection: borrowing SQLiteConnection) throws -> Bool {
    if let isKnownToExist { return isKnownToExist }
    let found = try rows?.exist(on: connection) ?? false
    isKnownToExist = found
    return found
  }

  func row(_ key: [UInt8], on connection: borrowing SQLiteConnection) throws -> MappedRows.Row? {
    try exist(on: connection) ? rows?.row(key, on: connection) : nil
  }

  func haveRow(
    withLocal local: [UInt8], otherThan key: [UInt8], on connection: borrowing SQLiteConnection
  ) throws -> Bool {
    try exist(on: connection) && rows?.haveRow(withLocal: local, otherThan: key, on: connection) == true
  }

  func all(on connection: borrowing SQLiteConnection) throws -> [[UInt8]: MappedRows.Row] {
    try exist(on: connection) ? rows?.all(on: connection) ?? [:] : [:]
  }

  func note(_ row: MappedRows.Row?, _ key: [UInt8], on connection: borrowing SQLiteConnection) throws {
    guard try row != nil || exist(on: connection) else { return }
    try rows?.note(row, key, on: connection)
    if row != nil { isKnownToExist = true }
  }

  func removeAll(on connection: borrowing SQLiteConnection) throws {
    guard try exist(on: connection) else { return }
    try rows?.removeAll(on: connection)
    isKnownToExist = false
  }
}

/// A change with the sender's keys, before they are mapped to local ones. The sums of a stream follow these.
struct SentChange: Equatable {
  let operation: ChangeOperation
  /// The key of the row, in the format of changesets.
  let key: [UInt8]
  /// The hash of the row for an INSERT; the difference of the hashes for an UPDATE.
  let hash: UInt64

  init(_ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, of table: KeyedTable) {
    operation = change.operation
    key = table.key(change.operation == .insert ? reader.new : reader.old, bytes)
    hash =
      switch change.operation {
      case .insert: table.contentHash(reader.new, bytes)
      case .update: table.contentChange(reader, bytes)
      case .delete: 0
      }
  }
}
