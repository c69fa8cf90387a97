import BuckiaKSUID
import BuckiaLedger
import BuckiaSchemaPlans
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Keeps the clock of one table while the changes of a diff are applied: which diff has last set each column of its
/// rows, inserted or deleted them.
///
/// What has happened to a row is the set of all changes that have arrived, and never depends on their order: see
/// ``RowStamps``.
final class TableClock {
  /// The diff whose changes are applied.
  let diff: KSUID
  private let isOwn: Bool
  private let number: Int64
  /// The names of the columns of the changes.
  private let names: [String]
  /// The names of the columns in the layout of the local table.
  private let layout: [String]
  /// For each column of the changes its position in the clock.
  private let positions: [Int]
  private let isKey: [Bool]
  private let keys: ClockKeys
  private let store: ClockStore
  private let connection: SQLiteConnection
  private var run: StampedRun
  /// Whether no diff that the clock knows is greater: then this one wins everywhere.
  private let isNewest: Bool
  /// The columns of rows that are not here yet.
  private let pending: PendingColumns

  private var known: [Int64: RowStamp] = [:]
  /// The stamp that was used last, for neighbours that are changed alike.
  private var latest: (operation: ChangeOperation, mask: ColumnMask, stamp: RowStamp)?
  /// What the stamps of a row become with the one that was used last.
  private var sums: [StampList: StampList] = [:]

  /// - Parameters:
  ///   - number: The clock's.
  ///   - match: How the columns of the changes meet those of the table.
  ///   - diff: Which diff they are of.
  ///   - isOwn: Whether that was made from this database.
  ///   - findsRuns: Whether neighbours are looked for, which needs the rows to be there when they are stamped.
  ///   - isAlone: Whether nobody else writes to the table meanwhile, as a trigger might.
  init(
    _ number: Int64, for match: TableMatch, _ header: ChangesetTable, by diff: KSUID, isOwn: Bool = false,
    isAlone: Bool = true, findsRuns: Bool = true, storesUTF16: Bool, on connection: borrowing SQLiteConnection
  ) throws {
    self.number = number
    self.diff = diff
    self.isOwn = isOwn
    let local = match.local
    names = match.columnNames
    layout = local.changesetColumns
    isKey = header.keyFlags.map { $0 != 0 }
    positions = try RowClocks.positions(of: names, in: number, on: connection)
    let key = ClockKey(of: local)
    keys = ClockKeys(key, places: match.columns, storesUTF16: storesUTF16)
    store = try ClockStore(number, key, of: local, keys, on: connection)
    self.connection = SQLiteConnection(sharing: connection)
    let isEmpty =
      try isAlone && connection.cachedInteger("SELECT 1 FROM main.\(SQLText.identifier(local.name)) LIMIT 1") == nil
    run = StampedRun(store, keys, ofEmptyTable: isEmpty, isUsed: findsRuns)
    isNewest = try RowClocks.newestID(in: number, on: connection).map { $0 <= diff } ?? true
    pending = try PendingColumns(number, key, keys, on: connection)
  }

  /// Whether no row that comes in may meet anything that its clock knows.
  var isTrivial: Bool { isNewest && !pending.exist }

  /// Whether rows are known by their key: those with NULL in it are not.
  private func isKnown(_ change: DecodedChange) -> Bool { !change.hasNullKey && keys.count > 0 }

  // MARK: Asking

  /// The columns of a change that a later diff has set.
  func laterColumns(of change: DecodedChange, _ bytes: RawSpan) throws -> ColumnMask {
    var later = ColumnMask()
    guard isKnown(change), !isNewest, let stamps = try stamps(of: change, bytes) else { return later }
    for column in positions.indices where change.new(column).isDefined && !isKey[column] {
      if let setter = stamps.setter(of: positions[column]), setter > diff { later.insert(column) }
    }
    return later
  }

  /// Whether a later diff has deleted the row of an INSERT or UPDATE, which is not here.
  func isDeletedLater(_ change: DecodedChange, _ bytes: RawSpan) throws -> Bool {
    guard isKnown(change) else { return false }
    guard !isNewest, let deletion = try stamps(ofMissing: change, bytes)?.deletion else { return false }
    return deletion > diff
  }

