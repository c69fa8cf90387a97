import BuckiaApply
import BuckiaDiff
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The state digests of a share's stream: the sums of the rows that a receiver has after applying all its diffs.
///
/// They are the rows of the baseline except those set aside: a receiver's own changes move the baseline, but not the
/// stream.
package final class SentState {
  /// The sums of a changed table, for the manifest.
  package struct Claim: Equatable, Sendable {
    /// The table.
    package let table: String
    /// The number of rows.
    package let rows: Int64
    /// The sum of all rows: 16 bytes.
    package let digest: [UInt8]
    /// The first two bytes of the sum of each changed bucket; nil if too many have changed.
    package let buckets: [UInt8: [UInt8]]?
  }

  /// The most buckets of a table in a manifest.
  private static let bucketLimit = 64

  private let share: ShareEntry
  private let connection: SQLiteConnection
  private var states: [TableName: TableState] = [:]
  private var baselines: [TableName: BaselineEntry] = [:]

  /// Reads the sums, through a connection that must outlive this.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` when they are damaged.
  package init(of share: ShareEntry, on connection: borrowing SQLiteConnection) throws {
    self.share = share
    self.connection = SQLiteConnection(sharing: connection)
    for entry in try StateEntry.all(of: .share(share.number), stream: share.stream, on: connection) {
      states[entry.table] = try TableState(entry, at: connection.path)
    }
    for entry in try BaselineEntry.all(of: share.number, on: connection) { baselines[entry.table] = entry }
  }

  /// Deletes all rows, as the baseline does.
  ///
  /// - Throws: `SQLiteError`.
  package func clear() throws {
    try StateEntry.removeAll(of: share.number, on: connection)
    try RowNotes.removeAll(.aside, for: share.number, on: connection)
    states = [:]
    baselines = [:]
  }

  /// Removes requested rows from the baseline. The next difference then has them again.
  ///
  /// - Returns: What is sent again.
  /// - Throws: `SQLiteError`; `LedgerError` when the sums are damaged.
  package func resend(
    _ requests: [ResendRequest], from baseline: Baseline, _ schema: SchemaReader
  ) throws -> [ResendRequest] {
    var sent: [ResendRequest] = []
    for request in requests {
      guard let known = baselines[request.table], let definition = try schema.table(named: request.table),
        let table = KeyedTable(definition, definition)
      else { continue }
      let asides = RowNotes(.aside, of: request.table, for: share.number)
      if let buckets = request.buckets, let state = states[request.table] {
        try resend(buckets, of: table, known, state, asides)
        sent.append(request)
      } else {
        // The request covers the whole table.
        try baseline.forget(request.table)
        try states.removeValue(forKey: request.table)?.entry.remove(on: connection)
        for key in try asides.states(on: connection).keys { try asides.note(nil, of: key, on: connection) }
        baselines[request.table] = nil
        sent.append(ResendRequest(request.table, nil))
      }
    }
    return sent
  }

  private func resend(
    _ buckets: Set<UInt8>, of table: KeyedTable, _ baseline: BaselineEntry, _ state: TableState, _ asides: RowNotes
  ) throws {
    let columns = try state.columns
    state.removeAll(columns: columns)
    var others = try asides.states(on: connection)
    for (key, row) in others {
      if buckets.contains(state.bucket(key)) {
        try asides.note(nil, of: key, on: connection)
      } else if let hash = row.hash {
        state.restore(key, hash)
      }
    }
    var gone: [[UInt8]] = []
    try BaselineRows(baseline, columns: columns, on: connection).forEach(of: table) { key, hash in
      if buckets.contains(state.bucket(key)) {
        gone.append(key)
      } else if others.removeValue(forKey: table.folded(key)) == nil {
        state.restore(key, hash)
      }
    }
    let delete = "DELETE FROM main.\(baseline.name.quoted) WHERE \(table.condition(from: 1))"
    for key in gone {
      try key.withRawSpan { bytes in
        try connection.run(cached: delete, ValueSlice.values(table.keyPlaces.count, of: bytes), bytes)
      }
    }
    try state.write(on: connection)
  }

  /// Follows a sent difference. Call it before the baseline moves.
  ///
  /// - Parameters:
  ///   - difference: The difference from the baseline to the rows that are shared now.
  ///   - leftOut: Runs of its changes; true for those that are not sent.
  ///   - resent: The tables of which rows are sent again, even if no such row exists now.
  ///   - baseline: The rows of the recipients that it deletes.
  ///   - schema: The schema of the database.
  /// - Returns: The sums of its tables afterwards, as far as they are known.
  /// - Throws: `SQLiteError`, `ChangesetError`, `ByteStreamError`, `LedgerError`.
  package func follow(
    _ difference: DatabaseDifference, leavingOut leftOut: [(count: Int64, isLeftOut: Bool)],
    resending resent: [ResendRequest], _ unsentDeletions: UnsentDeletions, _ schema: SchemaReader
  ) throws -> [Claim] {
    let definitions = difference.tables.map(\.definition)
    let tables = try KeyedTables(definitions, schema)
    var followers: [TableName: TableFollower] = [:]
    for definition in definitions {
      let name = TableName(definition.name)
      guard let table = tables[name], let state = try state(of: table, definition) else { continue }
      followers[name] = state
    }
    var runs = WithdrawalRuns(leftOut.map { ($0.count, isWithdrawal: $0.isLeftOut) })
    try Changesets.forEachChange(of: difference.changeset) { change, reader, bytes in
      let isLeftOut = runs.next()
      guard let header = reader.table, let follower = followers[TableName(header.name)] else { return }
      if change.operation == .delete, let table = tables.table(of: header), table.hasKey(reader.old),
        unsentDeletions.gone[table.name]?.contains(table.key(reader.old, bytes)) == true
      {
        // Such a row is in the baseline only to be deleted.
        return try follower.forget(table.foldedKey(reader.old, bytes))
      }
      try follower.follow(change, reader, bytes, isSent: !isLeftOut)
    }
    var claims: [Claim] = []
    for definition in definitions {
      guard let state = followers[TableName(definition.name)]?.state else { continue }
      try state.write(on: connection)
      claims.append(Claim(state, table: definition.name, limit: Self.bucketLimit))
    }
    for request in resent where followers[request.table] == nil {
      let state =
        states[request.table]
        ?? TableState(.share(share.number), stream: share.stream, request.table, columns: [])
      claims.append(Claim(state, table: request.table.text, limit: Self.bucketLimit))
    }
    return claims
  }

  /// The sums of a table in its present columns; nil if they are unknown: its rows were sent before there were sums, or
  /// with dropped columns.
  private func state(of table: KeyedTable, _ definition: TableDefinition) throws -> TableFollower? {
    let asides = RowNotes(.aside, of: table.name, for: share.number)
    guard let known = states[table.name] else {
      guard baselines[table.name] == nil else { return nil }
      let state = TableState(
        .share(share.number), stream: share.stream, table.name, columns: definition.changesetColumns)
      return TableFollower(state, table, nil, shift: 0, asides, on: connection)
    }
    let columns = try known.columns
    let change = try ColumnChange(from: columns, to: definition)
    let rows = baselines[table.name].map { BaselineRows($0, columns: columns, on: connection) }
    switch change {
    case .none: break
    case .removed:
      try known.entry.remove(on: connection)
      return nil
    case .added(let shift):
      known.removeAll(columns: definition.changesetColumns)
      var others = try asides.states(on: connection)
      for (key, row) in others {
        guard let hash = row.hash else { continue }
        try asides.note(.present(hash &+ shift), of: key, on: connection)
        known.restore(key, hash &+ shift)
      }
      try rows?.forEach(of: table) { key, hash in
        if others.removeValue(forKey: table.folded(key)) == nil { known.restore(key, hash &+ shift) }
      }
    }
    return TableFollower(known, table, rows, shift: change.shift, asides, on: connection)
  }
}

