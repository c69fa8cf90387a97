import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// Writes the rows of one table, counts them, and reports each to an observer.
///
/// Beside it, only ``TableRows`` writes rows: for ``ExposedRows``, which undoes its writes before the diff ends, and
/// for rows that give way to others, which are reported to ``didWrite(_:_:before:after:)``.
///
/// The statements are those of `TableStatements`. `TableApplier` decides which changes are written.
final class RowWriter {
  /// The result of an UPDATE or DELETE.
  enum Result {
    /// One row was written.
    case written
    /// No row had the key and the old values.
    case noRow
    /// A constraint refused it.
    case refused(SQLiteRefusal)

    /// Why a constraint refused it; nil if none did.
    var refusal: SQLiteRefusal? { if case .refused(let refusal) = self { refusal } else { nil } }
  }

  let statements: TableStatements
  /// The change in hand, which all that follows is about.
  let change: DecodedChange
  /// The rows written: inserted, updated and deleted.
  var counts = ApplyCounts()
  /// True if refusals are final, and SQLite's messages about them are kept.
  var keepsMessages = false
  private(set) var lastMessage: [UInt8] = []
  /// Maintains the indexes over the table in place of triggers.
  private let indexes: IndexMaintenance?
  let observer: (any RowEffectObserver)?
  /// Collects the effects on rows; nil if they are not wanted.
  let effects: EffectTable?
  /// Finds rows that only their content identifies.
  let contents: ContentSearches
  private let key: RowKey
  /// Observes rows that are written indirectly; nil for none.
  private let watcher: (any SharingParticipant)?

  init(
    _ statements: TableStatements, _ header: ChangesetTable, keeping indexes: IndexMaintenance?,
    searching contents: ContentSearches, reportingTo observer: (any RowEffectObserver)?,
    gatheringInto effects: EffectTable? = nil, watchedBy watcher: (any SharingParticipant)? = nil
  ) {
    self.watcher = watcher
    self.effects = effects
    self.statements = statements
    self.indexes = indexes
    self.contents = contents
    self.observer = observer
    key = RowKey(of: header)
    change = DecodedChange(of: header, keepingUnchanged: statements.match.local.isKeyedByRowID)
  }

  /// Runs a statement that writes a row, which is not counted.
  ///
  /// - Returns: Why a constraint refused it; nil if it ran.
  func run(_ prepared: PreparedStatement) throws -> SQLiteRefusal? {
    let refusal =
      if let indexes { try indexes.attempt(prepared.statement) } else { try prepared.statement.attempt() }
    guard let refusal else { return nil }
    // A trigger may call `RAISE(ROLLBACK)`. Nothing must be written after the end of the transaction.
    guard statements.connection.isInTransaction else {
      throw SQLiteError(
        code: refusal.code, message: statements.connection.withLastMessage { String(decoding: $0, as: UTF8.self) },
        path: statements.connection.path)
    }
    if keepsMessages { lastMessage = statements.connection.withLastMessage { Array($0) } }
    return refusal
  }

  /// Keeps a message of the engine's own about a change that is refused.
  func refuse(_ message: String) { lastMessage = Array(message.utf8) }

  /// Runs an UPDATE or DELETE of the row with the key of the change, counts the row and reports it.
  private func write(
    _ prepared: PreparedStatement, _ operation: ChangeOperation, _ cause: RowEffect.Cause, _ bytes: RawSpan,
    isExact: Bool = false
  ) throws -> Result {
    let before = try observedRow(bytes, isExact: isExact)
    if let refusal = try run(prepared) { return .refused(refusal) }
    guard statements.connection.changes > 0 else { return .noRow }
    try didWrite(operation, cause, bytes, before: before, isExact: isExact)
    return .written
  }

