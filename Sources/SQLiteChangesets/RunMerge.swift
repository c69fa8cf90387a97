import BuckiaBytes

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
