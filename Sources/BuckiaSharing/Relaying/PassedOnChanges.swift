import BuckiaApply
import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// Which changes of a share only pass on what others have done, or repeat what was shared with others: those keep the ids of the diffs that
/// have said it first.
///
/// A value counts as passed on as long as it is what the diff of another has made it here, or what a diff of this database has said. What
/// was edited here since, and what is not known any more, has the id of the share. A row that others have brought is as old as any where it is
/// not known which diff has: that it is shared here for the first time does not make it later.
package struct PassedOnChanges {
  /// Where the changes come from, in their order.
  package private(set) var runs: [OriginRun] = []
  /// Whether any of them comes from another diff.
  package private(set) var exist = false

  /// How many runs there are at most: beyond, changes count as made here.
  private static let runLimit = 100_000

  /// Looks for them.
  ///
  /// - Parameters:
  ///   - changeset: The changes that are sent.
  ///   - definitions: Their tables.
  ///   - withdrawals: Which of them withdraw rows.
  ///   - id: The diff.
  ///   - naming: What others call the rows: it says which of them others have brought.
  ///   - goesBack: Whether the diff may reach those that the changes come from. Then it also says of tables without a clock where
  ///     changes come from, as far as that is known.
  ///   - schema: The schema of the database.
  /// - Throws: `SQLiteError`, `ChangesetError`, `ByteStreamError`; `LedgerError` when the ledger is damaged.
  package init(
    in changeset: TemporaryBuffer, of definitions: [TableDefinition],
    withdrawals: [(count: Int64, isWithdrawal: Bool)], by id: KSUID, _ naming: [RowNaming.Run], goesBack: Bool,
    _ schema: SchemaReader, on connection: borrowing SQLiteConnection
  ) throws {
    let tables = try KeyedTables(definitions, schema)
    let hasShared = try ShareEntry.all(on: connection).contains { $0.sequence > 0 }
    var sources: [TableName: Source] = [:]
    for definition in definitions {
      guard let table = tables[TableName(definition.name)] else { continue }
      let stamps = try StampedRows(of: table.local, includingOwn: hasShared, on: connection)
      if try stamps != nil || goesBack && RowClocks.number(of: table.local, on: connection) == nil {
        sources[table.name] = Source(table, stamps)
      }
    }
    guard !sources.isEmpty || !naming.isEmpty else { return }
    let known =
      sources.isEmpty
      ? nil : (try TakenChanges(of: sources.values.map(\.table.local), on: connection), try SentValues(on: connection))
    var withdrawn = WithdrawalRuns(withdrawals)
    var naming = NameRuns(naming)
    try Changesets.forEachChange(of: changeset) { change, reader, bytes in
      var run = OriginRun(count: 1, diff: id, isWithdrawal: withdrawn.next())
      let called = naming.next()
      if !run.isWithdrawal, runs.count < Self.runLimit, let table = reader.table.flatMap({ tables.table(of: $0) }),
        let found = try known.flatMap({ taken, sent in
          try sources[table.name]?.origin(of: change, reader, bytes, taken, sent, id)
        }) ?? Self.unknownOrigin(of: change, reader, table, called, id),
        try !isKept(change, reader, bytes, table, on: connection)
      {
        run = found
        exist = true
      }
      if let last = runs.indices.last, runs[last].diff == run.diff, runs[last].columns == run.columns,
        runs[last].isWithdrawal == run.isWithdrawal
      {
        runs[last].count += 1
      } else {
        runs.append(run)
      }
    }
  }

  /// Where an INSERT comes from whose row others have brought, by a diff that is not known.
  private static func unknownOrigin(
    of change: Change, _ reader: ChangesetReader, _ table: KeyedTable, _ called: [NameRuns.Name], _ id: KSUID
  ) -> OriginRun? {
    guard change.operation == .insert, !called.isEmpty, called.allSatisfy({ $0.copies == nil }) else { return nil }
    if called.contains(where: { $0.version == nil }) { return OriginRun(count: 1, diff: .minimum) }
    let edited = reader.new.indices.filter { !table.keyPlaces.contains($0) }.map { ($0, id) }
    return OriginRun(count: 1, diff: .minimum, columns: Dictionary(uniqueKeysWithValues: edited))
  }

  /// True if a row is sent again that another's diff was to delete: its INSERT is later than that.
  private func isKept(
    _ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, _ table: KeyedTable,
    on connection: borrowing SQLiteConnection
  ) throws -> Bool {
    guard change.operation == .insert, table.hasKey(reader.new) else { return false }
    return try KeptRows.contain(table.key(reader.new, bytes), of: table.name, on: connection)
  }

  /// A table, and what is known of where its rows come from.
  private struct Source {
    let table: KeyedTable
    private let stamps: StampedRows?
    private let columns: [String]

    init(_ table: KeyedTable, _ stamps: StampedRows?) {
      self.table = table
      self.stamps = stamps
      columns = table.columns.map { ASCIIName.folded($0) }
    }

    /// Where a change comes from; nil where all of it was done here.
    func origin(
      of change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, _ taken: TakenChanges, _ sent: SentValues,
      _ id: KSUID
    ) throws -> OriginRun? {
      let row = change.operation == .insert ? reader.new : reader.old
      guard table.hasKey(row) else { return nil }
      let key = table.key(row, bytes)
      let stamped = try stamps?.row(key, isHere: change.operation != .delete)
      let known = stamps == nil ? taken.diff(ofRow: key, in: table.name, isHere: change.operation != .delete) : nil
      guard change.operation != .delete else {
        return (known ?? stamped?.deletion?.diff).map { OriginRun(count: 1, diff: $0) }
      }
      // The key of an UPDATE is among its old values only.
      let keyed = zip(reader.new, row).map { $0.isDefined ? $0 : $1 }
      var columns: [Int: KSUID] = [:]
      let places = reader.new.indices.filter { reader.new[$0].isDefined && !table.keyPlaces.contains($0) }
      for place in places {
        columns[place] = try setter(of: place, in: keyed, bytes, key, stamped, taken, sent)
      }
      if change.operation == .insert {
        guard let insertion = known ?? stamped?.insertion?.diff else { return nil }
        for place in places {
          let setter = columns[place] ?? id
          columns[place] = setter > insertion ? setter : nil
        }
        return OriginRun(count: 1, diff: insertion, columns: columns)
      }
      guard let first = columns.values.first else { return nil }
      return columns.count == places.count && columns.values.allSatisfy { $0 == first }
        ? OriginRun(count: 1, diff: first) : OriginRun(count: 1, diff: id, columns: columns)
    }

    /// The diff that has set a column of a row to what it is; nil where that is not known, or was done here.
    private func setter(
      of place: Int, in row: [ValueSlice], _ bytes: RawSpan, _ key: [UInt8], _ stamped: StampedRows.Row?,
      _ taken: TakenChanges, _ sent: SentValues
    ) throws -> KSUID? {
      let column = columns[place]
      let diff = taken.diff(of: column, row[place], bytes, inRow: key, of: table.name)
      guard stamps != nil else { return diff }
      guard let setter = stamped?.columns[column] else { return nil }
      let isAsSet = try setter.isOwn ? sent.hasSent(setter.diff, place, of: row, bytes, key, table) : diff != nil
      return isAsSet ? setter.diff : nil
    }
  }
}
