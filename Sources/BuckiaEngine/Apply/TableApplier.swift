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
  private struct Deferred {
    let offset: Int
    let error: SQLiteError
  }

  let statements: TableStatements
  let header: ChangesetTable
  let decider: ConflictDecider
  var counts = ApplyCounts()
  private var deferred: [Deferred] = []

  init(_ match: TableMatch, header: ChangesetTable, decider: ConflictDecider, keeping indexes: IndexUpkeep?) {
    self.header = header
    self.decider = decider
    statements = TableStatements(match, header: header, keeping: indexes)
  }

  /// Applies the change that the reader stands on.
  func apply(
    _ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws {
    if case .refused(let error) = try attempt(change.operation, reader.old, reader.new, bytes, on: connection) {
      deferred.append(Deferred(offset: change.range.lowerBound, error: error))
    }
  }

  private func attempt(
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
      try prepared.run()
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
        try overwrite.run()
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
  private func write(
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
      try prepared.run()
      return connection.changes
    }
    let prepared = try statements.update(old: old, new: new, guardedBy: guardKind, on: connection)
    try prepared.statement.bind(new, in: bytes)
    try prepared.statement.bind(compared, in: bytes, from: statements.columnCount)
    try prepared.run()
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
  private func holds(_ local: LocalRow, _ new: [ValueSlice], _ bytes: RawSpan) -> Bool {
    for index in new.indices where new[index].isDefined {
      let place = statements.match.columns[index]
      guard local.holds(new[index], in: bytes, at: place, affinity: statements.affinities[place]) else { return false }
    }
    return true
  }

  /// Asks what to do about a conflict.
  private func takesIncoming(_ incident: ConflictIncident, _ bytes: RawSpan) throws -> Bool {
    try decider.decide(incident, statements, bytes) == .takeIncoming
  }

  /// Counts a conflict and writes it down.
  private func record(
    _ incident: ConflictIncident, _ outcome: ConflictOutcome, _ bytes: RawSpan,
    on connection: borrowing SQLiteConnection
  ) throws {
    counts.conflicts += 1
    if outcome != .tookIncoming { counts.omitted += 1 }
    try decider.record(incident, outcome, statements, bytes, on: connection)
  }

  // MARK: Constraints

  /// As long as a list of refused changes is no longer than this, it is tried again while any of it settles.
  private static let shortList = 64
  /// How often parking is tried, each time without the rows that had to stay out.
  private static let parkingRounds = 8

  /// Tries the refused changes again until no more of them can be applied; the rest are conflicts.
  func settleDeferred(_ bytes: RawSpan, on connection: borrowing SQLiteConnection, canPark: Bool) throws {
    try retryDeferred(bytes, on: connection, untilStuck: !canPark)
    if canPark, deferred.count > 1 {
      let count = deferred.count
      try park(bytes, on: connection)
      if deferred.count < count { try retryDeferred(bytes, on: connection, untilStuck: false) }
    }
    let remaining = deferred
    deferred = []
    for item in remaining {
      var reader = ChangesetReader(at: item.offset, in: header)
      guard let change = try reader.next(in: bytes) else { continue }
      // The last attempt asks about the row once more, as SQLite does, before the constraint is asked about.
      guard case .refused(let error) = try attempt(change.operation, reader.old, reader.new, bytes, on: connection)
      else { continue }
      let row = change.operation == .insert ? reader.new : reader.old
      let incident = ConflictIncident(
        kind: .constraint, operation: change.operation, old: reader.old, new: reader.new,
        local: try localRow(row, bytes, on: connection), error: error)
      // No answer but "abort" makes a difference: a row that breaks a constraint cannot be written.
      _ = try takesIncoming(incident, bytes)
      try record(incident, .omitted, bytes, on: connection)
    }
  }

  /// - Parameter untilStuck: Whether to go on while anything settles. Else a long list is given up when a round settles
  ///   less than half of it, because the work would be quadratic.
  private func retryDeferred(
    _ bytes: RawSpan, on connection: borrowing SQLiteConnection, untilStuck: Bool
  ) throws {
    var before = Int.max
    while !deferred.isEmpty, deferred.count < before {
      if !untilStuck, deferred.count > Self.shortList, deferred.count > before / 2, before != Int.max { return }
      before = deferred.count
      let items = deferred
      deferred = []
      for item in items {
        var reader = ChangesetReader(at: item.offset, in: header)
        guard let change = try reader.next(in: bytes) else { continue }
        try apply(change, reader, bytes, on: connection)
      }
    }
  }

  /// Settles UNIQUE swaps and cycles: all rows concerned are taken out, then put back with their new values.
  ///
  /// What cannot be put back stays as it was and remains refused.
  private func park(_ bytes: RawSpan, on connection: borrowing SQLiteConnection) throws {
    var items = deferred.filter(\.error.isUniqueness).map(\.offset)
    for _ in 0..<Self.parkingRounds where items.count > 1 {
      try connection.execute("SAVEPOINT buckia_park")
      let failed: Set<Int>
      do {
        failed = try exchange(items, bytes, on: connection)
        try connection.execute(
          failed.isEmpty ? "RELEASE buckia_park" : "ROLLBACK TO buckia_park; RELEASE buckia_park")
      } catch {
        // Inside an error there may be no transaction left to go back in; the caller rolls back everything then.
        if connection.isInTransaction {
          try connection.execute("ROLLBACK TO buckia_park; RELEASE buckia_park")
        }
        throw error
      }
      if failed.isEmpty {
        counts.updated += items.count
        let settled = Set(items)
        deferred.removeAll { settled.contains($0.offset) }
        return
      }
      items.removeAll { failed.contains($0) }
    }
  }

  /// Takes out the rows of these updates and puts them back changed.
  ///
  /// - Returns: Those that could not be done; everything is to be taken back then.
  private func exchange(
    _ offsets: [Int], _ bytes: RawSpan, on connection: borrowing SQLiteConnection
  ) throws -> Set<Int> {
    var parked: [(offset: Int, row: LocalRow)] = []
    var failed: Set<Int> = []
    for offset in offsets {
      var reader = ChangesetReader(at: offset, in: header)
      guard let change = try reader.next(in: bytes), change.operation == .update,
        let local = try localRow(reader.old, bytes, on: connection), holds(local, reader.old, bytes),
        try write(.delete, reader.old, [], bytes, guardedBy: .none, on: connection) == 1
      else {
        failed.insert(offset)
        continue
      }
      parked.append((offset, try local.replacing(reader.new, in: bytes, columns: statements.match.columns)))
    }
    let restore = try statements.restore(on: connection)
    defer { restore.statement.clearBindings() }
    for item in parked where try !item.row.insert(with: restore) { failed.insert(item.offset) }
    return failed
  }
}

extension SQLiteError {
  /// Whether another row has the value or the key already: parking can help then.
  /// See <https://sqlite.org/rescode.html#constraint_unique>.
  fileprivate var isUniqueness: Bool { [1555, 2067, 2579].contains(code) }
}