  /// Whether a later diff has inserted the row of a DELETE.
  func isInsertedLater(_ change: DecodedChange, _ bytes: RawSpan) throws -> Bool {
    guard isKnown(change) else { return false }
    guard !isNewest, let insertion = try stamps(of: change, bytes)?.insertion else { return false }
    return insertion > diff
  }

  /// The stamps of a row that is here.
  private func stamps(of change: DecodedChange, _ bytes: RawSpan) throws -> RowStamps? {
    try list(of: change, bytes).map { try stamps($0) }
  }

  /// The stamps of a row that is not here.
  private func stamps(ofMissing change: DecodedChange, _ bytes: RawSpan) throws -> RowStamps? {
    if run.mayHold(change, bytes) { try run.flush() }
    return try store.row(change, bytes).map { try stamps($0) }
  }

  private func list(of change: DecodedChange, _ bytes: RawSpan) throws -> StampList? {
    if run.mayHold(change, bytes) { try run.flush() }
    return try store.row(change, bytes) ?? store.run(change, bytes)
  }

  private func stamps(_ list: StampList) throws -> RowStamps {
    RowStamps(
      try list.numbers.compactMap { number in
        if let stamp = known[number] { return stamp }
        let stamp = try RowClocks.stamp(number, on: connection)
        known[number] = stamp
        return stamp
      })
  }

  // MARK: Stamping

  /// Notes that the row of a change has some columns from this diff.
  ///
  /// - Parameters:
  ///   - columns: Those columns.
  ///   - isNew: Whether the row was not here before: what its key was stamped with is no longer true.
  func stamp(_ columns: ColumnMask, of change: DecodedChange, isNew: Bool = false, _ bytes: RawSpan) throws {
    guard isKnown(change), change.operation == .insert || !columns.isEmpty else { return }
    let stamp = try stamp(change.operation, columns)
    if isNew || (!store.hasRows && !store.hasRuns && !run.mayHold(change, bytes)) {
      return try run.add(.one(stamp.number), change, bytes)
    }
    guard let before = try list(of: change, bytes) else { return try run.add(.one(stamp.number), change, bytes) }
    let sum: StampList
    if let found = sums[before] {
      sum = found
    } else {
      var stamps = try stamps(before)
      stamps.add(stamp)
      sum = StampList(stamps.stamps.map(\.number)) ?? .one(stamp.number)
      if sums.count > 4_096 { sums.removeAll() }
      sums[before] = sum
    }
    try run.add(sum, change, bytes)
  }

  /// Notes what a change says, which has been done or will be.
  func stamp(_ change: DecodedChange, _ bytes: RawSpan) throws {
    switch change.operation {
    case .insert: try stamp(all, of: change, isNew: true, bytes)
    case .update: try stamp(change.changed, of: change, bytes)
    case .delete: try stampDeletion(of: change, bytes)
    }
  }

  /// All columns of the changes.
  private var all: ColumnMask {
    var all = ColumnMask()
    for column in positions.indices { all.insert(column) }
    return all
  }

  /// Notes that the row of a DELETE is gone, or was not here.
  func stampDeletion(of change: DecodedChange, _ bytes: RawSpan) throws {
    guard isKnown(change) else { return }
    let stamp = try stamp(.delete, ColumnMask())
    if let deletion = try stamps(ofMissing: change, bytes)?.deletion, deletion > diff { return }
    try store.write(.one(stamp.number), change, bytes)
  }

  // MARK: Columns of rows that are not here

  /// Keeps the columns of an UPDATE whose row is not here.
  func keep(_ change: DecodedChange, _ bytes: RawSpan) throws {
    guard isKnown(change), change.operation == .update else { return }
    let stamp = try stamp(.update, change.changed)
    var values = ChangesetWriter()
    for position in stamp.columns.positions {
      let column = positions.firstIndex(of: position)
      values.append(column.map { change.new($0) } ?? .undefined, of: bytes)
    }
    try pending.keep(values.bytes, by: stamp.number, for: change, bytes)
  }

