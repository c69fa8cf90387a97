import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Applies the changes of one table, one after the other.
///
/// The semantics are those of `sqlite3changeset_apply_v2` (<https://sqlite.org/session/sqlite3changeset_apply.html>):
/// an UPDATE or DELETE finds its row by the key and by every old value it has, a change that breaks a constraint is tried
/// again when the others of its table are done. Beyond them: columns go by name, tables without a key go by rowid, rows
/// with NULL in the key by content, and values swapped under a UNIQUE constraint are settled by parking.
final class TableApplier {
  let statements: TableStatements
  let header: ChangesetTable
  let decider: ConflictDecider
  /// Keeps the indexes over the table, where triggers would.
  private let indexes: IndexUpkeep?
  /// What conflicts of the table need to know of it.
  lazy var layout = ConflictLayout(statements)
  var counts = ApplyCounts()
  var deferred: [Deferred] = []
  /// The change in hand.
  let change: DecodedChange
  var batch: InsertBatch
  /// Whether what is refused now is refused for good, so that SQLite's words about it are wanted.
  var isLastAttempt = false
  private(set) var lastMessage: [UInt8] = []
  /// Whether the last INSERT met a row with its key: the next one then looks before it leaps.
  private var expectsConflict = false

  /// - Parameter canBatch: Whether several rows may go in with one statement: nothing of ours or of the application's may
  ///   see the difference.
  init(
    _ statements: TableStatements, header: ChangesetTable, decider: ConflictDecider, keeping indexes: IndexUpkeep?,
    canBatch: Bool
  ) {
    self.statements = statements
    self.header = header
    self.decider = decider
    self.indexes = indexes
    change = DecodedChange(of: header)
    batch = InsertBatch(columns: header.columnCount, limit: canBatch ? statements.batchLimit : 1)
  }

  /// Applies a change, or keeps it for the next batch: `flush` must follow the last one.
  func apply(_ place: ChangePlace, _ bytes: RawSpan, on connection: borrowing SQLiteConnection) throws {
    if place.operation == .insert, batch.isUsed {
      batch.add(place.start)
      if batch.isFull { try flush(bytes, on: connection) }
      return
    }
    if !batch.isEmpty { try flush(bytes, on: connection) }
    try applyAlone(place, bytes, on: connection)
  }

  /// Applies a change, and puts it aside where a constraint refuses it.
  func applyAlone(_ place: ChangePlace, _ bytes: RawSpan, on connection: borrowing SQLiteConnection) throws {
    if let refusal = try attempt(place, bytes, on: connection) {
      deferred.append(Deferred(offset: place.start, refusal))
    }
  }

  /// Applies the INSERTs that wait for a batch to be full.
  func flush(_ bytes: RawSpan, on connection: borrowing SQLiteConnection) throws {
    var next = 0
    while next < batch.count {
      let rows = batch.rows(from: next)
      if rows > 1, try insert(rows, from: next, bytes, on: connection) {
        counts.inserted += rows
      } else {
        // A batch is all or nothing: one that was refused goes in row by row.
        for index in next..<(next + rows) {
          let before = counts.inserted
          if let place = ChangePlace(at: batch.start(index), in: bytes) {
            try applyAlone(place, bytes, on: connection)
          }
          batch.noteSingle(wasRefused: counts.inserted == before)
        }
      }
      next += rows
    }
    batch.removeAll()
  }

