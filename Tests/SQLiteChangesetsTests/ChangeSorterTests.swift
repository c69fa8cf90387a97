import BuckiaBytes
import Testing

@testable import SQLiteChangesets
import TestSupport

@Suite("Reading changes by key")
struct ChangeSorterTests {
  /// All changes of the first table, in the order of a sorter with these limits.
  private func sorted(
    _ bytes: [UInt8], _ limits: ChangeSorter.Limits, windowBytes: Int? = nil
  ) throws -> [[UInt8]] {
    let spool =
      if let windowBytes { try TemporaryBuffer(bytes, windowBytes: windowBytes) } else { TemporaryBuffer(bytes) }
    let summary = try ChangesetSummary.of(spool)
    let table = try #require(summary.tables.first).table
    let sections = summary.sections.filter { $0.table == 0 }.map(\.changes)
    var sorter = try ChangeSorter(table, sections: sections, of: spool, limits: limits)
    let walk = ChangeWalk(0..<0, of: table)
    var changes: [[UInt8]] = []
    while try sorter.advance() {
      sorter.bytes.withRawSpan { span in
        while let change = sorter.next(in: span) {
          changes.append(span.array(change.start..<walk.end(of: change, in: span)))
        }
      }
    }
    return changes
  }

  @Test(
    "With any memory limit, changes are in key order, and equal keys in the author's order", arguments: 0..<UInt64(40))
  func stableOrder(_ seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let keys: [TestValue] = [
      1, 2, 2.0, 3, -1, 9_007_199_254_740_993, "a", "ab", "aaaaaaaab", "aaaaaaaac", nil, [1, 2], [],
    ]
    var changes: [(key: Int, change: TestChange)] = []
    for number in 0..<Int.random(in: 1...80, using: &random) {
      let key = Int.random(in: 0..<keys.count, using: &random)
      let value = TestValue.integer(Int64(number))
      switch Int.random(in: 0..<3, using: &random) {
      case 0: changes.append((key, .insert([value, keys[key]])))
      case 1: changes.append((key, .delete([value, keys[key]])))
      default: changes.append((key, .update(old: [value, keys[key]], new: [0, .undefined])))
      }
    }
    let table = ChangesetTable(name: "t", keyFlags: [0, 1])
    let bytes = changeset(table, changes.map(\.change))
    // 2 and 2.0 are one key; otherwise SQLite's order: NULL, numbers, text, blobs.
    let ranks = [3, 4, 4, 5, 2, 6, 7, 10, 8, 9, 1, 12, 11]
    let expected = changes.enumerated()
      .sorted { (ranks[$0.element.key], $0.offset) < (ranks[$1.element.key], $1.offset) }
      .map { one in
        var writer = ChangesetWriter()
        writer.append(one.element.change)
        return writer.bytes
      }
    for limits in [
      ChangeSorter.Limits(), ChangeSorter.Limits(changes: 1), ChangeSorter.Limits(changes: 7),
      ChangeSorter.Limits(changes: 1_000, bytes: 60), ChangeSorter.Limits(bytes: 1),
    ] {
      #expect(try sorted(bytes, limits) == expected, "seed \(seed), \(limits)")
      for windowBytes in [16, 100, 4_096] {
        let windowed = try sorted(bytes, limits, windowBytes: windowBytes)
        #expect(windowed == expected, "seed \(seed), \(limits), windows of \(windowBytes) bytes")
      }
    }
  }

  @Test("The sections of a table are one sequence, and other tables are left out")
  func sections() throws {
    let bytes =
      changeset("a", .insert([3, 0]), .insert([1, 0])) + changeset("b", .insert([0, 0]))
      + changeset("A", .insert([2, 0]), .delete([3, 1]))
    for limits in [ChangeSorter.Limits(), ChangeSorter.Limits(changes: 1), ChangeSorter.Limits(changes: 3)] {
      let first = try sorted(bytes, limits).map { Array($0.prefix(11)) }
      let expected: [TestChange] = [.insert([1]), .insert([2]), .insert([3]), .delete([3])]
      #expect(first == expected.map { changeset("", $0) }.map { Array($0.dropFirst(5)) })
    }
  }

  @Test("Changes larger than the buffers of a merge are merged, and equal keys come in one piece")
  func largeChanges() throws {
    var random = SeededGenerator(seed: 3)
    var changes: [TestChange] = []
    for key in 0..<40 {
      let text = TestValue.text(String(repeating: "x", count: Int.random(in: 0..<3_000, using: &random)))
      changes += [.delete([.integer(Int64(key)), text]), .insert([.integer(Int64(key)), text])]
    }
    changes.shuffle(using: &random)
    let spool = try TemporaryBuffer(changeset(ChangesetTable(name: "t", keyFlags: [1, 0]), changes), windowBytes: 100)
    let summary = try ChangesetSummary.of(spool)
    var sorter = try ChangeSorter(
      summary.tables[0].table, sections: summary.sections.map(\.changes), of: spool,
      limits: ChangeSorter.Limits(changes: 9))
    var keys: [Int64] = []
    var stretches = 0
    while try sorter.advance() {
      stretches += 1
      try sorter.bytes.withRawSpan { span in
        var found: [Int64] = []
        while let change = sorter.next(in: span) {
          var position = change.values
          found.append(try ValueSlice(reading: span, at: &position).integer(in: span))
        }
        #expect(found.allSatisfy { key in found.count { $0 == key } == 2 })
        keys += found
      }
    }
    #expect(keys == (0..<40).flatMap { [$0, $0] })
    #expect(stretches > 10)
  }

  @Test("Patchsets use the same keys, in key order if the header has it")
  func patchset() throws {
    let table = ChangesetTable(name: "t", format: .patchset, keyFlags: [0, 2, 1])
    let changes: [TestChange] = [
      .insert(["x", 1, 5]), .patchUpdate([.undefined, 1, 9]), .patchDelete([2, 1]), .patchUpdate(["y", 7, 8]),
      .patchDelete([9, 0]),
    ]
    let order = [4, 2, 0, 3, 1]
    let expected = order.map { index in
      var writer = ChangesetWriter()
      writer.append(changes[index])
      return writer.bytes
    }
    #expect(try sorted(changeset(table, changes), ChangeSorter.Limits()) == expected)
    #expect(try sorted(changeset(table, changes), ChangeSorter.Limits(changes: 2)) == expected)
  }
}

@Suite("Sorting by prefix")
struct RadixSortTests {
  private struct Item: RadixKeyed, Equatable {
    let prefix: UInt64
    let rest: Int
    let place: Int
  }

  @Test("The order equals that of a stable sort, for any digits", arguments: 0..<UInt64(60))
  func likeAStableSort(_ seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let masks: [UInt64] = [.max, 0x3, 0xff00, 0xffff_0000_0000_0000, 0, 1 << 63 | 1]
    let mask = masks[Int(seed % 6)]
    let items = (0..<Int.random(in: 0..<3_000, using: &random)).map { place in
      Item(prefix: random.next() & mask, rest: Int.random(in: 0..<3, using: &random), place: place)
    }
    var sorted = items
    sorted.radixSort { $0.rest - $1.rest }
    #expect(sorted == items.sorted { ($0.prefix, $0.rest, $0.place) < ($1.prefix, $1.rest, $1.place) }, "seed \(seed)")
  }
}
