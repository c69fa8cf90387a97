import Buckia
import BuckiaFormat
import BuckiaBytes
import Foundation
import SQLiteChangesets
import TestSupport
import Testing

/// A trusted contact sends files with validly signed contents that no honest replica would write.
@Suite struct HostileContactTests {
  private static let schema = """
    CREATE TABLE person(id TEXT PRIMARY KEY, name);
    CREATE TABLE note(id INTEGER PRIMARY KEY, topic, text);
    CREATE TABLE comment(id TEXT PRIMARY KEY, person TEXT REFERENCES person(id), note INTEGER REFERENCES note(id), text);
    """
  private static let everything = ShareScope(name: "everything") {
    SharedTable("person")
    SharedTable("note")
    SharedTable("comment")
  }
  private static let topic7 = ShareScope(name: "topic 7") { SharedTable("note").where("topic = 7") }
  private static let comments = ShareScope(name: "comments") { SharedTable("comment") }
  private static let commentsWithPeople = ShareScope(name: "comments with people") {
    SharedTable("comment")
    SharedTable("person").where("false")
  }

  private let folder: TemporaryFolder
  private let anna: HostileContact
  private let ben: HostileContact
  private let mallory: HostileContact

  init() throws {
    folder = try TemporaryFolder()
    let private1 = "INSERT INTO person VALUES ('p3', 'private'); INSERT INTO note VALUES (1, 1, 'private')"
    anna = try HostileContact("anna", in: folder, Self.schema + private1)
    ben = try HostileContact("ben", in: folder, Self.schema)
    mallory = try HostileContact("mallory", in: folder, Self.schema)
    try anna.meet(ben)
    try anna.meet(mallory)
    try DatabaseManager(anna.path).keepClocks()
  }

  @Test func `only a recipient of a stream can acknowledge it`() throws {
    try anna.share(Self.everything, with: ben)
    let (stream, incarnation) = try streamToBen()
    try mallory.share(Self.everything, with: anna) {
      $0.manifest.acknowledgements = [Manifest.Acknowledgement(stream: stream, incarnation: incarnation, through: 1)]
    }
    try anna.receive()
    #expect(try anna.rows("SELECT through FROM buckia_acknowledgement") == [])
  }

  @Test func `only a recipient of a stream can request its rows again`() throws {
    try anna.share(Self.everything, with: ben)
    let (stream, incarnation) = try streamToBen()
    try mallory.share(Self.everything, with: anna) {
      // Requests count only with an acknowledgement of the stream.
      $0.manifest.acknowledgements = [Manifest.Acknowledgement(stream: stream, incarnation: incarnation, through: 1)]
      $0.manifest.requests = [Manifest.Rows(of: stream, table: "note", buckets: nil)]
    }
    #expect(try anna.receive().map(\.state) == [.applied])
    #expect(try anna.rows("SELECT * FROM buckia_request") == [])
    #expect(try anna.share(Self.everything, with: ben).id == nil)
  }

