import SQLiteChangesets
import Testing

@Suite("ChangesetSummary")
struct ChangesetSummaryTests {
  @Test("changes are counted by table, in order of first appearance, over all sections")
  func counts() throws {
    let bytes =
      changeset("b", .insert([1, 2]), .update(old: [2, 1], new: [.undefined, 2]))
      + changeset("a", .delete([1, 2]), .update(old: [3, .undefined], new: [.undefined, .undefined]))
      + changeset("none")
      + changeset("B", key: [2, 0], .insert([4, 4]), .delete([1, 1]))
    let summary = try ChangesetSummary.of(bytes)
    #expect(summary.tables.map(\.table.name) == ["b", "a"])
    #expect(summary.tables.map(\.inserted) == [2, 0])
    #expect(summary.tables.map(\.updated) == [1, 1])
    #expect(summary.tables.map(\.deleted) == [1, 1])
    #expect(summary.tables.map(\.changeCount) == [4, 2])
    #expect((summary.inserted, summary.updated, summary.deleted) == (2, 2, 2))
    #expect(summary.changeCount == 6)
    #expect(summary.byteCount == bytes.count)
    #expect(summary.format == .changeset)
  }

  @Test("changes without old values are counted, and a DELETE after an INSERT is recorded")
  func oldValues() throws {
    let ordered = changeset(.delete([1, 2]), .update(old: [2, 1], new: [.undefined, 2]), .insert([3, 4]))
    let hashed = changeset(
      "b", .insert([4, 4]), .update(old: [2, .undefined], new: [.undefined, 2]), .delete([1, 2]))
    let summary = try ChangesetSummary.of(ordered + hashed)
    #expect(summary.tables.map(\.withoutOldValues) == [0, 1])
    #expect(summary.tables.map(\.hasDeleteBehindInsert) == [false, true])
    let patch = try ChangesetSummary.of(
      changeset(format: .patchset, .insert([1, 2]), .patchUpdate([2, 3]), .patchDelete([3]))
        + changeset("keys", key: [1, 2], format: .patchset, .patchDelete([1, 2])))
    #expect(patch.tables.map(\.withoutOldValues) == [2, 0])
    var joined = try ChangesetSummary.of(changeset(.insert([3, 4])))
    joined.append(try ChangesetSummary.of(changeset(.delete([3, 4]))), at: 100)
    #expect(joined.tables.map(\.hasDeleteBehindInsert) == [true])
  }

  @Test("no changes have an empty summary")
  func nothing() throws {
    let bytes: [UInt8] = []
    let summary = try ChangesetSummary.of(bytes)
    #expect(summary.tables.isEmpty && summary.changeCount == 0 && summary.format == nil)
  }

  @Test("one name with other columns or another key is refused, in any case")
  func incompatible() {
    let first = changeset("Notes", .insert([1, 2]))
    for second in [
      changeset("notes", key: [0, 1], .insert([1, 2])), changeset("NOTES", key: [1, 1], .insert([1, 2])),
      changeset("Notes", key: [1], .insert([1])), changeset("nOTES", key: [1, 0, 0], .insert([1, 2, 3])),
    ] {
      let error = changesetError { _ = try ChangesetSummary.of(first + second) }
      #expect(error?.code == .incompatibleTables)
      #expect(error?.offset == first.count)
      #expect(error?.table?.lowercased() == "notes")
      #expect(changesetError { _ = try Changesets.sorted(first + second) } == error)
      #expect(changesetError { _ = try Changesets.concatenated(first + second) } == error)
      #expect(changesetError { _ = try Changesets.concatenated(first, second) }?.code == .incompatibleTables)
      // A separate input counts its bytes from its own start.
      #expect(changesetError { _ = try Changesets.concatenated(first, second) }?.offset == 0)
    }
  }

  @Test("names are compared by bytes: composed and decomposed letters, broken UTF-8, other scripts' case")
  func names() throws {
    let broken = changeset("x", .insert([1, 2]))
    var other = broken
    other[4] = 0xff
    var another = broken
    another[4] = 0xfe
    let bytes =
      changeset("\u{e9}", .insert([1, 2])) + changeset("e\u{301}", .insert([1, 2]))
      + changeset("Ж", .insert([1, 2])) + changeset("ж", .insert([1, 2])) + other + another
    let summary = try ChangesetSummary.of(bytes)
    #expect(summary.tables.count == 6)
    #expect(try Changesets.sorted(bytes) == bytes)
    #expect(try Changesets.concatenated(bytes) == bytes)
  }
}