  /// Runs an INSERT of the row of the change, counts the row and reports it.
  private func insert(_ prepared: PreparedStatement, _ bytes: RawSpan, isExact: Bool) throws -> SQLiteRefusal? {
    if let refusal = try run(prepared) { return refusal }
    // A trigger may have kept the row out without an error.
    if statements.connection.changes > 0 { try didWrite(.insert, .change, bytes, before: nil, isExact: isExact) }
    return nil
  }

  /// Counts a row that was written, and reports it.
  ///
  /// - Parameter isExact: True if the change was applied exactly.
  private func didWrite(
    _ operation: ChangeOperation, _ cause: RowEffect.Cause, _ bytes: RawSpan, before: [UInt8]?, isExact: Bool
  ) throws {
    counts.add(operation)
    if let effects, effects.isWanted { try gather(operation, bytes, before: before, isExact: isExact, into: effects) }
    if observer != nil { try report(operation, cause, bytes, before: before) }
  }

  /// Collects the effect of a change.
  private func gather(
    _ operation: ChangeOperation, _ bytes: RawSpan, before: [UInt8]?, isExact: Bool, into effects: EffectTable
  ) throws {
    if isExact, effects.tells(change) { return effects.write(change, bytes) }
    try effects.write(before: before, after: operation == .delete ? nil : storedRow(bytes))
  }

  private func report(
    _ operation: ChangeOperation, _ cause: RowEffect.Cause, _ bytes: RawSpan, before: [UInt8]?
  ) throws {
    guard let observer else { return }
    let after = operation == .delete || !observer.wantsRows ? nil : try storedRow(bytes)
    var key = change.hasNullKey ? [] : key.bytes(of: change, bytes)
    if operation == .insert, change.hasNullKey, statements.match.local.isKeyedByRowID,
      let rowID = try statements.connection.cachedInteger("SELECT last_insert_rowid()")
    {
      var writer = ChangesetWriter()
      writer.append(integer: rowID)
      key = writer.bytes
    }
    try observer.didWrite(
      RowEffect(
        table: statements.name, operation: operation, cause: cause, key: key,
        before: observer.wantsRows ? before : nil, after: after))
  }

  /// Counts and reports a row that was written indirectly.
  func didWrite(_ operation: ChangeOperation, _ key: ClockKeyRecord, before: [UInt8]?, after: [UInt8]?) throws {
    counts.add(operation)
    if operation != .delete { try watcher?.didWriteIndirectly(key.bytes, of: statements.name) }
    if let effects, effects.isWanted { try effects.write(before: before, after: after) }
    guard let observer else { return }
    try observer.didWrite(
      RowEffect(
        table: statements.name, operation: operation, cause: .change, key: key.bytes,
        before: observer.wantsRows ? before : nil, after: observer.wantsRows ? after : nil))
  }

  /// Reads and writes rows of the table by their keys.
  var tableRows: TableRows { TableRows(statements.match.local, keeping: indexes, in: statements.connection) }

  // MARK: Changes

  /// Inserts the row of the change.
  func insert(_ bytes: RawSpan) throws -> SQLiteRefusal? {
    let prepared = try statements.insertion.get()
    for column in 0..<statements.columnCount {
      try prepared.statement.bind(change.new(column), in: bytes, at: column)
    }
    return try insert(prepared, bytes, isExact: true)
  }

  /// Updates the row of the change.
  func update(_ bytes: RawSpan, guardedBy guardKind: TableStatements.Guard) throws -> Result {
    try write(boundUpdate(bytes, guardedBy: guardKind), .update, .change, bytes, isExact: guardKind == .oldValues)
  }

  private func boundUpdate(_ bytes: RawSpan, guardedBy guardKind: TableStatements.Guard) throws -> PreparedStatement {
    let prepared = try statements.update(change, guardedBy: guardKind)
    let columns = statements.columnCount
    let goesByContent = statements.goesByContent(change)
    if goesByContent { try bindContentRow(to: prepared, at: 2 * columns, bytes, guardedBy: guardKind) }
    for column in 0..<columns {
      if change.new(column).isDefined { try prepared.statement.bind(change.new(column), in: bytes, at: column) }
      if goesByContent { continue }
      // A statement that compares the key alone has no parameters for the other old values.
      let isCompared = statements.isKey[column] || (guardKind == .oldValues && change.old(column).isDefined)
      if isCompared { try prepared.statement.bind(change.old(column), in: bytes, at: columns + column) }
    }
    return prepared
  }

