import BuckiaBytes
import SQLiteChangesets
import Testing
import TestSupport

@Suite("Sorting")
struct ChangesetSortTests {
  private func tablesInAuthorOrder(_ bytes: [UInt8]) throws -> [String] {
    try Changesets.sort(TemporaryBuffer(bytes), ChangesetSummary.of(bytes), into: TemporaryBuffer()).map(\.name)
  }

  @Test("in a table, deletes, updates and inserts are sorted by key; tables and sections keep their order")
  func order() throws {
    let bytes =
      changeset("b", .insert([2, "x"]), .update(old: [9, 1], new: [.undefined, 2]), .insert([-1, "x"]))
      + changeset("a", .insert([5, 5]))
      + changeset("B", .delete([7, 1]), .update(old: [8, 1], new: [.undefined, 2]), .delete([3, 1]))
    #expect(
      try lines(try Changesets.sorted(bytes)) == [
        "b DELETE | 3 1 -", "b DELETE | 7 1 -", "b UPDATE | 8 1 | . 2", "b UPDATE | 9 1 | . 2",
        "b INSERT - | -1 'x'", "b INSERT - | 2 'x'", "a INSERT - | 5 5",
      ])
    #expect(try tablesInAuthorOrder(bytes).isEmpty)
  }

  @Test("patchsets are sorted by the same rules")
  func patchset() throws {
    let bytes = changeset(
      key: [0, 2, 1], format: .patchset, .insert(["x", 1, 5]), .patchUpdate([.undefined, 1, 9]),
      .patchDelete([2, 1]), .patchUpdate(["y", 7, 8]), .patchDelete([9, 0]))
    #expect(
      try lines(try Changesets.sorted(bytes)) == [
        "notes DELETE | . 9 0 -", "notes DELETE | . 2 1 -", "notes UPDATE | . 7 8 | 'y' . .",
        "notes UPDATE | . 1 9 -", "notes INSERT - | 'x' 1 5",
      ])
  }

  @Test("values sort as NULL, numbers, text, blobs; numbers exactly, the rest byte by byte")
  func values() throws {
    let sorted: [TestValue] = [
      nil, .real(-.infinity), -1e300, .integer(.min), -2.5, -2, 0, .real(.leastNonzeroMagnitude), 1, 1.5, 2,
      9_007_199_254_740_992.0, 9_007_199_254_740_993, 9_007_199_254_740_994.0, 9_223_372_036_854_774_784.0,
      .integer(.max), 9_223_372_036_854_775_808.0, .real(.infinity), "", "\u{1}", "A", "a", "aaaaaaaa", "aaaaaaaaa",
      "aaaaaaab", "é", [], [0], [0, 0], [0, 1], [1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 3, 4, 5, 6, 7, 9], [255],
    ]
    let expected = sorted.map { TestChange.insert([$0, 0]) }.reduce(into: ChangesetWriter()) { $0.append($1) }.bytes
    for seed in 0..<20 as Range<UInt64> {
      var random = SeededGenerator(seed: seed)
      var writer = ChangesetWriter()
      for value in sorted.shuffled(using: &random) { writer.append(.insert([value, 0])) }
      #expect(try Changesets.sorted(changeset() + writer.bytes) == changeset() + expected, "seed \(seed)")
    }
  }

  @Test("a composite key is sorted in its own order if the header has it, otherwise in column order")
  func composite() throws {
    let changes: [TestChange] = [.insert([1, 2, 0]), .insert([2, 1, 0]), .insert([1, 1, 0])]
    func sorted(_ key: [UInt8]) throws -> [String] {
      let bytes = changeset(ChangesetTable(name: "t", keyFlags: key), changes)
      return try lines(try Changesets.sorted(bytes)).map { String($0.dropFirst("t INSERT - | ".count)) }
    }
    #expect(try sorted([2, 1, 0]) == ["1 1 0", "2 1 0", "1 2 0"])
    #expect(try sorted([1, 2, 0]) == ["1 1 0", "1 2 0", "2 1 0"])
    #expect(try sorted([1, 1, 0]) == ["1 1 0", "1 2 0", "2 1 0"])
    #expect(try sorted([3, 1, 0]) == ["1 1 0", "1 2 0", "2 1 0"])
  }

  @Test("a table that changes a row twice keeps the author's order, with joined sections; others do not")
  func authorOrder() throws {
    let bytes =
      changeset("twice", .insert([5, 1]), .insert([3, 1])) + changeset("once", .insert([2, 1]), .insert([1, 1]))
      + changeset("twice", .delete([5, 1]))
    #expect(try tablesInAuthorOrder(bytes) == ["twice"])
    #expect(
      try lines(try Changesets.sorted(bytes)) == [
        "twice INSERT - | 5 1", "twice INSERT - | 3 1", "twice DELETE | 5 1 -", "once INSERT - | 1 1",
        "once INSERT - | 2 1",
      ])
  }

  @Test("keys that SQLite may treat as equal count as one: 1 and 1.0, zeros of both signs, NULL")
  func looseKeys() throws {
    let pairs: [(TestValue, TestValue)] = [(1, 1.0), (0, -0.0), (0.0, -0.0), (nil, nil), ("a", "a")]
    for (one, other) in pairs {
      let bytes = changeset(.insert([one, 1]), .insert([-5, 1]), .delete([other, 1]))
      #expect(try Changesets.sorted(bytes) == bytes)
      #expect(try Spilled.sorted(bytes) == bytes)
      #expect(try tablesInAuthorOrder(bytes) == ["notes"])
    }
    // In a composite key, equal keys need not be adjacent in an order that puts 1 before 1.0.
    let bytes = changeset(key: [1, 2], .insert([1, 7]), .insert([1, 8]), .insert([1.0, 9]), .delete([1.0, 7]))
    #expect(try Changesets.sorted(bytes) == bytes)
  }

  @Test("a sorted changeset is unchanged")
  func identity() throws {
    let bytes = changeset(.delete([9, 1]), .insert([1, 1]), .insert([2, 1])) + changeset("b", .insert([0, 0]))
    #expect(try Changesets.sorted(bytes) == bytes)
    #expect(try Changesets.sorted([]) == [])
    #expect(try Changesets.sorted(changeset()) == [])
  }

  @Test("NaN, which SQLite never writes, has a position, too")
  func nan() throws {
    let bytes = changeset(.insert([1, 0]), .insert([.real(.nan), 0]), .insert([.real(-.infinity), 0]))
    #expect(
      try lines(try Changesets.sorted(bytes)) == [
        "notes INSERT - | nan 0", "notes INSERT - | -inf 0", "notes INSERT - | 1 0",
      ])
  }
}
