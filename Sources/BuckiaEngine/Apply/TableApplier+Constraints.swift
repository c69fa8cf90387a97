import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// A change that a constraint refused, to be tried again when the others of its table are done.
struct Deferred {
  /// Where the change stands, and in the lowest bit whether another row was in the way. There can be millions.
  private let place: Int

  init(offset: Int, _ refusal: SQLiteRefusal) { place = offset << 1 | (refusal.isUniqueness ? 1 : 0) }

  /// The offset of the change in the changeset.
  var offset: Int { place >> 1 }
  /// Whether another row has the value or the key that the change gives its own.
  var isCrowdedOut: Bool { place & 1 != 0 }
}

// What becomes of changes that a constraint refused when the others of their table are done.
extension TableApplier {
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
    isLastAttempt = true
    for item in remaining {
      // The last attempt asks about the row once more, as SQLite does, before the constraint is asked about.
      guard let place = ChangePlace(at: item.offset, in: bytes),
        try attempt(place, bytes, on: connection) != nil
      else { continue }
      let local = try localRow(bytes, on: connection)
      defer { local?.release() }
      let incident = ConflictIncident(
        kind: .constraint, operation: place.operation, old: change.oldRow, new: change.newRow, local: local,
        message: lastMessage)
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
        guard let place = ChangePlace(at: item.offset, in: bytes) else { continue }
        try applyAlone(place, bytes, on: connection)
      }
    }
  }

  /// Settles UNIQUE swaps and cycles: all rows concerned are taken out, then put back with their new values.
  ///
  /// What cannot be put back stays as it was and remains refused.
  private func park(_ bytes: RawSpan, on connection: borrowing SQLiteConnection) throws {
    var items = deferred.filter(\.isCrowdedOut).map(\.offset)
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
      guard let place = ChangePlace(at: offset, in: bytes), place.operation == .update else {
        failed.insert(offset)
        continue
      }
      change.read(place, in: bytes)
      guard let row = try rowToPark(bytes, on: connection), try takeOut(bytes, on: connection) else {
        failed.insert(offset)
        continue
      }
      parked.append((offset, try row.replacing(change.newRow, in: bytes, columns: statements.match.columns)))
    }
    let restore = try statements.restore(on: connection)
    defer { restore.statement.clearBindings() }
    for item in parked {
      // The values are bound where they lie, so the statement runs while they are sure to stay there.
      let refusal = try item.row.bound(to: restore.statement) { try run(restore, on: connection) }
      if refusal != nil { failed.insert(item.offset) }
    }
    return failed
  }

  /// A copy of the row of the change in hand; nil when it is not as its author saw it.
  private func rowToPark(_ bytes: RawSpan, on connection: borrowing SQLiteConnection) throws -> LocalRow? {
    guard let local = try localRow(bytes, on: connection) else { return nil }
    defer { local.release() }
    return holdsOld(local, bytes) ? try local.copied() : nil
  }

  /// Deletes the row of the change in hand.
  private func takeOut(_ bytes: RawSpan, on connection: borrowing SQLiteConnection) throws -> Bool {
    let prepared = try statements.remove(on: connection)
    for column in 0..<statements.columnCount where statements.isKey[column] {
      try prepared.statement.bind(change.old(column), in: bytes, at: column)
    }
    return try run(prepared, on: connection) == nil && connection.changes == 1
  }
}
