/// Goes through the changes of one table in key order, whatever their number and size, in bounded memory.
///
/// What fits into memory is sorted there and read where it stands. More is sorted in runs, each written to a temporary
/// file, and merged while it is read (Knuth, The Art of Computer Programming 3, 5.4.1). Changes whose keys are equal
/// (by value: 1 and 1.0 are, as is NULL and NULL) stay in author's order, so they may depend on each other.
///
/// ```swift
/// var sorter = try ChangeSorter(table, sections: sections, of: spool, in: bytes)
/// if let sorted = sorter.beginMerge() {
///   try sorted.withBytes { bytes in while let change = sorter.next(in: bytes) { … } }
/// } else {
///   while let change = sorter.next(in: bytes) { … }
/// }
/// ```
public struct ChangeSorter {
  /// How much is held in memory at once.
  public struct Limits: Sendable {
    /// The most changes of a run; each takes 32 bytes while it is sorted.
    public var changes: Int
    /// The most bytes of changes that a run reaches over: they are read in any order.
    public var bytes: Int

    /// The usual limits come down to some 40 MB.
    public init(changes: Int = 256 << 10, bytes: Int = 32 << 20) {
      self.changes = changes
      self.bytes = bytes
    }
  }

  private struct Entry: RadixKeyed {
    let prefix: UInt64
    let start: Int
  }

  /// A run while it is merged.
  private struct Run {
    var prefix: UInt64
    var walk: ChangeWalk
    var current: ChangePlace
    /// Up to where its bytes have been given back.
    var released: Int
  }

  private let table: ChangesetTable
  private let key: KeyLayout
  private let source: ChangesetSpool
  private var entries: [Entry] = []
  private var next = 0
  private var spool: ChangesetSpool?
  private var ranges: [Range<Int>] = []
  /// A heap: the run with the smallest key first.
  private var runs: [Run] = []

  /// Sorts.
  ///
  /// - Parameters:
  ///   - table: The table.
  ///   - sections: The bytes of its changes, as a `ChangesetSummary` has found them.
  ///   - source: The spool that holds them: its memory is given back as it is read.
  ///   - bytes: The spool's bytes.
  ///   - limits: How much is held in memory.
  /// - Throws: `ChangesetSpool.Failure` when a temporary file cannot be written.
  public init(
    _ table: ChangesetTable, sections: [Range<Int>], of source: ChangesetSpool, in bytes: RawSpan,
    limits: Limits = Limits()
  ) throws {
    self.table = table
    self.source = source
    key = KeyLayout(table)
    var reach = 0
    for section in sections {
      var walk = ChangeWalk(section, of: table)
      while let change = walk.next(in: bytes) {
        entries.append(Entry(prefix: key.prefix(of: change.start, in: bytes), start: change.start))
        reach += walk.position - change.start
        if entries.count >= limits.changes || reach >= limits.bytes {
          try writeRun(bytes)
          reach = 0
        }
      }
    }
    if spool == nil { sort(bytes) } else { try writeRun(bytes) }
  }

  private mutating func sort(_ bytes: RawSpan) {
    let key = key
    entries.radixSort { key.order($0.start, $1.start, in: bytes) }
  }

  private mutating func writeRun(_ bytes: RawSpan) throws {
    // Not sorted yet, these are the first and the last in the file.
    guard let first = entries.first?.start, let last = entries.last?.start else { return }
    sort(bytes)
    let spool = self.spool ?? ChangesetSpool(memoryLimit: 0)
    self.spool = spool
    let start = spool.count
    let walk = ChangeWalk(0..<0, of: table)
    for entry in entries {
      guard let change = ChangePlace(at: entry.start, in: bytes) else { continue }
      try spool.append(entry.start..<walk.end(of: change, in: bytes), of: bytes)
    }
    ranges.append(start..<spool.count)
    entries.removeAll(keepingCapacity: true)
    source.release(first..<last)
  }

  /// Begins to read in order.
  ///
  /// - Returns: The spool whose bytes `next` must be given; nil for the bytes that were sorted, which are all in memory.
  public mutating func beginMerge() -> ChangesetSpool? {
    next = 0
    return spool
  }

  /// The next change in key order; nil when there is no other.
  ///
  /// - Parameter bytes: Those of the spool that `beginMerge` has returned, or else the sorted ones.
  public mutating func next(in bytes: RawSpan) -> ChangePlace? {
    guard spool != nil else {
      guard next < entries.count else { return nil }
      next += 1
      return ChangePlace(at: entries[next - 1].start, in: bytes)
    }
    if next == 0 { openRuns(bytes) }
    next = 1
    guard let change = runs.first?.current else { return nil }
    if let following = runs[0].walk.next(in: bytes) {
      runs[0].current = following
      runs[0].prefix = key.prefix(of: following.start, in: bytes)
      release(following.start)
    } else if let last = runs.popLast(), !runs.isEmpty {
      runs[0] = last
    }
    sink(0, in: bytes)
    return change
  }

  /// How far a run is read before its memory is given back.
  private static let releaseSize = 32 << 10

  /// The change before may still be in use: what is given back lies a whole step behind.
  private mutating func release(_ position: Int) {
    // Whole pages, or the one that each step ends in would stay.
    let limit = SpoolTrail.wholePages(position - Self.releaseSize)
    guard limit - runs[0].released >= Self.releaseSize else { return }
    spool?.release(runs[0].released..<limit)
    runs[0].released = limit
  }

  // MARK: Merging

  private mutating func openRuns(_ bytes: RawSpan) {
    entries = []
    for range in ranges {
      var walk = ChangeWalk(range, of: table)
      guard let first = walk.next(in: bytes) else { continue }
      runs.append(
        Run(prefix: key.prefix(of: first.start, in: bytes), walk: walk, current: first, released: range.lowerBound))
    }
    for place in runs.indices.reversed() { sink(place, in: bytes) }
  }

  /// Runs hold the changes of the author in order: among equal keys the earlier run, which lies before the others in
  /// the file, comes first.
  private func isBefore(_ one: Int, _ other: Int, in bytes: RawSpan) -> Bool {
    if runs[one].prefix != runs[other].prefix { return runs[one].prefix < runs[other].prefix }
    let order = key.order(runs[one].current.start, runs[other].current.start, in: bytes)
    return order != 0 ? order < 0 : runs[one].current.start < runs[other].current.start
  }

  private mutating func sink(_ start: Int, in bytes: RawSpan) {
    var place = start
    while true {
      var least = place
      for child in [2 * place + 1, 2 * place + 2] where child < runs.count && isBefore(child, least, in: bytes) {
        least = child
      }
      if least == place { return }
      runs.swapAt(place, least)
      place = least
    }
  }
}
