import BuckiaBytes

/// Goes through the changes of one table in key order, whatever their number and size, in bounded memory.
///
/// What fits into memory is copied there and sorted. More is sorted in runs, each written to a temporary
/// file, and merged while it is read (Knuth, The Art of Computer Programming 3, 5.4.1). Changes whose keys are equal
/// (by value: 1 and 1.0 are, as is NULL and NULL) stay in author's order, so they may depend on each other.
///
/// ```swift
/// var sorter = try ChangeSorter(table, sections: sections, of: buffer)
/// while try sorter.advance() {
///   try sorter.bytes.withRawSpan { bytes in while let change = sorter.next(in: bytes) { … } }
/// }
/// ```
package struct ChangeSorter {
  /// How much is held in memory at once.
  package struct Limits: Sendable {
    /// The most changes of a run; each takes 32 bytes while it is sorted.
    package var changes: Int
    /// The most bytes of changes that a run reaches over: they are read in any order.
    package var bytes: Int

    /// The usual limits come down to some 40 MB.
    package init(changes: Int = 256 << 10, bytes: Int = 32 << 20) {
      self.changes = changes
      self.bytes = bytes
    }
  }

  private struct Entry: RadixKeyed {
    let prefix: UInt64
    let start: Int
  }

  private let table: ChangesetTable
  private let key: KeyLayout
  private let limits: Limits
  /// The changes of the stretch.
  package private(set) var bytes: [UInt8] = []
  /// Where they stand, in order, while they are sorted in memory.
  private var entries: [Entry] = []
  private var next = 0
  private var isBegun = false
  /// The changes of the stretch that was merged, in order.
  private var walk: ChangeWalk
  private var spool: TemporaryBuffer?
  private var ranges: [Range<Int>] = []
  private var merge: RunMerge?

  /// Sorts.
  ///
  /// - Parameters:
  ///   - table: The table.
  ///   - sections: The bytes of its changes, as a `ChangesetSummary` has found them.
  ///   - source: The buffer that holds them.
  ///   - limits: How much is held in memory.
  ///   - poll: Is called every few thousand changes. May throw to stop.
  /// - Throws: `ByteStreamError` when a temporary file cannot be read or written; whatever `poll` throws.
  package init(
    _ table: ChangesetTable, sections: [Range<Int>], of source: TemporaryBuffer, limits: Limits = Limits(),
    poll: () throws -> Void = {}
  ) throws {
    self.table = table
    self.limits = limits
    key = KeyLayout(table)
    walk = ChangeWalk(0..<0, of: table)
    bytes.reserveCapacity(min(limits.bytes, sections.reduce(0) { $0 + $1.count }))
    var stretches = ChangeStretches(0..<0, of: table, in: ChangesetWindow(source))
    for section in sections {
      stretches.begin(section)
      while try stretches.advance() {
        try poll()
        let window = stretches.window
        try window.withBytes { try gather(&stretches, of: source, in: $0) }
      }
    }
    if spool == nil { sort() } else { try writeRun(of: source) }
  }

  private mutating func gather(
    _ stretches: inout ChangeStretches, of source: TemporaryBuffer, in window: RawSpan
  ) throws {
    var copied = stretches.changeEnd
    while let change = stretches.next(in: window) {
      if stretches.changeEnd - change.start >= limits.bytes {
        // It is a run by itself, which need not be copied to be sorted.
        window.extracting(copied..<change.start).withUnsafeBytes { bytes.append(contentsOf: $0) }
        copied = stretches.changeEnd
        try writeRun(of: source)
        let spool = runs(of: source)
        try spool.write(window.extracting(change.start..<copied))
        ranges.append(spool.count - (copied - change.start)..<spool.count)
        continue
      }
      entries.append(
        Entry(prefix: key.prefix(of: change.start, in: window), start: bytes.count + change.start - copied))
      let end = stretches.changeEnd
      guard entries.count >= limits.changes || bytes.count + end - copied >= limits.bytes else { continue }
      window.extracting(copied..<end).withUnsafeBytes { bytes.append(contentsOf: $0) }
      copied = end
      try writeRun(of: source)
    }
    window.extracting(copied..<stretches.changeEnd).withUnsafeBytes { bytes.append(contentsOf: $0) }
  }

  private mutating func sort() {
    let key = key
    bytes.withRawSpan { bytes in entries.radixSort { key.order($0.start, $1.start, in: bytes) } }
  }

  /// Where runs are written.
  private mutating func runs(of source: TemporaryBuffer) -> TemporaryBuffer {
    if let spool { return spool }
    let made = source.makeEmpty(memoryLimit: 0)
    spool = made
    return made
  }

  private mutating func writeRun(of source: TemporaryBuffer) throws {
    guard !entries.isEmpty else { return }
    sort()
    let spool = runs(of: source)
    let start = spool.count
    let walk = walk
    try bytes.withRawSpan { bytes in
      for entry in entries {
        guard let change = ChangePlace(at: entry.start, in: bytes) else { continue }
        try spool.write(bytes.extracting(entry.start..<walk.end(of: change, in: bytes)))
      }
    }
    ranges.append(start..<spool.count)
    entries.removeAll(keepingCapacity: true)
    bytes.removeAll(keepingCapacity: true)
  }

  /// Brings the next changes in key order into ``bytes``: all of them, when they have been sorted in memory. Changes whose
  /// keys are equal come together.
  ///
  /// - Returns: false when there are no more.
  /// - Throws: `ByteStreamError` when a temporary file cannot be read.
  package mutating func advance() throws -> Bool {
    guard let spool else {
      guard !isBegun else { return false }
      isBegun = true
      return !entries.isEmpty
    }
    if !isBegun {
      isBegun = true
      // What sorting has used is given back.
      entries = []
      bytes = []
      merge = try RunMerge(of: spool, ranges, table, key)
    }
    guard try merge?.fill(&bytes) == true else { return false }
    walk.move(to: 0..<bytes.count)
    return true
  }

  /// The next change in key order; nil at the end of the stretch.
  package mutating func next(in bytes: RawSpan) -> ChangePlace? {
    guard spool == nil else { return walk.next(in: bytes) }
    guard next < entries.count else { return nil }
    next += 1
    return ChangePlace(at: entries[next - 1].start, in: bytes)
  }
}
