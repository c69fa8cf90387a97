import BuckiaByteStreams
import SQLiteChangesets
import Testing

@Suite("Inverting")
struct ChangesetInvertTests {
  @Test("INSERT and DELETE trade places, UPDATE swaps its values and keeps the key, order and flags stay")
  func inverse() throws {
    let bytes =
      changeset(
        key: [0, 1, 0], .insert(["a", 1, nil], indirect: true), .delete(["b", 2, 1.5]),
        .update(old: ["c", 3, .undefined], new: ["d", .undefined, .undefined], indirect: true))
      + changeset("other", .delete([[1], []]))
    let expected =
      changeset(
        key: [0, 1, 0], .delete(["a", 1, nil], indirect: true), .insert(["b", 2, 1.5]),
        .update(old: ["d", 3, .undefined], new: ["c", .undefined, .undefined], indirect: true))
      + changeset("other", .insert([[1], []]))
    #expect(try Changesets.inverted(bytes) == expected)
    #expect(try Changesets.inverted(expected) == bytes)
    #expect(try Changesets.inverted([]) == [])
  }

  @Test("a patchset is refused by name and place, before anything is written")
  func patchset() throws {
    let output = TemporaryBuffer()
    let bytes = changeset("people", format: .patchset, .insert([1, 2]))
    let error = changesetError { _ = try Changesets.invert(TemporaryBuffer(bytes), into: output) }
    #expect(error == ChangesetError(.needsChangeset, offset: 0, table: "people"))
    #expect(output.isEmpty)
  }

  @Test("an UPDATE whose old value is missing has no inverse")
  func missingOldValue() throws {
    let output = TemporaryBuffer()
    let bytes = changeset(.insert([1, 2]), .update(old: [2, .undefined], new: [.undefined, 5]))
    let error = changesetError { _ = try Changesets.invert(TemporaryBuffer(bytes), into: output) }
    #expect(error?.code == .misplacedValue)
    #expect(error?.offset == changeset(.insert([1, 2])).count)
    #expect(output.isEmpty)
  }
}
