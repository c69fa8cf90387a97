import BuckiaBytes
import SQLiteChangesets
import Testing
import TestSupport

@Suite("Rebasing a changeset onto another")
struct RebaseTests {
  private typealias Result = (lines: [String], conflicts: [RebaseConflict.Kind])

  private func rebased(
    _ local: [UInt8], onto incoming: [UInt8], _ policy: RebasePolicy, _ definitions: [RebaseTable] = []
  ) throws -> Result {
    let output = TemporaryBuffer()
    let conflicts = try Changesets.rebase(
      TemporaryBuffer(local), onto: TemporaryBuffer(incoming), policy, definitions: definitions, into: output)
    return (try lines(output.allBytes()), conflicts.listed.map(\.kind))
  }

  private func notes(_ collation: RebaseTable.Collation = .binary, unique: [[Int]] = []) -> [RebaseTable] {
    [RebaseTable(name: "NOTES", collations: [collation, .binary], unique: unique)]
  }

  // MARK: One row

  @Test("Changes of one side only are unchanged, in their order")
  func untouched() throws {
    let local = changeset(
      .insert([9, "i"], indirect: true), .update(old: [2, "b"], new: [.undefined, "B"]), .delete([1, "a"]))
    let incoming = changeset(.insert([7, "g"]), .delete([3, "c"])) + changeset("other", .insert([1, 2]))
    for policy in RebasePolicy.allCases {
      let result = try Changesets.rebased(local, onto: incoming, policy: policy)
      #expect(result.changeset == local)
      #expect(result.conflicts.count == 0)
      #expect(try Changesets.rebased(local, onto: [], policy: policy).changeset == local)
      #expect(try Changesets.rebased([], onto: incoming, policy: policy).changeset.isEmpty)
    }
  }

  @Test("Equal changes of both sides disappear without a conflict")
  func equalEdits() throws {
    let both = changeset(.insert([9, "i"]), .update(old: [2, "b"], new: [.undefined, "B"]), .delete([1, "a"]))
    for policy in RebasePolicy.allCases {
      let result = try rebased(both, onto: both, policy)
      #expect(result.lines.isEmpty && result.conflicts.isEmpty)
    }
  }

