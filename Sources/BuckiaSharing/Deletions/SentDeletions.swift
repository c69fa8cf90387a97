import BuckiaApply
import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The deletions and values that a diff of a share sends to its recipients.
extension TombstoneAcknowledgements {
  /// Records the deletions once the clocks have the diff, for the recipients and as tombstones, and the values that it
  /// sends of tables without a clock.
  ///
  /// - Parameters:
  ///   - changeset: The changes that are sent.
  ///   - definitions: Their tables.
  ///   - withdrawals: The changes that withdraw rows instead of deleting them, in their order.
  ///   - share: The share, with the number of the diff.
  ///   - isSnapshot: True if the diff has all rows of the share.
  ///   - schema: The schema of the database.
  /// - Throws: `SQLiteError`, `ChangesetError`, `ByteStreamError`.
  package static func noteSent(
    in changeset: TemporaryBuffer, of definitions: [TableDefinition],
    withdrawals: [(count: Int64, isWithdrawal: Bool)], _ share: ShareEntry, isSnapshot: Bool, _ schema: SchemaReader,
    on connection: borrowing SQLiteConnection
  ) throws {
    if isSnapshot { try SentColumns.noteSnapshot(share.sequence, of: share.number, on: connection) }
    let connection = SQLiteConnection(sharing: connection)
    let tables = try KeyedTables(definitions, schema)
    let provenance = Provenance(on: connection)
    let versions = TakenVersions(on: connection)
    var clocks: [TableName: Int64?] = [:]
    var runs = WithdrawalRuns(withdrawals)
    try Changesets.forEachChange(of: changeset) { change, reader, bytes in
      let isWithdrawal = runs.next()
      let row = change.operation == .insert ? reader.new : reader.old
      guard change.operation == .delete || !isSnapshot, let table = reader.table.flatMap({ tables.table(of: $0) }),
        table.hasKey(row)
      else { return }
      let known = try clocks[table.name] ?? RowClocks.number(of: table.local, on: connection)
      clocks[table.name] = .some(known)
      let key = table.key(row, bytes)
      if known == nil, !isSnapshot {
        try SentColumns.note(change, reader, ofRow: key, in: table, share, on: connection)
      }
      guard change.operation == .delete, !isWithdrawal else { return }
      let whole = table.isWhole(reader.old) ? table.contentHash(reader.old, bytes) : nil
      guard let clock = known else {
        // The baseline has the key alone of a row that the recipients have brought.
        let hash =
          try whole
          ?? provenance.found(reader.old, bytes, of: table).first.map {
            try versions.taken(from: $0, $1, table.folded(key))
          }
        if let hash, let diff = share.last?.id {
          try Tombstones.note(key, of: table.name, hash, by: diff, on: connection)
        }
        return
      }
      guard let diff = try RowClocks.deletion(of: key, in: clock, on: connection) else { return }
      try noteSent(
        key, in: clock, deletedBy: diff, to: share.number, at: share.sequence, hash: whole, on: connection)
    }
  }

  /// True if one of some shares has sent the deletion of a row with these values, in a table with a clock.
  ///
  /// - Parameters:
  ///   - shares: The shares, with the numbers of the last diffs that do not count.
  ///   - key: The row's key in the format of changesets.
  ///   - hash: The hash of its values.
  /// - Throws: `SQLiteError`.
  static func haveSent(
    _ shares: [(share: ShareEntry, through: Int64)], deletionOf key: [UInt8], _ hash: UInt64, of table: KeyedTable,
    on connection: borrowing SQLiteConnection
  ) throws -> Bool {
    guard !shares.isEmpty, let clock = try RowClocks.number(of: table.local, on: connection) else { return false }
    for (share, through) in shares
    where try sentDeletion(key, in: clock, to: share.number, beyond: through, hash: hash, on: connection) != nil {
      return true
    }
    return false
  }

