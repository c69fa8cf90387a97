import BuckiaBytes
import Testing
import TestSupport

@testable import SQLiteChangesets

@Suite("Reading through windows")
struct ChangesetWindowTests {
  static let sizes = [1, 16, 64, 1_000, 1 << 20]

  /// Several tables, and changes from a few bytes to many times the size of a window.
  private func someChanges(_ seed: UInt64) throws -> [UInt8] {
    let made = try RandomDatabase(seed: seed).changes(40)
    let large = TestValue.text(String(repeating: "0123456789", count: 700))
    return made.changeset + changeset("large", .insert([1, 2]), .insert([2, large]), .delete([3, large]))
      + changeset("empty") + changeset("LARGE", .insert([4, 5]))
  }

  @Test("A scan finds the same changes as a reader of all bytes", arguments: 0..<UInt64(10), sizes)
  func scan(_ seed: UInt64, _ windowBytes: Int) throws {
    let bytes = try someChanges(seed)
    var scan = ChangesetScan(try TemporaryBuffer(bytes, windowBytes: windowBytes))
    var changes: [[UInt8]] = []
    var largest = 0
    while try scan.advance() {
      try scan.window.withBytes { span in
        largest = max(largest, span.byteCount)
        while let change = try scan.next(in: span) {
          changes.append(span.array(change.range))
        }
      }
    }
    let expected = try bytes.withRawSpan { span in
      var reader = ChangesetReader()
      var changes: [[UInt8]] = []
      while let change = try reader.next(in: span) { changes.append(span.array(change.range)) }
      return changes
    }
    #expect(changes == expected)
    // At most twice the largest change is held.
    #expect(largest <= max(windowBytes, 2 * 7_100))
  }

  /// Reads changes; of those larger than a few bytes, only the starts of their values.
  private static func abridging(_ bytes: [UInt8], _ windowBytes: Int) throws -> ChangesetScan {
    try ChangesetScan(
      TemporaryBuffer(bytes, windowBytes: windowBytes),
      largeChanges: AbridgedChange.Limits(wholeChange: 48, kept: 5, leastKept: 2, allKept: 16))
  }

  @Test(
    "Large changes are read except the ends of long values, with their positions", arguments: 0..<UInt64(10),
    [1, 16, 64])
  func abridged(_ seed: UInt64, _ windowBytes: Int) throws {
    let bytes = try someChanges(seed)
    var scan = try Self.abridging(bytes, windowBytes)
    var builder = ChangesetSummary.Builder()
    var reader = ChangesetReader()
    var longValues = 0
    while try scan.advance() {
      try scan.window.withBytes { span in
        #expect(span.byteCount < 1_400)
        while let change = try scan.next(in: span) {
          try builder.add(change, scan.reader, in: span, endingAt: scan.range(of: change).upperBound)
          try bytes.withRawSpan { all in
            let expected = try #require(try reader.next(in: all))
            #expect(scan.range(of: change) == expected.range)
            #expect(change.operation == expected.operation && change.startsTable == expected.startsTable)
            #expect(scan.reader.table == reader.table)
            for (value, whole) in zip(scan.reader.old + scan.reader.new, reader.old + reader.new) {
              #expect(value.kind == whole.kind)
              let source = scan.longValue(value)
              if let source { #expect(source == whole.payloadRange) }
              if source != nil { longValues += 1 }
              #expect(value.count == whole.count || source != nil && value.count < whole.count)
              #expect(
                span.array(value.payloadRange) == all.array(whole.payload..<whole.payload + value.count))
            }
          }
        }
      }
    }
    #expect(longValues >= 2)
    let found = builder.finish(byteCount: bytes.count)
    let expected = try ChangesetSummary.of(bytes)
    #expect(found.sections == expected.sections)
    #expect(found.tables.map(\.changeCount) == expected.tables.map(\.changeCount))
    #expect(found.tables.map(\.keyKinds) == expected.tables.map(\.keyKinds))
  }

  @Test("Damage of a large change is found at the same offset", arguments: [1, 16, 64])
  func abridgedDamage(_ windowBytes: Int) throws {
    let long = TestValue.text(String(repeating: "long ", count: 30))
    let bytes =
      changeset("a", .insert([1, long]), .update(old: [1, long], new: [.undefined, 3]))
      + changeset("b", .delete([long, nil]), .insert([2, long]))
    var broken: [[UInt8]] = bytes.indices.map { Array(bytes[..<$0]) }
    for place in bytes.indices {
      for value in [0x28, 0x80, 0x05] as [UInt8] {
        var changed = bytes
        changed[place] ^= value
        broken.append(changed)
      }
    }
    for bytes in broken {
      let expected = result {
        try bytes.withRawSpan { span in
          var reader = ChangesetReader()
          while try reader.next(in: span) != nil {}
        }
      }
      let found = result {
        var scan = try Self.abridging(bytes, windowBytes)
        while try scan.advance() { try scan.window.withBytes { while try scan.next(in: $0) != nil {} } }
      }
      #expect(found == expected)
    }
  }

  private func result(_ body: () throws -> Void) -> ChangesetError? {
    do {
      try body()
      return nil
    } catch {
      return error as? ChangesetError
    }
  }

  @Test("A spool has the same summary as its bytes", arguments: 0..<UInt64(10), sizes)
  func summary(_ seed: UInt64, _ windowBytes: Int) throws {
    let bytes = try someChanges(seed)
    let expected = try ChangesetSummary.of(bytes)
    let found = try ChangesetSummary.of(TemporaryBuffer(bytes, windowBytes: windowBytes))
    #expect(found.sections == expected.sections)
    #expect(found.byteCount == expected.byteCount)
    for (one, other) in zip(found.tables, expected.tables) {
      #expect(one.table == other.table)
      #expect((one.inserted, one.updated, one.deleted) == (other.inserted, other.updated, other.deleted))
      #expect(one.keyKinds == other.keyKinds)
      // If the previous change is outside the window, keys with the same start are not compared.
      #expect(one.descents <= other.descents)
    }
    #expect(found.tables.count == expected.tables.count)
  }