  private func streamToBen() throws -> (StreamID, IncarnationID) {
    let row = try #require(try anna.rows("SELECT lower(hex(stream)), lower(hex(incarnation)) FROM buckia_share").first)
    let ids = row.split(separator: "|").map(String.init)
    return (try #require(StreamID(hex: ids[0])), try #require(IncarnationID(hex: ids[1])))
  }

  @Test(
    arguments: [ConflictPolicies.keepLocal, .takeIncoming, .latest])
  func `a contact's row that claims the key of a row never shared with them leaves that row alone`(
    _ policies: ConflictPolicies
  ) throws {
    try anna.share(Self.topic7, with: mallory)
    try mallory.receive()
    let annas = try anna.replica()
    try mallory.run("INSERT INTO note VALUES (50, 7, 'evil')")
    try mallory.share(Self.topic7, with: anna) {
      $0.annotations = Annotations(
        origins: [], runs: [],
        keys: RowKeys(replicas: [annas], runs: [RowKeys.Run(count: 1, names: [RowKeys.Names(replica: 0, keys: [1])])]))
    }
    try anna.receive(policies)
    #expect(try anna.rows("SELECT text FROM note WHERE id = 1") == ["private"])
  }

  @Test(
    arguments: ["7", "'open'", "'waiting for a review of the text'"],
    [ConflictPolicies.keepLocal, .takeIncoming, .latest])
  func `a contact's row that claims another person's key does not take that person's row or comments`(
    _ topic: String, _ policies: ConflictPolicies
  ) throws {
    try ben.share(Self.everything, with: anna)
    try anna.receive(policies)
    let bens = try ben.replica()
    // Diffs from the near future are applied, too.
    try mallory.setClock(UInt32(Int64(Date().timeIntervalSince1970) - KSUID.epoch) + 120)
    try mallory.run("INSERT INTO note VALUES (60, \(topic), 'evil')")
    try mallory.share(Self.everything, with: anna) {
      $0.annotations = Annotations(
        origins: [], runs: [],
        keys: RowKeys(replicas: [bens], runs: [RowKeys.Run(count: 1, names: [RowKeys.Names(replica: 0, keys: [7])])]))
    }
    try anna.receive(policies)
    try ben.run(
      "INSERT INTO note VALUES (7, \(topic), 'of ben'); INSERT INTO comment VALUES ('c', NULL, 7, 'on ben''s note')")
    try ben.share(Self.everything, with: anna)
    try anna.receive(policies)
    #expect(try anna.rows("SELECT text FROM note ORDER BY text") == ["evil", "of ben", "private"])
    #expect(
      try anna.rows("SELECT note.text FROM comment JOIN note ON note.id = comment.note WHERE comment.id = 'c'")
        == ["of ben"])
    // Ben's later edit of his row does not change the other row.
    try ben.run("UPDATE note SET text = 'of ben, edited' WHERE id = 7")
    try ben.share(Self.everything, with: anna)
    try anna.receive(policies)
    #expect(try anna.rows("SELECT text FROM note ORDER BY text") == ["evil", "of ben, edited", "private"])
  }

  @Test(arguments: [true, false], [ConflictPolicies.keepLocal, .takeIncoming, .latest])
  func `a row that was edited and relayed is one row after its author has shared it, too`(
    isEdited: Bool, _ policies: ConflictPolicies
  ) throws {
    let cleo = try HostileContact("cleo", in: folder, Self.schema)
    try cleo.meet(anna)
    try cleo.meet(ben)
    try ben.run("INSERT INTO note VALUES (7, 7, 'of ben')")
    try ben.share(Self.everything, with: cleo)
    try cleo.receive(policies)
    try cleo.run("UPDATE note SET text = 'edited by cleo'")
    try cleo.share(Self.everything, with: anna)
    try anna.receive(policies)
    if isEdited { try ben.run("UPDATE note SET text = 'edited by ben'") }
    try ben.share(Self.everything, with: anna)
    try anna.receive(policies)
    #expect(try anna.rows("SELECT count(*) FROM note WHERE text <> 'private'") == ["1"])
  }

  @Test(
    arguments: [ConflictPolicies.keepLocal, .takeIncoming, .latest])
  func `a row that no stream has brought stays when a contact withdraws it`(_ policies: ConflictPolicies) throws {
    let changes = ChangesetWriter(
      "note", key: [1, 0, 0], [(.delete, old: [.integer(1), .integer(1), .text("private")], new: [])])
    try mallory.share(Self.topic7, with: anna, changes: changes) {
      let kept = $0.manifest.id
      $0.annotations = Annotations(origins: [kept], runs: [Annotations.Run(count: 1, origin: 0, kind: .withdraw)])
    }
    try anna.receive(policies)
    #expect(try anna.rows("SELECT text FROM note WHERE id = 1") == ["private"])
  }

  @Test func `a contact's comment on a private row does not bring them that row`() throws {
    try anna.share(Self.comments, with: mallory)
    try mallory.receive()
    let changes = ChangesetWriter(
      "comment", key: [1, 0, 0, 0], [(.insert, old: [], new: [.text("m"), .text("p3"), .null, .text("hello")])])
    try mallory.share(Self.comments, with: anna, changes: changes)
    try anna.receive()
    #expect(try anna.rows("SELECT id FROM comment") == ["m"])
    try anna.share(Self.comments, with: mallory)
    try mallory.receive()
    #expect(try mallory.rows("SELECT name FROM person") == [])
  }

