import BuckiaLedger
import BuckiaSchemaPlans
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Writes the rows of one table: nothing else in applying does. Counts the rows, and reports each to an observer where there
/// is one.
///
/// The statements are those of `TableStatements`. Whether a change is to be written is for `TableApplier` to decide.
final class RowWriter {
  /// What came of an UPDATE or DELETE.
  enum Result {
    /// One row was written.
    case written
    /// No row had the key and the old values.
    case noRow
    /// A constraint refused it.
    case refused(SQLiteRefusal)
  }

  let statements: TableStatements
  /// The rows written: inserted, updated and deleted.
  var counts = ApplyCounts()
  /// Whether what is refused now is refused for good, so that SQLite's message about it is kept.
  var keepsMessages = false
  private(set) var lastMessage: [UInt8] = []
  /// Keeps the indexes over the table, where triggers would.
  private let indexes: IndexMaintenance?
  let effects: TableEffects?

  init(_ statements: TableStatements, keeping indexes: IndexMaintenance?, reportingTo effects: TableEffects?) {
    self.statements = statements
    self.indexes = indexes
    self.effects = effects
  }

  /// Runs a statement.
  ///
  /// - Returns: Why a constraint refused it; nil when it ran.
  private func run(
    _ prepared: TableStatements.Prepared, on connection: borrowing SQLiteConnection
  ) throws -> SQLiteRefusal? {
    let refusal =
      if let indexes { try indexes.attempt(prepared.statement) } else { try prepared.statement.attempt() }
    guard let refusal else { return nil }
    // A trigger may say `RAISE(ROLLBACK)`: nothing must be written behind the end of the transaction.
    guard connection.isInTransaction else {
      throw SQLiteError(
        code: refusal.code, message: connection.withLastMessage { String(decoding: $0, as: UTF8.self) },
        path: connection.path)
    }
    if keepsMessages { lastMessage = connection.withLastMessage { Array($0) } }
    return refusal
  }

  /// Keeps a message of the engine's own about a change that is refused.
  func refuse(_ message: String) { lastMessage = Array(message.utf8) }

  // MARK: Changes