extension SentState.Claim {
  fileprivate init(_ state: TableState, table: String, limit: Int) {
    self.table = table
    rows = state.sums.rowCount
    digest = state.sums.digest.bytes
    let touched = state.touched
    guard touched.count <= limit else {
      buckets = nil
      return
    }
    buckets = Dictionary(uniqueKeysWithValues: touched.map { ($0, Array(state.sums[$0].bytes.prefix(2))) })
  }
}

/// Follows the sent changes of one table.
private final class TableFollower {
  let state: TableState
  private let table: KeyedTable
  private let rows: BaselineRows?
  private let shift: UInt64
  private let asides: RowNotes
  private let connection: SQLiteConnection
  /// The keys of inserted rows, in tables whose keys can be spelled in several ways.
  private var inserted: Set<[UInt8]> = []

  init(
    _ state: TableState, _ table: KeyedTable, _ rows: BaselineRows?, shift: UInt64, _ asides: RowNotes,
    on connection: borrowing SQLiteConnection
  ) {
    self.state = state
    self.table = table
    self.rows = rows
    self.shift = shift
    self.asides = asides
    self.connection = SQLiteConnection(sharing: connection)
  }

  func follow(_ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, isSent: Bool) throws {
    let row = change.operation == .insert ? reader.new : reader.old
    guard table.hasKey(row) else { return }
    let key = table.foldedKey(row, bytes)
    let aside = try asides.state(of: key, on: connection)
    switch change.operation {
    case .insert:
      if rows != nil, !table.comparesKeysByBytes { inserted.insert(key) }
      state.replace(key, aside?.hash, by: table.contentHash(row, bytes))
      if aside != nil { try asides.note(nil, of: key, on: connection) }
    case .update:
      let known = try aside.map { $0.hash } ?? hash(row, bytes)
      // A receiver ignores an UPDATE of a row that the stream has never sent.
      guard let known else { return }
      let changed = known &+ table.contentChange(reader, bytes)
      state.replace(key, known, by: changed)
      if aside != nil { try asides.note(.present(changed), of: key, on: connection) }
    case .delete:
      let known = try aside.map { $0.hash } ?? hash(row, bytes)
      // The INSERT of a row with another spelling of the key has replaced the row at the receivers.
      if isSent || inserted.contains(key) {
        state.replace(key, known, by: nil)
        if aside != nil { try asides.note(nil, of: key, on: connection) }
      } else {
        // The receivers still have the row, although the baseline does not.
        try asides.note(known.map { .present($0) }, of: key, on: connection)
      }
    }
  }

