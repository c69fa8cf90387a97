import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Finds the clocks of tables for the changes of one diff.
struct DiffClocks {
  let diff: KSUID
  let session: ApplySession
  /// What was changed here and not been sent; nil where nobody knows.
  let unsent: UnsentEdits?
  /// Knows what the author of the diff was told of by shares; nil where nobody does.
  var sharing: (any SharingParticipant)?
  /// True if nobody but the changes writes to the tables, as a trigger might.
  let isAlone: Bool
  /// Which changes come from other diffs; nil for none.
  let origins: RowOrigins?
  /// True if the sender may not know of deletions that are forgotten here.
  var isFromReturning = false

  /// The clock of a table; nil where it has none.
  ///
  /// - Parameter findsRuns: True if neighbours are looked for, which needs the rows to be there when they are stamped.
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
    let rows = unsent?.rows(of: TableName(table.name))
    guard rows != nil || sharing != nil else { return nil }
    return ExposedRows(of: table, unsent: rows, knownTo: sharing, keeping: indexes, on: session.connection)
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

/// Neighbouring changes of a diff that come from the same diffs: its sender may only have passed them on.
package struct OriginRun: Equatable, Sendable {
  /// How many changes there are, in the order of the changeset.
  package var count: Int64
  /// The diff that has made them first.
  package let diff: KSUID
  /// The diffs that have set single columns, by the column's place in the changeset.
  package let columns: [Int: KSUID]
  /// True if they withdraw rows that nobody has deleted.
  package let isWithdrawal: Bool

  /// Makes a run.
  package init(count: Int64, diff: KSUID, columns: [Int: KSUID] = [:], isWithdrawal: Bool = false) {
    self.count = count
    self.diff = diff
    self.columns = columns
    self.isWithdrawal = isWithdrawal
  }

  /// The diff that has set a column.
  ///
  /// An INSERT sets all of its columns, so none of them is older than it.
  package func diff(of column: Int, _ operation: ChangeOperation) -> KSUID {
    guard let own = columns[column] else { return diff }
    return operation == .insert ? max(own, diff) : own
  }

  /// True if changes come from the same diffs as others.
  func comesFromSame(as other: OriginRun) -> Bool {
    diff == other.diff && columns == other.columns && isWithdrawal == other.isWithdrawal
  }

  /// True if it says anything but that the diff itself has made the changes.
  package func isNews(in id: KSUID) -> Bool { diff != id || !columns.isEmpty || isWithdrawal }

  /// All diffs that it names.
  package var diffs: Set<KSUID> { Set(columns.values).union([diff]) }
}

/// Goes through the runs of a diff, change by change.
package struct OriginRuns {
  private let runs: [OriginRun]
  private var index = 0
  private var left: Int64

  /// Begins with the first change.
  package init(_ runs: [OriginRun]) {
    self.runs = runs
    left = runs.first?.count ?? 0
  }

  /// What is said of the next change; nil for nothing.
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

/// Which changes of a diff come from other diffs, by the keys of their rows: applying takes them in another order, and may leave some
/// out.
package final class RowOrigins {
  /// Those of one table.
  final class Table {
    /// Where the first change comes from, and mostly all others do.
    private let usual: OriginRun
    /// The changes that come from elsewhere.
    private var others: [[UInt8]: OriginRun] = [:]
    /// The earliest diff of all.
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

    /// Where the change of a row comes from; nil for the diff itself.
    func run(_ key: [UInt8]) -> OriginRun? {
      let run = others.isEmpty ? usual : others[key] ?? usual
      return run.isNews(in: id) ? run : nil
    }
  }

  private var tables: [TableName: Table] = [:]

  /// Looks the keys up.
  ///
  /// - Parameters:
  ///   - runs: What is said of the changes, in their order.
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

  /// The diff that has made a change first; nil where nothing is said of it.
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

  /// Those of a table; nil where there are none.
  func table(_ name: TableName) -> Table? { tables[name].flatMap { $0.isNews ? $0 : nil } }
}

/// A diff that was made from this database: its rows are as the diff says, and the clocks note that it was this one
/// which has said so.
extension RowClocks {
  /// Notes what a diff says in the clocks of its tables, if there are any.
  ///
  /// - Parameters:
  ///   - changes: The changes.
  ///   - columns: The names of the columns that each table has in them.
  ///   - diff: The diff's id.
  ///   - origins: Where the changes come from that it only passes on, in their order; empty where all are its own.
  ///   - connection: The database.
  /// - Throws: `SQLiteError`, `ChangesetError`; then nothing has been noted.
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
    // In the order of the changes, so that stamps have the same numbers each time.
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
