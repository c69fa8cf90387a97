import BuckiaApply
import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The unsent edits of rows that were sent to the author of a diff by a share with the author alone.
///
/// Under the policy `latest` an unsent edit is later than all that arrives, because the share that sends it will be. A
/// value counts as an unsent edit only if that is certain: it differs from the value that was sent to the author, no
/// received diff has set it, and no other share has sent it. Values that no known diff has set count, too, if
/// ``CrossingShares`` says so.
final class EditsSinceShare {
  private let tables: KeyedTables
  private let history: EditHistory
  private let connection: SQLiteConnection
  private let changes: IncomingChanges
  private let senders: KnownSenders
  private let crossing: CrossingShares?
  private lazy var shares = Result {
    try changes.sharesWithAuthor(senders, on: connection).map {
      (entry: $0, baseline: try PeerBaseline(of: $0, on: connection))
    }
  }
  /// The edited columns that were found, and the diffs that had set them before.
  private var found: [TableName: [[UInt8]: [String: KSUID?]]] = [:]

  /// Creates an object that reads nothing before it is first asked for an edit.
  ///
  /// - Parameters:
  ///   - changes: The diff.
  ///   - tables: Its tables.
  ///   - history: The known origins of values.
  ///   - senders: The keys that have replaced others.
  ///   - crossing: The columns that the author has changed without having applied this database's later diff; nil for
  ///     none.
  init(
    _ changes: IncomingChanges, _ tables: KeyedTables, _ history: EditHistory, _ senders: KnownSenders,
    _ crossing: CrossingShares?, on connection: borrowing SQLiteConnection
  ) {
    self.changes = changes
    self.tables = tables
    self.senders = senders
    self.history = history
    self.crossing = crossing
    self.connection = SQLiteConnection(sharing: connection)
  }

  /// The values of the edited columns of a row that were sent to the author, in the format of changesets, by column
  /// name in lower case.
  ///
  /// - Parameter key: The values of the row's key, in the format of changesets.
  /// - Throws: `SQLiteError`, `ChangesetError`; `LedgerError` when the ledger is damaged.
  func valuesBefore(ofRow key: [UInt8], in name: TableName) throws -> [String: [UInt8]] {
    guard let table = tables[name],
      let row = try key.withRawSpan({ try LocalRow(table.row(withKey: $0), $0, of: table, on: connection) })
    else { return [:] }
    return try row.values.withRawSpan { bytes in
      var places = Set(table.columns.indices).subtracting(table.keyPlaces)
      var sent: [[[UInt8]?]] = []
      for (share, baseline) in try shares.get() where try share.isForOne() {
        guard let values = try baseline.values(row.slices, bytes, of: table) else { continue }
        sent.append(values)
        places.formIntersection(baseline.placesSentAsTheyAre(of: table))
      }
      var before: [String: [UInt8]] = [:]
      func note(_ column: String, sentAs value: [UInt8], setBy setter: KSUID?) {
        before[column] = value
        found[name, default: [:]][key, default: [:]][column] = .some(setter)
      }
      for place in sent.isEmpty ? [] : places {
        let value = row.encoded(place)
        guard let known = sent[0][place], sent.allSatisfy({ $0[place] != nil && $0[place] != value }),
          try history.isEdited(place, of: row.slices, bytes, key, table)
        else { continue }
        let column = ASCIIName.folded(table.columns[place])
        note(column, sentAs: known, setBy: try history.setter(of: column, inRow: key, of: table))
      }
      for place in crossing?.places(ofRow: key, in: name) ?? [] where !table.keyPlaces.contains(place) {
        let column = ASCIIName.folded(table.columns[place])
        guard try history.setter(of: column, inRow: key, of: table) == nil else { continue }
        note(column, sentAs: row.encoded(place), setBy: nil)
      }
      return before
    }
  }

  /// The diffs that have sent a row of this database to the author, by column name in lower case.
  ///
  /// - Returns: Nothing for a row that the author did not get from here, or that others have brought.
  /// - Throws: `SQLiteError`; `LedgerError` when the ledger is damaged.
  func sendingDiffs(
    ofRow key: [UInt8], in name: TableName, _ provenance: Provenance
  ) throws -> [String: KSUID] {
    guard let table = tables[name],
      let row = try key.withRawSpan({ try LocalRow(table.row(withKey: $0), $0, of: table, on: connection) })
    else { return [:] }
    return try row.values.withRawSpan { bytes in
      let brought = try provenance.found(row.slices, bytes, of: table)
      guard brought.isEmpty || brought.contains(where: { $0.row.isOwn }) else { return [:] }
      var diffs: [String: KSUID] = [:]
      for (share, baseline) in try shares.get() where try baseline.has(row.slices, bytes, of: table) {
        let key = table.key(row.slices, bytes)
        let sequences = try SentColumns.sequences(ofRow: key, in: name, of: share.number, on: connection)
        for (column, sequence) in sequences {
          guard let diff = try OutboxEntry.diff(sequence, of: share.number, on: connection) else { continue }
          diffs[column] = max(diffs[column] ?? diff, diff)
        }
      }
      return diffs
    }
  }

