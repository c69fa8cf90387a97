import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Finds the clocks of tables for the changes of one diff.
struct DiffClocks {
  let diff: KSUID
  let session: ApplySession
  /// The unsent edits; nil if they are unknown.
  let unsent: UnsentEdits?
  /// Tracks the rows that shares have sent to the author of the diff; nil if nothing is shared.
  var sharing: (any SharingParticipant)?
  /// True if nothing else writes to the tables, such as a trigger.
  let isAlone: Bool
  /// The changes that come from other diffs; nil for none.
  let origins: RowOrigins?
  /// True if the sender may lack deletions that are forgotten here.
  var isFromReturning = false

  /// The clock of a table; nil if it has none.
  ///
  /// - Parameter findsRuns: True to search for runs of neighbours, which requires that the rows exist when they are
  ///   versioned.
  func clock(for match: TableMatch, _ header: ChangesetTable, findsRuns: Bool = true) throws -> TableClock? {
    guard match.local.module == nil, let number = try RowClocks.number(of: match.local, on: session.connection) else {
      return nil
    }
    let forgotten = isFromReturning ? try ForgottenDeletions.newest(in: number, on: session.connection) : nil
    return try TableClock(
      number, for: match, header, by: diff, origins: origins?.table(TableName(header.name)), forgotten: forgotten,
      isAlone: isAlone, findsRuns: findsRuns, storesUTF16: session.storesUTF16, on: session.connection)
  }

  /// The unsent edits of a table; nil if there are none.
  func exposedRows(of table: TableDefinition, keeping indexes: IndexMaintenance?) -> ExposedRows? {
    let rows = unsent?.rows(of: TableName(table.name))
    guard rows != nil || sharing != nil else { return nil }
    return ExposedRows(of: table, unsent: rows, knownTo: sharing, keeping: indexes, on: session.connection)
  }
}

extension ApplySession {
  /// Creates the clocks of tables with the policy `latest`, and for shares also of tables with the policy
  /// `take-incoming`.
  ///
  /// - Throws: `ReplicationError` with `noID` if the changes have no id by which to compare them.
  func requireClocks(for matches: [TableName: TableMatch], _ policies: ConflictPolicies, of changes: IncomingChanges)
    throws
  {
    let isShared = changes.place != nil && changes.key.id != nil
    guard keepsLedger, policies.usesLatest || isShared && policies.usesTakeIncoming else { return }
    // Sorted, which gives the clocks the same numbers each time.
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
      try RowClocks.begin(for: match.local, on: connection)
    }
  }
}

/// Records a diff that was made from this database in the clocks.
extension RowClocks {
  /// Row versions the rows of a diff in the clocks of its tables.
  ///
  /// - Parameters:
  ///   - changes: The changes.
  ///   - columns: The names of the columns that each table has in them.
  ///   - diff: The diff's id.
  ///   - origins: The origins of relayed changes, in their order; empty if all are the diff's own.
  ///   - isRecorded: True for recorded changes that are not sent yet. The diffs that send them state when they were made.
  ///   - connection: The database.
  /// - Throws: `SQLiteError`, `ChangesetError`; nothing has been versioned then.
  package static func recordOwnVersions(
    _ changes: TemporaryBuffer, columns: [TableName: [String]], by diff: KSUID, _ origins: [OriginRun] = [],
    isRecorded: Bool = false, on connection: borrowing SQLiteConnection
  ) throws {
    guard try !tables(on: connection).isEmpty else { return }
    let transaction = try SQLiteTransaction(on: connection)
    let schema = try SchemaReader(connection)
    let storesUTF16 = try connection.text("PRAGMA main.encoding") != "UTF-8"
    let summary = try ChangesetSummary.of(changes)
    let sections = TableSections(summary, of: changes)
    let known = try origins.isEmpty ? nil : RowOrigins(origins, of: changes, diff)
    // In the order of the changes, which gives the row versions the same numbers each time.
    var seen: Set<TableName> = []
    for name in summary.tables.map({ TableName($0.table.name) }) where seen.insert(name).inserted {
      guard let columns = columns[name], let header = sections.table(named: name),
        let local = try schema.table(named: name)
      else { continue }
      let layout = local.changesetColumns
      let places = columns.compactMap { column in layout.firstIndex { ASCIIName.matches($0, column) } }
      guard places.count == header.columnCount, local.module == nil,
        let number = try RowClocks.number(of: local, on: connection)
      else { continue }
      let match = TableMatch(local, columns: places)
      let clock = try TableClock(
        number, for: match, header, by: diff, origins: known?.table(name), isOwn: !isRecorded, isAlone: false,
        storesUTF16: storesUTF16, on: connection)
      try sections.forEachChange(of: name) { try clock.rowVersion($0, $1) }
      try clock.flush()
    }
    try transaction.commit()
  }
}
