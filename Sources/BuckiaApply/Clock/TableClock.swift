import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// Maintains the clock of one table while a diff is applied: which diff has last set each column of its rows, inserted
/// or deleted them.
///
/// The state of a row depends on the set of changes that have arrived, and never on their order: see ``RowStamps``.
final class TableClock {
  /// The diff whose changes are applied.
  let diff: KSUID
  private let isOwn: Bool
  let number: Int64
  /// The names of the columns of the changes.
  private let names: [String]
  /// The names of the columns in the layout of the local table.
  private let layout: [String]
  /// The position in the clock of each column of the changes.
  private let positions: [Int]
  private let isKey: [Bool]
  private let keys: ClockKeys
  let store: ClockStore
  let connection: SQLiteConnection
  private var run: StampedRun
  /// The origins of changes from other diffs; nil if there are none.
  private let origins: RowOrigins.Table?
  /// The greatest diff whose deletions are forgotten here, if the sender may lack them; otherwise nil.
  private let forgotten: KSUID?
  /// True if no diff in the clock is later than the origins of the changes, which then win everywhere.
  var isNewest: Bool
  /// The columns of missing rows.
  let pending: PendingColumns

  private var known: [Int64: RowStamp] = [:]
  private var knownPlaces: [Int: Int]?
  /// The stamp that was used last, for neighbouring rows with the same changed columns.
  private var latest: (diff: KSUID, operation: ChangeOperation, mask: ColumnMask, stamp: RowStamp)?
  /// Cached results of adding the last stamp to the stamps of a row.
  private var sums: [StampList: StampList] = [:]

  /// - Parameters:
  ///   - number: The number of the clock.
  ///   - match: The mapping between the columns of the changes and those of the table.
  ///   - diff: The diff.
  ///   - origins: The origins of changes from other diffs; nil for none.
  ///   - forgotten: The greatest diff whose deletions are forgotten here and that the sender may lack; nil for none.
  ///   - isOwn: True if the diff was made from this database.
  ///   - findsRuns: True to search for runs of neighbours, which requires that the rows exist when they are stamped.
  ///   - isAlone: True if nothing else writes to the table meanwhile, such as a trigger.
  init(
    _ number: Int64, for match: TableMatch, _ header: ChangesetTable, by diff: KSUID, origins: RowOrigins.Table? = nil,
    forgotten: KSUID? = nil, isOwn: Bool = false, isAlone: Bool = true, findsRuns: Bool = true, storesUTF16: Bool,
    on connection: borrowing SQLiteConnection
  ) throws {
    self.number = number
    self.diff = diff
    self.origins = origins
    self.forgotten = forgotten
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
    let earliest = origins?.earliest ?? diff
    // Echoes and repeated changes must be found, because they are not applied again.
    isNewest =
      try RowClocks.newestID(in: number, on: connection).map { origins == nil ? $0 <= diff : $0 < earliest } ?? true
    pending = try PendingColumns(number, key, on: connection)
  }

  /// The columns of the changes outside the key, with their positions in the clock.
  var valueColumns: [(position: Int, name: String)] {
    positions.indices.filter { !isKey[$0] }.map { (positions[$0], names[$0]) }
  }

  /// True if no incoming row can meet an entry of the clock.
  var isTrivial: Bool { isNewest && !pending.exist }

  /// True if the row of a change has an entry: rows with NULL in the key have none.
  private func isKnown(_ change: DecodedChange) -> Bool { !change.hasNullKey && keys.count > 0 }

  // MARK: Asking

  /// The origin of a change; nil for the present diff.
  private func origin(of change: DecodedChange, _ bytes: RawSpan) -> OriginRun? {
    guard let origins else { return nil }
    var key: [UInt8] = []
    for column in isKey.indices where isKey[column] { key += bytes.array(change.row(column).encoded) }
    return origins.run(key)
  }

  /// True if a column of a change need not be set, because a later diff or the origin of the change itself has set it.
  private func isSettled(_ column: Int, of change: DecodedChange, _ origin: OriginRun?, by stamps: RowStamps) -> Bool {
    guard let setter = stamps.setter(of: positions[column]) else { return false }
    let own = origin?.diff(of: column, change.operation) ?? diff
    return setter > own || setter == own && own != diff
  }

