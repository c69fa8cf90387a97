import Buckia
import BuckiaBytes
import Foundation
import TestSupport
import Testing

/// People who each share all notes with all others in one share.
@Suite struct SharedWithAllTests {
  private static let notes = ShareScope(name: "notes") { SharedTable("note") }

  private let folder: TemporaryFolder
  private let people: [HostileContact]

  init() throws {
    let folder = try TemporaryFolder()
    self.folder = folder
    people = try ["anna", "ben", "cara", "dora"].map {
      try HostileContact($0, in: folder, "CREATE TABLE note(id INTEGER PRIMARY KEY, text)")
    }
    for (place, person) in people.enumerated() { for other in people[..<place] { try person.meet(other) } }
  }

  /// Shares with all others, each time in another second, so that the diffs have an order.
  private func share(by person: HostileContact, _ second: inout UInt32) throws {
    second += 1
    try person.setClock(second)
    try person.share(Self.notes, withAll: people.filter { $0 !== person })
  }

  private func settle(_ policies: ConflictPolicies, _ second: inout UInt32) throws {
    for _ in 0..<4 {
      for person in people { try share(by: person, &second) }
      for person in people {
        let diffs = try person.receive(policies)
        #expect(
          diffs.allSatisfy { $0.state == .applied || $0.state == .alreadyApplied },
          "\(person.name): \(diffs.map(\.reason))")
      }
    }
  }

  private static func now() -> UInt32 { UInt32(Int64(Date().timeIntervalSince1970) - KSUID.epoch) + 20 }

  @Test func `a relayed deletion names the origin key of the row, and deletes no other row`() throws {
    for person in people { try DatabaseManager(person.path).keepClocks() }
    let (anna, cara, dora) = (people[0], people[2], people[3])
    var second = Self.now()
    try cara.run("INSERT INTO note VALUES (1, 'of cara')")
    try anna.run("INSERT INTO note VALUES (1, 'of anna')")
    try share(by: cara, &second)
    try dora.receive(.latest)
    try dora.run("DELETE FROM note")
    try settle(.latest, &second)
    for person in people { #expect(try person.rows("SELECT text FROM note") == ["of anna"], "\(person.name)") }
  }

  @Test(arguments: [ConflictPolicies.takeIncoming, .latest])
  func `an edited row that was deleted at its author stays deleted when a wider share repeats it`(
    _ policies: ConflictPolicies
  ) throws {
    for person in people { try DatabaseManager(person.path).keepClocks() }
    let (anna, ben) = (people[0], people[1])
    var second = Self.now()
    try anna.setClock(second)
    try anna.run("INSERT INTO note VALUES (1, 'of anna')")
    try anna.share(Self.notes, with: ben)
    try ben.receive(policies)
    try ben.run("UPDATE note SET text = 'of ben'")
    second += 1
    try ben.setClock(second)
    try ben.share(Self.notes, with: anna)
    try anna.run("DELETE FROM note")
    try settle(policies, &second)
    for person in people {
      let rows = try person.rows("SELECT id, text FROM note")
      #expect(rows == [], "\(person.name): \(rows)")
    }
    let recorded = try people.flatMap { try DatabaseManager($0.path).conflicts() }
    #expect(recorded.contains { "\([$0.local, $0.incoming])".contains("of ben") })
  }

  @Test(arguments: [ConflictPolicies.takeIncoming, .latest])
  func `a row that arrives after its deletion stays deleted, and its key can be used again`(
    _ policies: ConflictPolicies
  ) throws {
    for person in people { try DatabaseManager(person.path).keepClocks() }
    let (anna, ben, cara) = (people[0], people[1], people[2])
    var second = Self.now()
    try ben.run("INSERT INTO note VALUES (4, 'of ben')")
    try share(by: ben, &second)
    for person in [anna, cara] { try person.receive(policies) }
    try anna.run("DELETE FROM note")
    try share(by: anna, &second)
    try ben.receive(policies)
    try share(by: ben, &second)
    try share(by: cara, &second)
    try anna.receive(policies)
    #expect(try anna.rows("SELECT id, text FROM note") == [])
    try settle(policies, &second)
    for person in people { #expect(try person.rows("SELECT id, text FROM note") == [], "\(person.name)") }
    try ben.run("INSERT INTO note VALUES (4, 'again')")
    try settle(policies, &second)
    for person in people { #expect(try person.rows("SELECT text FROM note") == ["again"], "\(person.name)") }
  }

  @Test(arguments: [ConflictPolicies.keepLocal, .takeIncoming, .latest], [true, false])
  func `a deleted row whose key another row has now does not come back through a relay`(
    _ policies: ConflictPolicies, keepsClocks: Bool
  ) throws {
    if keepsClocks { for person in people { try DatabaseManager(person.path).keepClocks() } }
    let (anna, ben, cara) = (people[0], people[1], people[2])
    var second = Self.now()
    try anna.run("INSERT INTO note VALUES (1, 'of anna')")
    try share(by: anna, &second)
    for person in [ben, cara] { try person.receive(policies) }
    try ben.run("DELETE FROM note")
    try share(by: ben, &second)
    try ben.run("INSERT INTO note VALUES (1, 'of ben')")
    try share(by: ben, &second)
    try share(by: cara, &second)
    try settle(policies, &second)
    for person in people { #expect(try person.rows("SELECT text FROM note") == ["of ben"], "\(person.name)") }
  }

  @Test(arguments: ["INTEGER", "TEXT"], [ConflictPolicies.keepLocal, .takeIncoming, .latest])
  func `a second share with one of several people does not bring back a row that they have deleted`(
    key: String, _ policies: ConflictPolicies
  ) throws {
    for person in people { try person.run("DROP TABLE note; CREATE TABLE note(id \(key) PRIMARY KEY, text)") }
    let (anna, cara) = (people[0], people[2])
    var second = Self.now()
    try anna.run("INSERT INTO note VALUES (1, 'one'), (2, 'two')")
    try share(by: anna, &second)
    try cara.receive(policies)
    try cara.run("DELETE FROM note WHERE id = 1")
    try share(by: cara, &second)
    try anna.run("UPDATE note SET text = 'TWO' WHERE id = 2")
    second += 1
    try anna.setClock(second)
    try anna.share(Self.notes, with: cara)
    try cara.receive(policies)
    #expect(try cara.rows("SELECT text FROM note") == ["TWO"])
    try settle(policies, &second)
    for person in people { #expect(try person.rows("SELECT text FROM note") == ["TWO"], "\(person.name)") }
  }

  @Test func `a row that refers to itself under a mapped key is edited without a conflict`() throws {
    for person in people {
      try person.run("DROP TABLE note; CREATE TABLE note(id INTEGER PRIMARY KEY, text, parent REFERENCES note)")
    }
    let (anna, ben, cara) = (people[0], people[1], people[2])
    var second = Self.now()
    try anna.run("INSERT INTO note VALUES (1, 'of anna', 1)")
    try share(by: anna, &second)
    try ben.receive()
    try ben.run("UPDATE note SET parent = NULL")
    try cara.run("INSERT INTO note VALUES (1, 'of cara', NULL)")
    try share(by: ben, &second)
    #expect(try cara.receive().map(\.conflicts) == [0, 0])
    try settle(.keepLocal, &second)
    for person in people {
      #expect(
        try person.rows("SELECT text, parent FROM note ORDER BY text") == ["of anna|NULL", "of cara|NULL"],
        "\(person.name)")
    }
  }

  @Test func `edits of a row that its author has deleted are merged`() throws {
    for person in people { try person.run("DROP TABLE note; CREATE TABLE note(id INTEGER PRIMARY KEY, text, place)") }
    let (anna, ben, dora) = (people[0], people[1], people[3])
    var second = Self.now()
    try dora.run("INSERT INTO note VALUES (1, 'a text', 'a place')")
    try share(by: dora, &second)
    for person in [anna, ben] { try person.receive() }
    try dora.run("DELETE FROM note")
    try anna.run("UPDATE note SET place = 'another place'")
    try ben.run("UPDATE note SET text = 'another text'")
    try share(by: ben, &second)
    try share(by: dora, &second)
    try ben.receive()
    try share(by: anna, &second)
    try ben.receive()
    #expect(try ben.rows("SELECT text, place FROM note") == ["another text|another place"])
    // The author's deletion has the edits in the conflict record, and all have the same rows again.
    try settle(.keepLocal, &second)
    for person in people { #expect(try person.rows("SELECT text FROM note") == [], "\(person.name)") }
    let recorded = try DatabaseManager(dora.path).conflicts()
    #expect(recorded.contains { "\([$0.local, $0.incoming])".contains("another text") })
  }
}