  @Test(
    arguments: [ConflictPolicies.keepLocal, .takeIncoming, .latest])
  func `private rows are not sent to a contact who knows only their keys`(_ policies: ConflictPolicies) throws {
    try anna.share(Self.commentsWithPeople, with: mallory)
    try mallory.receive()
    try mallory.run(
      """
      ALTER TABLE person DROP COLUMN name; INSERT INTO person VALUES ('p3');
      INSERT INTO comment VALUES ('m', 'p3', NULL, 'hello')
      """)
    try mallory.share(Self.everything, with: anna)
    try anna.receive(policies)
    #expect(try anna.rows("SELECT id, person FROM comment") == ["m|p3"])
    let held = try anna.share(Self.commentsWithPeople, with: mallory).leftOut.filter { $0.reason == .heldBack }
    #expect(held.flatMap { $0.rows.map(\.key) } == [[.text("p3")]])
    try mallory.receive()
    #expect(try mallory.rows("SELECT * FROM person").allSatisfy { !$0.contains("private") })
  }

  @Test(
    arguments: [ConflictPolicies.keepLocal, .takeIncoming, .latest])
  func `a row that is shared with another person is not sent to a contact who names its key`(
    _ policies: ConflictPolicies
  ) throws {
    let commentsWithNotes = ShareScope(name: "comments with notes") {
      SharedTable("comment")
      SharedTable("note").where("false")
    }
    try anna.share(commentsWithNotes, with: mallory)
    try anna.share(Self.everything, with: ben)
    try mallory.receive()
    let annas = try anna.replica()
    try mallory.run(
      "INSERT INTO note VALUES (61, NULL, 'anything'); INSERT INTO comment VALUES ('m', NULL, 61, 'hello')")
    try mallory.share(Self.everything, with: anna) {
      let names = RowKeys.Run(count: 1, names: [RowKeys.Names(replica: 0, keys: [1])])
      $0.annotations = Annotations(
        origins: [], runs: [], keys: RowKeys(replicas: [annas], runs: [names, RowKeys.Run(count: 1)]))
    }
    #expect(try anna.receive(policies).map(\.state) == [.applied])
    try anna.share(commentsWithNotes, with: mallory)
    try mallory.receive()
    #expect(try mallory.rows("SELECT * FROM note").allSatisfy { !$0.contains("private") })
  }

