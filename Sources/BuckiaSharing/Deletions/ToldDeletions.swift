import BuckiaApply
import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// The deletions of which a diff of a share tells its recipients.
package enum ToldDeletions {
  /// Notes them, once the clocks know the diff: for those who have to be told, and so that the rows stay deleted.
  ///
  /// - Parameters:
  ///   - changeset: The changes that are sent.
  ///   - definitions: Their tables.
  ///   - withdrawals: Which of the changes withdraw rows that nobody has deleted, in their order.
  ///   - share: The share, with the number of the diff.
  ///   - schema: The schema of the database.
  /// - Throws: `SQLiteError`, `ChangesetError`, `ByteStreamError`.
  package static func note(
    in changeset: TemporaryBuffer, of definitions: [TableDefinition],
    withdrawals: [(count: Int64, isWithdrawal: Bool)], _ share: ShareEntry, _ schema: SchemaReader,
    on connection: borrowing SQLiteConnection
  ) throws {
    let connection = SQLiteConnection(sharing: connection)
    let tables = try KeyedTables(definitions, schema)
    var clocks: [TableName: Int64?] = [:]
    var runs = WithdrawalRuns(withdrawals)
    try Changesets.forEachChange(of: changeset) { change, reader, bytes in
      let isWithdrawal = runs.next()
      guard change.operation == .delete, !isWithdrawal, let table = reader.table.flatMap({ tables.table(of: $0) }),
        table.hasKey(reader.old)
      else { return }
      let known = try clocks[table.name] ?? RowClocks.number(of: table.local, on: connection)
      clocks[table.name] = .some(known)
      let key = table.key(reader.old, bytes)
      guard let clock = known else {
        if table.isWhole(reader.old) {
          try Tombstones.note(key, of: table.name, table.contentHash(reader.old, bytes), on: connection)
        }
        return
      }
      guard let diff = try RowClocks.deletion(of: key, in: clock, on: connection) else { return }
      try DeletionNotices.noteTold(
        key, in: clock, deletedBy: diff, to: share.number, at: share.sequence, on: connection)
    }
  }

  /// Forgets what is known of the deletions that a share has told of, where a snapshot is about to begin it anew.
  ///
  /// - Parameter isOtherStream: Whether that is another stream than before.
  /// - Throws: `SQLiteError`; `JSONError` when the ledger is damaged.
  package static func prepareSnapshot(
    of share: ShareEntry, isOtherStream: Bool, on connection: borrowing SQLiteConnection
  ) throws {
    if isOtherStream {
      try DeletionNotices.restart(share.number, on: connection)
    } else {
      let known = try RecipientProgress.through(share, on: connection)
      try DeletionNotices.forgetTold(to: share.number, beyond: known, on: connection)
    }
  }
}

/// How far the recipients of a share have applied it.
enum RecipientProgress {
  /// The number up to which all of them have; 0 where somebody has never answered.
  ///
  /// - Parameter bound: What is said for a replica, given how far it has come; nil for just that.
  /// - Throws: `SQLiteError`; `JSONError` when the ledger is damaged.
  static func through(
    _ share: ShareEntry, on connection: borrowing SQLiteConnection,
    counting bound: ((_ replica: AcknowledgementEntry, _ through: Int64) throws -> Int64)? = nil
  ) throws -> Int64 {
    let replicas = try AcknowledgementEntry.all(of: share.number, on: connection)
    // Unsigned diffs may all be of one person.
    guard try Set(replicas.map(\.sender)).count >= share.recipients.count else { return 0 }
    var least = share.sequence
    for replica in replicas {
      let through = try DeletionNotices.acknowledged(
        share.number, by: replica.sender, replica.replica, on: connection)
      least = min(least, try bound?(replica, through) ?? through)
    }
    return least
  }
}
