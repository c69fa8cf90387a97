import Buckia
import BuckiaFormat
import TestSupport
import Testing

/// A trusted contact signs as another person's replica.
@Suite struct ClaimedReplicaTests {
  private static let schema = """
    CREATE TABLE note(id INTEGER PRIMARY KEY, text);
    CREATE TABLE comment(id TEXT PRIMARY KEY, note INTEGER REFERENCES note(id), text);
    """
  private static let notes = ShareScope(name: "notes") {
    SharedTable("note")
    SharedTable("comment")
  }
  private static let comments = """
    SELECT note.text || '/' || comment.text FROM comment JOIN note ON note.id = comment.note ORDER BY 1
    """

  private let folder: TemporaryFolder
  private let anna: HostileContact
  private let ben: HostileContact
  private let mallory: HostileContact

  init() throws {
    folder = try TemporaryFolder()
    anna = try HostileContact("anna", in: folder, Self.schema + "INSERT INTO note VALUES (7, 'private')")
    ben = try HostileContact(
      "ben", in: folder,
      Self.schema + "INSERT INTO note VALUES (7, 'of ben'); INSERT INTO comment VALUES ('b', 7, 'of ben')")
    mallory = try HostileContact(
      "mallory", in: folder,
      Self.schema + "INSERT INTO note VALUES (7, 'evil'); INSERT INTO comment VALUES ('m', 7, 'evil')")
    try anna.meet(ben)
    try anna.meet(mallory)
    for person in [anna, ben, mallory] { try DatabaseManager(person.path, home: person.home).initialize() }
  }

  /// Lets Mallory share her changes, signed as the replica of `person`.
  private func impersonate(_ person: HostileContact) throws {
    let claimed = try person.replica()
    try mallory.share(Self.notes, with: anna) { $0.manifest.sender?.replica = claimed }
  }

  @Test(arguments: [true, false], [ConflictPolicies.keepLocal, .takeIncoming, .latest])
  func `rows of two contacts who sign as one replica stay separate, and a warning names the first contact`(
    _ isFirst: Bool, _ policies: ConflictPolicies
  ) throws {
    if isFirst {
      try impersonate(ben)
      #expect(try anna.receive(policies).flatMap(\.warnings) == [])
    }
    try ben.share(Self.notes, with: anna)
    let honest = try anna.receive(policies)
    #expect(honest.map(\.state) == [.applied])
    if !isFirst {
      #expect(honest.flatMap(\.warnings) == [])
      try impersonate(ben)
    }
    let late = isFirst ? honest : try anna.receive(policies)
    #expect(late.map(\.state) == [.applied])
    let warnings = late.flatMap(\.warnings)
    #expect(warnings.map(\.code) == [.replicaOfAnother])
    #expect(warnings.map(\.arguments) == [[try ben.replica().description, isFirst ? "mallory" : "ben"]])
    #expect(try anna.rows(Self.comments) == ["evil/evil", "of ben/of ben"])
    // Later edits of Ben's rows find the right rows in both directions.
    try ben.run("UPDATE note SET text = 'of ben, edited'; INSERT INTO comment VALUES ('c', 7, 'later')")
    try ben.share(Self.notes, with: anna)
    try anna.receive(policies)
    try anna.run("UPDATE note SET text = 'of ben, edited by anna' WHERE text = 'of ben, edited'")
    try anna.share(Self.notes, with: ben)
    try ben.receive(policies)
    #expect(try ben.rows("SELECT text FROM note WHERE id = 7") == ["of ben, edited by anna"])
    #expect(try ben.rows("SELECT count(*) FROM note WHERE text LIKE 'of ben%'") == ["1"])
    #expect(
      try anna.rows(Self.comments)
        == ["evil/evil", "of ben, edited by anna/later", "of ben, edited by anna/of ben"])
  }

  @Test func `after the first contact is removed, the replica belongs to the other one`() throws {
    try impersonate(ben)
    try anna.receive()
    try ben.share(Self.notes, with: anna)
    #expect(try anna.receive().flatMap(\.warnings).map(\.code) == [.replicaOfAnother])
    _ = try anna.home.removeContact("mallory")
    try ben.run("UPDATE note SET text = 'of ben, edited'; INSERT INTO comment VALUES ('c', 7, 'later')")
    try ben.share(Self.notes, with: anna)
    #expect(try anna.receive().flatMap(\.warnings) == [])
    let key = try ben.home.identity().card.key
    #expect(
      try anna.rows("SELECT DISTINCT lower(hex(replica)) FROM buckia_stream_author WHERE sender = '\(key)'")
        == [try ben.replica().description])
    #expect(try anna.rows(Self.comments) == ["evil/evil", "of ben, edited/later", "of ben, edited/of ben"])
    try anna.run("UPDATE note SET text = 'by anna' WHERE text = 'of ben, edited'")
    try anna.share(Self.notes, with: ben)
    try ben.receive()
    #expect(try ben.rows("SELECT text FROM note WHERE id = 7") == ["by anna"])
  }

  @Test(arguments: [ConflictPolicies.keepLocal, .takeIncoming, .latest])
  func `a contact who signs as the receiving replica changes none of its rows`(_ policies: ConflictPolicies) throws {
    try anna.run("INSERT INTO comment VALUES ('a', 7, 'private')")
    try anna.share(Self.notes, with: ben)
    try impersonate(anna)
    let received = try anna.receive(policies)
    #expect(received.map(\.state) == [.applied])
    #expect(received.flatMap(\.warnings).map(\.code) == [.replicaOfAnother])
    #expect(try anna.rows(Self.comments) == ["evil/evil", "private/private"])
  }

  @Test func `a contact with new keys continues as the same replica once the old key is removed`() throws {
    try ben.share(Self.notes, with: anna)
    try anna.receive()
    _ = try anna.home.removeContact("ben")
    let home = BuckiaHome(path: folder.file("new home of ben"))
    try home.makeIdentity(named: "ben")
    let card = try home.identity().card
    _ = try anna.home.addContact(card.text, named: "ben again")
    _ = try anna.home.trustContact("ben again", fingerprint: card.fingerprint)
    _ = try home.addContact(anna.home.identity().card.text)
    _ = try home.trustContact("anna", fingerprint: anna.home.identity().card.fingerprint)
    try ben.run("UPDATE note SET text = 'of ben, edited'")
    _ = try DatabaseManager(ben.path, home: home).share(
      Self.notes, to: [ShareRecipient(home.contact(named: "anna"))], output: .folder(folder.file("for anna")),
      signedBy: home.identity())
    let received = try anna.receive()
    #expect(received.map(\.state) == [.applied] && received.flatMap(\.warnings) == [], "\(received)")
    #expect(try anna.rows("SELECT count(*) FROM note WHERE text LIKE 'of ben%'") == ["1"])
  }
}
