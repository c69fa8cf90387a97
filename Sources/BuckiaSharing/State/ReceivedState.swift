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
  /// Tables whose rows have other values here than at the sender: the sums are of rows as they were sent.
  private let translated: Set<TableName>

  /// The table whose rows came last: its changes stand together.
  private var last: (table: KeyedTable, state: TableState?)?
  private let resent: ResentRows
  private let vouchers: Vouchers

  /// Reads the sums of the tables of a diff, and brings them to the columns that the diff has.
  ///
  /// - Parameter translated: Tables whose rows have other values here than at the sender. They are not compared.
  /// - Returns: nil for a diff without a place in a stream.
  /// - Throws: `SQLiteError`; `LedgerError` when they are damaged.
  init?(
    _ changes: IncomingChanges, _ resent: ResentRows, _ tables: KeyedTables, _ vouchers: Vouchers,
    _ schema: SchemaReader, without translated: Set<TableName>, on connection: borrowing SQLiteConnection
  ) throws {
    self.translated = translated
    guard let place = changes.place else { return nil }
    sender = changes.key.sender
    self.place = place
    self.resent = resent
    self.vouchers = vouchers
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
      try rebuild(known, of: table, columns, shift: change.shift)
    }
  }

  /// Makes the sums anew from the rows that stay, whose hashes are brought to the columns of today.
  private func rebuild(_ state: TableState, of table: KeyedTable, _ columns: [String], shift: UInt64) throws {
    state.removeAll(columns: columns)
    for (key, known) in try vouchers.hashes(of: table, stream: place.stream, from: sender) {
      if !resent.cover(key, of: table.name) { state.restore(key, known &+ shift) }
      guard shift != 0 else { continue }
      try key.withRawSpan { bytes in
        let row = table.row(withKey: bytes)
        try vouchers.set(known &+ shift, row, bytes, of: table, stream: place.stream, from: sender)
      }
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
    guard let state = state(of: table) else { return }
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

  private func state(of table: KeyedTable) -> TableState? {
    if let last, last.table === table { return last.state }
    let found = states[table.name]
    last = (table, found)
    return found
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
      if translated.contains(name) {
        difference = nil
      } else if let claim = claims.first(where: { TableName($0.table) == name }) {
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

extension Vouchers {
  /// The keys of the rows that a stream has brought, in the format of changesets, and their hashes.
  func hashes(of table: KeyedTable, stream: [UInt8], from sender: String) throws -> [([UInt8], UInt64)] {
    try keys(of: table, streams: [stream], from: sender).compactMap { key in
      try key.withRawSpan { bytes in
        try hash(table.row(withKey: bytes), bytes, of: table, streams: [stream], from: sender).map { (key, $0) }
      }
    }
  }
}
