import Buckia
import BuckiaLedger
import SQLiteConnections
import TestSupport
import Testing

/// A deletion is forgotten when everybody knows of it, and not before.
@Suite struct ForgottenDeletionTests {
  private let folder: TemporaryFolder
  private let anna: NotesPerson
  private let ben: NotesPerson

  /// Both have the same notes, and have heard of each other.
  init() throws {
    folder = try TemporaryFolder()
    (anna, ben) = try NotesPerson.acquainted(
      "anna", "ben", in: folder, notes: "('a', 'boat'), ('b', 'radio'), ('c', 'sail')", others: "('d', 'buoy')")
  }

  @Test func `a deletion is forgotten when its only recipient has acknowledged it`() throws {
    try anna.run("DELETE FROM note WHERE id = 'a'")
    try anna.share(with: [ben])
    #expect(try anna.deletions() == ["a"])
    try ben.receive()
    // Ben has been told by Anna herself, and exchanges notes with no other person.
    #expect(try ben.deletions() == [])
    #expect(try anna.deletions() == ["a"])
    try ben.run("UPDATE note SET title = 'a buoy' WHERE id = 'd'")
    try ben.share(with: [anna])
    try anna.receive()
    #expect(try anna.deletions() == [])
    #expect(try anna.rows("SELECT count(*) FROM buckia_told") == ["0"])
    #expect(try ben.rows("SELECT count(*) FROM buckia_heard") == ["0"])
    #expect(try anna.notes() == ben.notes())
    #expect(try anna.notes() == ["b|radio", "c|sail", "d|a buoy"])
  }

  @Test func `deletions that a diff tells nothing of are not looked at`() throws {
    try anna.run("DELETE FROM note WHERE id = 'a'")
    try anna.share(with: [ben])
    try ben.run("UPDATE note SET title = 'a radio' WHERE id = 'b'")
    try ben.share(with: [anna])
    try anna.receive()
    // Who looks at it finds the key damaged.
    try anna.run("UPDATE buckia_told SET key = x'ff'")
    try ben.run("UPDATE note SET title = 'the radio' WHERE id = 'b'")
    try ben.share(with: [anna])
    try anna.receive(expecting: [.applied])
    #expect(try anna.rows("SELECT count(*) FROM buckia_told") == ["1"])
  }

  @Test func `somebody who has nothing to send acknowledges by a file of its own, once`() throws {
    let acknowledging: (inout ShareOptions) -> Void = { $0.acknowledges = true }
    try anna.run("DELETE FROM note WHERE id = 'a'")
    try anna.share(with: [ben])
    try ben.receive()
    #expect(try ben.share(with: [anna]) == nil)
    #expect(try ben.share(with: [anna], acknowledging) != nil)
    try anna.receive()
    #expect(try anna.deletions() == [])
    // What only acknowledges is not acknowledged in turn.
    #expect(try anna.share(with: [ben], acknowledging) == nil)
    #expect(try ben.share(with: [anna], acknowledging) == nil)
    // The stream goes on behind it.
    try ben.run("INSERT INTO note VALUES ('e', 'oar')")
    try ben.share(with: [anna])
    try anna.receive(expecting: [.applied])
    #expect(try anna.notes() == ben.notes())
  }

  @Test func `a deletion is kept while what was made before it may still be on its way`() throws {
    try ben.run("UPDATE note SET title = 'a boat' WHERE id = 'a'")
    let late = try ben.share(with: [anna], delivering: false)
    try anna.run("DELETE FROM note WHERE id = 'a'")
    try anna.share(with: [ben])
    try ben.receive()
    try ben.run("INSERT INTO note VALUES ('e', 'oar')")
    let next = try ben.share(with: [anna], delivering: false)
    // It waits for the one before it, so its acknowledgement does not count yet.
    try anna.deliver(next)
    try anna.receive(expecting: [.waiting])
    #expect(try anna.deletions() == ["a"])
    try anna.deliver(late)
    try anna.receive()
    #expect(try anna.deletions() == [])
    #expect(try anna.notes() == ["b|radio", "c|sail", "d|buoy", "e|oar"])
    #expect(try ben.notes() == anna.notes())
  }

