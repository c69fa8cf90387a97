import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// A change that a constraint refused, to be tried again when the others of its table are done. There can be millions.
struct Deferred {
  /// Where the change stands, and two flags in the lowest bits.
  private let place: Int

  init(offset: Int, _ refusal: SQLiteRefusal, isDecided: Bool) {
    place = offset << 2 | (refusal.isUniqueness ? 1 : 0) | (isDecided ? 2 : 0)
  }

  /// The offset of the change in the changeset.
  var offset: Int { place >> 2 }
  /// Whether another row has the value or the key that the change gives its own.
  var isCrowdedOut: Bool { place & 1 != 0 }
  /// Whether it met a local row, and the incoming version is to win.
  var isDecided: Bool { place & 2 != 0 }
}

// What becomes of changes that a constraint refused when the others of their table are done.
extension TableApplier {
  /// As long as a list of refused changes is no longer than this, it is tried again as SQLite does: from its beginning,
  /// while any of it settles. In a longer one, those who stand in each other's way are told apart first.
  private static let shortList = 64
  /// How often a list is tried again at most. A long one is gone through the other way in every second round, so that rows
  /// which wait for each other settle in one of two, whichever way round they stand.
  private static let rounds = 256

  /// Tries the refused changes again until no more of them can be applied; the rest are conflicts.
  ///
  /// - Parameter poll: Is called now and then; may throw to stop.
  func settleDeferred(
    _ bytes: RawSpan, on connection: borrowing SQLiteConnection, poll: () throws -> Void
  ) throws {
    guard !deferred.isEmpty else { return }
    if deferred.count <= Self.shortList { try retryDeferred(bytes, on: connection, poll: poll) }
    var hasSettled = deferred.count > Self.shortList
    if deferred.contains(where: \.isCrowdedOut) {
      var crowd = try Crowd(self, bytes, on: connection)
      if try crowd.settle(bytes, on: connection, poll: poll) { hasSettled = true }
    }
    if hasSettled { try retryDeferred(bytes, on: connection, poll: poll) }
    try giveUpDeferred(bytes, on: connection, poll: poll)
  }

  /// Tries all deferred changes again, and those that remain once more, while any of them settles.
  private func retryDeferred(
    _ bytes: RawSpan, on connection: borrowing SQLiteConnection, poll: () throws -> Void
  ) throws {
    var goesBackward = false
    for _ in 0..<Self.rounds {
      let items = deferred
      let isLong = items.count > Self.shortList
      guard !items.isEmpty else { return }
      deferred = []
      goesBackward = isLong && !goesBackward
      for index in items.indices {
        let item = goesBackward ? items[items.count - 1 - index] : items[index]
        guard let place = ChangePlace(at: item.offset, in: bytes) else { continue }
        // Whether an INSERT may take the place of a row is asked once, as SQLite does, which has deleted the row by now.
        isDecided = item.isDecided && place.operation == .insert
        try applyAlone(place, bytes, on: connection)
        isDecided = false
        if index % 4_096 == 4_095 { try poll() }
      }
      if goesBackward { deferred.reverse() }
      guard deferred.count < items.count else { return }
    }
  }

  /// Tries each deferred change for the last time; what is refused now is a conflict.
  private func giveUpDeferred(
    _ bytes: RawSpan, on connection: borrowing SQLiteConnection, poll: () throws -> Void
  ) throws {
    let remaining = deferred
    deferred = []
    isLastAttempt = true
    for (index, item) in remaining.enumerated() {
      if index % 4_096 == 4_095 { try poll() }
      guard let place = ChangePlace(at: item.offset, in: bytes) else { continue }
      isDecided = item.isDecided && place.operation == .insert
      let refused = try attempt(place, bytes, on: connection)
      isDecided = false
      guard refused != nil else { continue }
      let local = try localRow(of: change, bytes, on: connection)
      defer { local?.release() }
      let incident = ConflictIncident(
        kind: .constraint, operation: place.operation, old: change.oldRow, new: change.newRow, local: local,
        message: lastMessage)
      // No answer but "abort" makes a difference: a row that breaks a constraint cannot be written.
      _ = try takesIncoming(incident, bytes)
      try record(incident, .omitted, bytes, on: connection)
    }
  }
}
