import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import Testing

/// The table of `RowChange.followed(by:in:bytes:)`, case by case, compared with SQLite's result.
@Suite("Joining")
struct ChangesetConcatenateTests {
  private let header = changeset()
  private let insert = TestChange.insert([1, "a"])
  private let insertOther = TestChange.insert([1, "b"])
  private let update = TestChange.update(old: [1, "a"], new: [.undefined, "b"])
  private let updateBack = TestChange.update(old: [1, "b"], new: [.undefined, "a"])
  private let updateOn = TestChange.update(old: [1, "b"], new: [.undefined, "c"])
  private let delete = TestChange.delete([1, "a"])
  private let deleteOther = TestChange.delete([1, "b"])

  private func expect(
    _ first: TestChange, then second: TestChange, give expected: String?, format: ChangesetFormat = .changeset,
    _ location: SourceLocation = #_sourceLocation
  ) throws {
    let (one, other) = (changeset(format: format, first), changeset(format: format, second))
    let joined = try Changesets.concatenated(one, other)
    #expect(try lines(joined) == [expected].compactMap { $0 }, sourceLocation: location)
    #expect(joined == (try StockChangesets.concat(one, other)), sourceLocation: location)
    // One changeset that changes a row twice is joined in the same way.
    #expect(try Changesets.concatenated(one + other) == joined, sourceLocation: location)
  }

  @Test("two changes of one row become one, none, or the first")
  func changesets() throws {
    try expect(insert, then: insertOther, give: "notes INSERT - | 1 'a'")
    try expect(insert, then: update, give: "notes INSERT - | 1 'b'")
    try expect(insert, then: delete, give: nil)
    try expect(insert, then: deleteOther, give: nil)
    try expect(update, then: insert, give: "notes UPDATE | 1 'a' | . 'b'")
    try expect(update, then: updateOn, give: "notes UPDATE | 1 'a' | . 'c'")
    try expect(update, then: updateBack, give: nil)
    try expect(update, then: deleteOther, give: "notes DELETE | 1 'a' -")
    try expect(delete, then: insertOther, give: "notes UPDATE | 1 'a' | . 'b'")
    try expect(delete, then: insert, give: nil)
    try expect(delete, then: update, give: "notes DELETE | 1 'a' -")
    try expect(delete, then: deleteOther, give: "notes DELETE | 1 'a' -")
  }

  @Test("patchsets are joined without old values")
  func patchsets() throws {
    let update = TestChange.patchUpdate([1, "b"])
    let delete = TestChange.patchDelete([1])
    try expect(insert, then: insertOther, give: "notes INSERT - | 1 'a'", format: .patchset)
    try expect(insert, then: update, give: "notes INSERT - | 1 'b'", format: .patchset)
    try expect(insert, then: delete, give: nil, format: .patchset)
    try expect(update, then: insert, give: "notes UPDATE | 1 . | . 'b'", format: .patchset)
    try expect(update, then: .patchUpdate([1, "c"]), give: "notes UPDATE | 1 . | . 'c'", format: .patchset)
    try expect(update, then: update, give: "notes UPDATE | 1 . | . 'b'", format: .patchset)
    try expect(update, then: delete, give: "notes DELETE | 1 . -", format: .patchset)
    try expect(delete, then: insert, give: "notes UPDATE | 1 . | . 'a'", format: .patchset)
    try expect(delete, then: update, give: "notes DELETE | 1 . -", format: .patchset)
    try expect(delete, then: delete, give: "notes DELETE | 1 . -", format: .patchset)
  }

  @Test("a joined change is indirect if both were", arguments: [false, true], [false, true])
  func indirect(first: Bool, second: Bool) throws {
    let mark = first && second ? "*" : ""
    try expect(
      .insert([1, "a"], indirect: first), then: .update(old: [1, "a"], new: [.undefined, "b"], indirect: second),
      give: "notes INSERT\(mark) - | 1 'b'")
    try expect(
      .update(old: [1, "a"], new: [.undefined, "b"], indirect: first), then: .delete([1, "b"], indirect: second),
      give: "notes DELETE\(mark) | 1 'a' -")
    try expect(
      .insert([1, "a"], indirect: first), then: .insert([1, "a"], indirect: second),
      give: "notes INSERT\(first ? "*" : "") - | 1 'a'")
  }

  @Test("columns that end with their first value leave a joined UPDATE")
  func columns() throws {
    let first = changeset(
      key: [0, 1, 0], .update(old: ["a", 1, 5], new: ["b", .undefined, 6]))
    let second = changeset(
      key: [0, 1, 0], .update(old: ["b", 1, .undefined], new: ["a", .undefined, .undefined]))
    let joined = try Changesets.concatenated(first, second)
    #expect(try lines(joined) == ["notes UPDATE | . 1 5 | . . 6"])
    #expect(joined == (try StockChangesets.concat(first, second)))
  }