  @Test func `a deletion is kept until each of several has acknowledged it`() throws {
    let cara = try NotesPerson("cara", in: folder)
    try anna.share(with: [cara])
    try cara.receive()
    try cara.run("INSERT INTO note VALUES ('f', 'rope')")
    try cara.share(with: [anna])
    try anna.receive()
    try anna.run("DELETE FROM note WHERE id = 'b'")
    for person in [ben, cara] {
      try anna.share(with: [person])
      try person.receive()
    }
    try ben.run("UPDATE note SET title = 'a sail' WHERE id = 'c'")
    try ben.share(with: [anna])
    try anna.receive()
    #expect(try anna.deletions() == ["b"])
    try cara.run("UPDATE note SET title = 'a rope' WHERE id = 'f'")
    try cara.share(with: [anna])
    try anna.receive()
    #expect(try anna.deletions() == [])
  }

  @Test func `a deletion that only passes through is kept until it was passed on`() throws {
    let cara = try NotesPerson("cara", in: folder)
    try ben.share(with: [cara])
    try cara.receive()
    try cara.run("INSERT INTO note VALUES ('f', 'rope')")
    try cara.share(with: [ben])
    try ben.receive()
    try anna.run("DELETE FROM note WHERE id = 'a'")
    try anna.share(with: [ben])
    try ben.receive()
    #expect(try ben.deletions() == ["a"])
    try ben.share(with: [cara])
    try cara.receive()
    try cara.run("UPDATE note SET title = 'a rope' WHERE id = 'f'")
    try cara.share(with: [ben])
    try ben.receive()
    #expect(try ben.deletions() == [])
    #expect(try cara.notes() == ben.notes())
  }

  @Test func `nothing is forgotten where a diff without a stream has been in the table`() throws {
    let before = try anna.copy("before.sqlite")
    try anna.run("UPDATE note SET title = 'a sail' WHERE id = 'c'")
    try anna.diff(from: before, to: "plain")
    try anna.run("DELETE FROM note WHERE id = 'a'")
    try anna.share(with: [ben])
    try ben.receive()
    try ben.run("INSERT INTO note VALUES ('e', 'oar')")
    try ben.share(with: [anna])
    try anna.receive()
    #expect(try anna.deletions() == ["a"])
  }

  @Test func `a row that was inserted again and deleted again is forgotten once that is known`() throws {
    try anna.run("DELETE FROM note WHERE id = 'a'")
    try anna.share(with: [ben])
    try anna.run("INSERT INTO note VALUES ('a', 'another boat')")
    try anna.share(with: [ben])
    try ben.receive()
    try ben.run("UPDATE note SET title = 'x' WHERE id = 'd'")
    try ben.share(with: [anna])
    try anna.run("DELETE FROM note WHERE id = 'a'")
    try anna.share(with: [ben])
    try anna.receive()
    // Ben has acknowledged the first deletion only.
    #expect(try anna.deletions() == ["a"])
    try ben.receive()
    try ben.run("UPDATE note SET title = 'y' WHERE id = 'd'")
    try ben.share(with: [anna])
    try anna.receive()
    #expect(try anna.deletions() == [])
    #expect(try anna.notes() == ben.notes())
  }

