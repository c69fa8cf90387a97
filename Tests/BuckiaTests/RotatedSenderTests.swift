import Buckia
import Foundation
import TestSupport
import Testing

/// Shares of a sender who has new keys.
@Suite struct RotatedSenderTests {
  private let folder: TemporaryFolder
  private let scope = ShareScope(name: "all") { SharedTable("note").where("NOT hidden") }

  init() throws {
    folder = try TemporaryFolder()
    let schema = "CREATE TABLE note(id TEXT PRIMARY KEY, text, hidden INTEGER NOT NULL DEFAULT 0)"
    try TestDatabases.run(
      "\(schema); INSERT INTO note(id, text) VALUES ('a','one'),('b','two'),('c','three'),('d','four')",
      on: folder.file("anna.sqlite"))
    try TestDatabases.run(schema, on: folder.file("ben.sqlite"))
    for name in ["anna", "ben"] { try home(name).makeIdentity(named: name) }
    try know("anna", by: "ben")
    try know("ben", by: "anna")
  }

  private func home(_ name: String) -> BuckiaHome { BuckiaHome(path: folder.file("home of \(name)")) }

  private func know(_ name: String, by other: String) throws {
    let card = try home(name).identity().card
    try home(other).addContact(card.text)
    try home(other).trustContact(name, fingerprint: card.fingerprint)
  }

  private func run(_ sql: String, on name: String = "anna") throws {
    try TestDatabases.run(sql, on: folder.file("\(name).sqlite"))
  }

  @discardableResult
  private func share(from name: String = "anna", to other: String = "ben", as identity: Identity? = nil) throws
    -> ShareReport
  {
    try DatabaseManager(folder.file("\(name).sqlite"), home: home(name)).share(
      scope, to: [ShareRecipient(home(name).contact(named: other))], output: .folder(folder.file("for \(other)")),
      signedBy: identity ?? home(name).identity())
  }

  @discardableResult
  private func receive(by name: String = "ben", trust: TrustMode? = nil) throws -> [DiffOutcome] {
    try DatabaseManager(folder.file("\(name).sqlite"), home: home(name)).processInboundChanges(
      [folder.file("for \(name)")], options: ApplyOptions(trust: trust)
    ).diffs
  }

  private func rows(_ name: String = "ben", _ query: String = "SELECT id, text FROM note ORDER BY id") throws
    -> [String]
  {
    try TestDatabases.texts(query, on: folder.file("\(name).sqlite"))
  }

  /// Confirms the new keys of a person.
  private func confirm(_ name: String, by other: String) throws {
    let identity = try home(name).identity()
    for rotation in identity.rotations.suffix(1) { try home(other).addContact(rotation.text) }
    try home(other).trustContact(name, fingerprint: identity.fingerprint)
  }

  /// Makes Carla, who has the card of Anna and has not confirmed it.
  private func meetCarla() throws {
    try run("CREATE TABLE note(id TEXT PRIMARY KEY, text, hidden INTEGER NOT NULL DEFAULT 0)", on: "carla")
    try home("carla").makeIdentity(named: "carla")
    try know("carla", by: "anna")
    try home("carla").addContact(home("anna").identity().card.text)
  }

  private func words(_ name: String) throws -> [[String]] {
    try DatabaseManager(folder.file("\(name).sqlite"), home: home(name)).status(includesWords: true).words.map(\.words)
  }