  @Test func `a parent row outside the scope is sent with its key only`() throws {
    try anna.run("INSERT INTO comment VALUES ('a', 'p3', 1, 'by anna')")
    let preview = try anna.share(Self.comments, with: mallory)
    #expect(
      preview.warnings.filter { $0.code == .parentColumnsLeftOut }.map(\.arguments) == [
        ["person", "name"], ["note", "topic, text"],
      ])
    try mallory.receive()
    #expect(try mallory.rows("SELECT id, name FROM person") == ["p3|NULL"])
    #expect(try mallory.rows("SELECT id, topic, text FROM note") == ["1|NULL|NULL"])
    try anna.share(Self.commentsWithPeople, with: mallory)
    try mallory.receive()
    #expect(try mallory.rows("SELECT id, name FROM person") == ["p3|private"])
  }

  @Test(arguments: [WideningPolicy.once, .always])
  func `a person can allow that rows brought in by a recipient's change are sent`(_ widening: WideningPolicy) throws {
    try anna.run("INSERT INTO person VALUES ('p4', 'private, too'), ('p5', 'shared')")
    try anna.share(Self.commentsWithPeople, with: mallory)
    try mallory.receive()
    let rows = ["p3", "p4"].map { person in
      (
        ChangeOperation.insert, old: [ChangesetValue?](),
        new: [ChangesetValue?.some(.text(person)), .text(person), .null, .null]
      )
    }
    try mallory.share(
      Self.commentsWithPeople, with: anna, changes: ChangesetWriter("comment", key: [1, 0, 0, 0], rows))
    try anna.receive()
    func names(_ widening: WideningPolicy) throws -> [String] {
      try anna.share(Self.commentsWithPeople, with: mallory, widening: widening)
      try mallory.receive()
      return try mallory.rows("SELECT name FROM person ORDER BY id")
    }
    // Rows that local rows refer to are sent.
    try anna.run("INSERT INTO comment VALUES ('a', 'p5', NULL, 'by anna')")
    let held = try anna.share(Self.commentsWithPeople, with: mallory).leftOut.filter { $0.reason == .heldBack }
    #expect(held.map(\.table) == ["person"])
    #expect(held.flatMap { $0.rows.map(\.key) } == [[.text("p3")], [.text("p4")]])
    try mallory.receive()
    #expect(try names(.hold) == ["shared"])
    #expect(try names(widening) == ["private", "private, too", "shared"])
    // Rows that were sent stay shared.
    try anna.run("UPDATE person SET name = 'known'")
    #expect(try names(.hold) == ["known", "known", "known"])
    try mallory.receive()
    #expect(try names(.never) == ["known", "known", "known"])
  }

  @Test(
    arguments: [ConflictPolicies.keepLocal, .takeIncoming, .latest])
  func `a private row that a contact moves into the scope is not sent to them`(_ policies: ConflictPolicies) throws {
    try anna.run("INSERT INTO note VALUES (5, 7, 'shared')")
    try anna.share(Self.topic7, with: mallory)
    try mallory.receive()
    let annas = try anna.replica()
    let changes = ChangesetWriter(
      "note", key: [1, 0, 0], [(.update, old: [.integer(1), .integer(1), nil], new: [nil, .integer(7), nil])])
    try mallory.share(Self.topic7, with: anna, changes: changes) {
      $0.annotations = Annotations(
        origins: [], runs: [],
        keys: RowKeys(replicas: [annas], runs: [RowKeys.Run(count: 1, names: [RowKeys.Names(replica: 0, keys: [1])])]))
    }
    try anna.receive(policies)
    try anna.share(Self.topic7, with: mallory)
    try mallory.receive()
    #expect(try mallory.rows("SELECT text FROM note") == ["shared"])
  }

  @Test func `a contact's row is not attributed to another person's diff that the contact names as origin`() throws {
    try ben.run("INSERT INTO person VALUES ('b', 'of ben')")
    let bens = try #require(try ben.share(Self.everything, with: anna).id)
    try anna.receive(.latest)
    // An origin is never later than the diff that names it.
    try anna.share(Self.everything, with: mallory)
    try mallory.receive()
    try mallory.run("INSERT INTO person VALUES ('m', 'of mallory')")
    try mallory.share(Self.everything, with: anna) {
      let count = $0.manifest.tables.reduce(0) { $0 + $1.inserted + $1.updated + $1.deleted }
      $0.annotations = Annotations(
        origins: [bens], runs: [Annotations.Run(count: count, origin: 0)], keys: $0.annotations?.keys)
    }
    #expect(try anna.receive(.latest).map(\.state) == [.applied])
    let origin = try DatabaseManager(anna.path, home: anna.home).origin(ofRowIn: "person", key: ["id": .text("m")])
    #expect(origin.exists && origin.columns.allSatisfy { $0.source?.sender != "ben" })
  }

  @Test(arguments: [ConflictPolicies.keepLocal, .takeIncoming, .latest])
  func `a row with an unknown origin is attributed to its sender, and marked as claimed`(
    _ policies: ConflictPolicies
  ) throws {
    try mallory.run("INSERT INTO person VALUES ('m', 'of mallory')")
    try mallory.share(Self.everything, with: anna) {
      let count = $0.manifest.tables.reduce(0) { $0 + $1.inserted + $1.updated + $1.deleted }
      $0.annotations = Annotations(
        origins: [try #require(KSUID("0ujtsYcgvSTl8PAuAdqWYSMnLOv"))], runs: [Annotations.Run(count: count, origin: 0)],
        keys: $0.annotations?.keys)
    }
    #expect(try anna.receive(policies).map(\.state) == [.applied])
    let origin = try DatabaseManager(anna.path, home: anna.home).origin(ofRowIn: "person", key: ["id": .text("m")])
    let sources = [origin.source] + origin.columns.map(\.source)
    #expect(sources.map { $0?.sender } == ["mallory", "mallory", "mallory"], "\(sources)")
    #expect(sources.allSatisfy { $0?.isClaimed == true && $0?.appliedAt != nil })
  }
}
