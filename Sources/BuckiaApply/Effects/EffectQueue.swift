import BuckiaLedger
import SQLiteConnections

/// What the diffs of one transaction did to the rows here, until it is written at the end: of many diffs only the newest are kept, and
/// the others need not be written.
struct EffectQueue {
  private struct Item {
    let entry: Int64
    let tables: [AppliedEffects.Table]
    var changes: [UInt8]
    /// Whether something of the same diff may be in the database already.
    let isResumed: Bool
  }

  private var items: [Item] = []
  /// How many items are not kept: the oldest.
  private var dropped = 0
  private var byteCount = 0

  /// Adds what a diff did.
  ///
  /// - Parameters:
  ///   - entry: Its ledger entry.
  ///   - isResumed: Whether it is a part of a diff that was held.
  ///   - limit: How many bytes are kept of all diffs.
  mutating func add(
    _ changes: [UInt8], of tables: [AppliedEffects.Table], entry: Int64, isResumed: Bool = false, limit: Int
  ) {
    items.append(Item(entry: entry, tables: tables, changes: changes, isResumed: isResumed))
    byteCount += changes.count
    while byteCount > limit, dropped < items.count {
      byteCount -= items[dropped].changes.count
      items[dropped].changes = []
      dropped += 1
    }
  }

  /// Writes what is kept, and is empty then.
  mutating func write(on connection: borrowing SQLiteConnection) throws {
    // Of a diff all is kept, or nothing.
    let incomplete = Set(items[..<dropped].filter(\.isResumed).map(\.entry))
    for entry in incomplete { try AppliedEffects.remove(entry: entry, on: connection) }
    for item in items[dropped...] where !incomplete.contains(item.entry) {
      try AppliedEffects.record(item.changes, of: item.tables, entry: item.entry, on: connection)
    }
    self = EffectQueue()
  }
}
