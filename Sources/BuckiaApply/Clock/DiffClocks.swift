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
  ///   stamped.
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
      try RowClocks.require(for: match.local, on: connection)
    }
  }
}

/// A run of neighbouring changes of a diff with the same origins. The sender may only have relayed them.
package struct OriginRun: Equatable, Sendable {
  /// The number of changes, in the order of the changeset.
  package var count: Int64
  /// The diff that first made the changes.
  package let diff: KSUID
  /// The diffs that have set single columns, by place in the changeset.
  package let columns: [Int: KSUID]
  /// True if the changes withdraw rows instead of deleting them.
  package let isWithdrawal: Bool

  /// Creates a run.
  package init(count: Int64, diff: KSUID, columns: [Int: KSUID] = [:], isWithdrawal: Bool = false) {
    self.count = count
    self.diff = diff
    self.columns = columns
    self.isWithdrawal = isWithdrawal
  }

  /// The diff that has set a column.
  ///
  /// An INSERT sets all of its columns, and none of them is older than the INSERT.
  package func diff(of column: Int, _ operation: ChangeOperation) -> KSUID {
    guard let own = columns[column] else { return diff }
    return operation == .insert ? max(own, diff) : own
  }

  /// True if another run has the same origins.
  func comesFromSame(as other: OriginRun) -> Bool {
    diff == other.diff && columns == other.columns && isWithdrawal == other.isWithdrawal
  }

  /// True unless the changes are edits of the diff itself.
  package func isNews(in id: KSUID) -> Bool { diff != id || !columns.isEmpty || isWithdrawal }

  /// All diffs that the run names.
  package var diffs: Set<KSUID> { Set(columns.values).union([diff]) }
}

/// Iterates over the origins of changes, change by change.
package struct OriginRuns {
  private let runs: [OriginRun]
  private var index = 0
  private var left: Int64

  /// Begins with the first change.
  package init(_ runs: [OriginRun]) {
    self.runs = runs
    left = runs.first?.count ?? 0
  }

  /// The origin of the next change; nil if none is given.
  package mutating func next() -> OriginRun? {
    while left == 0 {
      index += 1
      guard index < runs.count else { return nil }
      left = runs[index].count
    }
    guard index < runs.count else { return nil }
    left -= 1
    return runs[index]
  }
}

/// The origins of a diff's changes by the keys of their rows, because applying changes the order and may leave some
/// out.
package final class RowOrigins {
  /// The origins of one table's changes.
  final class Table {
    /// The origin of the first change, and usually of all others.
    private let usual: OriginRun
    /// The changes with other origins.
    private var others: [[UInt8]: OriginRun] = [:]
    /// The earliest diff among the origins.
    private(set) var earliest: KSUID
    private let id: KSUID

    fileprivate init(_ run: OriginRun, in id: KSUID) {
      usual = run
      self.id = id
      earliest = id
    }

    /// - Parameter key: The values of the row's key.
    fileprivate func add(_ run: OriginRun, _ key: @autoclosure () -> [UInt8]) {
      if !run.comesFromSame(as: usual) { others[key()] = run }
      earliest = run.columns.values.reduce(min(earliest, run.diff)) { min($0, $1) }
    }

    /// True if any change comes from another diff.
    fileprivate var isNews: Bool { !others.isEmpty || usual.isNews(in: id) }

    /// The origin of a row's change; nil for the diff itself.
    func run(_ key: [UInt8]) -> OriginRun? {
      let run = others.isEmpty ? usual : others[key] ?? usual
      return run.isNews(in: id) ? run : nil
    }
  }

  private var tables: [TableName: Table] = [:]

  /// Reads the keys of the changes.
  ///
  /// - Parameters:
  ///   - runs: The origins of the changes, in their order.
  ///   - changeset: The changes.
  ///   - id: The diff.
  /// - Throws: `ChangesetError` when the changes are damaged, `ByteStreamError` when they cannot be read.
  package init(
    _ runs: [OriginRun], of changeset: TemporaryBuffer, _ id: KSUID, knowing summary: ChangesetSummary? = nil
  ) throws {
    var runs = OriginRuns(runs)
    var last: (header: ChangesetTable, table: Table)?
    try Changesets.forEachChange(of: changeset, knowing: summary) { change, reader, bytes in
      guard let run = runs.next(), let header = reader.table else { return }
      if last?.header != header {
        let name = TableName(header.name)
        let table = tables[name] ?? Table(run, in: id)
        tables[name] = table
        last = (header, table)
      }
      last?.table.add(run, Self.key(change, reader, bytes, header))
    }
  }

  /// The diff that first made a change; nil if no origin is given.
  package func diff(of change: Change, _ reader: ChangesetReader, _ bytes: RawSpan) -> KSUID? {
    guard let header = reader.table, let table = tables[TableName(header.name)] else { return nil }
    return table.run(Self.key(change, reader, bytes, header))?.diff
  }

  private static func key(
    _ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, _ header: ChangesetTable
  ) -> [UInt8] {
    let row = change.operation == .insert ? reader.new : reader.old
    return row.indices.filter { header.isKey($0) }.flatMap { bytes.array(row[$0].encoded) }
  }

  /// The origins of a table's changes; nil if all are the diff's own.
  func table(_ name: TableName) -> Table? { tables[name].flatMap { $0.isNews ? $0 : nil } }
}

/// Records a diff that was made from this database in the clocks.
extension RowClocks {
  /// Stamps the rows of a diff in the clocks of its tables.
  ///
  /// - Parameters:
  ///   - changes: The changes.
  ///   - columns: The names of the columns that each table has in them.
  ///   - diff: The diff's id.
  ///   - origins: The origins of relayed changes, in their order; empty if all are the diff's own.
  ///   - connection: The database.
  /// - Throws: `SQLiteError`, `ChangesetError`; nothing has been stamped then.
  package static func stampOwn(
    _ changes: TemporaryBuffer, columns: [TableName: [String]], by diff: KSUID, _ origins: [OriginRun] = [],
    on connection: borrowing SQLiteConnection
  ) throws {
    guard try !tables(on: connection).isEmpty else { return }
    let transaction = try SQLiteTransaction(on: connection)
    let schema = try SchemaReader(connection)
    let storesUTF16 = try connection.text("PRAGMA main.encoding") != "UTF-8"
    let summary = try ChangesetSummary.of(changes)
    let sections = TableSections(summary, of: changes)
    let known = try origins.isEmpty ? nil : RowOrigins(origins, of: changes, diff)
    // In the order of the changes, which gives the stamps the same numbers each time.
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
        number, for: match, header, by: diff, origins: known?.table(name), isOwn: true, isAlone: false,
        storesUTF16: storesUTF16, on: connection)
      try sections.forEachChange(of: name) { try clock.stamp($0, $1) }
      try clock.flush()
    }
    try transaction.commit()
  }
}
