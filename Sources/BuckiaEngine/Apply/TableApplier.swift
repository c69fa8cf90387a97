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
    case refused(SQLiteRefusal)
  }

  let statements: TableStatements
  let header: ChangesetTable
  let decider: ConflictDecider
  /// What conflicts of the table need to know of it.
  lazy var layout = ConflictLayout(statements)
  var counts = ApplyCounts()
  var deferred: [Deferred] = []
  /// Whether what is refused now is refused for good, so that SQLite's words about it are wanted.
  var isLastAttempt = false
  private(set) var lastMessage: [UInt8] = []

  init(_ match: TableMatch, header: ChangesetTable, decider: ConflictDecider) {
    self.header = header
    self.decider = decider
    statements = TableStatements(match, header: header)
  }

  /// Applies the change that the reader stands on.
  func apply(
    _ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws {
    if case .refused(let refusal) = try attempt(change.operation, reader.old, reader.new, bytes, on: connection) {
      deferred.append(Deferred(offset: change.range.lowerBound, refusal))
    }
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
    let prepared = try statements.insert(on: connection)
    try prepared.statement.bind(new, in: bytes)
    guard let refusal = try run(prepared, on: connection) else {
      counts.inserted += 1
      return .done
    }
    guard let local = try localRow(new, bytes, on: connection) else { return .refused(refusal) }
    defer { local.release() }
    if !decider.asksAboutEverything, holds(local, new, bytes) {
      counts.unchanged += 1
      return .done
    }
    let incident = ConflictIncident(kind: .conflict, operation: .insert, old: [], new: new, local: local)
    if try takesIncoming(incident, bytes) {
      let overwrite = try statements.overwrite(on: connection)
      try overwrite.statement.bind(new, in: bytes)
      if let refusal = try run(overwrite, on: connection) { return .refused(refusal) }
      counts.updated += 1
      try record(incident, .tookIncoming, bytes, on: connection)
    } else {
      try record(incident, .keptLocal, bytes, on: connection)
    }
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
      return .refused(refusal)
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
        return .refused(refusal)
      }
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
      return .refused(refusal)
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
        return .refused(refusal)
      }
      counts.deleted += 1
      try record(incident, .tookIncoming, bytes, on: connection)
    } else {
      try record(incident, local == nil ? .omitted : .keptLocal, bytes, on: connection)
    }
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

  private func run(
    _ prepared: TableStatements.Prepared, on connection: borrowing SQLiteConnection
  ) throws -> SQLiteRefusal? {
    let refusal = try prepared.statement.attempt()
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