  /// Inserts the row of a change.
  func insert(
    _ change: DecodedChange, _ bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws -> SQLiteRefusal? {
    let prepared = try statements.insert(on: connection)
    for column in 0..<statements.columnCount {
      try prepared.statement.bind(change.new(column), in: bytes, at: column)
    }
    if let refusal = try run(prepared, on: connection) { return refusal }
    // A trigger may have kept the row out without an error.
    let written = connection.changes
    counts.inserted += written
    if let effects, written > 0 {
      let row = try observedRow(of: change, bytes, on: connection)
      try effects.didInsert(change, bytes, after: row, on: connection)
    }
    return nil
  }

  /// Updates the row of a change.
  func update(
    _ change: DecodedChange, _ bytes: RawSpan, guardedBy guardKind: TableStatements.Guard,
    on connection: borrowing SQLiteConnection
  ) throws -> Result {
    let before = try observedRow(of: change, bytes, on: connection)
    if let refusal = try runUpdate(change, bytes, guardedBy: guardKind, on: connection) { return .refused(refusal) }
    guard connection.changes > 0 else { return .noRow }
    counts.updated += 1
    if let effects {
      try effects.didUpdate(
        change, bytes, .change, before: before,
        after: observedRow(of: change, bytes, on: connection))
    }
    return .written
  }

  private func runUpdate(
    _ change: DecodedChange, _ bytes: RawSpan, guardedBy guardKind: TableStatements.Guard,
    on connection: borrowing SQLiteConnection
  ) throws -> SQLiteRefusal? {
    let prepared = try statements.update(change, guardedBy: guardKind, on: connection)
    let columns = statements.columnCount
    for column in 0..<columns {
      if change.new(column).isDefined { try prepared.statement.bind(change.new(column), in: bytes, at: column) }
      // A statement that compares the key alone has no parameters for the other old values.
      let isCompared = statements.isKey[column] || (guardKind == .oldValues && change.old(column).isDefined)
      if isCompared { try prepared.statement.bind(change.old(column), in: bytes, at: columns + column) }
    }
    return try run(prepared, on: connection)
  }

  /// Gives some columns of the row with the key of a change the change's new values.
  func update(
    _ columns: ColumnMask, of change: DecodedChange, _ bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws -> Result {
    let before = try observedRow(of: change, bytes, on: connection)
    let prepared = try statements.update(
      changed: columns, compared: ColumnMask(), nullKeys: change.nullKeys, on: connection)
    for column in 0..<statements.columnCount {
      if columns.contains(column) { try prepared.statement.bind(change.new(column), in: bytes, at: column) }
      if statements.isKey[column] {
        try prepared.statement.bind(change.row(column), in: bytes, at: statements.columnCount + column)
      }
    }
    if let refusal = try run(prepared, on: connection) { return .refused(refusal) }
    guard connection.changes > 0 else { return .noRow }
    counts.updated += 1
    try effects?.didUpdate(
      change, bytes, change.operation == .insert ? .replacement : .change, before: before,
      after: observedRow(of: change, bytes, on: connection))
    return .written
  }

  // MARK: A resolver's rows

  /// Gives columns of the local row with the key of a change other values.
  ///
  /// - Parameter values: By place in the local layout.
  func update(
    _ values: [Int: ChangesetValue], of change: DecodedChange, _ bytes: RawSpan,
    on connection: borrowing SQLiteConnection
  ) throws -> SQLiteRefusal? {
    guard !values.isEmpty else { return nil }
    let before = try observedRow(of: change, bytes, on: connection)
    let places = values.keys.sorted()
    let prepared = try statements.assign(places, on: connection)
    for column in 0..<statements.columnCount where statements.isKey[column] {
      try prepared.statement.bind(change.row(column), in: bytes, at: column)
    }
    for (index, place) in places.enumerated() {
      try prepared.statement.bind(values[place] ?? .null, at: statements.columnCount + index)
    }
    if let refusal = try run(prepared, on: connection) { return refusal }
    guard connection.changes > 0 else { return nil }
    counts.updated += 1
    try effects?.didUpdate(
      change, bytes, .change, before: before, after: observedRow(of: change, bytes, on: connection))
    return nil
  }

  /// Inserts the row of a change with some values replaced.
  ///
  /// - Parameter values: By place in the local layout. Columns that are neither here nor in the change get their default.
  func insert(
    _ values: [Int: ChangesetValue], completing change: DecodedChange, _ bytes: RawSpan,
    on connection: borrowing SQLiteConnection
  ) throws -> SQLiteRefusal? {
    var sources: [Int: Int] = [:]
    for (column, place) in statements.match.columns.enumerated()
    where values[place] == nil && (change.new(column).isDefined || change.row(column).isDefined) {
      sources[place] = column
    }
    let places = (Array(values.keys) + Array(sources.keys)).sorted()
    let prepared = try statements.insert(places: places, on: connection)
    for (index, place) in places.enumerated() {
      if let column = sources[place] {
        let value = change.new(column).isDefined ? change.new(column) : change.row(column)
        try prepared.statement.bind(value, in: bytes, at: index)
      } else {
        try prepared.statement.bind(values[place] ?? .null, at: index)
      }
    }
    if let refusal = try run(prepared, on: connection) { return refusal }
    counts.inserted += connection.changes
    try effects?.didInsert(
      change, bytes, after: observedRow(of: change, bytes, on: connection), on: connection)
    return nil
  }

  /// Deletes the row of a change.
  func delete(
    _ change: DecodedChange, _ bytes: RawSpan, guardedBy guardKind: TableStatements.Guard,
    on connection: borrowing SQLiteConnection
  ) throws -> Result {
    let before = try observedRow(of: change, bytes, on: connection)
    if let refusal = try takeOut(change, bytes, guardedBy: guardKind, on: connection) { return .refused(refusal) }
    guard connection.changes > 0 else { return .noRow }
    counts.deleted += 1
    try effects?.didDelete(change, bytes, before: before)
    return .written
  }

  /// Writes the row of an INSERT over the local row with its key.
  func overwrite(
    _ change: DecodedChange, _ bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws -> SQLiteRefusal? {
    let before = try observedRow(of: change, bytes, on: connection)
    let prepared = try statements.overwrite(on: connection)
    for column in 0..<statements.columnCount {
      try prepared.statement.bind(change.new(column), in: bytes, at: column)
    }
    if let refusal = try run(prepared, on: connection) { return refusal }
    try didReplace(change, bytes, before: before, on: connection)
    return nil
  }

  /// Deletes the local row with the key of an INSERT and inserts the new row, as triggers and foreign-key actions expect.
  ///
  /// - Parameters:
  ///   - local: The local row.
  ///   - row: The row in its new form.
  /// - Returns: Why the new row was refused, and whether the old one could be deleted at all; both rows are then as before.
  /// - Throws: `ReplicationError` with `conflict` when the old row cannot be deleted: SQLite stops the whole then, too.
  func replace(
    _ local: LocalRow, by row: LocalRow, _ change: DecodedChange, _ bytes: RawSpan,
    on connection: borrowing SQLiteConnection
  ) throws -> (refusal: SQLiteRefusal, wasDeleted: Bool)? {
    try connection.execute("SAVEPOINT buckia_replace")
    if let refusal = try takeOut(change, bytes, guardedBy: .none, on: connection) {
      try connection.execute("RELEASE buckia_replace")
      throw ReplicationError(
        .conflict,
        "a row of table \"\(statements.name)\" is to be replaced and cannot be deleted (SQLite error \(refusal.code)); "
          + "nothing of this file is applied", table: statements.name.text)
    }
    let wasDeleted = connection.changes > 0
    if let refusal = try putBack(row, on: connection) {
      // The local row must not be lost for one that cannot be written.
      try connection.execute("ROLLBACK TO buckia_replace; RELEASE buckia_replace")
      return (refusal, wasDeleted)
    }
    try connection.execute("RELEASE buckia_replace")
    try didReplace(change, bytes, before: local.record, on: connection)
    return nil
  }

  private func didReplace(
    _ change: DecodedChange, _ bytes: RawSpan, before: [UInt8]?, on connection: borrowing SQLiteConnection
  ) throws {
    counts.updated += 1
    guard let effects else { return }
    let row = try observedRow(of: change, bytes, on: connection)
    try effects.didUpdate(change, bytes, .replacement, before: effects.observer.wantsRows ? before : nil, after: row)
  }

  /// Inserts some rows that lie one after the other in a batch, of which the values are bound.
  ///
  /// - Parameters:
  ///   - prepared: A statement for so many rows.
  ///   - starts: Where their changes stand.
  /// - Returns: How many went in: fewer than all when one was refused.
  func insert(
    _ prepared: TableStatements.Prepared, starts: ArraySlice<Int>, _ change: DecodedChange, _ bytes: RawSpan,
    on connection: borrowing SQLiteConnection
  ) throws -> Int {
    let refused = try prepared.statement.attempt() != nil
    let inserted = refused ? connection.changes : starts.count
    counts.inserted += inserted
    if let effects {
      for start in starts.prefix(inserted) {
        guard let place = ChangePlace(at: start, in: bytes) else { continue }
        change.read(place, in: bytes)
        try effects.didInsert(
          change, bytes, after: observedRow(of: change, bytes, on: connection), on: connection)
      }
    }
    return inserted
  }

  // MARK: Rows out of the way

  /// Takes the row with the key of a change out of the table, whatever the change itself does. Not counted.
  ///
  /// - Returns: Why that was refused. `changes` of the connection says whether there was such a row.
  func takeOut(
    _ change: DecodedChange, _ bytes: RawSpan, guardedBy guardKind: TableStatements.Guard,
    on connection: borrowing SQLiteConnection
  ) throws -> SQLiteRefusal? {
    let prepared = try statements.delete(change, guardedBy: guardKind, on: connection)
    for column in 0..<statements.columnCount {
      let isCompared = guardKind == .oldValues && change.compared.contains(column)
      guard statements.isKey[column] || isCompared else { continue }
      try prepared.statement.bind(change.row(column), in: bytes, at: column)
    }
    return try run(prepared, on: connection)
  }

  /// Puts a row that was taken out into the table, in its old form or a new one. Not counted.
  func putBack(_ row: LocalRow, on connection: borrowing SQLiteConnection) throws -> SQLiteRefusal? {
    let restore = try statements.restore(on: connection)
    defer { restore.statement.clearBindings() }
    return try row.insert(with: restore) { try run($0, on: connection) }
  }

  /// Gives a row that was set aside the new values of its change.
  ///
  /// - Parameter before: The row as it was before it was set aside.
  /// - Returns: Whether it could be written.
  func settle(
    _ change: DecodedChange, _ bytes: RawSpan, before: LocalRow, on connection: borrowing SQLiteConnection
  ) throws -> Bool {
    guard try runUpdate(change, bytes, guardedBy: .none, on: connection) == nil, connection.changes == 1 else {
      return false
    }
    try didSettle(change, bytes, before: before, on: connection)
    return true
  }

  /// Runs an UPDATE that gives a row values for a while. Not counted.
  func setAside(
    with statement: TableStatements.Prepared, on connection: borrowing SQLiteConnection
  ) throws -> SQLiteRefusal? {
    try run(statement, on: connection)
  }

  /// Counts and reports that the row of a change, which was out of the way, has its new values.
  func didSettle(
    _ change: DecodedChange, _ bytes: RawSpan, before: LocalRow, on connection: borrowing SQLiteConnection
  ) throws {
    counts.updated += 1
    guard let effects else { return }
    let row = try observedRow(of: change, bytes, on: connection)
    try effects.didUpdate(change, bytes, .change, before: effects.observer.wantsRows ? before.record : nil, after: row)
  }

  // MARK: Reading

  /// The columns in which the local row with the key of an UPDATE has the old values, of those that the change sets. They are
  /// compared as the UPDATE itself does.
  func unchangedColumns(
    of change: DecodedChange, _ bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws -> ColumnMask {
    var unchanged = ColumnMask()
    guard !change.hasNullKey, !change.compared.isEmpty else { return unchanged }
    let query = try statements.comparison(of: change.compared, on: connection)
    for column in 0..<statements.columnCount {
      if statements.isKey[column] {
        try query.statement.bind(change.old(column), in: bytes, at: column)
      } else if change.compared.contains(column) {
        try query.statement.bind(change.old(column), in: bytes, at: statements.columnCount + column)
      }
    }
    guard try query.statement.step() else { return unchanged }
    var result = 0
    for column in 0..<statements.columnCount where change.compared.contains(column) {
      if query.statement.integer(at: result) != 0 { unchanged.insert(column) }
      result += 1
    }
    return unchanged
  }

  /// The local row with the key of a change; nil when there is none, or when the key holds NULL and identifies no row.
  ///
  /// The statement stands on the row until that is released.
  func currentRow(
    of change: DecodedChange, _ bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws -> CurrentRow? {
    try currentRow(of: change, bytes, by: statements.select(on: connection), on: connection)
  }

  /// The local row with the key of a change, where the observer wants whole rows.
  private func observedRow(
    of change: DecodedChange, _ bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws -> [UInt8]? {
    guard let effects, effects.observer.wantsRows else { return nil }
    let row = try currentRow(of: change, bytes, by: statements.observe(on: connection), on: connection)
    defer { row?.release() }
    return row.map { effects.record(of: $0) }
  }

  private func currentRow(
    of change: DecodedChange, _ bytes: RawSpan, by queries: [TableStatements.Prepared],
    on connection: borrowing SQLiteConnection
  ) throws -> CurrentRow? {
    guard !change.hasNullKey else { return nil }
    for query in queries {
      for column in 0..<statements.columnCount where statements.isKey[column] {
        try query.statement.bind(change.row(column), in: bytes, at: column)
      }
      guard try query.statement.step() else {
        for query in queries { query.statement.reset() }
        return nil
      }
    }
    guard statements.isVirtual, queries.count == 1, let query = queries.first else { return CurrentRow(queries) }
    // An R-tree cannot be written while a statement stands on one of its rows.
    defer { query.statement.reset() }
    let copy = try statements.copy(on: connection)
    copy.statement.reset()
    for place in 0..<query.statement.columnCount {
      try copy.statement.bind(column: place, of: query.statement, at: place)
    }
    return try copy.statement.step() ? CurrentRow([copy]) : nil
  }
}
