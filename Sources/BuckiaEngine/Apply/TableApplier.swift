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
  /// A change that a constraint refused; it is worth another attempt when the table's other changes are done.
  struct Refused {
    let refusal: SQLiteRefusal
    /// That the incoming version is wanted has been asked already.
    var isDecided = false
  }

  let statements: TableStatements
  let header: ChangesetTable
  let decider: ConflictDecider
  /// Keeps the indexes over the table, where triggers would.
  private let indexes: IndexMaintenance?
  private let enforcesForeignKeys: Bool
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
  /// Whether the answer to what the next attempt may ask is known: the incoming version is wanted.
  var isDecided = false
  /// Whether the last INSERT met a row with its key: the next one then looks before it leaps, unless a trigger would see
  /// the attempt.
  private var expectsConflict = false
  private var knownHooks: RowHooks?
  /// The greatest rowid that any change names as its key.
  private(set) var greatestRowID: Int64 = 0
  /// Whether the database stores text as UTF-16, and the columns with text for which that has no room.
  private let storesUTF16: Bool
  private(set) var alteredText: Set<Int> = []

  /// - Parameter canBatch: Whether several rows may go in with one statement: nothing of ours or of the application's may
  ///   see the difference.
  init(
    _ statements: TableStatements, header: ChangesetTable, decider: ConflictDecider, keeping indexes: IndexMaintenance?,
    enforcesForeignKeys: Bool, canBatch: Bool, storesUTF16: Bool = false
  ) {
    self.storesUTF16 = storesUTF16
    self.statements = statements
    self.header = header
    self.decider = decider
    self.indexes = indexes
    self.enforcesForeignKeys = enforcesForeignKeys
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
    if let refused = try attempt(place, bytes, on: connection) {
      deferred.append(Deferred(offset: place.start, refused.refusal, isDecided: refused.isDecided))
    }
  }

  /// What hangs on the table's rows, looked up when it first matters.
  func hooks(on connection: borrowing SQLiteConnection) throws -> RowHooks {
    if let knownHooks { return knownHooks }
    let hooks = try RowHooks(of: statements, enforcesForeignKeys: enforcesForeignKeys, on: connection)
    knownHooks = hooks
    return hooks
  }

  /// Applies the INSERTs that wait for a batch to be full.
  func flush(_ bytes: RawSpan, on connection: borrowing SQLiteConnection) throws {
    var next = 0
    while next < batch.count {
      let rows = batch.rows(from: next)
      if rows > 1 { next += try insert(rows, from: next, bytes, on: connection) }
      // The rest of a batch that was refused begins with the row that is to blame, or goes in row by row at any rate.
      guard next < batch.count, batch.rows(from: next) == 1 else { continue }
      let before = counts.inserted
      if let place = ChangePlace(at: batch.start(next), in: bytes) { try applyAlone(place, bytes, on: connection) }
      batch.noteSingle(wasRefused: counts.inserted == before)
      next += 1
    }
    batch.removeAll()
  }

  /// From how many bytes on a row goes in alone.
  private static let batchedRowLimit = 256 << 10

  /// Inserts several rows with one statement.
  ///
  /// - Returns: How many went in.
  private func insert(
    _ rows: Int, from first: Int, _ bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws -> Int {
    let prepared = try statements.insert(rows: rows, on: connection)
    let limit = min(Self.batchedRowLimit, statements.lengthLimit / 2)
    let storedExactly = statements.storedExactly
    // Rows that go by their content have none, and get one.
    let needsRowID = !statements.match.local.goesByRowID
    // Taken out of their objects: this is done for every value.
    let (columnCount, rowIDKey, looksAtText) = (statements.columnCount, statements.rowIDKey, storesUTF16)
    var greatest = greatestRowID
    defer { greatestRowID = greatest }
    var parameter = 0
    for index in first..<(first + rows) {
      var position = batch.start(index) + 2
      var size = 0
      for column in 0..<columnCount {
        let value = ValueSlice(verified: bytes, at: &position)
        size += value.count
        // SQLite does not say how many rows went in before one that is too large, or has something else for a rowid.
        // Nor is a row for a virtual table looked at here that would be altered by it.
        let isRowID = column == rowIDKey
        if size > limit || (isRowID && value.kind != .integer && (needsRowID || value.kind != .null))
          || storedExactly?.admits(value, at: column, in: bytes) == false
        {
          batch.noteRefusal(of: rows)
          return 0
        }
        if looksAtText { noteText(value, column, in: bytes) }
        if isRowID, value.kind == .integer {
          greatest = max(greatest, value.integer(in: bytes))
        }
        try prepared.statement.bind(value, in: bytes, at: parameter)
        parameter += 1
      }
    }
    guard try prepared.statement.attempt() != nil else {
      counts.inserted += rows
      return rows
    }
    batch.noteRefusal(of: rows)
    let inserted = connection.changes
    counts.inserted += inserted
    return inserted
  }

  /// Tries a change.
  ///
  /// - Returns: Why a constraint refuses it; nil when it was applied or decided as a conflict.
  func attempt(
    _ place: ChangePlace, _ bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws -> Refused? {
    change.read(place, in: bytes)
    if let key = statements.rowIDKey, change.row(key).kind == .integer {
      greatestRowID = max(greatestRowID, change.row(key).integer(in: bytes))
    }
    if storesUTF16, change.operation != .delete {
      for column in 0..<statements.columnCount { noteText(change.new(column), column, in: bytes) }
    }
    return try attempt(change, bytes, on: connection)
  }

  private func noteText(_ value: ValueSlice, _ column: Int, in bytes: RawSpan) {
    guard value.kind == .text, !value.survivesUTF16(in: bytes) else { return }
    alteredText.insert(column)
  }

  /// Tries a change that has been taken apart.
  func attempt(
    _ change: DecodedChange, _ bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws -> Refused? {
    if let storedExactly = statements.storedExactly, !storedExactly.admit(change, in: bytes) {
      lastMessage = Array("the virtual table \(statements.name) would store another value than the one that came".utf8)
      return Refused(refusal: .altered)
    }
    switch change.operation {
    case .insert: return try insert(change, bytes, on: connection)
    case .update: return try update(change, bytes, on: connection)
    case .delete: return try delete(change, bytes, on: connection)
    }
  }

  private func insert(
    _ change: DecodedChange, _ bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws -> Refused? {
    if expectsConflict, !isLastAttempt {
      if let local = try localRow(of: change, bytes, on: connection) {
        defer { local.release() }
        return try meet(local, change, bytes, on: connection)
      }
      expectsConflict = false
    }
    let prepared = try statements.insert(on: connection)
    for column in 0..<statements.columnCount {
      try prepared.statement.bind(change.new(column), in: bytes, at: column)
    }
    guard let refusal = try run(prepared, on: connection) else {
      // A trigger may have kept the row out without a word.
      counts.inserted += connection.changes
      return nil
    }
    guard let local = try localRow(of: change, bytes, on: connection) else { return Refused(refusal: refusal) }
    defer { local.release() }
    if !expectsConflict { expectsConflict = try !hooks(on: connection).hasTriggers }
    return try meet(local, change, bytes, on: connection)
  }

  /// An INSERT meets a row with its key.
  private func meet(
    _ local: StandingRow, _ change: DecodedChange, _ bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws -> Refused? {
    if !decider.asksAboutEverything, holdsNew(local, change, bytes) {
      counts.unchanged += 1
      return nil
    }
    let incident = ConflictIncident(
      kind: .conflict, operation: .insert, old: [], new: change.newRow, local: local)
    guard try takesIncoming(incident, bytes) else {
      try record(incident, .keptLocal, bytes, on: connection)
      return nil
    }
    if let refused = try replace(local, change, bytes, on: connection) { return refused }
    counts.updated += 1
    try record(incident, .tookIncoming, bytes, on: connection)
    return nil
  }

  /// Writes the row of an INSERT in the place of the one that has its key.
  private func replace(
    _ local: StandingRow, _ change: DecodedChange, _ bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws -> Refused? {
    if try hooks(on: connection).rewritesInPlace {
      let overwrite = try statements.overwrite(on: connection)
      for column in 0..<statements.columnCount {
        try overwrite.statement.bind(change.new(column), in: bytes, at: column)
      }
      return try run(overwrite, on: connection).map { Refused(refusal: $0, isDecided: true) }
    }
    let row = try local.copied().replacing(change.newRow, in: bytes, columns: statements.match.columns)
    try connection.execute("SAVEPOINT buckia_replace")
    if let refusal = try remove(change, bytes, guardedBy: .none, on: connection) {
      try connection.execute("RELEASE buckia_replace")
      // So it is with SQLite: a row that cannot be taken away for its replacement stops the whole.
      throw EngineError(
        .conflict,
        "a row of table \"\(statements.name)\" is to be replaced and cannot be deleted (SQLite error \(refusal.code)); "
          + "nothing of this file is applied", table: statements.name.text)
    }
    let isGone = connection.changes > 0
    let restore = try statements.restore(on: connection)
    defer { restore.statement.clearBindings() }
    if let refusal = try row.insert(with: restore, running: { try run($0, on: connection) }) {
      // The local row must not be lost for one that cannot be written.
      try connection.execute("ROLLBACK TO buckia_replace; RELEASE buckia_replace")
      return Refused(refusal: refusal, isDecided: isGone)
    }
    try connection.execute("RELEASE buckia_replace")
    return nil
  }

  private func update(
    _ change: DecodedChange, _ bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws -> Refused? {
    // Only a key became another that SQLite takes for equal, which it writes and never applies.
    guard !change.changed.isEmpty else {
      counts.unchanged += 1
      return nil
    }
    if let refusal = try write(change, bytes, guardedBy: .oldValues, on: connection) {
      return Refused(refusal: refusal)
    }
    guard connection.changes == 0 else {
      counts.updated += 1
      return nil
    }
    let local = try localRow(of: change, bytes, on: connection)
    defer { local?.release() }
    if let local, !decider.asksAboutEverything, holdsNew(local, change, bytes) {
      counts.unchanged += 1
      return nil
    }
    let incident = ConflictIncident(
      kind: local == nil ? .notFound : .data, operation: .update, old: change.oldRow, new: change.newRow, local: local)
    guard try takesIncoming(incident, bytes), local != nil else {
      try record(incident, local == nil ? .omitted : .keptLocal, bytes, on: connection)
      return nil
    }
    if let refusal = try write(change, bytes, guardedBy: .none, on: connection) {
      return Refused(refusal: refusal, isDecided: true)
    }
    guard connection.changes > 0 else { return try omit(incident, bytes, on: connection) }
    counts.updated += 1
    try record(incident, .tookIncoming, bytes, on: connection)
    return nil
  }

  private func delete(
    _ change: DecodedChange, _ bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws -> Refused? {
    if let refusal = try write(change, bytes, guardedBy: .oldValues, on: connection) {
      return Refused(refusal: refusal)
    }
    guard connection.changes == 0 else {
      counts.deleted += 1
      return nil
    }
    let local = try localRow(of: change, bytes, on: connection)
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
    if let refusal = try write(change, bytes, guardedBy: .none, on: connection) {
      return Refused(refusal: refusal, isDecided: true)
    }
    guard connection.changes > 0 else { return try omit(incident, bytes, on: connection) }
    counts.deleted += 1
    try record(incident, .tookIncoming, bytes, on: connection)
    return nil
  }

  /// A trigger keeps a row as it is that is to be changed: SQLite asks about it as about one that is not there.
  private func omit(
    _ incident: ConflictIncident, _ bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws -> Refused? {
    let missing = ConflictIncident(
      kind: .notFound, operation: incident.operation, old: incident.old, new: incident.new, local: nil)
    _ = try decider.decide(missing, layout, bytes)
    try record(missing, .omitted, bytes, on: connection)
    return nil
  }

  /// Runs an UPDATE or DELETE; says why a constraint refused it. `changes` of the connection tells whether there was a row
  /// for it.
  func write(
    _ change: DecodedChange, _ bytes: RawSpan, guardedBy guardKind: TableStatements.Guard,
    on connection: borrowing SQLiteConnection
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

  /// Deletes the row with the key of a change, which holds no NULL, whatever the change itself does; says why that is
  /// refused.
  func remove(
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

  /// Runs a statement; on the last attempt the words of a refusal are kept, which the next statement would overwrite.
  func run(
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
    if isLastAttempt { lastMessage = connection.withLastMessage { Array($0) } }
    return refusal
  }

  /// The local row with the key of a change; nil when there is none, or when the key holds NULL and names no row.
  ///
  /// The statement stands on the row until that is released.
  func localRow(
    of change: DecodedChange, _ bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws -> StandingRow? {
    guard !change.hasNullKey else { return nil }
    let queries = try statements.select(on: connection)
    for query in queries {
      for column in 0..<statements.columnCount where statements.isKey[column] {
        try query.statement.bind(change.row(column), in: bytes, at: column)
      }
      guard try query.statement.step() else {
        for query in queries { query.statement.reset() }
        return nil
      }
    }
    guard statements.isVirtual, queries.count == 1, let query = queries.first else { return StandingRow(queries) }
    // An R-tree cannot be written while a statement stands on one of its rows.
    defer { query.statement.reset() }
    let copy = try statements.copy(on: connection)
    copy.statement.reset()
    for place in 0..<query.statement.columnCount {
      try copy.statement.bind(column: place, of: query.statement, at: place)
    }
    return try copy.statement.step() ? StandingRow([copy]) : nil
  }

  /// Whether the local row already is what the change makes of it.
  private func holdsNew(_ local: StandingRow, _ change: DecodedChange, _ bytes: RawSpan) -> Bool {
    for column in 0..<statements.columnCount where !holds(local, change.new(column), at: column, bytes) { return false }
    return true
  }

  private func holds(_ local: StandingRow, _ value: ValueSlice, at column: Int, _ bytes: RawSpan) -> Bool {
    guard value.isDefined else { return true }
    let place = statements.match.columns[column]
    return local.holds(value, in: bytes, at: place, affinity: statements.affinities[place])
  }

  /// Asks what to do about a conflict.
  func takesIncoming(_ incident: ConflictIncident, _ bytes: RawSpan) throws -> Bool {
    try isDecided || decider.decide(incident, layout, bytes) == .takeIncoming
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