  @Test func `new keys begin with a snapshot, which is applied without conflicts once they are confirmed`() throws {
    #expect(try share().isSnapshot)
    #expect(try receive(trust: .known).map(\.state) == [.applied])
    try run("UPDATE note SET text = 'ONE' WHERE id = 'a'")
    #expect(try share().sequence == 2)
    #expect(try receive().map(\.state) == [.applied])
    try run("UPDATE note SET text = 'mine' WHERE id = 'c'; INSERT INTO note(id, text) VALUES ('x','mine')", on: "ben")

    _ = try home("anna").rotateIdentity()
    try run(
      "UPDATE note SET text = 'TWO' WHERE id = 'b'; DELETE FROM note WHERE id = 'd'; INSERT INTO note(id, text) VALUES ('e','five')"
    )
    let report = try share()
    #expect(report.isSnapshot && report.sequence == 1)
    #expect(try receive().map(\.code) == [.untrusted])
    let old = try rows()
    try confirm("anna", by: "ben")
    let taken = try receive()
    #expect(taken.map(\.state) == [.applied], "\(taken)")
    #expect(taken.map(\.conflicts) == [0])
    #expect(old == ["a|ONE", "b|two", "c|mine", "d|four", "x|mine"])
    #expect(try rows() == ["a|ONE", "b|TWO", "c|mine", "e|five", "x|mine"])

    // The new stream continues. Withdrawn rows are removed, because the old stream does not keep them.
    try run("UPDATE note SET hidden = 1 WHERE id = 'e'; UPDATE note SET hidden = 1 WHERE id = 'a'")
    let next = try share()
    #expect(!next.isSnapshot && next.sequence == 2)
    #expect(try receive().map(\.state) == [.applied])
    #expect(try rows() == ["b|TWO", "c|mine", "x|mine"])
    #expect(try rows("ben", "SELECT count(DISTINCT sender) FROM buckia_provenance") == ["1"])
    #expect(try rows("ben", "SELECT count(DISTINCT sender) FROM buckia_state WHERE sender IS NOT NULL") == ["1"])
    let streams = try DatabaseManager(folder.file("ben.sqlite"), home: home("ben")).status().streams
    #expect(streams.map(\.isEnded) == [false, true])
  }

  @Test func `a file in transit while its sender gets new keys is replaced by the next share`() throws {
    try share()
    try receive(trust: .known)
    try run("UPDATE note SET text = 'on its way' WHERE id = 'a'; DELETE FROM note WHERE id = 'd'")
    #expect(try share().sequence == 2)
    _ = try home("anna").rotateIdentity()
    try confirm("anna", by: "ben")
    let early = try receive()
    #expect(early.map(\.code) == [.endedKey])
    #expect(early.allSatisfy { $0.reason?.contains("`buckia share`") == true }, "\(early)")
    // Nothing has changed since, but the new key needs a snapshot.
    #expect(try share().isSnapshot)
    let settled = try receive()
    #expect(settled.map(\.state) == [.alreadyApplied, .applied], "\(settled)")
    #expect(try rows() == ["a|on its way", "b|two", "c|three"])
    #expect(try receive().isEmpty)
    #expect(try rows("ben", "SELECT count(*) FROM buckia_refused") == ["0"])
  }

  @Test func `a thief of the old key can neither continue its stream nor end the new one`() throws {
    let stolen = try home("anna").identity()
    try share()
    try receive(trust: .known)
    // The thief has the database, too.
    try FileManager.default.copyItem(atPath: folder.file("anna.sqlite"), toPath: folder.file("thief.sqlite"))
    try FileManager.default.copyItem(atPath: folder.file("home of anna"), toPath: folder.file("home of thief"))
    _ = try home("anna").rotateIdentity()
    try run("UPDATE note SET text = 'ONE' WHERE id = 'a'")
    try share()
    try confirm("anna", by: "ben")
    #expect(try receive().map(\.state) == [.applied])
    try run("UPDATE note SET text = 'forged'", on: "thief")
    #expect(try share(from: "thief", as: stolen).id != nil)
    #expect(try receive().map(\.code) == [.endedKey])
    try FileManager.default.removeItem(atPath: folder.file("for ben"))
    try run("UPDATE note SET text = 'TWO' WHERE id = 'b'")
    try share()
    #expect(try receive().map(\.state) == [.applied])
    #expect(try rows() == ["a|ONE", "b|TWO", "c|three", "d|four"])
  }

  @Test func `a snapshot is not applied until its key is confirmed, even if all senders are trusted`() throws {
    try share()
    try receive(trust: .any)
    _ = try home("anna").rotateIdentity()
    try run("DELETE FROM note WHERE id = 'd'")
    try share()
    let early = try receive()
    #expect(early.map(\.code) == [.untrusted])
    #expect(early.allSatisfy { $0.reason?.contains("anna") == true }, "\(early)")
    #expect(try rows().count == 4)
    try confirm("anna", by: "ben")
    #expect(try receive().map(\.state) == [.applied])
    #expect(try rows() == ["a|one", "b|two", "c|three"])
    try run("UPDATE note SET hidden = 1 WHERE id = 'a'")
    try share()
    #expect(try receive().map(\.state) == [.applied])
    #expect(try rows() == ["b|two", "c|three"])
  }