  @Test("Edits of different columns merge, with the incoming values as old ones; for the same, the policy decides")
  func columns() throws {
    let local = changeset(
      key: [1, 0, 0, 0], .update(old: [1, "a", "b", .undefined], new: [.undefined, "A", "B", .undefined]))
    let incoming = changeset(
      key: [1, 0, 0, 0], .update(old: [1, .undefined, "b", "c"], new: [.undefined, .undefined, "x", "C"]))
    let mine = try rebased(local, onto: incoming, .keepLocal)
    #expect(mine.lines == ["notes UPDATE | 1 'a' 'x' . | . 'A' 'B' ."])
    #expect(mine.conflicts == [.updatedByBoth])
    let theirs = try rebased(local, onto: incoming, .takeIncoming)
    #expect(theirs.lines == ["notes UPDATE | 1 'a' . . | . 'A' . ."])
    #expect(theirs.conflicts == [.updatedByBoth])
    let listed = try Changesets.rebased(local, onto: incoming).conflicts.listed
    #expect(
      listed == [
        RebaseConflict(table: "notes", key: [1], kind: .updatedByBoth, columns: [2], winner: .keepLocal)
      ])
  }

  @Test("A row deleted on one side and changed on the other is inserted, deleted or kept, by policy")
  func deleted() throws {
    let update = changeset(key: [1, 0, 0], .update(old: [1, "a", .undefined], new: [.undefined, "A", .undefined]))
    let delete = changeset(key: [1, 0, 0], .delete([1, "a", "b"]))
    #expect(try rebased(update, onto: delete, .keepLocal) == (["notes INSERT - | 1 'A' 'b'"], [.deletedByIncoming]))
    #expect(try rebased(update, onto: delete, .takeIncoming) == ([], [.deletedByIncoming]))
    #expect(try rebased(delete, onto: update, .keepLocal) == (["notes DELETE | 1 'A' 'b' -"], [.deletedByLocal]))
    #expect(try rebased(delete, onto: update, .takeIncoming) == ([], [.deletedByLocal]))
  }

  @Test("Different rows with one key become an UPDATE, or nothing")
  func inserted() throws {
    let local = changeset("pairs", key: [2, 0, 1, 0], .insert(["x", 1, "y", "same"]))
    let incoming = changeset("PAIRS", key: [2, 0, 1, 0], .insert(["x", 2, "y", "same"]))
    #expect(
      try rebased(local, onto: incoming, .keepLocal) == (["pairs UPDATE | 'x' 2 'y' . | . 1 . ."], [.insertedByBoth]))
    #expect(try rebased(local, onto: incoming, .takeIncoming) == ([], [.insertedByBoth]))
  }

  @Test("A key that became another which compares equal is one edit of one row")
  func equalKeys() throws {
    let respelled = changeset(.delete([2.0, "b"]), .insert([2, "b"]))
    let update = changeset(.update(old: [2.0, "b"], new: [.undefined, "B"]))
    for policy in RebasePolicy.allCases {
      // Both edits count: the key and the text.
      #expect(
        try rebased(respelled, onto: update, policy) == (["notes DELETE | 2.0 'B' -", "notes INSERT - | 2 'B'"], []))
      #expect(try rebased(update, onto: respelled, policy) == (["notes UPDATE | 2 'b' | . 'B'"], []))
    }
    let delete = changeset(.delete([2.0, "b"]))
    #expect(try rebased(respelled, onto: delete, .keepLocal).lines == ["notes INSERT - | 2 'b'"])
    #expect(try rebased(respelled, onto: delete, .takeIncoming).lines == [])
    #expect(try rebased(delete, onto: respelled, .keepLocal).lines == ["notes DELETE | 2 'b' -"])
    #expect(try rebased(delete, onto: respelled, .takeIncoming).lines == [])
    let words = changeset(.delete(["apple", 1]), .insert(["Apple", 1]))
    let other = changeset(.delete(["apple", 1]), .insert(["APPLE", 2]))
    #expect(
      try rebased(words, onto: other, .keepLocal, notes(.noCase))
        == (["notes DELETE | 'APPLE' 2 -", "notes INSERT - | 'Apple' 2"], [.updatedByBoth]))
    #expect(try rebased(words, onto: other, .takeIncoming, notes(.noCase)) == ([], [.updatedByBoth]))
    // Only the definition says whether the column's collating sequence distinguishes them.
    #expect(try rebased(words, onto: other, .keepLocal).lines == ["notes INSERT - | 'Apple' 1"])
    let padded = changeset(.insert(["a ", 1]))
    #expect(try rebased(padded, onto: changeset(.insert(["a", 1])), .takeIncoming, notes(.rightTrim)).lines == [])
  }

  @Test("More changes than one row can have are matched by the bytes of their keys")
  func manyForms() throws {
    let local = changeset(
      .update(old: [1, "a"], new: [.undefined, "A"]), .update(old: [1.0, "b"], new: [.undefined, "B"]))
    let incoming = changeset(.delete([1.0, "b"]), .delete([1, "a"]))
    #expect(
      try rebased(local, onto: incoming, .keepLocal)
        == (["notes INSERT - | 1 'A'", "notes INSERT - | 1.0 'B'"], [.deletedByIncoming, .deletedByIncoming]))
  }

  @Test("Rows with NULL in the key are compared by content: deleted once, and never equal when inserted")
  func nullKeys() throws {
    let local = changeset(.delete([nil, "a"]), .delete([nil, "a"]), .delete([nil, "b"]), .insert([nil, "c"]))
    let incoming = changeset(.delete([nil, "a"]), .insert([nil, "c"]))
    for policy in RebasePolicy.allCases {
      let result = try rebased(local, onto: incoming, policy)
      #expect(result.lines == ["notes DELETE | NULL 'a' -", "notes DELETE | NULL 'b' -", "notes INSERT - | NULL 'c'"])
    }
  }

  @Test("Changes that were not made from the same state are named")
  func differentBase() throws {
    let update = changeset(.update(old: [1, "a"], new: [.undefined, "A"]))
    let other = changeset(.update(old: [1, "b"], new: [.undefined, "B"]))
    #expect(try rebased(update, onto: other, .keepLocal) == (["notes UPDATE | 1 'B' | . 'A'"], [.differentBase]))
    let insert = changeset(.insert([1, "new"]))
    #expect(try rebased(insert, onto: other, .keepLocal) == (["notes INSERT - | 1 'new'"], [.differentBase]))
    #expect(try rebased(insert, onto: other, .takeIncoming) == ([], [.differentBase]))
    #expect(try rebased(update, onto: insert, .keepLocal) == (["notes UPDATE | 1 'new' | . 'A'"], [.differentBase]))
    #expect(try rebased(insert, onto: changeset(.delete([1, "a"])), .keepLocal).lines == ["notes INSERT - | 1 'new'"])
  }

  @Test("Concatenated recordings count with their combined result")
  func sequences() throws {
    let local = changeset(.insert([1, "a"])) + changeset(.update(old: [1, "a"], new: [.undefined, "b"]))
    let incoming = changeset(.insert([1, "x"])) + changeset(.update(old: [1, "x"], new: [.undefined, "b"]))
    #expect(try rebased(local, onto: incoming, .keepLocal) == ([], []))
  }

  @Test("A patchset is refused on either side, and so is a table with another key")
  func refusals() throws {
    let patchset = changeset(format: .patchset, .insert([1, 2]))
    let plain = changeset(.insert([1, 2]))
    for (one, other) in [(patchset, plain), (plain, patchset)] {
      let error = changesetError { _ = try Changesets.rebased(one, onto: other) }
      #expect(error?.code == .needsChangeset && error?.table == "notes")
    }
    let error = changesetError {
      _ = try Changesets.rebased(plain, onto: changeset("Notes", key: [0, 1], .insert([1, 2])))
    }
    #expect(error?.code == .incompatibleTables)
    #expect(throws: ChangesetError.self) { try Changesets.rebased([1, 2, 3], onto: plain) }
  }

  @Test("Only the first conflicts are listed, and all are counted")
  func manyConflicts() throws {
    func rows(_ text: TestValue) -> [UInt8] {
      changeset(ChangesetTable(name: "notes", keyFlags: [1, 0]), (0..<1_500).map { .insert([.integer($0), text]) })
    }
    let conflicts = try Changesets.rebased(rows("a"), onto: rows("b")).conflicts
    #expect(conflicts.count == 1_500)
    #expect(conflicts.listed.count == RebaseConflicts.listLimit)
  }

  // MARK: UNIQUE values

  @Test("If both sides give a UNIQUE value to different rows, the inserted row of the losing side gives way")
  func uniqueInserts() throws {
    let local = changeset(.insert([1, "taken"]), .insert([3, "free"]))
    let incoming = changeset(.insert([2, "taken"]))
    #expect(
      try rebased(local, onto: incoming, .keepLocal, notes(unique: [[1]]))
        == (["notes DELETE | 2 'taken' -", "notes INSERT - | 1 'taken'", "notes INSERT - | 3 'free'"], [.unique]))
    #expect(
      try rebased(local, onto: incoming, .takeIncoming, notes(unique: [[1]])) == (
        ["notes INSERT - | 3 'free'"], [.unique]
      )
    )
    // NULL equals nothing, and without a definition no constraint is known.
    #expect(
      try rebased(changeset(.insert([1, nil])), onto: changeset(.insert([2, nil])), .keepLocal, notes(unique: [[1]]))
        .conflicts.isEmpty)
    #expect(try rebased(local, onto: incoming, .keepLocal).lines.count == 2)
  }

  @Test("An updated row that gives way gets its old value back, and a row that needs that gives way, too")
  func uniqueUpdates() throws {
    let local = changeset(.update(old: [1, "a"], new: [.undefined, "x"]))
    let incoming = changeset(.update(old: [2, "b"], new: [.undefined, "x"]), .insert([6, "b"]))
    // Row 2 gets its b back, so row 6 cannot have it.
    #expect(
      try rebased(local, onto: incoming, .keepLocal, notes(unique: [[1]]))
        == (
          ["notes DELETE | 6 'b' -", "notes UPDATE | 2 'x' | . 'b'", "notes UPDATE | 1 'a' | . 'x'"],
          [.unique, .unique]
        ))
    #expect(try rebased(local, onto: incoming, .takeIncoming, notes(unique: [[1]])) == ([], [.unique]))
  }

  @Test("A constraint with columns that a changeset lacks is named")
  func undecided() throws {
    let tables = [RebaseTable(name: "notes", collations: [], unique: [[1, 2]])]
    let local = changeset(key: [1, 0, 0], .update(old: [1, "a", .undefined], new: [.undefined, "x", .undefined]))
    let incoming = changeset(key: [1, 0, 0], .insert([2, "x", "y"]))
    #expect(try rebased(local, onto: incoming, .keepLocal, tables).conflicts == [.undecidedUnique])
    #expect(try rebased(local, onto: [], .keepLocal, tables).conflicts.isEmpty)
  }

  // MARK: References

  @Test("Rows that refer to a left-out row are left out, from parent to child; those of the winner are not")
  func references() throws {
    let tables = [
      RebaseTable(name: "notes", collations: []),
      RebaseTable(
        name: "tags", collations: [],
        references: [RebaseTable.Reference(columns: [1], parent: "Notes", parentColumns: [0])]),
      RebaseTable(
        name: "marks", collations: [],
        references: [RebaseTable.Reference(columns: [1], parent: "tags", parentColumns: [0])]),
    ]
    let local =
      changeset(.insert([7, "mine"]))
      + changeset("tags", .insert([1, 7]), .update(old: [9, 3], new: [.undefined, 7]))
      + changeset("marks", .insert([1, 1]), .insert([2, 9]))
    let incoming = changeset(.insert([7, "theirs"])) + changeset("tags", .insert([2, 7]))
    let theirs = try rebased(local, onto: incoming, .takeIncoming, tables)
    #expect(theirs.lines == ["marks INSERT - | 2 9"])
    #expect(
      theirs.conflicts.sorted { $0.rawValue < $1.rawValue } == [
        .insertedByBoth, .parentLeftOut, .parentLeftOut, .parentLeftOut,
      ])
    let mine = try rebased(local, onto: incoming, .keepLocal, tables)
    #expect(
      mine.lines == [
        "notes UPDATE | 7 'theirs' | . 'mine'", "tags DELETE | 2 7 -", "tags INSERT - | 1 7", "tags UPDATE | 9 3 | . 7",
        "marks INSERT - | 1 1", "marks INSERT - | 2 9",
      ])
  }
}

private func == (one: ([String], [RebaseConflict.Kind]), other: ([String], [RebaseConflict.Kind])) -> Bool {
  one.0 == other.0 && one.1 == other.1
}
