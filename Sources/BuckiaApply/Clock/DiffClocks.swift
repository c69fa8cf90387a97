import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// Finds the clocks of tables for the changes of one diff.
struct DiffClocks {
  private let diff: KSUID
  private let session: ApplySession
  private let unsent: UnsentEdits?
  private let sharing: (any SharingParticipant)?
  private let isAlone: Bool
  private let origins: RowOrigins?
  private let isFromReturning: Bool

  /// - Parameters:
  ///   - diff: The diff.
  ///   - unsent: What was changed here and not been sent; nil where nobody knows.
  ///   - sharing: Knows what the author of the diff was told of by shares; nil where nobody does.
  ///   - isAlone: Whether nobody but the changes writes to the tables, as a trigger might.
  ///   - origins: Which changes come from other diffs; nil for none.
  ///   - isFromReturning: Whether the sender may not know of deletions that are forgotten here.
  init(
    _ diff: KSUID, _ session: ApplySession, unsent: UnsentEdits?, sharing: (any SharingParticipant)? = nil,
    isAlone: Bool, origins: RowOrigins?, isFromReturning: Bool = false
  ) {
    self.sharing = sharing
    self.isFromReturning = isFromReturning
    self.origins = origins
    self.diff = diff
    self.session = session
    self.unsent = unsent
    self.isAlone = isAlone
  }

  /// The clock of a table; nil where it has none.
  ///
  /// - Parameter findsRuns: Whether neighbours are looked for, which needs the rows to be there when they are stamped.
  func clock(for match: TableMatch, _ header: ChangesetTable, findsRuns: Bool = true) throws -> TableClock? {
    guard match.local.module == nil, let number = try RowClocks.number(of: match.local, on: session.connection) else {
      return nil
    }
    let forgotten = isFromReturning ? try ForgottenDeletions.newest(in: number, on: session.connection) : nil
    return try TableClock(
      number, for: match, header, by: diff, origins: origins?.table(TableName(header.name)), forgotten: forgotten,
      isAlone: isAlone, findsRuns: findsRuns, storesUTF16: session.storesUTF16, on: session.connection)
  }

  /// The rows of a table that were changed here and not sent; nil where there are none.
  func exposedRows(of table: TableDefinition, keeping indexes: IndexMaintenance?) -> ExposedRows? {
    let source: (any UnsentRowSource)? =
      unsent?.rows(of: TableName(table.name)) ?? sharing.map { RowsEditedSinceShare(of: table, knownTo: $0) }
    return source.map { ExposedRows($0, keeping: indexes, on: session.connection) }
  }
}

extension ApplySession {
  /// Gives a clock to tables in which the later diff wins. Where what is incoming is taken, that is so for what has been shared.
  ///
  /// - Throws: `ReplicationError` with `noID` where the changes have no id, by which the later one could be told.
  func requireClocks(for matches: [TableName: TableMatch], _ policies: ConflictPolicies, of changes: IncomingChanges)
    throws
  {
    let isShared = changes.place != nil && changes.key.id != nil
    guard keepsLedger, policies.usesLatest || isShared && policies.usesTakeIncoming else { return }
    // In some order that is the same each time, and so are the numbers of the clocks.
    for (name, match) in matches.sorted(by: { $0.key.text < $1.key.text })
    where match.local.module == nil
      && (policies.usesLatest(for: name) || isShared && policies.policy(for: name) == .takeIncoming)
    {
      guard changes.key.id != nil else {
        throw ReplicationError(
          .noID,
          "under the policy \"latest\" the ids of diffs decide, and these changes have none; name the file <KSUID>.changeset, "
            + "or apply it under another policy", table: name.text)
      }
      try RowClocks.require(for: match.local, on: connection)
    }
  }
}