  @Test func `a snapshot that was applied before its key was confirmed takes over the rows of the old stream`() throws {
    try meetCarla()
    try share(to: "carla")
    try receive(by: "carla", trust: .any)
    _ = try home("anna").rotateIdentity()
    try share(to: "carla")
    // All senders are trusted here, and nothing shows yet that this is the same sender.
    #expect(try receive(by: "carla").map(\.state) == [.applied])
    try confirm("anna", by: "carla")
    try run("UPDATE note SET hidden = 1 WHERE id = 'a'")
    try share(to: "carla")
    #expect(try receive(by: "carla").map(\.state) == [.applied])
    #expect(try rows("carla") == ["b|two", "c|three", "d|four"])
  }

  @Test func `rows with mapped keys are not duplicated by a snapshot whose key is not confirmed yet`() throws {
    for name in ["anna", "ben"] {
      try run("DROP TABLE note; CREATE TABLE note(id INTEGER PRIMARY KEY, text, hidden DEFAULT 0)", on: name)
      try run("INSERT INTO note(text) VALUES ('of \(name)')", on: name)
    }
    try share()
    try receive(trust: .any)
    _ = try home("anna").rotateIdentity()
    try share()
    try receive()
    let texts = "SELECT text FROM note ORDER BY text"
    #expect(try rows("ben", texts) == ["of anna", "of ben"])
    try confirm("anna", by: "ben")
    try run("UPDATE note SET text = 'of anna, edited'")
    try share()
    try receive()
    try share(from: "ben", to: "anna")
    try receive(by: "anna")
    for name in ["anna", "ben"] { #expect(try rows(name, texts) == ["of anna, edited", "of ben"], "\(name)") }
  }

  @Test func `a stream that was replaced before the new key was confirmed has no words of its own`() throws {
    try meetCarla()
    try share(to: "carla")
    try receive(by: "carla", trust: .any)
    _ = try home("anna").rotateIdentity()
    try share(to: "carla")
    try receive(by: "carla")
    try confirm("anna", by: "carla")
    #expect(try words("carla").count == 1)
    #expect(try words("carla") == words("anna"))
  }

  @Test func `a sender cannot take over a stream by naming it unless their key was confirmed as its next one`() throws {
    try share()
    try receive(trust: .any)
    // Carla has a copy of the database, and shares it as her own.
    try home("carla").makeIdentity(named: "carla")
    try know("ben", by: "carla")
    try FileManager.default.copyItem(atPath: folder.file("anna.sqlite"), toPath: folder.file("carla.sqlite"))
    try run("DELETE FROM note WHERE id <> 'a'", on: "carla")
    try share(from: "carla")
    #expect(try receive().map(\.state) == [.applied])
    #expect(try rows().count == 4, "the rows of anna's stream are anna's")
    try run("UPDATE note SET hidden = 1", on: "carla")
    try share(from: "carla")
    #expect(try receive().map(\.state) == [.applied])
    #expect(try rows().count == 4)
  }

  @Test func `a share whose signer was not recorded begins again only if there were other keys`() throws {
    try share()
    try run("UPDATE buckia_share SET signer = NULL; UPDATE note SET text = 'ONE' WHERE id = 'a'")
    #expect(try !share().isSnapshot)
    try run("UPDATE buckia_share SET signer = NULL; UPDATE note SET text = 'TWO' WHERE id = 'b'")
    _ = try home("anna").rotateIdentity()
    #expect(try share().isSnapshot)
    try run("UPDATE note SET text = 'THREE' WHERE id = 'c'")
    #expect(try !share().isSnapshot)
  }

  @Test func `after the receiver rotates keys, the stream continues, and their acknowledgements count`() throws {
    try share()
    try receive(trust: .known)
    try run("INSERT INTO note(id, text) VALUES ('x','mine')", on: "ben")
    try share(from: "ben", to: "anna")
    #expect(try receive(by: "anna").map(\.state) == [.applied])
    _ = try home("ben").rotateIdentity()
    try confirm("ben", by: "anna")
    try run("UPDATE note SET text = 'ONE' WHERE id = 'a'")
    #expect(try !share().isSnapshot)
    #expect(try receive().map(\.state) == [.applied])
    try run("UPDATE note SET text = 'Mine' WHERE id = 'x'", on: "ben")
    #expect(try share(from: "ben", to: "anna").isSnapshot)
    let taken = try receive(by: "anna")
    #expect(taken.map(\.state) == [.applied] && taken.map(\.conflicts) == [0], "\(taken)")
    #expect(try rows("anna") == rows("ben"))
    #expect(
      try rows("anna", "SELECT count(DISTINCT sender), max(through) FROM buckia_acknowledgement") == ["1|2"])
  }
}
