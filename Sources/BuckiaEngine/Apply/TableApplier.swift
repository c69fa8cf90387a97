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
  /// What became of a change at the first attempt.
  enum Attempt {
    case done
    /// A constraint refused it; it is worth another attempt when the table's other changes are done.
    ///
    /// `isDecided`: that the incoming version is wanted has been asked already.
    case refused(SQLiteRefusal, isDecided: Bool)
  }

  let statements: TableStatements
  let header: ChangesetTable
  let decider: ConflictDecider
  private let enforcesForeignKeys: Bool
  /// What conflicts of the table need to know of it.
  lazy var layout = ConflictLayout(statements)
  var counts = ApplyCounts()
  var deferred: [Deferred] = []
  /// Whether the keys of INSERTs have turned out to be taken. Where one is, more are, and SQLite is asked for less work on
  /// the way to the conflict then; not where a trigger would see the attempt.
  private var meetsTakenKeys = false
  /// Whether what is refused now is refused for good, so that SQLite's words about it are wanted.
  var isLastAttempt = false
  private(set) var lastMessage: [UInt8] = []
  /// Whether the answer to what the next attempt may ask is known: the incoming version is wanted.
  var isDecided = false
  private var knownHooks: RowHooks?

  init(_ match: TableMatch, header: ChangesetTable, decider: ConflictDecider, enforcesForeignKeys: Bool) {
    self.header = header
    self.decider = decider
    self.enforcesForeignKeys = enforcesForeignKeys
    statements = TableStatements(match, header: header)
  }

  /// Applies the change that the reader stands on.
  func apply(
    _ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws {
    let attempt = try attempt(change.operation, reader.old, reader.new, bytes, on: connection)
    if case .refused(let refusal, let isDecided) = attempt {
      deferred.append(Deferred(offset: change.range.lowerBound, refusal, isDecided: isDecided))
    }
  }

  /// What hangs on the table's rows, looked up when it first matters.
  func hooks(on connection: borrowing SQLiteConnection) throws -> RowHooks {
    if let knownHooks { return knownHooks }
    let hooks = try RowHooks(of: statements, enforcesForeignKeys: enforcesForeignKeys, on: connection)
    knownHooks = hooks
    return hooks
  }

  func attempt(
    _ operation: ChangeOperation, _ old: [ValueSlice], _ new: [ValueSlice], _ bytes: RawSpan,
    on connection: borrowing SQLiteConnection
  ) throws -> Attempt {
    switch operation {
    case .insert: try insert(new, bytes, on: connection)
    case .update: try update(old, new, bytes, on: connection)
    case .delete: try delete(old, bytes, on: connection)
    }
  }

  private func insert(
    _ new: [ValueSlice], _ bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws -> Attempt {
    let prepared =
      try meetsTakenKeys && !isLastAttempt
      ? statements.insertUnlessTaken(on: connection) : statements.insert(on: connection)
    try prepared.statement.bind(new, in: bytes)
    var refusal = try run(prepared, on: connection)
    if refusal == nil, meetsTakenKeys, !isLastAttempt, connection.changes == 0 { refusal = .taken }
    guard let refusal else {
      counts.inserted += connection.changes
      return .done
    }
    guard let local = try localRow(new, bytes, on: connection) else { return .refused(refusal, isDecided: false) }
    defer { local.release() }
    if !meetsTakenKeys { meetsTakenKeys = try !hooks(on: connection).hasTriggers }
    if !decider.asksAboutEverything, holds(local, new, bytes) {
      counts.unchanged += 1
      return .done
    }
    let incident = ConflictIncident(kind: .conflict, operation: .insert, old: [], new: new, local: local)
    if try takesIncoming(incident, bytes) {
      let attempt = try replace(local, new, bytes, on: connection)
      guard case .done = attempt else { return attempt }
      counts.updated += 1
      try record(incident, .tookIncoming, bytes, on: connection)
    } else {
      try record(incident, .keptLocal, bytes, on: connection)
    }
    return .done
  }

  /// Writes the row of an INSERT in the place of the one that has its key.
  private func replace(
    _ local: StandingRow, _ new: [ValueSlice], _ bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws -> Attempt {
    if try hooks(on: connection).rewritesInPlace {
      let overwrite = try statements.overwrite(on: connection)
      try overwrite.statement.bind(new, in: bytes)
      return try run(overwrite, on: connection).map { .refused($0, isDecided: true) } ?? .done
    }
    let row = try local.copied().replacing(new, in: bytes, columns: statements.match.columns)
    try connection.execute("SAVEPOINT buckia_replace")
    if let refusal = try write(.delete, new, [], bytes, guardedBy: .none, on: connection) {
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
      return .refused(refusal, isDecided: isGone)
    }
    try connection.execute("RELEASE buckia_replace")
    return .done
  }

  private func update(
    _ old: [ValueSlice], _ new: [ValueSlice], _ bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws -> Attempt {
    // Only a key became another that SQLite takes for equal, which it writes and never applies.
    guard new.contains(where: \.isDefined) else {
      counts.unchanged += 1
      return .done
    }
    if let refusal = try write(.update, old, new, bytes, guardedBy: .oldValues, on: connection) {
      return .refused(refusal, isDecided: false)
    }
    guard connection.changes == 0 else {
      counts.updated += 1
      return .done
    }
    let local = try localRow(old, bytes, on: connection)
    defer { local?.release() }
    if let local, !decider.asksAboutEverything, holds(local, new, bytes) {
      counts.unchanged += 1
      return .done
    }
    let incident = ConflictIncident(
      kind: local == nil ? .notFound : .data, operation: .update, old: old, new: new, local: local)
    if try takesIncoming(incident, bytes), local != nil {
      if let refusal = try write(.update, old, new, bytes, guardedBy: .none, on: connection) {
        return .refused(refusal, isDecided: true)
      }
      guard connection.changes > 0 else { return try omit(incident, bytes, on: connection) }
      counts.updated += 1
      try record(incident, .tookIncoming, bytes, on: connection)
    } else {
      try record(incident, local == nil ? .omitted : .keptLocal, bytes, on: connection)
    }
    return .done
  }

  private func delete(
    _ old: [ValueSlice], _ bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws -> Attempt {
    if let refusal = try write(.delete, old, [], bytes, guardedBy: .oldValues, on: connection) {
      return .refused(refusal, isDecided: false)
    }
    guard connection.changes == 0 else {
      counts.deleted += 1
      return .done
    }
    let local = try localRow(old, bytes, on: connection)
    defer { local?.release() }
    if local == nil, !decider.asksAboutEverything {
      counts.unchanged += 1
      return .done
    }
    let incident = ConflictIncident(
      kind: local == nil ? .notFound : .data, operation: .delete, old: old, new: [], local: local)
    if try takesIncoming(incident, bytes), local != nil {
      if let refusal = try write(.delete, old, [], bytes, guardedBy: .none, on: connection) {
        return .refused(refusal, isDecided: true)
      }
      guard connection.changes > 0 else { return try omit(incident, bytes, on: connection) }
      counts.deleted += 1
      try record(incident, .tookIncoming, bytes, on: connection)
    } else {
      try record(incident, local == nil ? .omitted : .keptLocal, bytes, on: connection)
    }
    return .done
  }

  /// A trigger keeps a row as it is that is to be changed: SQLite asks about it as about one that is not there.
  private func omit(
    _ incident: ConflictIncident, _ bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws -> Attempt {
    let missing = ConflictIncident(
      kind: .notFound, operation: incident.operation, old: incident.old, new: incident.new, local: nil)
    _ = try decider.decide(missing, layout, bytes)
    try record(missing, .omitted, bytes, on: connection)
    return .done
  }

  /// Runs an UPDATE or DELETE; says why a constraint refused it. `connection.changes` tells how many rows it changed.
  func write(
    _ operation: ChangeOperation, _ old: [ValueSlice], _ new: [ValueSlice], _ bytes: RawSpan,
    guardedBy guardKind: TableStatements.Guard, on connection: borrowing SQLiteConnection
  ) throws -> SQLiteRefusal? {
    // A statement that compares the key alone has no parameters for the other old values.
    var compared = old
    if guardKind == .none {
      for index in compared.indices where !statements.isKey[index] { compared[index] = .undefined }
    }
    if operation == .delete {
      let prepared = try statements.delete(old: old, guardedBy: guardKind, on: connection)
      try prepared.statement.bind(compared, in: bytes)
      return try run(prepared, on: connection)
    }
    let prepared = try statements.update(old: old, new: new, guardedBy: guardKind, on: connection)
    try prepared.statement.bind(new, in: bytes)
    try prepared.statement.bind(compared, in: bytes, from: statements.columnCount)
    return try run(prepared, on: connection)
  }

  /// Runs a statement; says why a row was refused.
  func run(
    _ prepared: TableStatements.Prepared, on connection: borrowing SQLiteConnection
  ) throws -> SQLiteRefusal? {
    let refusal = try prepared.statement.attempt()
    // A trigger may say `RAISE(ROLLBACK)`: nothing must be written behind the end of the transaction.
    if let refusal, !connection.isInTransaction {
      throw SQLiteError(
        code: refusal.code, message: connection.withLastMessage { String(decoding: $0, as: UTF8.self) },
        path: connection.path)
    }
    if refusal != nil, isLastAttempt { lastMessage = connection.withLastMessage { Array($0) } }
    return refusal
  }

  /// The local row with the key of a change; nil when there is none, or when the key holds NULL and names no row.
  ///
  /// The statement stands on the row until that is released.
  func localRow(
    _ row: [ValueSlice], _ bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws -> StandingRow? {
    guard !statements.hasNullKey(row) else { return nil }
    let select = try statements.select(on: connection)
    for index in row.indices where statements.isKey[index] {
      try select.statement.bind(row[index], in: bytes, at: index)
    }
    guard try select.statement.step() else {
      select.statement.reset()
      return nil
    }
    return StandingRow(select)
  }

  /// Whether the local row already is what the change makes of it.
  func holds(_ local: StandingRow, _ new: [ValueSlice], _ bytes: RawSpan) -> Bool {
    for index in new.indices where new[index].isDefined {
      let place = statements.match.columns[index]
      guard local.holds(new[index], in: bytes, at: place, affinity: statements.affinities[place]) else { return false }
    }
    return true
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