  @Test
  func `a snapshot tells again of the deletions of rows that its reader has brought`() throws {
    try anna.run("DELETE FROM note WHERE id = 'a'")
    try anna.share(with: [ben], delivering: false)
    #expect(try anna.rows("SELECT count(*) FROM buckia_told") == ["1"])
    try anna.share(with: [ben]) { $0.resyncs = true }
    #expect(
      try anna.rows("SELECT sequence FROM buckia_told") == ["\(anna.rows("SELECT sequence FROM buckia_share")[0])"])
    try ben.receive()
    // The note has gone with the snapshot, of which Ben tells in turn.
    try ben.run("INSERT INTO note VALUES ('e', 'oar')")
    try ben.share(with: [anna])
    try anna.receive()
    #expect(try anna.notes() == ben.notes())
    #expect(try anna.notes() == ["b|radio", "c|sail", "d|buoy", "e|oar"])
  }

  @Test func `a plain diff from before a forgotten deletion waits instead of bringing the row back`() throws {
    let cara = try NotesPerson("cara", in: folder)
    try cara.run("INSERT INTO note VALUES ('a', 'old boat')")
    let empty = try TestDatabases.run(NotesPerson.schema, on: folder.file("empty.sqlite"))
    let old = try cara.diff(from: empty, to: "old")
    try forget("a")
    try anna.deliver(path: old)
    let outcome = try #require(try anna.receive(expecting: [.waiting]).first)
    #expect(outcome.code == .forgottenDeletions)
    #expect(outcome.reason?.contains("--resync") == true)
    #expect(try anna.notes() == ben.notes())
  }

  /// Lets Anna delete a note, tell Ben of it, and forget it.
  private func forget(_ id: String) throws {
    try anna.run("DELETE FROM note WHERE id = '\(id)'")
    try anna.share(with: [ben])
    try ben.receive()
    try ben.run("UPDATE note SET title = title || '.' WHERE id = 'd'")
    try ben.share(with: [anna])
    try anna.receive()
    #expect(try anna.deletions() == [])
  }

  // MARK: Silence

  @Test
  func `somebody who has been silent for long is not waited for, and what they made before does not bring a row back`()
    throws
  {
    try anna.run("DELETE FROM note WHERE id = 'a'")
    try anna.share(with: [ben], delivering: false)
    try ben.run("UPDATE note SET title = 'a boat' WHERE id = 'a'; INSERT INTO note VALUES ('e', 'oar')")
    let late = try ben.share(with: [anna], delivering: false)
    try anna.age(days: 200)
    try anna.hear(in: folder)
    #expect(try anna.deletions() == [])
    try anna.deliver(late)
    let outcome = try #require(try anna.receive(expecting: [.waiting]).first)
    #expect(outcome.code == .forgottenDeletions)
    #expect(outcome.reason?.contains("--resync") == true)
    // Ben has lost what Anna sent. He gets everything again, and so does she.
    try anna.share(with: [ben]) { $0.resyncs = true }
    try ben.receive()
    try ben.share(with: [anna]) { $0.resyncs = true }
    let states = try anna.receive(expecting: [.applied, .alreadyApplied]).map(\.state)
    #expect(states.contains(.applied))
    #expect(try anna.notes() == ["b|radio", "c|sail", "d|buoy", "e|oar"])
    #expect(try ben.notes() == anna.notes())
  }

  @Test func `somebody silent who applies what was sent meanwhile needs no snapshot`() throws {
    try anna.run("DELETE FROM note WHERE id = 'a'")
    try anna.share(with: [ben])
    try anna.age(days: 200)
    try anna.hear(in: folder)
    #expect(try anna.deletions() == [])
    try ben.receive()
    try ben.run("INSERT INTO note VALUES ('e', 'oar')")
    try ben.share(with: [anna])
    try anna.receive()
    #expect(try anna.notes() == ["b|radio", "c|sail", "d|buoy", "e|oar"])
    #expect(try ben.notes() == anna.notes())
  }

  @Test func `how long somebody is waited for can be set, also for ever`() throws {
    try DatabaseManager(anna.path).setSilenceLimit(days: 0)
    try anna.run("DELETE FROM note WHERE id = 'a'")
    try anna.share(with: [ben], delivering: false)
    try anna.age(days: 1_000)
    try anna.hear(in: folder)
    #expect(try anna.deletions() == ["a"])
    try DatabaseManager(anna.path).setSilenceLimit(days: 2_000)
    try anna.hear(in: folder)
    #expect(try anna.deletions() == ["a"])
    try DatabaseManager(anna.path).setSilenceLimit(days: 500)
    try anna.hear(in: folder)
    #expect(try anna.deletions() == [])
  }

  @Test func `a database from before the deletion that has applied nothing since waits`() throws {
    let backup = try ben.copy("backup.sqlite")
    try forget("a")
    try ben.restore(backup)
    try ben.run("INSERT INTO note VALUES ('e', 'oar')")
    try ben.share(with: [anna])
    let outcome = try #require(try anna.receive(expecting: [.waiting]).first)
    #expect(outcome.code == .forgottenDeletions)
    #expect(try anna.notes().contains { $0.hasPrefix("a|") } == false)
    try anna.share(with: [ben]) { $0.resyncs = true }
    try ben.receive()
    try ben.share(with: [anna]) { $0.resyncs = true }
    try anna.receive(expecting: [.applied, .alreadyApplied])
    #expect(try anna.notes().contains { $0.hasPrefix("a|") } == false)
    #expect(try anna.notes() == ben.notes())
  }

  // MARK: Signed streams

  /// Dora and Emil, who sign and encrypt, and have the same notes.
  private func signers() throws -> (NotesPerson, NotesPerson) {
    try NotesPerson.acquainted(
      "dora", "emil", in: folder, notes: "('a', 'boat'), ('b', 'radio')", others: "('c', 'buoy')", isSigning: true)
  }

  @Test func `a deletion is forgotten when a recipient who signs has acknowledged it`() throws {
    let (dora, emil) = try signers()
    try dora.run("DELETE FROM note WHERE id = 'a'")
    try dora.share(with: [emil])
    try emil.receive()
    #expect(try dora.deletions() == ["a"])
    try emil.run("UPDATE note SET title = 'a buoy' WHERE id = 'c'")
    try emil.share(with: [dora])
    try dora.receive()
    #expect(try dora.deletions() == [])
    #expect(try dora.notes() == ["b|radio", "c|a buoy"])
    #expect(try emil.notes() == dora.notes())
  }

  @Test func `the acknowledgement of a recipient with new keys counts`() throws {
    let (dora, emil) = try signers()
    try dora.run("DELETE FROM note WHERE id = 'a'")
    try dora.share(with: [emil])
    try emil.rotateKeys(confirmedBy: dora)
    try emil.receive()
    try emil.run("UPDATE note SET title = 'a buoy' WHERE id = 'c'")
    // It is the first diff of the new keys, and so a snapshot.
    try emil.share(with: [dora])
    try dora.receive()
    #expect(try dora.deletions() == [])
    #expect(try emil.notes() == dora.notes())
  }

  @Test func `no one acknowledges a deletion in the place of a recipient who signs`() throws {
    let (dora, emil) = try signers()
    try dora.run("DELETE FROM note WHERE id = 'a'")
    let told = try #require(try dora.share(with: [emil], delivering: false))
    // Fred has got Emil's database, but not his keys, and applies what was sent to Emil.
    let fred = try NotesPerson("fred", in: folder, isSigning: true)
    try fred.meet(dora)
    try fred.restore(emil.copy("fred's.sqlite"))
    try fred.deliver(path: told)
    try fred.receive(expecting: [.applied, .rejected, .waiting])
    try fred.run("INSERT INTO note VALUES ('f', 'rope')")
    try fred.share(with: [dora])
    try dora.receive(expecting: [.applied, .waiting, .rejected])
    #expect(try dora.deletions() == ["a"])
    // What Emil has made before he knew of it does not bring the note back.
    try emil.run("UPDATE note SET title = 'a boat' WHERE id = 'a'")
    try emil.share(with: [dora])
    try dora.receive()
    #expect(try !dora.notes().contains { $0.hasPrefix("a|") })
  }
}