  /// Writes the change's new values to some columns of the row with its key.
  func update(_ columns: ColumnMask, _ bytes: RawSpan) throws -> Result {
    let prepared = try statements.update(changed: columns, compared: ColumnMask(), nullKeys: change.nullKeys)
    for column in 0..<statements.columnCount where columns.contains(column) {
      try prepared.statement.bind(change.new(column), in: bytes, at: column)
    }
    try statements.bindKey(of: change, bytes, to: prepared, from: statements.columnCount)
    return try write(prepared, .update, change.operation == .insert ? .replacement : .change, bytes)
  }

  /// Deletes the row of the change.
  func delete(_ bytes: RawSpan, guardedBy guardKind: TableStatements.Guard) throws -> Result {
    try write(boundDelete(bytes, guardedBy: guardKind), .delete, .change, bytes, isExact: guardKind == .oldValues)
  }

  private func boundDelete(_ bytes: RawSpan, guardedBy guardKind: TableStatements.Guard) throws -> PreparedStatement {
    let prepared = try statements.delete(change, guardedBy: guardKind)
    if statements.goesByContent(change) {
      try bindContentRow(to: prepared, at: statements.columnCount, bytes, guardedBy: guardKind)
      return prepared
    }
    for column in 0..<statements.columnCount {
      let isCompared = guardKind == .oldValues && change.compared.contains(column)
      guard statements.isKey[column] || isCompared else { continue }
      try prepared.statement.bind(change.row(column), in: bytes, at: column)
    }
    return prepared
  }

  /// Writes the row of an INSERT over the local row with its key.
  func overwrite(_ bytes: RawSpan) throws -> SQLiteRefusal? {
    let prepared = try statements.overwriting.get()
    for column in 0..<statements.columnCount {
      try prepared.statement.bind(change.new(column), in: bytes, at: column)
    }
    return try write(prepared, .update, .replacement, bytes).refusal
  }

  /// Deletes the local row with the key of an INSERT and inserts the new row, as triggers expect.
  ///
  /// - Parameters:
  ///   - local: The local row.
  ///   - row: The row in its new form.
  /// - Returns: Why the new row was refused, and whether the old one could be deleted at all; both rows are then as before.
  /// - Throws: `ReplicationError` with `conflict` when the old row cannot be deleted: SQLite stops the whole then, too.
  func replace(
    _ local: RowCopy, by row: RowCopy, _ bytes: RawSpan
  ) throws -> (refusal: SQLiteRefusal, wasDeleted: Bool)? {
    try statements.connection.execute("SAVEPOINT buckia_replace")
    if let refusal = try remove(bytes, guardedBy: .none) {
      try statements.connection.execute("RELEASE buckia_replace")
      throw ReplicationError(
        .conflict,
        "a row of table \"\(statements.name)\" is to be replaced and cannot be deleted (SQLite error \(refusal.code)); "
          + "nothing of this file is applied", table: statements.name.text)
    }
    let wasDeleted = statements.connection.changes > 0
    if let refusal = try restore(row) {
      // The local row must not be lost for one that cannot be written.
      try statements.connection.execute("ROLLBACK TO buckia_replace; RELEASE buckia_replace")
      return (refusal, wasDeleted)
    }
    try statements.connection.execute("RELEASE buckia_replace")
    try didWrite(.update, .replacement, bytes, before: local.record, isExact: false)
    return nil
  }

  /// Tells that an INSERT has taken the place of the row with its key.
  func noteReplacement(_ bytes: RawSpan) throws {
    guard let watcher, !change.hasNullKey else { return }
    try watcher.didWriteIndirectly(key.bytes(of: change, bytes), of: statements.name)
  }

