import BuckiaApply
import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The origins of the changes of a share: changes that relay the diffs of others, or repeat what was sent before, keep
/// the ids of the diffs that made them.
///
/// A value is relayed if it is still the one that a received diff set here, or that a diff of this database has sent.
/// Values that were edited here since, and values of unknown origin, get the id of the share. A row of unknown origin
/// that others have sent counts as the oldest: it does not become later by being shared from here for the first time.
package struct ChangeOrigins {
  /// The origins of the changes, in the order of the changeset.
  package private(set) var runs: [OriginRun] = []
  /// True if any change comes from another diff.
  package private(set) var exist = false

  /// The most runs. Changes after that count as made here.
  private static let runLimit = 100_000

  /// Determines the origins.
  ///
  /// - Parameters:
  ///   - changeset: The changes that are sent.
  ///   - definitions: Their tables.
  ///   - withdrawals: The changes that withdraw rows.
  ///   - id: The diff.
  ///   - naming: The keys of the rows at other replicas, which tell the rows that others have sent.
  ///   - share: The number of the share. If its recipients have other shares, too, origins are given for tables without a clock as well.
  ///   - goesBack: True if the diff may reach the authors of the changes. Then origins are given for these tables, too, as far as they are
  ///     known.
  ///   - schema: The schema of the database.
  /// - Throws: `SQLiteError`, `ChangesetError`, `ByteStreamError`; `LedgerError` when the ledger is damaged.
  package init(
    in changeset: TemporaryBuffer, of definitions: [TableDefinition],
    withdrawals: [(count: Int64, isWithdrawal: Bool)], by id: KSUID, _ naming: [RowNaming.Run],
    in share: Int64, goesBack: Bool, _ schema: SchemaReader, on connection: borrowing SQLiteConnection
  ) throws {
    let tables = try KeyedTables(definitions, schema)
    let sent = try SentValues(on: connection)
    let others = try sent.shares(withRecipientsOf: share)
    var sources: [TableName: Source] = [:]
    for definition in definitions {
      guard let table = tables[TableName(definition.name)] else { continue }
      let rowVersions = try ClockedRows(of: table.local, includingOwn: sent.hasShared, on: connection)
      if try rowVersions != nil
        || (goesBack || !others.isEmpty) && RowClocks.number(of: table.local, on: connection) == nil
      {
        sources[table.name] = Source(table, rowVersions)
      }
    }
    guard !sources.isEmpty || !naming.isEmpty else { return }
    let counted = sources.values.filter { goesBack || $0.hasClock }
    let taken = try TakenChanges(
      of: counted.map(\.table.local), clocked: Set(counted.filter(\.hasClock).map(\.table.name)), on: connection)
    var withdrawn = WithdrawalRuns(withdrawals)
    var naming = OriginKeyRuns(naming)
    var respelled = RespelledRows()
    // The INSERT of a row with another spelling of its key may come before the DELETE.
    if sources.values.contains(where: { $0.hasClock && !$0.table.comparesKeysByBytes }) {
      let connection = SQLiteConnection(sharing: connection)
      try Changesets.forEachChange(of: changeset) { change, reader, bytes in
        guard change.operation == .delete, let table = reader.table.flatMap({ tables.table(of: $0) }),
          sources[table.name]?.hasClock == true
        else { return }
        _ = try respelled.look(at: change, of: reader.old, bytes, table, on: connection)
      }
    }
    try Changesets.forEachChange(of: changeset) { change, reader, bytes in
      var run = OriginRun(count: 1, diff: id, isWithdrawal: withdrawn.next())
      let called = naming.next()
      if !run.isWithdrawal, runs.count < Self.runLimit, let table = reader.table.flatMap({ tables.table(of: $0) }) {
        let row = change.operation == .insert ? reader.new : reader.old
        let isRespelled =
          try respelled.look(at: change, of: row, bytes, table, on: connection)
          || called.contains { $0.version != nil }
            && sources[table.name]?.isRespelled(change, row, bytes, taken, sent) == true
        let found =
          try sources[table.name]?.originOfSpelling(insteadOf: change, row, bytes, taken, sent, on: connection)
          ?? sources[table.name]?.origin(of: change, reader, bytes, isRespelled: isRespelled, taken, sent, others, id)
        if let found = found ?? (isRespelled ? nil : Self.unknownOrigin(of: change, reader, table, called, id)),
          try !isKept(change, reader, bytes, table, on: connection)
        {
          run = found
          exist = true
        }
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

  /// The origin of an INSERT of a row that others have sent, by an unknown diff.
  private static func unknownOrigin(
    of change: Change, _ reader: ChangesetReader, _ table: KeyedTable, _ called: [OriginKeyRuns.Name], _ id: KSUID
  ) -> OriginRun? {
    guard change.operation == .insert, !called.isEmpty, called.allSatisfy({ $0.copies == nil }) else { return nil }
    if called.contains(where: { $0.version == nil }) { return OriginRun(count: 1, diff: .minimum) }
    let edited = reader.new.indices.filter { !table.keyPlaces.contains($0) }.map { ($0, id) }
    return OriginRun(count: 1, diff: .minimum, columns: Dictionary(uniqueKeysWithValues: edited))
  }

  /// True if the row stayed when a received diff deleted it. Its INSERT is later than that deletion.
  private func isKept(
    _ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, _ table: KeyedTable,
    on connection: borrowing SQLiteConnection
  ) throws -> Bool {
    guard change.operation == .insert, table.hasKey(reader.new) else { return false }
    return try RowNotes(.kept, of: table.name).contain(table.key(reader.new, bytes), on: connection)
  }

  /// A table and the recorded origins of its rows.
  private struct Source {
    let table: KeyedTable
    private let rowVersions: ClockedRows?
    private let columns: [String]
    var hasClock: Bool { rowVersions != nil }

    init(_ table: KeyedTable, _ rowVersions: ClockedRows?) {
      self.table = table
      self.rowVersions = rowVersions
      columns = table.columns.map { ASCIIName.folded($0) }
    }

    /// The origin of a change; nil if it was made here.
    ///
    /// - Parameter isRespelled: True for the INSERT of a row that the recipients have under another spelling of its key.
    func origin(
      of change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, isRespelled: Bool, _ taken: TakenChanges,
      _ sent: SentValues, _ others: [ShareEntry], _ id: KSUID
    ) throws -> OriginRun? {
      let row = change.operation == .insert ? reader.new : reader.old
      guard table.hasKey(row) else { return nil }
      let key = table.key(row, bytes)
      let versioned = try rowVersions?.row(key, isHere: change.operation != .delete)
      let known = rowVersions == nil ? taken.diff(ofRow: key, in: table.name, isHere: change.operation != .delete) : nil
      guard change.operation != .delete else {
        return (known ?? versioned?.deletion?.diff).map { OriginRun(count: 1, diff: $0) }
      }
      // The key of an UPDATE is among its old values only.
      let keyed = zip(reader.new, row).map { $0.isDefined ? $0 : $1 }
      var columns: [Int: KSUID] = [:]
      let places = reader.new.indices.filter { reader.new[$0].isDefined && !table.keyPlaces.contains($0) }
      for place in places {
        columns[place] = try setter(of: place, in: keyed, bytes, key, versioned, taken, sent)
      }
      if change.operation == .insert {
        guard let insertion = known ?? versioned?.insertion?.diff else {
          guard rowVersions == nil, let first = try sent.first(of: others, toSend: row, bytes, key, table) else {
            return nil
          }
          for place in places { columns[place] = first.columns[place] ?? id }
          return OriginRun(count: 1, diff: first.insertion, columns: columns.filter { $0.value > first.insertion })
        }
        if isRespelled, let setter = versioned?.insertion {
          // The recipients lack the spelling unless the diff that has inserted the row has set it.
          guard try isKeyPresent(setBy: setter, in: row, bytes, key, taken, sent) else { return nil }
        }
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

    /// True for the INSERT of a received row whose key was spelled otherwise here.
    func isRespelled(
      _ change: Change, _ row: [ValueSlice], _ bytes: RawSpan, _ taken: TakenChanges, _ sent: SentValues
    ) throws -> Bool {
      guard change.operation == .insert, !table.comparesKeysByBytes, table.hasKey(row) else { return false }
      let key = table.key(row, bytes)
      guard let rowVersions else { return taken.diff(ofRow: key, in: table.name, isHere: true) == nil }
      return try rowVersions.row(key, isHere: true).insertion.map {
        try !isKeyPresent(setBy: $0, in: row, bytes, key, taken, sent)
      } ?? false
    }

    /// The origin of the DELETE of a row that is here under another spelling of its key: that of the INSERT with that
    /// spelling, as far as it is known. The two must be equally late.
    func originOfSpelling(
      insteadOf change: Change, _ row: [ValueSlice], _ bytes: RawSpan, _ taken: TakenChanges, _ sent: SentValues,
      on connection: borrowing SQLiteConnection
    ) throws -> OriginRun? {
      guard change.operation == .delete, !table.comparesKeysByBytes, table.hasKey(row), let rowVersions,
        let here = try LocalRow(row, bytes, of: table, on: connection)
      else { return nil }
      let key = here.key(of: table)
      guard let insertion = try rowVersions.row(key, isHere: true).insertion,
        try here.values.withRawSpan({ try isKeyPresent(setBy: insertion, in: here.slices, $0, key, taken, sent) })
      else { return nil }
      return OriginRun(count: 1, diff: insertion.diff)
    }

    /// The diff that has set a column to its present value; nil if that is unknown, or was done here.
    private func setter(
      of place: Int, in row: [ValueSlice], _ bytes: RawSpan, _ key: [UInt8], _ versioned: ClockedRows.Row?,
      _ taken: TakenChanges, _ sent: SentValues
    ) throws -> KSUID? {
      guard rowVersions != nil else {
        return taken.diff(of: columns[place], row[place], bytes, inRow: key, of: table.name)
      }
      guard let setter = versioned?.columns[columns[place]],
        try isPresent(place, setBy: setter, in: row, bytes, key, taken, sent)
      else { return nil }
      return setter.diff
    }

    /// True if the key is still spelled as a diff has set it.
    private func isKeyPresent(
      setBy setter: ClockedRows.Setter, in row: [ValueSlice], _ bytes: RawSpan, _ key: [UInt8], _ taken: TakenChanges,
      _ sent: SentValues
    ) throws -> Bool {
      try table.keyPlaces.allSatisfy { try isPresent($0, setBy: setter, in: row, bytes, key, taken, sent) }
    }

    /// True if a column still has the value that a diff has set.
    private func isPresent(
      _ place: Int, setBy setter: ClockedRows.Setter, in row: [ValueSlice], _ bytes: RawSpan, _ key: [UInt8],
      _ taken: TakenChanges, _ sent: SentValues
    ) throws -> Bool {
      try setter.isOwn
        ? sent.hasSent(setter.diff, place, of: row, bytes, key, table)
        : taken.diff(of: columns[place], row[place], bytes, inRow: key, of: table.name) != nil
    }
  }
}

/// The values that shares have sent, as far as their baselines have them. A row that is shared with several people one
/// after the other keeps its origin, instead of becoming later each time.
final class SentValues {
  private let connection: SQLiteConnection
  private let shares: [Int64: ShareEntry]
  private var baselines: [Int64: PeerBaseline] = [:]
  private var sharesOfDiffs: [KSUID: Int64?] = [:]
  /// The row that was looked up last: usually one share has sent most columns of a row.
  private var last: (key: [UInt8], table: TableName, share: Int64, values: [[UInt8]?]?)?

  /// - Throws: `SQLiteError`.
  init(on connection: borrowing SQLiteConnection) throws {
    self.connection = SQLiteConnection(sharing: connection)
    shares = Dictionary(try ShareEntry.all(on: connection).map { ($0.number, $0) }) { first, _ in first }
  }

  /// True if any share has sent a diff.
  var hasShared: Bool { shares.values.contains { $0.sequence > 0 } }

  /// The other shares that all recipients of a share have, too.
  func shares(withRecipientsOf share: Int64) throws -> [ShareEntry] {
    let recipients = try shares[share]?.recipients ?? []
    guard !recipients.isEmpty else { return [] }
    return try shares.values.filter {
      try $0.number != share && $0.sequence > 0 && Set($0.recipients).isSuperset(of: recipients)
    }
  }

  /// The diffs that have sent a row and its present values first; nil if none of some shares has sent the row.
  ///
  /// - Parameter shares: Shares that the recipients have. Where the table has no clock, these know what they have sent.
  /// - Returns: The diff that has sent the row, and those of values by their places; without values that were edited since.
  func first(
    of shares: [ShareEntry], toSend row: [ValueSlice], _ bytes: RawSpan, _ key: [UInt8], _ table: KeyedTable
  ) throws -> (insertion: KSUID, columns: [Int: KSUID])? {
    var first: (insertion: KSUID, columns: [Int: KSUID])?
    for share in shares {
      guard let values = try values(in: share, row, bytes, key, table) else { continue }
      let sequences = try SentColumns.sequences(ofRow: key, in: table.name, of: share.number, on: connection)
      func diff(_ sequence: Int64?) throws -> KSUID? {
        try sequence.flatMap { try OutboxEntry.diff($0, of: share.number, on: connection) }
      }
      guard let insertion = try diff(sequences[SentColumns.allColumns]), insertion < first?.insertion ?? .maximum
      else { continue }
      var columns: [Int: KSUID] = [:]
      for place in row.indices where values[place] == bytes.array(row[place].encoded) {
        columns[place] = try diff(sequences[ASCIIName.folded(table.columns[place])]) ?? insertion
      }
      first = (insertion, columns)
    }
    return first
  }

  /// True if a diff is known to have sent the value: the share has sent no other value to the same recipients since.
  ///
  /// - Parameters:
  ///   - place: The column of the row.
  ///   - key: The row's key.
  func hasSent(
    _ diff: KSUID, _ place: Int, of row: [ValueSlice], _ bytes: RawSpan, _ key: [UInt8], _ table: KeyedTable
  ) throws -> Bool {
    try values(sentBy: diff, row, bytes, key, table)?[place] == bytes.array(row[place].encoded)
  }

  /// True if a diff has sent another value than the row has.
  ///
  /// - Parameters: As those of ``hasSent(_:_:of:_:_:_:)``.
  func hasSentOther(
    _ diff: KSUID, _ place: Int, of row: [ValueSlice], _ bytes: RawSpan, _ key: [UInt8], _ table: KeyedTable
  ) throws -> Bool {
    guard let value = try values(sentBy: diff, row, bytes, key, table)?[place], let number = try share(of: diff),
      baselines[number]?.placesSentAsTheyAre(of: table).contains(place) == true
    else { return false }
    return value != bytes.array(row[place].encoded)
  }

  /// The values of a row in the baseline of a diff's share; nil if there is none, or it is unknown.
  private func values(
    sentBy diff: KSUID, _ row: [ValueSlice], _ bytes: RawSpan, _ key: [UInt8], _ table: KeyedTable
  ) throws -> [[UInt8]?]? {
    guard let number = try share(of: diff), let share = shares[number] else { return nil }
    return try values(in: share, row, bytes, key, table)
  }

  /// The values of a row in the baseline of a share; nil if it has not sent the row.
  private func values(
    in share: ShareEntry, _ row: [ValueSlice], _ bytes: RawSpan, _ key: [UInt8], _ table: KeyedTable
  ) throws -> [[UInt8]?]? {
    let number = share.number
    if let last, last.key == key, last.table == table.name, last.share == number { return last.values }
    let baseline = try baselines[number] ?? PeerBaseline(of: share, isBeforeSnapshot: true, on: connection)
    baselines[number] = baseline
    let values = try baseline.values(row, bytes, of: table)
    last = (key, table.name, number, values)
    return values
  }

  private func share(of diff: KSUID) throws -> Int64? {
    if let known = sharesOfDiffs[diff] { return known }
    let share = try OutboxEntry.share(of: diff, on: connection)
    sharesOfDiffs[diff] = .some(share)
    return share
  }
}

/// The values that received diffs have set here, as far as the ledger has them. Values that differ were edited since.
final class TakenChanges {
  private struct Row {
    /// The diff that has inserted or deleted the row; nil if unknown.
    var diff: KSUID?
    /// True if that diff has deleted the row.
    var isDeletion = false
    /// The hashes of values, and the diffs that have set them, by columns in lower case.
    var values: [String: (hash: UInt64, diff: KSUID)] = [:]
  }

  private var rows: [TableName: [[UInt8]: Row]] = [:]
  private var seeds: [String: StreamRowHash.Seed] = [:]

  /// Reads the recorded effects of diffs.
  ///
  /// - Parameters:
  ///   - tables: The tables that count.
  ///   - clocked: The names of those with a clock. In the others, recorded changes of this database have no origin.
  /// - Throws: `SQLiteError`, `ChangesetError`; `LedgerError` when the ledger is damaged.
  init(of tables: [TableDefinition], clocked: Set<TableName> = [], on connection: borrowing SQLiteConnection) throws {
    guard !tables.isEmpty else { return }
    let tables = Dictionary(tables.map { (TableName($0.name), $0) }) { first, _ in first }
    var reader = EffectReader()
    for entry in try AppliedEffects.entries(on: connection) {
      let parts = try reader.parts(of: entry.number, on: connection)
      if parts.isEmpty, entry.hasWritten {
        // It is unknown which rows have changed since this diff.
        rows = [:]
      }
      for part in parts {
        let columns = Dictionary(part.tables.map { (TableName($0.name), $0.columns) }) { first, _ in first }
        try Changesets.forEachChange(of: TemporaryBuffer(part.changes)) { change, reader, bytes in
          guard let header = reader.table else { return }
          let name = TableName(header.name)
          guard let table = tables[name], let columns = columns[name], columns.count == header.columnCount else {
            return
          }
          try note(
            change, reader, bytes, table, name, columns.map { ASCIIName.folded($0) },
            by: entry.isRecorded && !clocked.contains(name) ? nil : entry.diff)
        }
      }
    }
  }

  private func note(
    _ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, _ table: TableDefinition, _ name: TableName,
    _ columns: [String], by diff: KSUID?
  ) throws {
    let old = change.operation == .insert ? reader.new : reader.old
    guard let key = Self.key(old, bytes, table, columns) else { return }
    var row = change.operation == .update ? rows[name]?[key] ?? Row() : Row()
    if change.operation != .update { (row.diff, row.isDeletion) = (diff, change.operation == .delete) }
    if change.operation != .delete {
      for (place, column) in columns.enumerated() where reader.new[place].isDefined {
        row.values[column] = diff.map { (hash(reader.new[place], bytes, column), $0) }
      }
    }
    rows[name, default: [:]][key] = row
  }

  private static func key(
    _ row: [ValueSlice], _ bytes: RawSpan, _ table: TableDefinition, _ columns: [String]
  ) -> [UInt8]? {
    guard !table.isKeyedByRowID else { return nil }
    var key: [UInt8] = []
    for column in table.primaryKey {
      guard let place = columns.firstIndex(of: ASCIIName.folded(table.columns[column].name)), row[place].isDefined
      else { return nil }
      key += bytes.array(row[place].encoded)
    }
    return key
  }

  private func hash(_ value: ValueSlice, _ bytes: RawSpan, _ column: String) -> UInt64 {
    let seed = seeds[column] ?? StreamRowHash.Seed(of: column)
    seeds[column] = seed
    var hash = StreamRowHash()
    hash.add(value, bytes, seed)
    return hash.value
  }

  /// The diff that has inserted a present row, or deleted a missing one; nil if that was done here, or is unknown.
  func diff(ofRow key: [UInt8], in table: TableName, isHere: Bool) -> KSUID? {
    rows[table]?[key].flatMap { $0.isDeletion == isHere ? nil : $0.diff }
  }

  /// The diff that has set a column to its present value; nil if it was edited here since, or if it is unknown.
  ///
  /// - Parameter value: The present value of the column.
  func diff(of column: String, _ value: ValueSlice, _ bytes: RawSpan, inRow key: [UInt8], of table: TableName) -> KSUID?
  {
    guard let known = rows[table]?[key]?.values[column], known.hash == hash(value, bytes, column) else { return nil }
    return known.diff
  }

  /// True if a diff is known to have set a column to another value than the present one.
  ///
  /// - Parameters: As those of ``diff(of:_:_:inRow:of:)``.
  func isOther(
    than diff: KSUID, _ column: String, _ value: ValueSlice, _ bytes: RawSpan, inRow key: [UInt8],
    of table: TableName
  ) -> Bool {
    guard let known = rows[table]?[key]?.values[column], known.diff == diff else { return false }
    return known.hash != hash(value, bytes, column)
  }
}