  /// The columns of a change that a later diff has set, or that were applied before.
  func laterColumns(of change: DecodedChange, _ bytes: RawSpan) throws -> ColumnMask {
    var later = ColumnMask()
    guard isKnown(change), !isNewest, let stamps = try stamps(of: change, bytes) else { return later }
    let origin = origin(of: change, bytes)
    for column in positions.indices where change.new(column).isDefined && !isKey[column] {
      if isSettled(column, of: change, origin, by: stamps) { later.insert(column) }
    }
    return later
  }

  /// True if a change was applied before, from another file. It then has no effect, whatever has become of the row
  /// since. For an INSERT or UPDATE this is only known if the row exists.
  func hasComeBefore(_ change: DecodedChange, _ bytes: RawSpan) throws -> Bool {
    guard origins != nil, isKnown(change), !isNewest, let origin = origin(of: change, bytes),
      !origin.isWithdrawal, let stamps = try stamps(of: change, bytes)
    else { return false }
    switch change.operation {
    case .delete: return origin.diff != diff && stamps.deletion == origin.diff
    case .insert: guard origin.diff != diff, stamps.insertion == origin.diff else { return false }
    case .update: break
    }
    for column in positions.indices where change.new(column).isDefined && !isKey[column] {
      let own = origin.diff(of: column, change.operation)
      guard own != diff, stamps.setter(of: positions[column]) == own else { return false }
    }
    return true
  }

  /// True if a later diff has deleted the missing row of an INSERT or UPDATE.
  func isDeletedLater(_ change: DecodedChange, _ bytes: RawSpan) throws -> Bool {
    guard isKnown(change) else { return false }
    guard !isNewest else { return false }
    guard let deletion = try stamps(ofMissing: change, bytes)?.deletion else { return try isForgotten(change, bytes) }
    guard let origin = origin(of: change, bytes) else { return deletion > diff }
    if change.operation == .insert { return deletion > origin.diff }
    // Columns later than the deletion are kept until the row exists again.
    return positions.indices.allSatisfy {
      !change.changed.contains($0) || deletion > origin.diff(of: $0, change.operation)
    }
  }

  /// True if the row of an INSERT is missing because of a forgotten deletion: its diff's other rows were here.
  private func isForgotten(_ change: DecodedChange, _ bytes: RawSpan) throws -> Bool {
    guard let forgotten, change.operation == .insert else { return false }
    let diff = origin(of: change, bytes)?.diff ?? diff
    guard diff < forgotten, try ForgottenDeletions.hasInserted(diff, in: number, on: connection) else { return false }
    guard pending.includeInserts, let key = key(of: change, bytes) else { return true }
    return try !pending.items(for: key).contains { $0.isOfInsert }
  }

  /// True if a later diff has inserted the row of a DELETE.
  func isInsertedLater(_ change: DecodedChange, _ bytes: RawSpan) throws -> Bool {
    guard isKnown(change) else { return false }
    guard !isNewest, let insertion = try stamps(of: change, bytes)?.insertion else { return false }
    return insertion > origin(of: change, bytes)?.diff ?? diff
  }

  /// The stamps of an existing row.
  private func stamps(of change: DecodedChange, _ bytes: RawSpan) throws -> RowStamps? {
    try list(of: change, bytes).map { try stamps($0) }
  }

  /// The stamps of a missing row.
  private func stamps(ofMissing change: DecodedChange, _ bytes: RawSpan) throws -> RowStamps? {
    if run.mayHold(change, bytes) { try run.flush() }
    return try store.row(change, bytes).map { try stamps($0) }
  }

  /// The stamps of the row with a key.
  func list(of key: ClockKeyRecord) throws -> StampList? {
    try run.flush()
    return try store.row(key) ?? store.run(key)
  }

  private func list(of change: DecodedChange, _ bytes: RawSpan) throws -> StampList? {
    if run.mayHold(change, bytes) { try run.flush() }
    return try store.row(change, bytes) ?? store.run(change, bytes)
  }

  func stamps(_ list: StampList) throws -> RowStamps {
    RowStamps(
      try list.numbers.compactMap { number in
        if let stamp = known[number] { return stamp }
        let stamp = try RowClocks.stamp(number, on: connection)
        known[number] = stamp
        return stamp
      })
  }

  // MARK: Stamping

