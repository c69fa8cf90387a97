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
    case refused(SQLiteError)
  }

  /// A change that a constraint refused.
  struct Deferred {
    let offset: Int
    let error: SQLiteError
  }

  let statements: TableStatements
  let header: ChangesetTable
  let decider: ConflictDecider
  var counts = ApplyCounts()
  var deferred: [Deferred] = []

  init(_ match: TableMatch, header: ChangesetTable, decider: ConflictDecider) {
    self.header = header
    self.decider = decider
    statements = TableStatements(match, header: header)
  }

  /// Applies the change that the reader stands on.
  func apply(
    _ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws {
    if case .refused(let error) = try attempt(change.operation, reader.old, reader.new, bytes, on: connection) {
      deferred.append(Deferred(offset: change.range.lowerBound, error: error))
    }
  }

  func attempt(
    _ operation: ChangeOperation, _ old: [ValueSlice], _ new: [ValueSlice], _ bytes: RawSpan,
    on connection: borrowing SQLiteConnection
  ) throws -> Attempt {
    do {
      switch operation {
      case .insert: try insert(new, bytes, on: connection)
      case .update: try update(old, new, bytes, on: connection)
      case .delete: try delete(old, bytes, on: connection)
      }
      return .done
    } catch let error as SQLiteError where error.isConstraint || error.isMismatch || error.isTooBig {
      return .refused(error)
    }
  }

  private func insert(_ new: [ValueSlice], _ bytes: RawSpan, on connection: borrowing SQLiteConnection) throws {
    let prepared = try statements.insert(on: connection)
    do {
      try prepared.statement.bind(new, in: bytes)
      try prepared.statement.run()
      counts.inserted += 1
    } catch  where error.isConstraint {
      guard let local = try localRow(new, bytes, on: connection) else { throw error }
      if !decider.asksAboutEverything, holds(local, new, bytes) {
        counts.unchanged += 1
        return
      }
      let incident = ConflictIncident(kind: .conflict, operation: .insert, old: [], new: new, local: local, error: nil)
      if try takesIncoming(incident, bytes) {
        let overwrite = try statements.overwrite(on: connection)
        try overwrite.statement.bind(new, in: bytes)
        try overwrite.statement.run()
        counts.updated += 1
        try record(incident, .tookIncoming, bytes, on: connection)
      } else {
        try record(incident, .keptLocal, bytes, on: connection)
      }
    }
  }

  private func update(
    _ old: [ValueSlice], _ new: [ValueSlice], _ bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws {
    // Only a key became another that SQLite takes for equal, which it writes and never applies.
    guard new.contains(where: \.isDefined) else {
      counts.unchanged += 1
      return
    }
    guard try write(.update, old, new, bytes, guardedBy: .oldValues, on: connection) == 0 else {
      counts.updated += 1
      return
    }
    let local = try localRow(old, bytes, on: connection)
    if let local, !decider.asksAboutEverything, holds(local, new, bytes) {
      counts.unchanged += 1
      return
    }
    let incident = ConflictIncident(
      kind: local == nil ? .notFound : .data, operation: .update, old: old, new: new, local: local, error: nil)
    if try takesIncoming(incident, bytes), local != nil {
      _ = try write(.update, old, new, bytes, guardedBy: .none, on: connection)
      counts.updated += 1
      try record(incident, .tookIncoming, bytes, on: connection)
    } else {
      try record(incident, local == nil ? .omitted : .keptLocal, bytes, on: connection)
    }
  }

  private func delete(_ old: [ValueSlice], _ bytes: RawSpan, on connection: borrowing SQLiteConnection) throws {
    guard try write(.delete, old, [], bytes, guardedBy: .oldValues, on: connection) == 0 else {
      counts.deleted += 1
      return
    }
    let local = try localRow(old, bytes, on: connection)
    if local == nil, !decider.asksAboutEverything {
      counts.unchanged += 1
      return
    }
    let incident = ConflictIncident(
      kind: local == nil ? .notFound : .data, operation: .delete, old: old, new: [], local: local, error: nil)
    if try takesIncoming(incident, bytes), local != nil {
      _ = try write(.delete, old, [], bytes, guardedBy: .none, on: connection)
      counts.deleted += 1
      try record(incident, .tookIncoming, bytes, on: connection)
    } else {
      try record(incident, local == nil ? .omitted : .keptLocal, bytes, on: connection)
    }
  }

  /// Runs an UPDATE or DELETE and says how many rows it changed.
  func write(
    _ operation: ChangeOperation, _ old: [ValueSlice], _ new: [ValueSlice], _ bytes: RawSpan,
    guardedBy guardKind: TableStatements.Guard, on connection: borrowing SQLiteConnection
  ) throws -> Int {
    // A statement that compares the key alone has no parameters for the other old values.
    var compared = old
    if guardKind == .none {
      for index in compared.indices where !statements.isKey[index] { compared[index] = .undefined }
    }
    if operation == .delete {
      let prepared = try statements.delete(old: old, guardedBy: guardKind, on: connection)
      try prepared.statement.bind(compared, in: bytes)
      try prepared.statement.run()
      return connection.changes
    }
    let prepared = try statements.update(old: old, new: new, guardedBy: guardKind, on: connection)
    try prepared.statement.bind(new, in: bytes)
    try prepared.statement.bind(compared, in: bytes, from: statements.columnCount)
    try prepared.statement.run()
    return connection.changes
  }

  /// The local row with the key of a change; nil when there is none, or when the key holds NULL and names no row.
  func localRow(
    _ row: [ValueSlice], _ bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws -> LocalRow? {
    guard !statements.hasNullKey(row) else { return nil }
    let select = try statements.select(on: connection)
    for index in row.indices where statements.isKey[index] {
      try select.statement.bind(row[index], in: bytes, at: index)
    }
    defer { select.statement.reset() }
    guard try select.statement.step() else { return nil }
    return try LocalRow(copying: select.statement)
  }

  /// Whether the local row already is what the change makes of it.
  func holds(_ local: LocalRow, _ new: [ValueSlice], _ bytes: RawSpan) -> Bool {
    for index in new.indices where new[index].isDefined {
      let place = statements.match.columns[index]
      guard local.holds(new[index], in: bytes, at: place, affinity: statements.affinities[place]) else { return false }
    }
    return true
  }

  /// Asks what to do about a conflict.
  func takesIncoming(_ incident: ConflictIncident, _ bytes: RawSpan) throws -> Bool {
    try decider.decide(incident, statements, bytes) == .takeIncoming
  }

  /// Counts a conflict and writes it down.
  func record(
    _ incident: ConflictIncident, _ outcome: ConflictOutcome, _ bytes: RawSpan,
    on connection: borrowing SQLiteConnection
  ) throws {
    counts.conflicts += 1
    if outcome != .tookIncoming { counts.omitted += 1 }
    try decider.record(incident, outcome, statements, bytes, on: connection)
  }
}
