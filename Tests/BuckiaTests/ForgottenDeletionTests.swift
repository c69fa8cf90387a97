import Buckia
import BuckiaLedger
import SQLiteConnections
import TestSupport
import Testing

/// A deletion is forgotten when all replicas know of it, and not before.
@Suite struct ForgottenDeletionTests {
  private let folder: TemporaryFolder
  private let anna: NotesPerson
  private let ben: NotesPerson

  /// Both have the same notes, and have received shares from each other.
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
    // Ben has received the deletion from Anna herself, and exchanges notes with no other person.
    #expect(try ben.deletions() == [])
    #expect(try anna.deletions() == ["a"])
    try ben.run("UPDATE note SET title = 'a buoy' WHERE id = 'd'")
    try ben.share(with: [anna])
    try anna.receive()
    #expect(try anna.deletions() == [])
    #expect(try anna.rows("SELECT count(*) FROM buckia_sent_deletion") == ["0"])
    #expect(try ben.rows("SELECT count(*) FROM buckia_received_deletion") == ["0"])
    #expect(try anna.notes() == ben.notes())
    #expect(try anna.notes() == ["b|radio", "c|sail", "d|a buoy"])
  }

  @Test func `deletions that a diff does not acknowledge are not examined`() throws {
    try anna.run("DELETE FROM note WHERE id = 'a'")
    try anna.share(with: [ben])
    try ben.run("UPDATE note SET title = 'a radio' WHERE id = 'b'")
    try ben.share(with: [anna])
    try anna.receive()
    // The key is damaged, so examining the deletion would fail.
    try anna.run("UPDATE buckia_sent_deletion SET key = x'ff'")
    try ben.run("UPDATE note SET title = 'the radio' WHERE id = 'b'")
    try ben.share(with: [anna])
    try anna.receive(expecting: [.applied])
    #expect(try anna.rows("SELECT count(*) FROM buckia_sent_deletion") == ["1"])
  }

  @Test func `a recipient with nothing to send acknowledges once, with a separate file`() throws {
    let acknowledging: (inout ShareOptions) -> Void = { $0.acknowledges = true }
    try anna.run("DELETE FROM note WHERE id = 'a'")
    try anna.share(with: [ben])
    try ben.receive()
    #expect(try ben.share(with: [anna]) == nil)
    #expect(try ben.share(with: [anna], acknowledging) != nil)
    try anna.receive()
    #expect(try anna.deletions() == [])
    // A file that only acknowledges is not acknowledged in turn.
    #expect(try anna.share(with: [ben], acknowledging) == nil)
    #expect(try ben.share(with: [anna], acknowledging) == nil)
    // The stream continues after it.
    try ben.run("INSERT INTO note VALUES ('e', 'oar')")
    try ben.share(with: [anna])
    try anna.receive(expecting: [.applied])
    #expect(try anna.notes() == ben.notes())
  }

  @Test func `a deletion is kept while an earlier diff may still be in transit`() throws {
    try ben.run("UPDATE note SET title = 'a boat' WHERE id = 'a'")
    let late = try ben.share(with: [anna], delivering: false)
    try anna.run("DELETE FROM note WHERE id = 'a'")
    try anna.share(with: [ben])
    try ben.receive()
    try ben.run("INSERT INTO note VALUES ('e', 'oar')")
    let next = try ben.share(with: [anna], delivering: false)
    // The diff waits for its predecessor, so its acknowledgement does not count yet.
    try anna.deliver(next)
    try anna.receive(expecting: [.waiting])
    #expect(try anna.deletions() == ["a"])
    try anna.deliver(late)
    try anna.receive()
    #expect(try anna.deletions() == [])
    #expect(try anna.notes() == ["b|radio", "c|sail", "d|buoy", "e|oar"])
    #expect(try ben.notes() == anna.notes())
  }

  @Test func `a deletion is kept until each of several recipients has acknowledged it`() throws {
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

  @Test func `a relayed deletion is kept until its recipient has acknowledged it`() throws {
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

  @Test func `no deletion is forgotten in a table from which a diff without a stream was made`() throws {
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

  @Test func `the second deletion of a row is forgotten only once it is acknowledged itself`() throws {
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

  @Test func `a snapshot sends unacknowledged deletions again`() throws {
    try anna.run("DELETE FROM note WHERE id = 'a'")
    try anna.share(with: [ben], delivering: false)
    #expect(try anna.rows("SELECT count(*) FROM buckia_sent_deletion") == ["1"])
    try anna.share(with: [ben]) { $0.resyncs = true }
    #expect(
      try anna.rows("SELECT sequence FROM buckia_sent_deletion") == [
        "\(anna.rows("SELECT sequence FROM buckia_share")[0])"
      ])
    try ben.receive()
    // The snapshot has removed the note, and Ben's next diff acknowledges it.
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

  /// Lets Anna delete a note, share the deletion with Ben, and forget it.
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

  @Test func `a deletion does not wait for a recipient who is silent for long, and earlier diffs bring no row back`()
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
    // Ben has lost Anna's share, so both send everything again.
    try anna.share(with: [ben]) { $0.resyncs = true }
    try ben.receive()
    try ben.share(with: [anna]) { $0.resyncs = true }
    let states = try anna.receive(expecting: [.applied, .alreadyApplied]).map(\.state)
    #expect(states.contains(.applied))
    #expect(try anna.notes() == ["b|radio", "c|sail", "d|buoy", "e|oar"])
    #expect(try ben.notes() == anna.notes())
  }

  @Test func `a silent recipient who first applies the shares sent meanwhile needs no snapshot`() throws {
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

  @Test func `the time to wait for a silent recipient can be set, also to forever`() throws {
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

  @Test func `the diff of a database that was restored from before a forgotten deletion waits`() throws {
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
    // It is the first diff with the new keys, so it is a snapshot.
    try emil.share(with: [dora])
    try dora.receive()
    #expect(try dora.deletions() == [])
    #expect(try emil.notes() == dora.notes())
  }

  @Test func `only a signing recipient can acknowledge a deletion that was sent to them`() throws {
    let (dora, emil) = try signers()
    try dora.run("DELETE FROM note WHERE id = 'a'")
    let told = try #require(try dora.share(with: [emil], delivering: false))
    // Fred has a copy of Emil's database, but not Emil's keys, and applies Emil's share.
    let fred = try NotesPerson("fred", in: folder, isSigning: true)
    try fred.meet(dora)
    try fred.restore(emil.copy("fred's.sqlite"))
    try fred.deliver(path: told)
    try fred.receive(expecting: [.applied, .rejected, .waiting])
    try fred.run("INSERT INTO note VALUES ('f', 'rope')")
    try fred.share(with: [dora])
    try dora.receive(expecting: [.applied, .waiting, .rejected])
    #expect(try dora.deletions() == ["a"])
    // Emil's edit from before he knew of the deletion does not bring the note back.
    try emil.run("UPDATE note SET title = 'a boat' WHERE id = 'a'")
    try emil.share(with: [dora])
    try dora.receive()
    #expect(try !dora.notes().contains { $0.hasPrefix("a|") })
  }
}