  /// Records the deletions that a snapshot tells by leaving out rows that the share had sent before.
  ///
  /// - Throws: `SQLiteError`.
  package static func noteLeftOut(
    by share: ShareEntry, _ schema: SchemaReader, on connection: borrowing SQLiteConnection
  ) throws {
    guard let diff = share.last?.id else { return }
    for former in try BaselineEntry.former(of: share.number, on: connection) {
      guard let local = try schema.table(named: former.table), let table = KeyedTable(local, local) else { continue }
      let sent = try connection.rows(of: "SELECT name FROM pragma_table_info(?1, 'main')", former.name.text) {
        ASCIIName.folded($0.text(at: 0) ?? "")
      }
      let isSent = table.columns.map { sent.contains(ASCIIName.folded($0)) }
      guard table.keyPlaces.allSatisfy({ isSent[$0] }) else { continue }
      let columns = zip(table.columns, isSent).map { $1 ? "s.\(SQLText.identifier($0))" : "NULL" }
      let isHere = table.local.keySQL.map { "m.\($0) = s.\($0)" }.joined(separator: " AND ")
      let taken = RowNotes(.takenBack, of: former.table, for: share.number)
      try connection.forEachRow(
        of: """
          SELECT \(columns.joined(separator: ", ")) FROM main.\(former.name.quoted) AS s
          WHERE NOT EXISTS (SELECT 1 FROM \(table.sql) AS m WHERE \(isHere))
          """
      ) { row in
        try row.record(of: 0..<columns.count).withRawSpan { bytes in
          var position = 0
          let values = columns.map { _ in ValueSlice(verified: bytes, at: &position) }
          let key = table.key(values, bytes)
          guard try table.hasKey(values) && !taken.contain(key, on: connection) else { return }
          try Tombstones.note(key, of: table.name, table.contentHash(values, bytes), by: diff, on: connection)
        }
      }
    }
  }

  /// Deletes the record of the deletions that a share has sent, before a snapshot begins it again.
  ///
  /// - Parameter isOtherStream: True if the snapshot begins another stream.
  /// - Throws: `SQLiteError`; `JSONError` when the ledger is damaged.
  package static func prepareSnapshot(
    of share: ShareEntry, isOtherStream: Bool, on connection: borrowing SQLiteConnection
  ) throws {
    if isOtherStream { return try restart(share.number, on: connection) }
    try forgetSent(to: share.number, beyond: share.throughAll(on: connection), on: connection)
  }
}

extension SentColumns {
  /// Records which columns of a row a diff sends.
  fileprivate static func note(
    _ change: Change, _ reader: ChangesetReader, ofRow key: [UInt8], in table: KeyedTable, _ share: ShareEntry,
    on connection: borrowing SQLiteConnection
  ) throws {
    if change.operation != .update { try remove(key, of: table.name, in: share.number, on: connection) }
    let columns: [String] =
      switch change.operation {
      case .insert: [allColumns]
      case .update: table.columns.indices.filter { reader.new[$0].isDefined }.map { table.columns[$0] }
      case .delete: []
      }
    try note(columns, ofRow: key, in: table.name, by: share.sequence, of: share.number, on: connection)
  }
}

extension ShareEntry {
  /// The number up to which all recipients have applied the share; 0 if any has never acknowledged it.
  ///
  /// - Parameter bound: Computes the number for a replica from its acknowledgement; nil for the acknowledgement itself.
  /// - Throws: `SQLiteError`; `JSONError` when the ledger is damaged.
  func throughAll(
    on connection: borrowing SQLiteConnection,
    counting bound: ((_ replica: AcknowledgementEntry, _ through: Int64) throws -> Int64)? = nil
  ) throws -> Int64 {
    let replicas = try AcknowledgementEntry.all(of: number, on: connection)
    // All unsigned diffs could be from one person.
    guard try Set(replicas.map(\.sender)).count >= recipients.count else { return 0 }
    var least = sequence
    for replica in replicas {
      let through = try TombstoneAcknowledgements.acknowledged(
        number, by: replica.sender, replica.replica, on: connection)
      least = min(least, try bound?(replica, through) ?? through)
    }
    return least
  }
}

/// Records which deletions other streams have sent, and finds senders whose state may be older than forgotten
/// deletions.
extension InboundShares {
  /// Records the acknowledgements in a diff of a stream.
  func noteProgress(of changes: IncomingChanges) throws {
    guard let place = changes.place else { return }
    for share in try ShareEntry.all(on: connection) {
      let through = changes.claims.acknowledged(share)
      guard through > 0, try share.isRead(by: changes.key.sender, senders, on: connection) != false else { continue }
      let known = try TombstoneAcknowledgements.acknowledged(
        share.number, in: place.stream, from: changes.key.sender, on: connection)
      let now = min(through, share.sequence)
      guard now > known else { continue }
      try TombstoneAcknowledgements.noteAcknowledgement(
        now, of: share.number, in: place.stream, from: changes.key.sender, on: connection)
      try SentColumns.forget(through: share.throughAll(on: connection), of: share.number, on: connection)
      settling.noteProgress(known + 1...now, of: share.number)
    }
  }