  /// Stamps columns of a changed row with this diff.
  ///
  /// - Parameters:
  ///   - columns: Those columns.
  ///   - isNew: True if the row did not exist before. Earlier stamps of its key no longer apply.
  func stamp(_ columns: ColumnMask, of change: DecodedChange, isNew: Bool = false, _ bytes: RawSpan) throws {
    guard isKnown(change), change.operation == .insert || !columns.isEmpty else { return }
    if let origin = origin(of: change, bytes) {
      return try stamp(columns, of: change, from: origin, isNew: isNew, bytes)
    }
    let stamp = try stamp(change.operation, columns, by: diff)
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

  /// Stamps columns of a changed row with the origins of the change.
  private func stamp(
    _ columns: ColumnMask, of change: DecodedChange, from origin: OriginRun, isNew: Bool, _ bytes: RawSpan
  ) throws {
    let before = try isNew ? nil : list(of: change, bytes)
    var stamps = try before.map { try self.stamps($0) } ?? RowStamps()
    for part in parts(of: columns, of: change, from: origin) where !isOwn || part.diff == diff {
      stamps.add(try stamp(part.operation, part.columns, by: part.diff))
    }
    guard let list = StampList(stamps.stamps.map(\.number)), list != before else { return }
    try run.add(list, change, bytes)
  }

  /// The columns that each origin of a change has set.
  private func parts(
    of columns: ColumnMask, of change: DecodedChange, from origin: OriginRun
  ) -> [(diff: KSUID, operation: ChangeOperation, columns: ColumnMask)] {
    var masks: [KSUID: ColumnMask] = [:]
    if change.operation == .insert { masks[origin.diff] = ColumnMask() }
    for column in positions.indices where columns.contains(column) && !isKey[column] {
      masks[origin.diff(of: column, change.operation), default: ColumnMask()].insert(column)
    }
    return masks.sorted { $0.key < $1.key }.map { diff, columns in
      (diff, change.operation == .insert && diff != origin.diff ? .update : change.operation, columns)
    }
  }

  /// Stamps a change that was applied or will be.
  func stamp(_ change: DecodedChange, _ bytes: RawSpan) throws {
    switch change.operation {
    case .insert:
      // Relayed changes are stamped already.
      try stamp(all, of: change, isNew: !isOwn || origin(of: change, bytes) == nil, bytes)
      try dropEarlier(than: change, bytes)
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

  /// Stamps the deletion of a row, existing or not.
  func stampDeletion(of change: DecodedChange, _ bytes: RawSpan) throws {
    guard isKnown(change) else { return }
    let origin = origin(of: change, bytes)
    if origin?.isWithdrawal == true { return try forget(change, bytes) }
    let diff = origin?.diff ?? diff
    let stamp = try stamp(.delete, ColumnMask(), by: diff)
    if let deletion = try stamps(ofMissing: change, bytes)?.deletion, deletion > diff { return }
    try store.write(.one(stamp.number), change, bytes)
    try dropEarlier(than: change, bytes)
  }

  /// Deletes the stamps of a withdrawn row. It was not deleted: when it is shared again, it counts as new.
  private func forget(_ change: DecodedChange, _ bytes: RawSpan) throws {
    // The replica that withdraws a row still has it.
    guard !isOwn, let key = key(of: change, bytes), let stamps = try list(of: key).map({ try stamps($0) }),
      stamps.deletion == nil
    else { return }
    try store.remove(key)
  }

  /// Deletes kept columns that a DELETE or INSERT of their row supersedes.
  private func dropEarlier(than change: DecodedChange, _ bytes: RawSpan) throws {
    guard pending.exist, let key = key(of: change, bytes) else { return }
    try pending.remove(for: key, before: origin(of: change, bytes)?.diff ?? diff)
  }

  // MARK: Columns of missing rows

  /// Keeps the columns of an UPDATE whose row is missing, or the row of an INSERT that a UNIQUE constraint refuses.
  func keep(_ change: DecodedChange, _ bytes: RawSpan) throws {
    guard change.operation != .delete, let key = key(of: change, bytes) else { return }
    let columns = change.operation == .insert ? all : change.changed
    let parts =
      origin(of: change, bytes).map { self.parts(of: columns, of: change, from: $0) } ?? [
        (diff, change.operation, columns)
      ]
    for part in parts {
      let stamp = try stamp(part.operation, part.columns, by: part.diff)
      var values = ChangesetWriter()
      for position in stamp.columns.positions {
        let column = positions.firstIndex(of: position)
        values.append(column.map { change.new($0) } ?? .undefined, of: bytes)
      }
      try pending.keep(values.bytes, by: stamp.number, isOfInsert: part.operation == .insert, for: key)
    }
  }

  /// Keeps the columns of a row that later diffs than the present DELETE have set. The author of a later INSERT did not
  /// see them.
  func keepLaterColumns(of row: CurrentRow, _ change: DecodedChange, _ bytes: RawSpan) throws {
    guard !isNewest, let key = key(of: change, bytes), let stamps = try stamps(of: change, bytes) else { return }
    let diff = origin(of: change, bytes)?.diff ?? diff
    for stamp in stamps.stamps where stamp.diff > diff && stamp.operation == .update {
      try pending.keep(values(of: stamp, among: stamps) { row.value(at: $0) }, by: stamp.number, for: key)
    }
  }

  /// The values of a row that one stamp has set, as a record, without the columns that another diff has set since.
  func values(of stamp: RowStamp, among stamps: RowStamps, at place: (Int) throws -> ChangesetValue) throws -> [UInt8] {
    let places = try placesOfColumns()
    var values = ChangesetWriter()
    for position in stamp.columns.positions {
      if stamps.setter(of: position) == stamp.diff, let found = places[position] {
        values.append(try place(found))
      } else {
        values.appendUndefined()
      }
    }
    return values.bytes
  }

  /// The kept values for a row that was inserted now, by place in the local layout.
  func pendingValues(for change: DecodedChange, _ bytes: RawSpan) throws -> [Int: ChangesetValue] {
    guard pending.exist, let key = key(of: change, bytes) else { return [:] }
    return try pendingValues(pending.items(for: key), beside: stamps(of: change, bytes) ?? RowStamps())
  }

  /// The values of some items that are later than the stamps of their row, by place in the local layout.
  func pendingValues(_ items: [PendingColumns.Item], beside stamps: RowStamps) throws -> [Int: ChangesetValue] {
    guard !items.isEmpty else { return [:] }
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

  /// Stamps the kept values of an inserted row, which now has them.
  func takePending(for change: DecodedChange, _ bytes: RawSpan) throws {
    guard pending.exist, let key = key(of: change, bytes) else { return }
    try takePending(pending.items(for: key), for: key)
  }

  /// Stamps kept items that are now in their row.
  func takePending(_ items: [PendingColumns.Item], for key: ClockKeyRecord) throws {
    guard !items.isEmpty else { return }
    let before = try self.list(of: key)
    var stamps = try before.map { try self.stamps($0) } ?? RowStamps()
    for item in items {
      guard let stamp = try RowClocks.stamp(item.stamp, on: connection), stamp.diff != .minimum else { continue }
      stamps.add(stamp)
    }
    if let list = StampList(stamps.stamps.map(\.number)), list != before { try store.write(list, key) }
    try pending.remove(for: key)
  }

  /// The place in the local layout of each position of the clock.
  func placesOfColumns() throws -> [Int: Int] {
    if let knownPlaces { return knownPlaces }
    var places: [Int: Int] = [:]
    for (position, name) in try RowClocks.columns(of: number, on: connection).enumerated() {
      if let place = layout.firstIndex(where: { ASCIIName.matches($0, name) }) { places[position] = place }
    }
    knownPlaces = places
    return places
  }

  // MARK: Stamps

  private func stamp(_ operation: ChangeOperation, _ mask: ColumnMask, by diff: KSUID) throws -> RowStamp {
    if let latest, latest.operation == operation, latest.mask == mask, latest.diff == diff { return latest.stamp }
    var columns = ColumnSet()
    for column in positions.indices where mask.contains(column) && !isKey[column] { columns.insert(positions[column]) }
    let source: RowClocks.Source = diff == self.diff ? isOwn ? .own : .applied : .claimed(in: self.diff)
    let stamp = try RowClocks.stamp(in: number, by: diff, operation, columns, source, on: connection)
    known[stamp.number] = stamp
    latest = (diff, operation, mask, stamp)
    sums.removeAll(keepingCapacity: true)
    return stamp
  }

  /// The key of a changed row; nil if only its content identifies it.
  func key(of change: DecodedChange, _ bytes: RawSpan) -> ClockKeyRecord? {
    guard isKnown(change) else { return nil }
    var writer = ChangesetWriter()
    keys.record(of: change, bytes, into: &writer)
    return ClockKeyRecord(bytes: writer.bytes)
  }

  /// Writes the collected stamps. Call it at the end, and before a savepoint.
  func flush() throws { try run.flush() }

  /// Discards the stamps since the last ``flush()``, because a savepoint has been rolled back.
  func rewind() {
    run.forget()
    known.removeAll()
    latest = nil
    sums.removeAll()
  }
}