  /// Removes a row that was set aside from the stream, if the stream has it.
  func forget(_ key: [UInt8]) throws {
    guard let aside = try asides.state(of: key, on: connection) else { return }
    state.replace(key, aside.hash, by: nil)
    try asides.note(nil, of: key, on: connection)
  }

  private func hash(_ row: [ValueSlice], _ bytes: RawSpan) throws -> UInt64? {
    try rows?.hash(row, bytes, of: table).map { $0 &+ shift }
  }
}

extension StateEntry {
  /// The states of received streams that are known to differ from their sender's rows. The sender is the recipient of a
  /// share, and can be asked for the rows.
  ///
  /// - Parameters:
  ///   - share: The share with the sender. The sender must have acknowledged it, because only then it is known which
  ///     streams are theirs.
  ///   - repeats: True to include rows that were requested before.
  /// - Throws: `SQLiteError`; `JSONError` when the ledger is damaged.
  package static func toAskFor(
    _ share: ShareEntry, repeating repeats: Bool, on connection: borrowing SQLiteConnection
  ) throws -> [StateEntry] {
    guard try share.isForOne() else { return [] }
    let receivers = try AcknowledgementEntry.all(of: share.number, on: connection)
    return try all(on: connection).filter { state in
      guard case .sender(let sender) = state.owner, state.difference != nil, repeats || !state.isRequested else {
        return false
      }
      return receivers.contains { $0.sender == sender && $0.replica == state.replica }
    }
  }
}
