import BuckiaApply
import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// Changes that are nobody's diff: what they meet is no conflict, and nothing is recorded.
struct PlainChanges {
  private let changes: TemporaryBuffer
  private let definitions: [TableDefinition]
  private let summary: ChangesetSummary

  /// - Parameters:
  ///   - changes: A changeset.
  ///   - definitions: Its tables, in its order.
  init(_ changes: TemporaryBuffer, _ definitions: [TableDefinition]) throws {
    self.init(changes, definitions, try ChangesetSummary.of(changes))
  }

  init(_ changes: TemporaryBuffer, _ definitions: [TableDefinition], _ summary: ChangesetSummary) {
    self.changes = changes
    self.definitions = definitions
    self.summary = summary
  }

  /// Applies the changes to a copy of the database without a ledger. A row gives way to another one of theirs with the same UNIQUE
  /// value.
  ///
  /// - Throws: A fault with a refusal when they do not fit the copy; `SQLiteError`. It is unchanged then.
  func apply(to copy: borrowing SQLiteConnection, conflicts: ConflictPolicies) throws {
    var settings = ApplySettings(policies: conflicts, schema: .exact, recordsConflicts: false, time: 0)
    settings.keepsLedger = false
    settings.makesRoom = true
    settings.indexPolicy = .keep
    let incoming = IncomingChanges(
      key: LedgerKey(sender: "", id: nil, digest: [], isRaw: true), file: "", definitions: definitions,
      changeset: changes, feed: ChangesetFeed(summary))
    let connection = SQLiteConnection(sharing: copy)
    let session = settings.session(on: connection)
    let transaction = try SQLiteTransaction(on: connection)
    try session.whileReady {
      let plan = try Receiver.plan(incoming, on: connection, settings: settings, session: session)
      _ = try plan.apply(in: transaction)
    }
    try transaction.commit()
  }
}
