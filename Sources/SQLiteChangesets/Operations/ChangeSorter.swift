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

/// Merges sorted runs of changes of one table (Knuth, The Art of Computer Programming 3, 5.4.1).
struct RunMerge {
  /// A run, of which a part is in the buffer.
  private struct Run {
    var prefix: UInt64 = 0
    /// The part of the buffer that is this run's, and how much of it is filled.
    var room: Range<Int>
    var filled = 0
    /// Where the bytes of the run behind those in the buffer begin in the file, and where they end.
    var rest: Range<Int>
    /// The first change of the run that has not been merged, in the buffer.
    var current: Range<Int>
    /// Its place among the runs.
    let number: Int
  }

  /// How many bytes are merged at a time, and how many of each run are read at once.
  private static let stretchBytes = 256 << 10
  private static let roomBytes = 64 << 10

  private let spool: TemporaryBuffer
  private let key: KeyLayout
  private let walk: ChangeWalk
  /// The bytes at hand of all runs, so that their keys can be compared.
  private var buffer: [UInt8]
  /// A heap: the run with the smallest key first.
  private var runs: [Run] = []
  /// What was taken out of its run already, and belongs to the next stretch.
  private var carry: [UInt8] = []
  private let stretchBytes: Int

  init(of spool: TemporaryBuffer, _ ranges: [Range<Int>], _ table: ChangesetTable, _ key: KeyLayout) throws {
    self.spool = spool
    self.key = key
    walk = ChangeWalk(0..<0, of: table)
    stretchBytes = min(Self.stretchBytes, spool.windowBytes)
    let room = min(Self.roomBytes, spool.windowBytes)
    buffer = [UInt8](repeating: 0, count: ranges.count * room)
    for (number, range) in ranges.enumerated() {
      let start = number * room
      var run = Run(room: start..<start + room, rest: range, current: start..<start, number: number)
      if try advance(&run) { runs.append(run) }
    }
    for place in runs.indices.reversed() { sink(place) }
  }

  /// How many changes of equal keys come together at most.
  private static let equalKeysLimit = 1_000

  /// Replaces bytes by the next changes in key order; changes of equal keys come together.
  ///
  /// - Returns: false when there are no more.
  mutating func fill(_ stretch: inout [UInt8]) throws -> Bool {
    stretch.removeAll(keepingCapacity: true)
    swap(&stretch, &carry)
    var last = 0
    var beyond = 0
    while let run = runs.first {
      let start = stretch.count
      stretch.append(contentsOf: buffer[run.current])
      try takeFirst()
      if start >= stretchBytes {
        beyond += 1
        if beyond > Self.equalKeysLimit || stretch.withRawSpan({ key.order(last, start, in: $0) }) != 0 {
          carry = Array(stretch[start...])
          stretch.removeLast(carry.count)
          break
        }
      }
      last = start
    }
    return !stretch.isEmpty
  }

  private mutating func takeFirst() throws {
    var first = runs[0]
    if try advance(&first) {
      runs[0] = first
    } else if let last = runs.popLast(), !runs.isEmpty {
      runs[0] = last
    }
    sink(0)
  }

  /// Goes on to the next change of a run; false when there is none.
  private mutating func advance(_ run: inout Run) throws -> Bool {
    var start = run.current.upperBound
    while true {
      let end = run.room.lowerBound + run.filled
      let found = buffer.withRawSpan { [walk, key] bytes -> (end: Int, prefix: UInt64)? in
        var walk = walk
        walk.move(to: start..<end)
        guard walk.next(in: bytes.extracting(0..<end)) != nil else { return nil }
        return (walk.position, key.prefix(of: start, in: bytes))
      }
      if let found {
        run.current = start..<found.end
        run.prefix = found.prefix
        return true
      }
      guard !run.rest.isEmpty else { return false }
      try refill(&run, from: start)
      start = run.room.lowerBound
    }
  }