  private func insert(
    _ rows: Int, from first: Int, _ bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws -> Bool {
    let prepared = try statements.insert(rows: rows, on: connection)
    let columns = statements.columnCount
    var parameter = 0
    for index in first..<(first + rows) {
      var position = batch.start(index) + 2
      for _ in 0..<columns {
        try prepared.statement.bind(ValueSlice(verified: bytes, at: &position), in: bytes, at: parameter)
        parameter += 1
      }
    }
    guard try prepared.statement.attempt() != nil else { return true }
    batch.noteRefusal(of: rows)
    return false
  }

  /// Tries a change.
  ///
  /// - Returns: Why a constraint refuses it; nil when it was applied or decided as a conflict.
  func attempt(
    _ place: ChangePlace, _ bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws -> SQLiteRefusal? {
    change.read(place, in: bytes)
    switch place.operation {
    case .insert: return try insert(bytes, on: connection)
    case .update: return try update(bytes, on: connection)
    case .delete: return try delete(bytes, on: connection)
    }
  }

  private func insert(_ bytes: RawSpan, on connection: borrowing SQLiteConnection) throws -> SQLiteRefusal? {
    if expectsConflict {
      if let local = try localRow(bytes, on: connection) {
        defer { local.release() }
        return try meet(local, bytes, on: connection)
      }
      expectsConflict = false
    }
    let prepared = try statements.insert(on: connection)
    for column in 0..<statements.columnCount {
      try prepared.statement.bind(change.new(column), in: bytes, at: column)
    }
    guard let refusal = try run(prepared, on: connection) else {
      counts.inserted += 1
      return nil
    }
    guard let local = try localRow(bytes, on: connection) else { return refusal }
    defer { local.release() }
    expectsConflict = true
    return try meet(local, bytes, on: connection)
  }

  /// An INSERT meets a row with its key.
  private func meet(
    _ local: StandingRow, _ bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws -> SQLiteRefusal? {
    if !decider.asksAboutEverything, holdsNew(local, bytes) {
      counts.unchanged += 1
      return nil
    }
    let incident = ConflictIncident(
      kind: .conflict, operation: .insert, old: [], new: change.newRow, local: local)
    guard try takesIncoming(incident, bytes) else {
      try record(incident, .keptLocal, bytes, on: connection)
      return nil
    }
    let overwrite = try statements.overwrite(on: connection)
    for column in 0..<statements.columnCount {
      try overwrite.statement.bind(change.new(column), in: bytes, at: column)
    }
    if let refusal = try run(overwrite, on: connection) { return refusal }
    counts.updated += 1
    try record(incident, .tookIncoming, bytes, on: connection)
    return nil
  }

  private func update(_ bytes: RawSpan, on connection: borrowing SQLiteConnection) throws -> SQLiteRefusal? {
    // Only a key became another that SQLite takes for equal, which it writes and never applies.
    guard !change.changed.isEmpty else {
      counts.unchanged += 1
      return nil
    }
    if let refusal = try write(bytes, guardedBy: .oldValues, on: connection) { return refusal }
    guard connection.changes == 0 else {
      counts.updated += 1
      return nil
    }
    let local = try localRow(bytes, on: connection)
    defer { local?.release() }
    if let local, !decider.asksAboutEverything, holdsNew(local, bytes) {
      counts.unchanged += 1
      return nil
    }
    let incident = ConflictIncident(
      kind: local == nil ? .notFound : .data, operation: .update, old: change.oldRow, new: change.newRow,
      local: local)
    guard try takesIncoming(incident, bytes), local != nil else {
      try record(incident, local == nil ? .omitted : .keptLocal, bytes, on: connection)
      return nil
    }
    if let refusal = try write(bytes, guardedBy: .none, on: connection) { return refusal }
    counts.updated += 1
    try record(incident, .tookIncoming, bytes, on: connection)
    return nil
  }

  private func delete(_ bytes: RawSpan, on connection: borrowing SQLiteConnection) throws -> SQLiteRefusal? {
    if let refusal = try write(bytes, guardedBy: .oldValues, on: connection) { return refusal }
    guard connection.changes == 0 else {
      counts.deleted += 1
      return nil
    }
    let local = try localRow(bytes, on: connection)
    defer { local?.release() }
    if local == nil, !decider.asksAboutEverything {
      counts.unchanged += 1
      return nil
    }
    let incident = ConflictIncident(
      kind: local == nil ? .notFound : .data, operation: .delete, old: change.oldRow, new: [], local: local)
    guard try takesIncoming(incident, bytes), local != nil else {
      try record(incident, local == nil ? .omitted : .keptLocal, bytes, on: connection)
      return nil
    }
    if let refusal = try write(bytes, guardedBy: .none, on: connection) { return refusal }
    counts.deleted += 1
    try record(incident, .tookIncoming, bytes, on: connection)
    return nil
  }

  /// Runs the UPDATE or DELETE in hand; `changes` of the connection says whether there was a row for it.
  func write(
    _ bytes: RawSpan, guardedBy guardKind: TableStatements.Guard, on connection: borrowing SQLiteConnection
  ) throws -> SQLiteRefusal? {
    let isUpdate = change.operation == .update
    let prepared =
      isUpdate
      ? try statements.update(change, guardedBy: guardKind, on: connection)
      : try statements.delete(change, guardedBy: guardKind, on: connection)
    let columns = statements.columnCount
    let firstOld = isUpdate ? columns : 0
    for column in 0..<columns {
      if isUpdate, change.new(column).isDefined {
        try prepared.statement.bind(change.new(column), in: bytes, at: column)
      }
      // A statement that compares the key alone has no parameters for the other old values.
      let isCompared = statements.isKey[column] || (guardKind == .oldValues && change.old(column).isDefined)
      if isCompared { try prepared.statement.bind(change.old(column), in: bytes, at: firstOld + column) }
    }
    return try run(prepared, on: connection)
  }

  /// Runs a statement; on the last attempt the words of a refusal are kept, which the next statement would overwrite.
  func run(
    _ prepared: TableStatements.Prepared, on connection: borrowing SQLiteConnection
  ) throws -> SQLiteRefusal? {
    let refusal =
      if let indexes { try indexes.attempt(prepared.statement) } else { try prepared.statement.attempt() }
    guard let refusal else { return nil }
    if isLastAttempt { lastMessage = connection.withLastMessage { Array($0) } }
    return refusal
  }

  /// The local row with the key of the change in hand; nil when there is none, or when the key holds NULL and names no
  /// row. The statement stands on the row until that is released.
  func localRow(_ bytes: RawSpan, on connection: borrowing SQLiteConnection) throws -> StandingRow? {
    guard !change.hasNullKey else { return nil }
    let select = try statements.select(on: connection)
    for column in 0..<statements.columnCount where statements.isKey[column] {
      try select.statement.bind(change.row(column), in: bytes, at: column)
    }
    guard try select.statement.step() else {
      select.statement.reset()
      return nil
    }
    return StandingRow(select)
  }

  /// Whether the local row already is what the change makes of it.
  private func holdsNew(_ local: StandingRow, _ bytes: RawSpan) -> Bool {
    for column in 0..<statements.columnCount where !holds(local, change.new(column), at: column, bytes) { return false }
    return true
  }

  /// Whether the local row is as the author of the change saw it.
  func holdsOld(_ local: StandingRow, _ bytes: RawSpan) -> Bool {
    for column in 0..<statements.columnCount where !holds(local, change.old(column), at: column, bytes) { return false }
    return true
  }

  private func holds(_ local: StandingRow, _ value: ValueSlice, at column: Int, _ bytes: RawSpan) -> Bool {
    guard value.isDefined else { return true }
    let place = statements.match.columns[column]
    return local.holds(value, in: bytes, at: place, affinity: statements.affinities[place])
  }

  /// Asks what to do about a conflict.
  func takesIncoming(_ incident: ConflictIncident, _ bytes: RawSpan) throws -> Bool {
    try decider.decide(incident, layout, bytes) == .takeIncoming
  }

  /// Counts a conflict and writes it down.
  func record(
    _ incident: ConflictIncident, _ outcome: ConflictOutcome, _ bytes: RawSpan,
    on connection: borrowing SQLiteConnection
  ) throws {
    counts.conflicts += 1
    if outcome != .tookIncoming { counts.omitted += 1 }
    try decider.record(incident, outcome, layout, bytes, on: connection)
  }
}