  /// Inserts some rows that lie one after the other in a batch, of which the values are bound.
  ///
  /// - Parameters:
  ///   - prepared: A statement for this number of rows.
  ///   - starts: The positions of their changes.
  /// - Returns: The number of inserted rows, which is smaller if one was refused.
  func insert(_ prepared: PreparedStatement, starts: ArraySlice<Int>, _ bytes: RawSpan) throws -> Int {
    let refused = try prepared.statement.attempt() != nil
    let inserted = refused ? statements.connection.changes : starts.count
    counts.inserted += inserted
    if observer == nil, let effects, effects.isWanted, effects.isOfDiff {
      for start in starts.prefix(inserted) { effects.writeInsert(at: start, in: bytes) }
      return inserted
    }
    guard observer != nil || effects?.isWanted == true else { return inserted }
    for start in starts.prefix(inserted) {
      guard let place = ChangePlace(at: start, in: bytes) else { continue }
      change.read(place, in: bytes)
      if let effects, effects.isWanted { try gather(.insert, bytes, before: nil, isExact: true, into: effects) }
      if observer != nil { try report(.insert, .change, bytes, before: nil) }
    }
    return inserted
  }

  // MARK: A resolver's rows

  /// Writes values to columns of the local row with the key of the change.
  ///
  /// - Parameter values: By place in the local layout.
  func update(_ values: [Int: ChangesetValue], _ bytes: RawSpan) throws -> SQLiteRefusal? {
    guard !values.isEmpty else { return nil }
    let places = values.keys.sorted()
    let prepared = try statements.assign(places)
    try statements.bindKey(of: change, bytes, to: prepared)
    for (index, place) in places.enumerated() {
      try prepared.statement.bind(values[place] ?? .null, at: statements.columnCount + index)
    }
    return try write(prepared, .update, .change, bytes).refusal
  }

  /// Inserts the row of the change with some values replaced.
  ///
  /// - Parameter values: By place in the local layout. Columns that are neither here nor in the change get their default.
  func insert(_ values: [Int: ChangesetValue], _ bytes: RawSpan) throws -> SQLiteRefusal? {
    var sources: [Int: Int] = [:]
    for (column, place) in statements.match.columns.enumerated()
    where values[place] == nil && (change.new(column).isDefined || change.row(column).isDefined) {
      sources[place] = column
    }
    let places = (Array(values.keys) + Array(sources.keys)).sorted()
    let prepared = try statements.insert(places: places)
    for (index, place) in places.enumerated() {
      if let column = sources[place] {
        let value = change.new(column).isDefined ? change.new(column) : change.row(column)
        try prepared.statement.bind(value, in: bytes, at: index)
      } else {
        try prepared.statement.bind(values[place] ?? .null, at: index)
      }
    }
    return try insert(prepared, bytes, isExact: false)
  }

  // MARK: Parked rows

  /// Deletes the row with the key of the change, whatever the change itself does. Not counted.
  ///
  /// - Returns: The reason of a refusal; nil on success. `changes` of the connection is 0 if there was no such row.
  func remove(_ bytes: RawSpan, guardedBy guardKind: TableStatements.Guard) throws -> SQLiteRefusal? {
    try run(boundDelete(bytes, guardedBy: guardKind))
  }

  /// Inserts a row that was removed, in its old form or a new one. Not counted.
  func restore(_ row: RowCopy) throws -> SQLiteRefusal? {
    let prepared = try statements.restoring.get()
    defer { prepared.statement.clearBindings() }
    // The values are bound without copying, and the statement runs while they are certain to stay.
    return try row.record.withRawSpan { bytes in
      try prepared.statement.bind(row.values, in: bytes)
      return try run(prepared)
    }
  }