  /// Reads more of a run, keeping what is in the buffer from an offset on.
  private mutating func refill(_ run: inout Run, from start: Int) throws {
    let kept = run.room.lowerBound + run.filled - start
    if kept == run.room.count {
      // The change is larger than the room. The last room grows where it is, without a copy of what is in it.
      let lower = run.room.upperBound == buffer.count ? run.room.lowerBound : buffer.count
      buffer.append(contentsOf: repeatElement(0, count: lower + 2 * kept - buffer.count))
      run.room = lower..<buffer.count
    }
    let from = run.rest.lowerBound - kept
    let room = run.room.prefix(run.rest.upperBound - from)
    run.filled = try buffer.withUnsafeMutableBytes { [spool] in
      try spool.read(into: UnsafeMutableRawBufferPointer(rebasing: $0[room]), at: from)
    }
    run.rest = from + run.filled..<run.rest.upperBound
  }

  // MARK: The heap

  /// Runs hold the changes of the author in order: among equal keys the earlier run comes first.
  private func isBefore(_ one: Int, _ other: Int) -> Bool {
    if runs[one].prefix != runs[other].prefix { return runs[one].prefix < runs[other].prefix }
    let order = buffer.withRawSpan { key.order(runs[one].current.lowerBound, runs[other].current.lowerBound, in: $0) }
    return order != 0 ? order < 0 : runs[one].number < runs[other].number
  }

  private mutating func sink(_ start: Int) {
    var place = start
    while true {
      var least = place
      for child in [2 * place + 1, 2 * place + 2] where child < runs.count && isBefore(child, least) { least = child }
      if least == place { return }
      runs.swapAt(place, least)
      place = least
    }
  }
}

/// What can be sorted by 64 bits that say most of its order.
protocol RadixKeyed {
  /// Smaller bits belong to what comes first; equal bits say nothing.
  var prefix: UInt64 { get }
}

extension Array where Element: RadixKeyed {
  /// How many bits each pass sorts by.
  private static var digitBits: Int { 11 }

  /// Sorts by prefix, then by `areInOrder` among those whose prefixes are equal.
  ///
  /// Takes time in proportion to the elements where prefixes differ, and a second array of their size. Elements that are
  /// equal in both stay in their order.
  ///
  /// - Parameter order: Compares two elements: negative, zero or positive.
  mutating func radixSort(thenBy order: (Element, Element) -> Int) {
    guard count > 1 else { return }
    sortByPrefix()
    var start = 0
    for index in indices {
      let isLast = index + 1 == count
      if !isLast, self[index + 1].prefix == self[start].prefix { continue }
      if index > start { settleTies(start..<(index + 1), by: order) }
      start = index + 1
    }
  }

  private mutating func settleTies(_ range: Range<Int>, by order: (Element, Element) -> Int) {
    // Most of the time they stand in order already: one row changed once, or keys that arrive sorted.
    var isSorted = true
    for index in range.dropFirst() where order(self[index - 1], self[index]) > 0 {
      isSorted = false
      break
    }
    if isSorted { return }
    let places = range.sorted { one, other in
      let order = order(self[one], self[other])
      return order != 0 ? order < 0 : one < other
    }
    let sorted = places.map { self[$0] }
    replaceSubrange(range, with: sorted)
  }

  /// Least significant digit first: each pass is stable, so the last one leaves all of them in order. Digits that are the
  /// same everywhere, as most are in small integers, cost no pass.
  private mutating func sortByPrefix() {
    var different: UInt64 = 0
    var isSorted = true
    for index in indices.dropFirst() {
      different |= self[index].prefix ^ self[0].prefix
      if self[index - 1].prefix > self[index].prefix { isSorted = false }
    }
    if isSorted { return }
    let digits = 1 << Self.digitBits
    var other = self
    var shift = 0
    while shift < 64 {
      defer { shift += Self.digitBits }
      let mask = UInt64(digits - 1)
      guard (different >> UInt64(shift)) & mask != 0 else { continue }
      var places = [Int](repeating: 0, count: digits)
      for element in self { places[Int((element.prefix >> UInt64(shift)) & mask)] += 1 }
      var next = 0
      for digit in places.indices { (places[digit], next) = (next, next + places[digit]) }
      withUnsafeBufferPointer { source in
        other.withUnsafeMutableBufferPointer { target in
          // Sound: the places of all digits add up to the count, so every index is one of the target's.
          for element in source {
            let digit = Int((element.prefix >> UInt64(shift)) & mask)
            target[places[digit]] = element
            places[digit] += 1
          }
        }
      }
      swap(&self, &other)
    }
  }
}
