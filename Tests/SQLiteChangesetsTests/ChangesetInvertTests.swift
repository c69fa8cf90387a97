import BuckiaBytes
import SQLiteChangesets
import Testing

@Suite("Inverting")
struct ChangesetInvertTests {
  @Test(
    "INSERT and DELETE are exchanged, UPDATE swaps its values, tables are reversed, and DELETEs come first"
  )
  func inverse() throws {
    let bytes =
      changeset(
        key: [0, 1, 0], .insert(["a", 1, nil], indirect: true), .delete(["b", 2, 1.5]),
        .update(old: ["c", 3, .undefined], new: ["d", .undefined, .undefined], indirect: true),
        .insert(["e", 0, nil]))
      + changeset("other", .delete([[1], []]))
    let expected =
      changeset("other", .insert([[1], []]))
      + changeset(
        key: [0, 1, 0], .delete(["e", 0, nil]), .delete(["a", 1, nil], indirect: true),
        .update(old: ["d", 3, .undefined], new: ["c", .undefined, .undefined], indirect: true),
        .insert(["b", 2, 1.5]))
    #expect(try Changesets.inverted(bytes) == expected)
    #expect(try lines(Changesets.inverted(expected)) == lines(Changesets.sorted(bytes)))
    #expect(try Changesets.inverted([]) == [])
  }

  @Test("A key replaced by another that compares equal is deleted before it is inserted, in any order")
  func replacedKeys() throws {
    let pairs: [(TestValue, TestValue)] = [("apple", "Apple"), (2.0, 2), (0, -0.0), (0.0, -0.0), (-0.0, 0.0), (2, 2.0)]
    for (old, new) in pairs {
      let changes = [TestChange.delete([old, 1]), .insert([new, 1])]
      for changes in [changes, changes.reversed()] {
        let bytes = changeset(ChangesetTable(name: "notes", keyFlags: [1, 0]), changes)
        #expect(try Changesets.inverted(bytes) == changeset(.delete([new, 1]), .insert([old, 1])))
      }
    }
  }

  @Test("If one row is changed more than once, the changes are reversed")
  func sequences() throws {
    let bytes =
      changeset(.insert([1, "a"]), .insert([2, "b"]))
      + changeset("other", .insert([5, 6]), .insert([4, 6]))
      + changeset(.update(old: [1, "a"], new: [.undefined, "c"]), .delete([2, "b"]))
    let expected =
      changeset(.insert([2, "b"]), .update(old: [1, "c"], new: [.undefined, "a"]))
      + changeset("other", .delete([4, 6]), .delete([5, 6]))
      + changeset(.delete([2, "b"]), .delete([1, "a"]))
    #expect(try Changesets.inverted(bytes) == expected)
    #expect(try Spilled.inverted(bytes) == expected)
    // Rows with NULL in the key may be the same row.
    let nulls = changeset(.insert([nil, "a"]), .delete([nil, "a"]), .insert([nil, "b"]))
    #expect(
      try Changesets.inverted(nulls) == changeset(.delete([nil, "b"]), .insert([nil, "a"]), .delete([nil, "a"])))
  }

  @Test("More changes than a DELETE and an INSERT of equal keys are a sequence")
  func manyForms() throws {
    let bytes = changeset(.delete([0, 1]), .insert([0.0, 1]), .delete([0.0, 1]), .insert([-0.0, 1]))
    #expect(
      try Changesets.inverted(bytes)
        == changeset(.delete([-0.0, 1]), .insert([0.0, 1]), .delete([0.0, 1]), .insert([0, 1])))
    let inserts = changeset(.insert([2, 1]), .insert([2.0, 1]))
    #expect(try Changesets.inverted(inserts) == changeset(.delete([2.0, 1]), .delete([2, 1])))
  }

  @Test("Sections of one table are joined, unless their changes are a sequence or in the author's order")
  func sections() throws {
    let bytes = changeset(.insert([1, 1])) + changeset("other", .insert([1, 1])) + changeset(.insert([2, 1]))
    #expect(
      try Changesets.inverted(bytes)
        == changeset(.delete([1, 1]), .delete([2, 1])) + changeset("other", .delete([1, 1])))
    let output = TemporaryBuffer()
    let inKeyOrder = try Changesets.invert(TemporaryBuffer(bytes), into: output, keepsOrder: { $0.name == "notes" })
    #expect(
      try output.allBytes()
        == changeset(.delete([2, 1])) + changeset("other", .delete([1, 1])) + changeset(.delete([1, 1])))
    #expect(inKeyOrder.map(\.name) == ["other"])
  }

  @Test("a patchset is refused with its name and offset, before anything is written")
  func patchset() throws {
    let output = TemporaryBuffer()
    let bytes = changeset("people", format: .patchset, .insert([1, 2]))
    let error = changesetError { _ = try Changesets.invert(TemporaryBuffer(bytes), into: output) }
    #expect(error == ChangesetError(.needsChangeset, offset: 0, table: "people"))
    #expect(output.isEmpty)
  }

  @Test("an UPDATE with a missing old value has no inverse")
  func missingOldValue() throws {
    let output = TemporaryBuffer()
    let bytes = changeset(.insert([1, 2]), .update(old: [2, .undefined], new: [.undefined, 5]))
    let error = changesetError { _ = try Changesets.invert(TemporaryBuffer(bytes), into: output) }
    #expect(error?.code == .misplacedValue)
    #expect(error?.offset == changeset(.insert([1, 2])).count)
    #expect(output.isEmpty)
  }
}