  @Test("rows keep the position of their first change, tables that of their first section")
  func places() throws {
    let first =
      changeset("b", .insert([3, 1]), .insert([1, 1]), .insert([2, 1])) + changeset("a", .insert([1, 1]))
    let second =
      changeset("A", .insert([0, 1])) + changeset("c", .delete([1, 1]))
      + changeset("b", .delete([2, 1]), .update(old: [3, 1], new: [.undefined, 2]))
    #expect(
      try lines(try Changesets.concatenated(first, second)) == [
        "b INSERT - | 3 2", "b INSERT - | 1 1", "a INSERT - | 1 1", "a INSERT - | 0 1", "c DELETE | 1 1 -",
      ])
  }

  @Test("a table without remaining changes leaves no header")
  func emptied() throws {
    #expect(try Changesets.concatenated(changeset(insert), changeset(delete)) == [])
    #expect(try Changesets.concatenated(header, header) == [])
    #expect(try Changesets.concatenated() == [])
  }

  @Test("keys of different types are different rows, and keys with NULL match no row")
  func rows() throws {
    let kinds = changeset(.delete([1, "a"]), .delete([1.0, "a"]), .delete(["1", "a"]), .delete([[0x31], "a"]))
    let back = changeset(.insert([1.0, "b"]), .insert([1, "c"]))
    #expect(
      try lines(try Changesets.concatenated(kinds, back)) == [
        "notes UPDATE | 1 'a' | . 'c'", "notes UPDATE | 1.0 'a' | . 'b'", "notes DELETE | '1' 'a' -",
        "notes DELETE | x[49] 'a' -",
      ])
    let nulls = changeset(key: [1, 2, 0], .insert([nil, 1, "a"]), .insert([nil, 1, "b"]))
    let gone = changeset(key: [1, 2, 0], .delete([nil, 1, "a"]))
    #expect(try Changesets.concatenated(nulls, gone) == nulls + gone.dropFirst(header.count + 1))
  }

  @Test("inputs that do not fit each other are refused with the offset")
  func refused() throws {
    let first = changeset(insert)
    for (bad, code, offset) in [
      (changeset("other", .insert([1, 2])) + [1], .unknownOperation, changeset("other", .insert([1, 2])).count),
      (
        changeset("new", .insert([1, 2])) + changeset(key: [1], .insert([1])), .incompatibleTables,
        changeset("new", .insert([1, 2])).count
      ),
      (changeset(format: .patchset, insert), .mixedFormats, 0),
    ] as [([UInt8], ChangesetError.Code, Int)] {
      let output = TemporaryBuffer()
      let error = changesetError {
        try Changesets.concatenate([TemporaryBuffer(first), TemporaryBuffer(bad)], into: output)
      }
      #expect(error?.code == code)
      #expect(error?.offset == offset)
      #expect(output.isEmpty)
    }
  }

  @Test("inputs spilled to files give the same bytes")
  func spilled() throws {
    let parts = (0..<50).map { part in
      changeset(.insert([.integer(Int64(part)), .text(String(repeating: "x", count: 500))]), .insert([-1, "once"]))
    }
    let joined = try Spilled.concatenated(parts)
    #expect(joined == (try Changesets.concatenated(parts)))
    #expect(try lines(joined).count == 51)
  }

  @Test("thousands of changes of one row become one", arguments: [1, 3_001])
  func manyChanges(count: Int) throws {
    let changes = (0..<count).map {
      TestChange.update(old: [1, .integer(Int64($0))], new: [.undefined, .integer(Int64($0 + 1))])
    }
    let bytes = changeset(ChangesetTable(name: "t", keyFlags: [1, 0]), changes)
    #expect(try lines(try Spilled.concatenated([bytes])) == ["t UPDATE | 1 0 | . \(count)"])
  }

  @Test("joining and sorting stop on request")
  func stopping() throws {
    struct Stop: Error {}
    let bytes = changeset(ChangesetTable(name: "t", keyFlags: [1, 0]), (0..<500).map { .insert([.integer($0), nil]) })
    for limit in 0..<20 {
      var polls = 0
      let poll = {
        polls += 1
        if polls > limit { throw Stop() }
      }
      let output = TemporaryBuffer()
      let input = try TemporaryBuffer(bytes, windowBytes: 512)
      let summary = try ChangesetSummary.of(input)
      #expect(throws: Stop.self) { try Changesets.sort(input, summary, into: output, poll: poll) }
      polls = 0
      #expect(throws: Stop.self) { try Changesets.concatenate([input], into: output, poll: poll) }
      polls = 0
      #expect(throws: Stop.self) { try Changesets.invert(input, into: output, poll: poll) }
    }
  }
}