  /// Records that a stream has sent the deletion of a row.
  ///
  /// - Parameter diff: The diff that has deleted the row first.
  func noteDeletion(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, by diff: KSUID, _ place: StreamPlace, _ sender: String
  ) throws {
    let key = table.key(row, bytes)
    guard let clock = try RowClocks.number(of: table.local, on: connection) else {
      let hash = table.isWhole(row) ? table.contentHash(row, bytes) : deleted[table.name]?[key]
      guard let hash, try !table.finds(table.lookup, row, bytes, on: connection) else { return }
      return try Tombstones.note(key, of: table.name, hash, by: diff, on: connection)
    }
    try TombstoneAcknowledgements.noteReceived(
      key, in: clock, deletedBy: diff, from: sender, place.stream, on: connection)
    try settling.note(key, in: clock)
  }

  /// True if the sender of a diff may lack deletions that are forgotten here: the sender was silent for long, or has
  /// continued from a backup. The sender has applied the shares since, or the diff would have to wait, but may have
  /// rows whose deletion no share has sent.
  func isReturning(_ changes: IncomingChanges) throws -> Bool {
    guard let place = changes.place, try ForgottenDeletions.exist(on: connection) else { return false }
    if place.replaces != nil { return true }
    guard let replica = changes.claims.replica else { return false }
    let tables = (changes.definitions ?? []).map { TableName($0.name) }
    let sender = changes.key.sender
    for requirement in try ForgottenDeletions.requirements(of: sender, replica, in: tables, on: connection) {
      let known = try AcknowledgementEntry.all(of: requirement.share, on: connection)
        .first { $0.sender == sender && $0.replica == replica }
      guard known != nil else { continue }
      let through = try TombstoneAcknowledgements.acknowledged(requirement.share, by: sender, replica, on: connection)
      if through < requirement.through { return true }
    }
    return try isOtherIncarnation(place, replica, sender)
  }

  /// True if a stream begins and its author has another incarnation than in the last stream.
  private func isOtherIncarnation(_ place: StreamPlace, _ replica: [UInt8], _ sender: String) throws -> Bool {
    guard let incarnation = place.incarnation else { return false }
    return try connection.hasRow(
      cached: """
        SELECT 1 FROM main.buckia_stream AS s JOIN main.buckia_stream_author AS a ON a.sender = s.sender AND a.stream = s.stream
        WHERE s.sender = ?1 AND a.replica = ?2 AND s.incarnation <> ?3
          AND NOT EXISTS (SELECT 1 FROM main.buckia_stream_author AS o WHERE o.sender = ?1 AND o.stream = ?4) LIMIT 1
        """, sender, replica, incarnation, place.stream)
  }
}

extension InboundShares {
  /// True if the row of an INSERT is missing because of a forgotten deletion, as `TableClock` decides.
  func isForgotten(
    _ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, of table: KeyedTable, _ id: KSUID?
  ) throws -> Bool {
    guard change.operation == .insert, table.hasKey(reader.new),
      let diff = origins?.diff(of: change, reader, bytes) ?? id,
      let clock = try RowClocks.number(of: table.local, on: connection),
      let forgotten = try ForgottenDeletions.newest(in: clock, on: connection), diff < forgotten,
      try ForgottenDeletions.hasInserted(diff, in: clock, on: connection),
      try !table.finds(table.lookup, reader.new, bytes, on: connection)
    else { return false }
    // A row that a UNIQUE constraint has refused is not deleted.
    let condition = table.keyPlaces.indices.map { "k\($0) = ?\($0 + 1)" }.joined(separator: " AND ")
    let waiting = "SELECT 1 FROM main.buckia_clock_\(clock)_pending WHERE is_insert AND \(condition)"
    return try !table.finds(waiting, reader.new, bytes, on: connection)
  }
}
