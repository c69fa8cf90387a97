import BuckiaLedger
import SQLiteChangesets

/// Rows that are stamped one after the other, as long as they are neighbours and get the same stamps: then one run
/// stands for all of them, and costs next to nothing.
///
/// Few rows are written one by one. Where hardly any two are neighbours, looking for runs is given up for a while,
/// longer each time.
struct StampedRun {
  /// From how many rows on a run is written.
  private static let threshold = 8
  /// For how many rows no runs are looked for, at most.
  private static let pauseLimit = 8_192

  private let store: ClockStore
  private let keys: ClockKeys
  /// True if the table was empty, and all rows so far have come in the order of their keys: then any two are neighbours.
  private var isAlone: Bool

  private let isUsed: Bool
  private var list: StampList?
  private var count = 0
  private var first = ClockKeyRecord()
  private var last = ClockKeyRecord()
  /// The keys of the first rows, until there are enough for a run.
  private var few: [ClockKeyRecord] = []
  private var writer = ChangesetWriter()
  private var pause = 0
  private var pauseLeft = 0

  /// - Parameters:
  ///   - isEmpty: True if the table is empty, and nobody else writes to it.
  ///   - isUsed: True if runs are looked for at all.
  init(_ store: ClockStore, _ keys: ClockKeys, ofEmptyTable isEmpty: Bool, isUsed: Bool) {
    self.isUsed = isUsed
    self.store = store
    self.keys = keys
    isAlone = isEmpty
  }

  /// True if a row may be one that has been stamped and not written yet.
  func mayHold(_ change: DecodedChange, _ bytes: RawSpan) -> Bool {
    count > 0 && !(keys.isOrdered(change, bytes) && keys.precedes(last, change, bytes))
  }

  /// Stamps a row.
  mutating func add(_ list: StampList, _ change: DecodedChange, _ bytes: RawSpan) throws {
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

  private mutating func continues(_ list: StampList, _ change: DecodedChange, _ bytes: RawSpan) throws -> Bool {
    guard keys.precedes(last, change, bytes) else {
      isAlone = false
      return false
    }
    guard list == self.list else { return false }
    if isAlone || keys.follows(change, last, bytes) { return true }
    return try store.areNeighbours(last, change, bytes)
  }

  /// Writes what has been gathered.
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

  /// Forgets what has been gathered, because a savepoint has been rolled back.
  mutating func forget() {
    list = nil
    count = 0
    few.removeAll(keepingCapacity: true)
  }
}