  /// The places of columns that a change has set and that keep the value of an edit, after the diff has been applied.
  func coveredPlaces(
    of change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, of table: KeyedTable
  ) throws -> Set<Int> {
    guard change.operation != .delete, let rows = found[table.name] else { return [] }
    let row = change.operation == .insert ? reader.new : reader.old
    guard table.hasKey(row) else { return [] }
    let key = table.key(row, bytes)
    guard let columns = rows[key] else { return [] }
    var places: Set<Int> = []
    for place in table.columns.indices where reader.new[place].isDefined && !table.keyPlaces.contains(place) {
      let column = ASCIIName.folded(table.columns[place])
      // A change that is earlier than the column's known origin has no effect.
      guard let before = columns[column], let setter = try history.setter(of: column, inRow: key, of: table),
        setter != before
      else { continue }
      history.note(setter, of: column, inRow: key, of: table.name)
      places.insert(place)
    }
    return places
  }
}

/// The origins of values, as far as the clocks, the ledger and the baselines of shares have them. They are read when
/// first needed, and kept while diffs are applied.
final class EditHistory {
  private let connection: SQLiteConnection
  private var rowVersions: [TableName: ClockedRows] = [:]
  private var taken: [TableName: TakenChanges] = [:]
  private lazy var sent = Result { try SentValues(on: connection) }
  /// The diffs that have set columns which still have the value of an edit.
  private var covered: [TableName: [[UInt8]: [String: KSUID]]] = [:]

  init(on connection: borrowing SQLiteConnection) { self.connection = SQLiteConnection(sharing: connection) }

  /// Records that a diff has set a column that keeps the value of an edit.
  func note(_ setter: KSUID, of column: String, inRow key: [UInt8], of table: TableName) {
    covered[table, default: [:]][key, default: [:]][column] = setter
  }

  /// The diff that has set a column last; nil if the clock has none.
  ///
  /// - Throws: `SQLiteError`.
  func setter(of column: String, inRow key: [UInt8], of table: KeyedTable) throws -> KSUID? {
    try versioned(key, of: table)?.columns[column]?.diff
  }

  /// True if a column of a row has been edited here since a diff has set it.
  ///
  /// - Parameter row: The local row.
  /// - Throws: `SQLiteError`, `ChangesetError`; `LedgerError` when the ledger is damaged.
  func isEdited(
    _ place: Int, of row: [ValueSlice], _ bytes: RawSpan, _ key: [UInt8], _ table: KeyedTable
  ) throws -> Bool {
    let column = ASCIIName.folded(table.columns[place])
    guard let setter = try versioned(key, of: table)?.columns[column] else {
      return try takenChanges(of: table).diff(of: column, row[place], bytes, inRow: key, of: table.name) == nil
    }
    if covered[table.name]?[key]?[column] == setter.diff { return true }
    return try setter.isOwn
      ? sent.get().hasSentOther(setter.diff, place, of: row, bytes, key, table)
      : takenChanges(of: table).isOther(than: setter.diff, column, row[place], bytes, inRow: key, of: table.name)
  }

  private func versioned(_ key: [UInt8], of table: KeyedTable) throws -> ClockedRows.Row? {
    try rowVersions(of: table)?.row(key, isHere: true)
  }

  private func rowVersions(of table: KeyedTable) throws -> ClockedRows? {
    let rows = try rowVersions[table.name] ?? ClockedRows(of: table.local, includingOwn: true, on: connection)
    rowVersions[table.name] = rows
    return rows
  }

  private func takenChanges(of table: KeyedTable) throws -> TakenChanges {
    if let known = taken[table.name] { return known }
    let clocked: Set<TableName> = try rowVersions(of: table) == nil ? [] : [table.name]
    let changes = try TakenChanges(of: [table.local], clocked: clocked, on: connection)
    taken[table.name] = changes
    return changes
  }
}
