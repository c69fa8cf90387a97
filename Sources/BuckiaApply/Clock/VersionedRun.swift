import BuckiaLedger
import SQLiteChangesets

/// Collects rows that are versioned one after the other, as long as they are neighbours with equal row versions. One run
/// replaces their entries, and costs next to nothing.
///
/// A few rows are written one by one. If hardly any two rows are neighbours, the search for runs pauses, longer each
/// time.
struct VersionedRun {
  /// The number of rows from which on a run is written.
  private static let threshold = 8
  /// The longest pause of the search for runs, in rows.
  private static let pauseLimit = 8_192

  private let store: ClockStore
  private let keys: ClockKeys
  /// True if the table was empty and all rows have arrived in the order of their keys. Consecutive rows are neighbours
  /// then.
  private var isAlone: Bool

  private let isUsed: Bool
  private var list: RowVersionList?
  private var count = 0
  private var first = ClockKeyRecord()
  private var last = ClockKeyRecord()
  /// The keys of the first rows, until there are enough for a run.
  private var few: [ClockKeyRecord] = []
  private var writer = ChangesetWriter()
  private var pause = 0
  private var pauseLeft = 0

  /// - Parameters:
  ///   - isEmpty: True if the table is empty and nothing else writes to it.
  ///   - isUsed: True to search for runs.
  init(_ store: ClockStore, _ keys: ClockKeys, ofEmptyTable isEmpty: Bool, isUsed: Bool) {
    self.isUsed = isUsed
    self.store = store
    self.keys = keys
    isAlone = isEmpty
  }

  /// True if a row may be among the versioned rows that are not written yet.
  func mayHold(_ change: DecodedChange, _ bytes: RawSpan) -> Bool {
    count > 0 && !(keys.isOrdered(change, bytes) && keys.precedes(last, change, bytes))
  }

  /// Row versions a row.
  mutating func add(_ list: RowVersionList, _ change: DecodedChange, _ bytes: RawSpan) throws {
    guard isUsed, keys.isOrdered(change, bytes) else {
      isAlone = false
      try flush()
      return try store.write(list, change, bytes)
    }
    if pauseLeft > 0, !isAlone {
      pauseLeft -= 1
      return try store.write(list, change, bytes)
    }
    if try count > 0 && continues(list, change, bytes) {
      keys.record(of: change, bytes, into: &writer)
      last.bytes.removeAll(keepingCapacity: true)
      last.bytes.append(contentsOf: writer.bytes)
      count += 1
      if count <= Self.threshold { few.append(last) }
      return
    }
    try flush()
    self.list = list
    count = 1
    keys.record(of: change, bytes, into: &writer)
    first.bytes = writer.bytes
    last.bytes = writer.bytes
    few.append(first)
  }

  private mutating func continues(_ list: RowVersionList, _ change: DecodedChange, _ bytes: RawSpan) throws -> Bool {
    guard keys.precedes(last, change, bytes) else {
      isAlone = false
      return false
    }
    guard list == self.list else { return false }
    if isAlone || keys.follows(change, last, bytes) { return true }
    return try store.areNeighbours(last, change, bytes)
  }

  /// Writes the collected rows.
  mutating func flush() throws {
    guard let list, count > 0 else { return }
    if count > Self.threshold {
      try store.writeRun(list, from: first, to: last)
      pause = 0
    } else {
      for key in few { try store.write(list, key) }
      pause = min(max(2 * pause, Self.threshold), Self.pauseLimit)
      pauseLeft = pause
    }
    forget()
  }

  /// Discards the collected rows, because a savepoint has been rolled back.
  mutating func forget() {
    list = nil
    count = 0
    few.removeAll(keepingCapacity: true)
  }
}
