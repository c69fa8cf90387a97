import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// Maintains the clock of one table while a diff is applied: which diff has last set each column of its rows, inserted
/// or deleted them.
///
/// The state of a row depends on the set of changes that have arrived, and never on their order: see ``VersionVector``.
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
  private var run: VersionedRun
  /// The origins of changes from other diffs; nil if there are none.
  private let origins: RowOrigins.Table?
  /// The greatest diff whose deletions are forgotten here, if the sender may lack them; otherwise nil.
  private let forgotten: KSUID?
  /// True if no diff in the clock is later than the origins of the changes, which then win everywhere.
  var isNewest: Bool
  /// The columns of missing rows.
  let pending: PendingColumns

  private var known: [Int64: RowVersion] = [:]
  private var knownPlaces: [Int: Int]?
  /// The row version that was used last, for neighbouring rows with the same changed columns.
  private var latest: (diff: KSUID, operation: ChangeOperation, mask: ColumnMask, rowVersion: RowVersion)?
  /// Cached results of adding the last row version to the row versions of a row.
  private var sums: [RowVersionList: RowVersionList] = [:]

  /// - Parameters:
  ///   - number: The number of the clock.
  ///   - match: The mapping between the columns of the changes and those of the table.
  ///   - diff: The diff.
  ///   - origins: The origins of changes from other diffs; nil for none.
  ///   - forgotten: The greatest diff whose deletions are forgotten here and that the sender may lack; nil for none.
  ///   - isOwn: True if the diff was made from this database.
  ///   - findsRuns: True to search for runs of neighbours, which requires that the rows exist when they are versioned.
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
    run = VersionedRun(store, keys, ofEmptyTable: isEmpty, isUsed: findsRuns)
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
  private func isSettled(_ column: Int, of change: DecodedChange, _ origin: OriginRun?, by rowVersions: VersionVector)
    -> Bool
  {
    guard let setter = rowVersions.setter(of: positions[column]) else { return false }
    let own = origin?.diff(of: column, change.operation) ?? diff
    return setter > own || setter == own && own != diff
  }

  /// The columns of a change that a later diff has set, or that were applied before.
  func laterColumns(of change: DecodedChange, _ bytes: RawSpan) throws -> ColumnMask {
    var later = ColumnMask()
    guard isKnown(change), !isNewest, let rowVersions = try rowVersions(of: change, bytes) else { return later }
    let origin = origin(of: change, bytes)
    for column in positions.indices where change.new(column).isDefined && !isKey[column] {
      if isSettled(column, of: change, origin, by: rowVersions) { later.insert(column) }
    }
    return later
  }

  /// True if a change was applied before, from another file. It then has no effect, whatever has become of the row
  /// since. For an INSERT or UPDATE this is only known if the row exists.
  func hasComeBefore(_ change: DecodedChange, _ bytes: RawSpan) throws -> Bool {
    guard origins != nil, isKnown(change), !isNewest, let origin = origin(of: change, bytes),
      !origin.isWithdrawal, let rowVersions = try rowVersions(of: change, bytes)
    else { return false }
    switch change.operation {
    case .delete: return origin.diff != diff && rowVersions.deletion == origin.diff
    case .insert: guard origin.diff != diff, rowVersions.insertion == origin.diff else { return false }
    case .update: break
    }
    for column in positions.indices where change.new(column).isDefined && !isKey[column] {
      let own = origin.diff(of: column, change.operation)
      guard own != diff, rowVersions.setter(of: positions[column]) == own else { return false }
    }
    return true
  }

  /// True if a later diff has deleted the missing row of an INSERT or UPDATE.
  func isDeletedLater(_ change: DecodedChange, _ bytes: RawSpan) throws -> Bool {
    guard isKnown(change) else { return false }
    guard !isNewest else { return false }
    guard let deletion = try rowVersions(ofMissing: change, bytes)?.deletion else {
      return try isForgotten(change, bytes)
    }
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
    guard !isNewest, let insertion = try rowVersions(of: change, bytes)?.insertion else { return false }
    return insertion > origin(of: change, bytes)?.diff ?? diff
  }

  /// The row versions of an existing row.
  private func rowVersions(of change: DecodedChange, _ bytes: RawSpan) throws -> VersionVector? {
    try list(of: change, bytes).map { try rowVersions($0) }
  }

  /// The row versions of a missing row.
  private func rowVersions(ofMissing change: DecodedChange, _ bytes: RawSpan) throws -> VersionVector? {
    if run.mayHold(change, bytes) { try run.flush() }
    return try store.row(change, bytes).map { try rowVersions($0) }
  }

  /// The row versions of the row with a key.
  func list(of key: ClockKeyRecord) throws -> RowVersionList? {
    try run.flush()
    return try store.row(key) ?? store.run(key)
  }

  private func list(of change: DecodedChange, _ bytes: RawSpan) throws -> RowVersionList? {
    if run.mayHold(change, bytes) { try run.flush() }
    return try store.row(change, bytes) ?? store.run(change, bytes)
  }

  func rowVersions(_ list: RowVersionList) throws -> VersionVector {
    VersionVector(
      try list.numbers.compactMap { number in
        if let rowVersion = known[number] { return rowVersion }
        let rowVersion = try RowClocks.rowVersion(number, on: connection)
        known[number] = rowVersion
        return rowVersion
      })
  }

  // MARK: Recording

  /// Row versions columns of a changed row with this diff.
  ///
  /// - Parameters:
  ///   - columns: Those columns.
  ///   - isNew: True if the row did not exist before. Earlier row versions of its key no longer apply.
  func rowVersion(_ columns: ColumnMask, of change: DecodedChange, isNew: Bool = false, _ bytes: RawSpan) throws {
    guard isKnown(change), change.operation == .insert || !columns.isEmpty else { return }
    if let origin = origin(of: change, bytes) {
      return try rowVersion(columns, of: change, from: origin, isNew: isNew, bytes)
    }
    let rowVersion = try rowVersion(change.operation, columns, by: diff)
    if isNew || (!store.hasRows && !store.hasRuns && !run.mayHold(change, bytes)) {
      return try run.add(.one(rowVersion.number), change, bytes)
    }
    guard let before = try list(of: change, bytes) else { return try run.add(.one(rowVersion.number), change, bytes) }
    let sum: RowVersionList
    if let found = sums[before] {
      sum = found
    } else {
      var rowVersions = try rowVersions(before)
      rowVersions.add(rowVersion)
      sum = RowVersionList(rowVersions.rowVersions.map(\.number)) ?? .one(rowVersion.number)
      if sums.count > 4_096 { sums.removeAll() }
      sums[before] = sum
    }
    try run.add(sum, change, bytes)
  }

  /// Row versions columns of a changed row with the origins of the change.
  private func rowVersion(
    _ columns: ColumnMask, of change: DecodedChange, from origin: OriginRun, isNew: Bool, _ bytes: RawSpan
  ) throws {
    let before = try isNew ? nil : list(of: change, bytes)
    var rowVersions = try before.map { try self.rowVersions($0) } ?? VersionVector()
    for part in parts(of: columns, of: change, from: origin) where !isOwn || part.diff == diff {
      rowVersions.add(try rowVersion(part.operation, part.columns, by: part.diff))
    }
    guard let list = RowVersionList(rowVersions.rowVersions.map(\.number)), list != before else { return }
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

  /// Row versions a change that was applied or will be.
  func rowVersion(_ change: DecodedChange, _ bytes: RawSpan) throws {
    switch change.operation {
    case .insert:
      // Relayed changes are versioned already.
      try rowVersion(all, of: change, isNew: !isOwn || origin(of: change, bytes) == nil, bytes)
      try dropEarlier(than: change, bytes)
    case .update: try rowVersion(change.changed, of: change, bytes)
    case .delete: try recordDeletion(of: change, bytes)
    }
  }

  /// All columns of the changes.
  private var all: ColumnMask {
    var all = ColumnMask()
    for column in positions.indices { all.insert(column) }
    return all
  }

  /// Row versions the deletion of a row, existing or not.
  func recordDeletion(of change: DecodedChange, _ bytes: RawSpan) throws {
    guard isKnown(change) else { return }
    let origin = origin(of: change, bytes)
    if origin?.isWithdrawal == true { return try forget(change, bytes) }
    let diff = origin?.diff ?? diff
    let rowVersion = try rowVersion(.delete, ColumnMask(), by: diff)
    if let deletion = try rowVersions(ofMissing: change, bytes)?.deletion, deletion > diff { return }
    try store.write(.one(rowVersion.number), change, bytes)
    try dropEarlier(than: change, bytes)
  }

  /// Deletes the row versions of a withdrawn row. It was not deleted: when it is shared again, it counts as new.
  private func forget(_ change: DecodedChange, _ bytes: RawSpan) throws {
    // The replica that withdraws a row still has it.
    guard !isOwn, let key = key(of: change, bytes), let rowVersions = try list(of: key).map({ try rowVersions($0) }),
      rowVersions.deletion == nil
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
      let rowVersion = try rowVersion(part.operation, part.columns, by: part.diff)
      var values = ChangesetWriter()
      for position in rowVersion.columns.positions {
        let column = positions.firstIndex(of: position)
        values.append(column.map { change.new($0) } ?? .undefined, of: bytes)
      }
      try pending.keep(values.bytes, by: rowVersion.number, isOfInsert: part.operation == .insert, for: key)
    }
  }

  /// Keeps the columns of a row that later diffs than the present DELETE have set. The author of a later INSERT did not
  /// see them.
  func keepLaterColumns(of row: CurrentRow, _ change: DecodedChange, _ bytes: RawSpan) throws {
    guard !isNewest, let key = key(of: change, bytes), let rowVersions = try rowVersions(of: change, bytes) else {
      return
    }
    let diff = origin(of: change, bytes)?.diff ?? diff
    for rowVersion in rowVersions.rowVersions where rowVersion.diff > diff && rowVersion.operation == .update {
      try pending.keep(
        values(of: rowVersion, among: rowVersions) { row.value(at: $0) }, by: rowVersion.number, for: key)
    }
  }

  /// The values of a row that one row version has set, as a record, without the columns that another diff has set since.
  func values(of rowVersion: RowVersion, among rowVersions: VersionVector, at place: (Int) throws -> ChangesetValue)
    throws -> [UInt8]
  {
    let places = try placesOfColumns()
    var values = ChangesetWriter()
    for position in rowVersion.columns.positions {
      if rowVersions.setter(of: position) == rowVersion.diff, let found = places[position] {
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
    return try pendingValues(pending.items(for: key), beside: rowVersions(of: change, bytes) ?? VersionVector())
  }

  /// The values of some items that are later than the row versions of their row, by place in the local layout.
  func pendingValues(_ items: [PendingColumns.Item], beside rowVersions: VersionVector) throws -> [Int: ChangesetValue]
  {
    guard !items.isEmpty else { return [:] }
    let places = try placesOfColumns()
    var found: [Int: (diff: KSUID, value: ChangesetValue)] = [:]
    for item in items {
      guard let rowVersion = try RowClocks.rowVersion(item.rowVersion, on: connection) else { continue }
      for (position, value) in zip(rowVersion.columns.positions, item.values) {
        guard let value, let place = places[position],
          rowVersions.setter(of: position).map({ $0 < rowVersion.diff }) ?? true,
          found[place].map({ $0.diff < rowVersion.diff }) ?? true
        else { continue }
        found[place] = (rowVersion.diff, value)
      }
    }
    return found.mapValues(\.value)
  }

  /// Row versions the kept values of an inserted row, which now has them.
  func takePending(for change: DecodedChange, _ bytes: RawSpan) throws {
    guard pending.exist, let key = key(of: change, bytes) else { return }
    try takePending(pending.items(for: key), for: key)
  }

  /// Row versions kept items that are now in their row.
  func takePending(_ items: [PendingColumns.Item], for key: ClockKeyRecord) throws {
    guard !items.isEmpty else { return }
    let before = try self.list(of: key)
    var rowVersions = try before.map { try self.rowVersions($0) } ?? VersionVector()
    for item in items {
      guard let rowVersion = try RowClocks.rowVersion(item.rowVersion, on: connection), rowVersion.diff != .minimum
      else { continue }
      rowVersions.add(rowVersion)
    }
    if let list = RowVersionList(rowVersions.rowVersions.map(\.number)), list != before { try store.write(list, key) }
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

  // MARK: Row versions

  private func rowVersion(_ operation: ChangeOperation, _ mask: ColumnMask, by diff: KSUID) throws -> RowVersion {
    if let latest, latest.operation == operation, latest.mask == mask, latest.diff == diff { return latest.rowVersion }
    var columns = ColumnSet()
    for column in positions.indices where mask.contains(column) && !isKey[column] { columns.insert(positions[column]) }
    let source: RowClocks.Source = diff == self.diff ? isOwn ? .own : .applied : .claimed(in: self.diff)
    let rowVersion = try RowClocks.rowVersion(in: number, by: diff, operation, columns, source, on: connection)
    known[rowVersion.number] = rowVersion
    latest = (diff, operation, mask, rowVersion)
    sums.removeAll(keepingCapacity: true)
    return rowVersion
  }

  /// The key of a changed row; nil if only its content identifies it.
  func key(of change: DecodedChange, _ bytes: RawSpan) -> ClockKeyRecord? {
    guard isKnown(change) else { return nil }
    var writer = ChangesetWriter()
    keys.record(of: change, bytes, into: &writer)
    return ClockKeyRecord(bytes: writer.bytes)
  }

  /// Writes the collected row versions. Call it at the end, and before a savepoint.
  func flush() throws { try run.flush() }

  /// Discards the row versions since the last ``flush()``, because a savepoint has been rolled back.
  func rewind() {
    run.forget()
    known.removeAll()
    latest = nil
    sums.removeAll()
  }
}
