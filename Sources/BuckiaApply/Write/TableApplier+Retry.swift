import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Tries the changes of a table that a constraint refused again, when the table's other changes are done. What cannot be
/// applied in the end is a conflict.
extension TableApplier {
  /// Up to this length, a list of refused changes is tried as SQLite does: from its beginning, while any change succeeds. In a
  /// longer one, violations of UNIQUE are resolved first.
  private static let shortList = 64
  /// The most rounds for a list. Every second round goes through a long list backwards: rows that wait for each other
  /// succeed in one of two rounds, whatever their order.
  private static let rounds = 256

  /// Tries the refused changes again until no more of them can be applied.
  ///
  /// - Parameter poll: Called at intervals; may throw to stop.
  func retryDeferred(poll: () throws -> Void) throws {
    guard !deferred.isEmpty else { return }
    let window = ChangesetWindow(deferredBytes)
    let isShort = deferred.count <= Self.shortList
    if isShort { try retryAll(window, poll: poll) }
    var isWorthAnother = !isShort
    if deferred.contains(where: \.isUniqueViolation) {
      var resolver = try UniqueCycleResolver(self, window)
      if try resolver.run(poll: poll) { isWorthAnother = true }
    }
    if isWorthAnother { try retryAll(window, poll: poll) }
    try giveUpDeferred(window, poll: poll)
  }

  /// Tries all deferred changes again, and those that remain once more, while any of them succeeds.
  private func retryAll(_ window: ChangesetWindow, poll: () throws -> Void) throws {
    var goesBackward = false
    for _ in 0..<Self.rounds {
      let items = takeDeferred()
      guard !items.isEmpty else { return }
      goesBackward = items.count > Self.shortList && !goesBackward
      for index in items.indices {
        let item = goesBackward ? items[items.count - 1 - index] : items[index]
        _ = try window.withChange(at: item.offset, walk) { place, bytes in
          // True if an INSERT may replace a row is asked once, as SQLite does, which has deleted the row by now.
          isDecided = item.isDecided && place.operation == .insert
          try retry(item, place, bytes)
          isDecided = false
        }
        if index % 4_096 == 4_095 { try poll() }
      }
      if goesBackward { deferred.reverse() }
      guard deferred.count < items.count else { return }
    }
  }

  /// Tries each deferred change for the last time. A refusal is now a conflict.
  private func giveUpDeferred(_ window: ChangesetWindow, poll: () throws -> Void) throws {
    let remaining = takeDeferred()
    writer.keepsMessages = true
    for (index, item) in remaining.enumerated() {
      if index % 4_096 == 4_095 { try poll() }
      _ = try window.withChange(at: item.offset, walk) { place, bytes in
        isDecided = item.isDecided && place.operation == .insert
        let refused = try attempt(place, bytes)
        // The decision about the blocking row does not decide about the constraint.
        isDecided = false
        if refused != nil { try giveUp(bytes) }
      }
    }
  }
}