  /// Keeps the columns of a row that diffs have set which are later than the DELETE in hand: whoever inserts it again
  /// did not see them.
  func keepLaterColumns(of row: CurrentRow, _ change: DecodedChange, _ bytes: RawSpan) throws {
    guard !isNewest, isKnown(change), let stamps = try stamps(of: change, bytes) else { return }
    let places = try placesOfColumns()
    for stamp in stamps.stamps where stamp.diff > diff && stamp.operation == .update {
      var values = ChangesetWriter()
      for position in stamp.columns.positions {
        // What another diff has set since is that one's.
        guard stamps.setter(of: position) == stamp.diff, let place = places[position] else {
          values.appendUndefined()
          continue
        }
        values.append(row.value(at: place))
      }
      try pending.keep(values.bytes, by: stamp.number, for: change, bytes)
    }
  }

  /// The values that wait for the row of an INSERT, which is here now, by place in the local layout.
  func pendingValues(for change: DecodedChange, _ bytes: RawSpan) throws -> [Int: ChangesetValue] {
    guard isKnown(change) else { return [:] }
    let items = try pending.items(for: change, bytes)
    guard !items.isEmpty else { return [:] }
    let stamps = try stamps(of: change, bytes) ?? RowStamps()
    let places = try placesOfColumns()
    var found: [Int: (diff: KSUID, value: ChangesetValue)] = [:]
    for item in items {
      guard let stamp = try RowClocks.stamp(item.stamp, on: connection) else { continue }
      for (position, value) in zip(stamp.columns.positions, item.values) {
        guard let value, let place = places[position], stamps.setter(of: position).map({ $0 < stamp.diff }) ?? true,
          found[place].map({ $0.diff < stamp.diff }) ?? true
        else { continue }
        found[place] = (stamp.diff, value)
      }
    }
    return found.mapValues(\.value)
  }

  /// Notes that the values which waited for the row of an INSERT are in it.
  func takePending(for change: DecodedChange, _ bytes: RawSpan) throws {
    guard isKnown(change) else { return }
    let items = try pending.items(for: change, bytes)
    guard !items.isEmpty else { return }
    var stamps = try stamps(of: change, bytes) ?? RowStamps()
    for item in items {
      if let stamp = try RowClocks.stamp(item.stamp, on: connection) { stamps.add(stamp) }
    }
    try run.flush()
    if let list = StampList(stamps.stamps.map(\.number)) { try store.write(list, change, bytes) }
    try pending.remove(for: change, bytes)
  }

  /// The place in the local layout of each position of the clock.
  private func placesOfColumns() throws -> [Int: Int] {
    var places: [Int: Int] = [:]
    for (position, name) in try RowClocks.columns(of: number, on: connection).enumerated() {
      if let place = layout.firstIndex(where: { ASCIIName.matches($0, name) }) { places[position] = place }
    }
    return places
  }

  // MARK: Stamps

  private func stamp(_ operation: ChangeOperation, _ mask: ColumnMask) throws -> RowStamp {
    if let latest, latest.operation == operation, latest.mask == mask { return latest.stamp }
    var columns = ColumnSet()
    for column in positions.indices where mask.contains(column) && !isKey[column] { columns.insert(positions[column]) }
    let stamp = try RowClocks.stamp(in: number, by: diff, operation, columns, isOwn: isOwn, on: connection)
    known[stamp.number] = stamp
    latest = (operation, mask, stamp)
    sums.removeAll(keepingCapacity: true)
    return stamp
  }

  /// The key of the row of a change; nil where nothing but its content tells it apart.
  func key(of change: DecodedChange, _ bytes: RawSpan) -> ClockKeyRecord? {
    guard isKnown(change) else { return nil }
    var writer = ChangesetWriter()
    keys.record(of: change, bytes, into: &writer)
    return ClockKeyRecord(bytes: writer.bytes)
  }

  /// Writes what has been gathered: to be called at the end, and before a savepoint.
  func flush() throws { try run.flush() }

  /// Forgets what has been gathered since the last ``flush()``: a savepoint has been rolled back.
  func rewind() {
    run.forget()
    known.removeAll()
    latest = nil
    sums.removeAll()
  }
}