  /// Writes the new values of its change to a row with temporary values.
  ///
  /// - Parameter before: The row before the temporary values.
  /// - Returns: True if it could be written.
  func updateParked(_ bytes: RawSpan, before: RowCopy) throws -> Bool {
    guard try run(boundUpdate(bytes, guardedBy: .none)) == nil, statements.connection.changes == 1 else {
      return false
    }
    try didUpdateParked(bytes, before: before)
    return true
  }

  /// Counts and reports that a row that was parked has the new values of its change.
  func didUpdateParked(_ bytes: RawSpan, before: RowCopy) throws {
    try didWrite(.update, .change, bytes, before: before.record, isExact: false)
  }

  // MARK: Reading

  /// The columns among those that an UPDATE sets in which the local row has the old values. They are compared as the
  /// UPDATE itself does.
  func unchangedColumns(_ bytes: RawSpan) throws -> ColumnMask {
    var unchanged = ColumnMask()
    guard !change.hasNullKey, !change.compared.isEmpty else { return unchanged }
    let query = try statements.comparison(of: change.compared)
    try statements.bindKey(of: change, bytes, to: query)
    for column in 0..<statements.columnCount where change.compared.contains(column) {
      try query.statement.bind(change.old(column), in: bytes, at: statements.columnCount + column)
    }
    guard try query.statement.step() else { return unchanged }
    var result = 0
    for column in 0..<statements.columnCount where change.compared.contains(column) {
      if query.statement.integer(at: result) != 0 { unchanged.insert(column) }
      result += 1
    }
    return unchanged
  }

  /// The local row with the key of the change; nil if there is none, or when the key holds NULL and identifies no row.
  ///
  /// The statement stays on the row until the row is released.
  func currentRow(_ bytes: RawSpan) throws -> CurrentRow? {
    try currentRow(bytes, by: statements.selection.get()) { try statements.copying.get() }
  }

  /// The local row with the key of the change as a record, if whole rows are wanted.
  private func observedRow(_ bytes: RawSpan, isExact: Bool) throws -> [UInt8]? {
    guard observer?.wantsRows == true || effects.map({ $0.isWanted && !(isExact && $0.tells(change)) }) == true else {
      return nil
    }
    return try storedRow(bytes)
  }

  /// The local row with the key of the change as a record, if there is room for it.
  private func storedRow(_ bytes: RawSpan) throws -> [UInt8]? {
    guard observer?.wantsRows != true, let effects else { return try recordOfRow(bytes) }
    return try recordOfRow(bytes) { row in
      guard row.byteCount(statements.layout.count) > effects.room else { return true }
      effects.abandon()
      return false
    }
  }

  /// The local row with the key of the change as a record, read beside a statement that is on it; nil for none.
  ///
  /// - Parameter isWanted: Looks at the row before it is copied.
  func recordOfRow(_ bytes: RawSpan, where isWanted: (CurrentRow) -> Bool = { _ in true }) throws -> [UInt8]? {
    guard
      let row = try currentRow(bytes, by: statements.observation.get(), copy: { try statements.copyingObserved.get() })
    else { return nil }
    defer { row.release() }
    guard isWanted(row) else { return nil }
    var writer = ChangesetWriter()
    row.append(statements.layout.count, to: &writer)
    return writer.bytes
  }

  private func currentRow(
    _ bytes: RawSpan, by queries: [PreparedStatement], copy: () throws -> PreparedStatement
  ) throws -> CurrentRow? {
    guard !change.hasNullKey else { return nil }
    for query in queries {
      try statements.bindKey(of: change, bytes, to: query)
      guard try query.statement.step() else {
        for query in queries { query.statement.reset() }
        return nil
      }
    }
    guard statements.isVirtual, queries.count == 1, let query = queries.first else { return CurrentRow(queries) }
    // An R-tree cannot be written while a statement is on one of its rows.
    defer { query.statement.reset() }
    let copy = try copy()
    copy.statement.reset()
    for place in 0..<query.statement.columnCount {
      try copy.statement.bind(column: place, of: query.statement, at: place)
    }
    return try copy.statement.step() ? CurrentRow([copy]) : nil
  }
}
