import Buckia
import TestSupport
import Testing

/// Unsent edits are later than incoming changes, because the share that sends them will be.
@Suite struct UnsentEditTests {
  private let folder: TemporaryFolder
  private let anna: NotesPerson
  private let ben: NotesPerson

  /// Both have the same notes, and have received shares from each other.
  init() throws {
    folder = try TemporaryFolder()
    (anna, ben) = try NotesPerson.acquainted(
      "anna", "ben", in: folder, notes: "('a', 'boat'), ('b', 'radio')", others: "('c', 'buoy')")
  }

  private func exchange(_ one: NotesPerson, _ other: NotesPerson) throws {
    try one.share(with: [other])
    try other.receive()
  }

  private func set(_ title: String, of id: String = "a", by person: NotesPerson) throws {
    try person.run("UPDATE note SET title = '\(title)' WHERE id = '\(id)'")
  }

  private func title(_ person: NotesPerson, _ id: String = "a") throws -> String? {
    try person.rows("SELECT title FROM note WHERE id = '\(id)'").first
  }

  @Test func `an unsent edit is kept and reaches the other, with the incoming version in the conflict record`() throws {
    try set("of ben", by: ben)
    try ben.share(with: [anna])
    try set("of anna", by: anna)
    try anna.receive()
    #expect(try self.title(anna) == "of anna")
    let conflict = try #require(try DatabaseManager(anna.path).conflicts().first)
    #expect(conflict.outcome == .keptLocal)
    func title(_ row: [ConflictRecord.Cell]?) -> ChangesetValue? { row?.first { $0.column == "title" }?.value }
    #expect(title(conflict.base) == .text("boat"))
    #expect(title(conflict.local) == .text("of anna"))
    #expect(title(conflict.incoming) == .text("of ben"))
    try exchange(anna, ben)
    #expect(try self.title(ben) == "of anna")
    // The edit was rebased on Ben's version, so it is no conflict there.
    #expect(try DatabaseManager(ben.path).conflicts().isEmpty)
    #expect(try anna.share(with: [ben]) == nil)
    #expect(try ben.share(with: [anna]) == nil)
  }

  @Test func `an unsent edit that restores the old value also replaces the value that arrived meanwhile`() throws {
    try set("of ben", by: ben)
    try ben.share(with: [anna])
    try set("of anna", by: anna)
    try anna.receive()
    try set("boat", by: anna)
    try exchange(anna, ben)
    #expect(try title(anna) == "boat")
    #expect(try title(ben) == "boat")
  }

  @Test func `an unsent edit is kept when several diffs arrive, however they are grouped`() throws {
    for title in ["one", "two", "three"] {
      try set(title, by: ben)
      try ben.share(with: [anna])
    }
    try set("of anna", by: anna)
    try anna.receive()
    #expect(try title(anna) == "of anna")
    try set("four", by: ben)
    try exchange(ben, anna)
    #expect(try title(anna) == "of anna")
    try exchange(anna, ben)
    #expect(try anna.notes() == ben.notes())
  }

  @Test func `a shared edit has the id of its share, and the later share wins`() throws {
    try set("of anna", by: anna)
    try anna.share(with: [ben])
    try set("of ben", by: ben)
    // Ben's share is later, and he has not seen Anna's edit.
    try ben.share(with: [anna])
    try anna.receive()
    try ben.receive()
    #expect(try title(anna) == "of ben")
    #expect(try title(ben) == "of ben")
  }

  @Test func `another person's change is no unsent edit, even before it is relayed`() throws {
    let cara = try NotesPerson("cara", in: folder)
    try exchange(anna, cara)
    try cara.run("INSERT INTO note VALUES ('d', 'sail')")
    try exchange(cara, anna)
    try set("of cara", by: cara)
    try exchange(cara, anna)
    #expect(try title(anna) == "of cara")
    try set("of ben", by: ben)
    try exchange(ben, anna)
    #expect(try title(anna) == "of ben")
    // An edit that was shared with one of several people is no unsent edit, either.
    try set("of anna", by: anna)
    try anna.share(with: [cara])
    try set("of ben again", by: ben)
    try exchange(ben, anna)
    #expect(try title(anna) == "of ben again")
  }

  @Test func `an edit on top of another person's change is an unsent edit`() throws {
    let cara = try NotesPerson("cara", in: folder)
    try exchange(anna, cara)
    try cara.run("INSERT INTO note VALUES ('d', 'sail')")
    try exchange(cara, anna)
    try set("of cara", by: cara)
    try exchange(cara, anna)
    try set("of anna", by: anna)
    try set("of ben", by: ben)
    try exchange(ben, anna)
    #expect(try title(anna) == "of anna")
    // Without a record of what Cara's diff did, the ids decide.
    try DatabaseManager(anna.path).setUndoRetention(bytes: nil, days: 0)
    try set("of cara again", by: cara)
    try exchange(cara, anna)
    try set("of ben again", by: ben)
    try exchange(ben, anna)
    try anna.share(with: [ben])
    try anna.share(with: [cara])
    try ben.receive()
    try cara.receive()
    #expect(try anna.notes() == ben.notes())
    #expect(try anna.notes() == cara.notes())
  }

  @Test func `a deletion beats an unsent edit`() throws {
    try ben.run("DELETE FROM note WHERE id = 'a'")
    try ben.share(with: [anna])
    try set("of anna", by: anna)
    try anna.receive()
    #expect(try title(anna) == nil)
    try exchange(anna, ben)
    #expect(try ben.notes() == anna.notes())
  }

  @Test(arguments: Seeds.shards)
  func `unsent edits are kept until they are shared, and all replicas end equal`(shard: Int) throws {
    try Seeds.tryEach(8, shard: shard) { seed in
      var generator = SeededGenerator(seed: seed)
      let folder = try TemporaryFolder()
      let people = try ["anna", "ben", "cara"].prefix(seed % 2 == 0 ? 2 : 3).map {
        try NotesPerson($0, in: folder, ordersIDs: false)
      }
      let notes = ["a", "b", "c"]
      func shareAll(_ place: Int) throws {
        for other in people.indices where other != place { try people[place].share(with: [people[other]]) }
      }
      func settle() throws {
        for _ in 0..<people.count {
          for place in people.indices {
            try shareAll(place)
            for other in people.indices { try people[other].receive() }
          }
        }
      }
      for note in notes { try people[0].run("INSERT INTO note VALUES ('\(note)', 'begin')") }
      try settle()
      for (place, person) in people.enumerated() { try person.run("INSERT INTO note VALUES ('own \(place)', '')") }
      try settle()
      var unsent = people.map { _ in [String: String]() }
      for step in 0..<20 {
        let place = Int.random(in: people.indices, using: &generator)
        switch Int.random(in: 0..<4, using: &generator) {
        case 0, 1:
          let note = generator.pick(notes)
          let title = "\(people[place].name) \(step)"
          try set(title, of: note, by: people[place])
          unsent[place][note] = title
        case 2:
          try people[place].receive()
          for (note, title) in unsent[place] {
            #expect(try self.title(people[place], note) == title, "seed \(seed), step \(step)")
          }
        default:
          try shareAll(place)
          unsent[place] = [:]
        }
      }
      try settle()
      for person in people { #expect(try person.notes() == people[0].notes(), "seed \(seed)") }
    }
  }
}