  @Test("Damage is found at the same offset", arguments: [1, 16, 64])
  func damage(_ windowBytes: Int) throws {
    let bytes = changeset("a", .insert([1, "hello"]), .update(old: [1, 2], new: [.undefined, 3]), .delete([5, nil]))
    var broken: [[UInt8]] = bytes.indices.map { Array(bytes[..<$0]) }
    for place in bytes.indices {
      var changed = bytes
      changed[place] ^= 0x28
      broken.append(changed)
    }
    for bytes in broken {
      let expected = changesetError { _ = try ChangesetSummary.of(bytes) }
      let spool = try TemporaryBuffer(bytes, windowBytes: windowBytes)
      let found = changesetError { _ = try ChangesetSummary.of(spool) }
      #expect(found == expected)
    }
  }

  @Test("Stretches contain every change of a section once, and complete", arguments: 0..<UInt64(10), sizes)
  func stretches(_ seed: UInt64, _ windowBytes: Int) throws {
    let bytes = try someChanges(seed)
    let spool = try TemporaryBuffer(bytes, windowBytes: windowBytes)
    let summary = try ChangesetSummary.of(spool)
    let window = ChangesetWindow(spool)
    var changes: [[UInt8]] = []
    for section in summary.sections {
      var stretches = ChangeStretches(section.changes, of: summary.tables[section.table].table, in: window)
      while try stretches.advance() {
        window.withBytes { span in
          while let place = stretches.next(in: span) {
            changes.append(span.array(place.start..<stretches.changeEnd))
          }
        }
      }
      #expect(stretches.position == section.changes.upperBound)
    }
    let expected = try bytes.withRawSpan { span in
      var reader = ChangesetReader()
      var changes: [[UInt8]] = []
      while let change = try reader.next(in: span) { changes.append(span.array(change.range)) }
      return changes
    }
    #expect(changes == expected)
  }

  @Test("A section can be continued after more has arrived")
  func arriving() throws {
    let bytes = changeset(
      ChangesetTable(name: "t", keyFlags: [1, 0]),
      (0..<50).map { .insert([.integer($0), .text(String(repeating: "some text", count: 3_000))]) })
    let header = try ChangesetSummary.of(bytes)
    let spool = try TemporaryBuffer(arriving: bytes.count, windowBytes: 64)
    #expect(spool.expectedCount == bytes.count)
    var stretches = ChangeStretches(
      header.sections[0].changes.lowerBound..<header.sections[0].changes.lowerBound, of: header.tables[0].table,
      in: ChangesetWindow(spool))
    var scan = ChangesetScan(arrivingIn: spool)
    var (walked, scanned) = (0, 0)
    for start in stride(from: 0, to: bytes.count, by: 100_000) {
      try spool.write(Array(bytes[start..<min(start + 100_000, bytes.count)]))
      if spool.count == bytes.count { try spool.finish() }
      let end = spool.storedCount
      stretches.extend(to: end)
      while try stretches.advance() {
        stretches.window.withBytes { while stretches.next(in: $0) != nil { walked += 1 } }
      }
      scan.extend(to: end, isComplete: end == bytes.count)
      while try scan.advance() {
        try scan.window.withBytes { while try scan.next(in: $0) != nil { scanned += 1 } }
      }
      #expect(walked == scanned)
    }
    #expect(walked == 50)
    #expect(spool.storedCount == bytes.count)
  }

  @Test("Changes can be read in any order", arguments: 0..<UInt64(10), sizes)
  func randomAccess(_ seed: UInt64, _ windowBytes: Int) throws {
    var random = SeededGenerator(seed: seed)
    let large = TestValue.text(String(repeating: "0123456789", count: 70))
    let bytes = changeset(
      ChangesetTable(name: "t", keyFlags: [1, 0]),
      (0..<60).map { .insert([.integer($0), Bool.random(using: &random) ? large : nil]) })
    let spool = try TemporaryBuffer(bytes, windowBytes: windowBytes)
    let summary = try ChangesetSummary.of(spool)
    let walk = ChangeWalk(0..<0, of: summary.tables[0].table)
    let ranges = try bytes.withRawSpan { span in
      var reader = ChangesetReader()
      var ranges: [Range<Int>] = []
      while let change = try reader.next(in: span) { ranges.append(change.range) }
      return ranges
    }
    for order in [ranges, ranges.reversed(), ranges.shuffled(using: &random)] {
      let window = ChangesetWindow(spool)
      for range in order {
        let found = try window.withChange(at: range.lowerBound, walk) { place, span in
          span.array(place.start..<walk.end(of: place, in: span))
        }
        #expect(found == Array(bytes[range]))
      }
      #expect(try window.withChange(at: bytes.count, walk) { _, _ in true } == nil)
      #expect(try window.withChange(at: ranges[0].lowerBound + 2, walk) { _, _ in true } == nil)
    }
  }

  @Test("A changeset in a file is inverted like one in memory", arguments: 0..<UInt64(5), [16, 1_000])
  func inverted(_ seed: UInt64, _ windowBytes: Int) throws {
    let bytes = try someChanges(seed)
    let spool = try TemporaryBuffer(bytes, windowBytes: windowBytes)
    let output = TemporaryBuffer()
    try Changesets.invert(spool, into: output)
    #expect(try output.allBytes() == Changesets.inverted(bytes))
  }
}
