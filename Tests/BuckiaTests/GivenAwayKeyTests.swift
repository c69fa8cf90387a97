import Buckia
import TestSupport
import Testing

/// Integer keys of deleted rows that are assigned to new rows, as SQLite does without AUTOINCREMENT.
@Suite struct GivenAwayKeyTests {
  private static let scope = ShareScope(name: "photos") { SharedTable("photo") }
  private static let policies = [ConflictPolicies.keepLocal, .takeIncoming, .latest]

  private let people: [HostileContact]
  private var anna: HostileContact { people[0] }
  private var ben: HostileContact { people[1] }

  init() throws {
    people = try HostileContact.people(
      ["anna", "ben", "cara", "dora"], in: TemporaryFolder(),
      "CREATE TABLE photo(id INTEGER PRIMARY KEY, title TEXT, body TEXT)")
  }

  private func exchange(_ group: [HostileContact], _ policies: ConflictPolicies) throws {
    for _ in 0..<4 {
      for person in group {
        for other in group where other !== person { try person.share(Self.scope, with: other) }
      }
      for person in group {
        for outcome in try person.receive(policies) {
          #expect(outcome.state == .applied, "\(person.name): \(outcome.reason ?? "")")
          #expect(!outcome.warnings.contains { $0.code == .stateDiffers }, "\(person.name): \(outcome.warnings)")
        }
      }
    }
  }

  private func titles(_ person: HostileContact) throws -> [String] {
    try person.rows("SELECT title, body FROM photo ORDER BY title")
  }

  @Test(arguments: policies)
  func `a new row with the key of a received and deleted row is another row`(_ policies: ConflictPolicies) throws {
    try anna.run("INSERT INTO photo VALUES (1, 'of anna', 'x')")
    try anna.share(Self.scope, with: ben)
    try ben.receive(policies)
    try ben.run("DELETE FROM photo")
    try ben.share(Self.scope, with: anna)
    try ben.run("INSERT INTO photo VALUES (1, 'of ben', 'y')")
    try exchange([anna, ben], policies)
    #expect(try titles(anna) == ["of ben|y"])
    #expect(try titles(ben) == ["of ben|y"])
    try anna.run("UPDATE photo SET body = 'edited'")
    try exchange([anna, ben], policies)
    #expect(try titles(ben) == ["of ben|edited"])
  }

  @Test(arguments: policies)
  func `an edit of a deleted row does not change the new row with its key`(_ policies: ConflictPolicies) throws {
    try anna.run("INSERT INTO photo VALUES (1, 'old', 'x')")
    try anna.share(Self.scope, with: ben)
    try ben.receive(policies)
    try anna.run("DELETE FROM photo")
    try anna.share(Self.scope, with: ben)
    try anna.run("INSERT INTO photo VALUES (1, 'new', 'y')")
    try ben.run("UPDATE photo SET body = 'edited' WHERE id = 1")
    try ben.share(Self.scope, with: anna)
    try exchange([anna, ben], policies)
    #expect(try titles(anna) == ["new|y"])
    #expect(try titles(ben).contains("new|y"))
  }

  @Test(arguments: policies, [true, false])
  func `a row that two people relay is one row at a third, even if one of them has changed all of it`(
    _ policies: ConflictPolicies, isChangedFirst: Bool
  ) throws {
    try anna.run("INSERT INTO photo VALUES (1, 'old', 'x')")
    let (cara, dora) = (people[2], people[3])
    for other in [ben, cara] {
      try anna.share(Self.scope, with: other)
      try other.receive(policies)
    }
    try cara.run("UPDATE photo SET title = 'new', body = 'y'")
    for person in isChangedFirst ? [cara, ben] : [ben, cara] {
      try person.share(Self.scope, with: dora)
      try dora.receive(policies)
    }
    #expect(try titles(dora).count == 1)
    try exchange(people, policies)
    for person in people { #expect(try titles(person) == ["new|y"], "\(person.name)") }
  }

  @Test(arguments: policies, [false, true])
  func `a deletion that was shared with another person first still reaches the author of the row`(
    _ policies: ConflictPolicies, hasClocks: Bool
  ) throws {
    // Three people need clocks before the first share to agree on which diff is later.
    guard hasClocks || policies != .latest else { return }
    let cara = people[2]
    if hasClocks { for person in people { try DatabaseManager(person.path, home: person.home).keepClocks() } }
    try anna.run("INSERT INTO photo VALUES (1, 'of anna', 'x')")
    try cara.run("INSERT INTO photo VALUES (1, 'of cara', 'y')")
    try cara.share(Self.scope, with: anna)
    try anna.receive(policies)
    try anna.share(Self.scope, with: ben)
    try anna.run("DELETE FROM photo WHERE title = 'of cara'")
    try anna.share(Self.scope, with: ben)
    try exchange([anna, ben, cara], policies)
    for person in [anna, ben, cara] { #expect(try titles(person) == ["of anna|x"], "\(person.name)") }
  }

  @Test(arguments: policies, [false, true])
  func `the deletion of an already deleted row does not delete the local row with its origin key`(
    _ policies: ConflictPolicies, hasClocks: Bool
  ) throws {
    let cara = people[2]
    if hasClocks { for person in people { try DatabaseManager(person.path, home: person.home).keepClocks() } }
    try cara.run("INSERT INTO photo VALUES (1, 'first', 'x')")
    try cara.share(Self.scope, with: anna)
    try cara.run("INSERT INTO photo VALUES (2, 'second', 'y')")
    try cara.share(Self.scope, with: ben)
    try anna.run("INSERT INTO photo VALUES (1, 'of anna', 'z')")
    try anna.receive(policies)
    for person in [anna, cara] { try person.run("DELETE FROM photo WHERE title = 'first'") }
    try exchange([anna, ben, cara], policies)
    for person in [anna, ben, cara] {
      #expect(try titles(person) == ["of anna|z", "second|y"], "\(person.name)")
    }
  }

  @Test(arguments: policies)
  func `a received row does not get the key of a row whose deletion was shared`(_ policies: ConflictPolicies) throws {
    try anna.run("INSERT INTO photo VALUES (1, 'of anna', 'x'), (2, 'second', 'y')")
    try anna.share(Self.scope, with: ben)
    try anna.run("DELETE FROM photo WHERE id = 2")
    try ben.run("INSERT INTO photo VALUES (1, 'of ben', 'z')")
    try ben.share(Self.scope, with: anna)
    try anna.share(Self.scope, with: ben)
    try exchange([anna, ben], policies)
    for person in [anna, ben] { #expect(try titles(person) == ["of anna|x", "of ben|z"], "\(person.name)") }
  }

  @Test(arguments: policies, [false, true])
  func `a received row does not get the key of a deleted row that a share with more people has left out`(
    _ policies: ConflictPolicies, hasClocks: Bool
  ) throws {
    let cara = people[2]
    if hasClocks { for person in people { try DatabaseManager(person.path, home: person.home).keepClocks() } }
    try anna.run("INSERT INTO photo VALUES (1, 'of anna', 'x')")
    try anna.share(Self.scope, with: ben)
    try ben.run("INSERT INTO photo VALUES (1, 'of ben', 'y')")
    try anna.run("DELETE FROM photo")
    for _ in 0..<4 {
      try anna.share(Self.scope, withAll: [ben, cara])
      try ben.share(Self.scope, withAll: [anna, cara])
      try cara.share(Self.scope, withAll: [anna, ben])
      for person in [anna, ben, cara] { try person.receive(policies) }
    }
    for person in [anna, ben, cara] { #expect(try titles(person) == ["of ben|y"], "\(person.name)") }
  }

  @Test(arguments: policies, [false, true])
  func `a reference to a deleted row does not lead to the new row with its key`(
    _ policies: ConflictPolicies, hasClocks: Bool
  ) throws {
    let people = try HostileContact.people(
      ["anna", "ben"], in: TemporaryFolder(),
      """
      CREATE TABLE album(id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE photo(id INTEGER PRIMARY KEY, album INTEGER REFERENCES album(id), title TEXT)
      """)
    let (anna, ben) = (people[0], people[1])
    if hasClocks { for person in people { try DatabaseManager(person.path, home: person.home).keepClocks() } }
    let scope = ShareScope(name: "albums") {
      SharedTable("album")
      SharedTable("photo")
    }
    try anna.run("INSERT INTO album VALUES (1, 'summer')")
    try anna.share(scope, with: ben)
    try ben.receive(policies)
    try ben.run("DELETE FROM album")
    try ben.share(scope, with: anna)
    try ben.run("INSERT INTO album VALUES (1, 'winter')")
    try anna.run("INSERT INTO photo VALUES (7, 1, 'beach')")
    try anna.share(scope, with: ben)
    try ben.receive(policies)
    for _ in 0..<4 {
      for (one, other) in [(anna, ben), (ben, anna)] { try one.share(scope, with: other) }
      for person in people { try person.receive(policies) }
    }
    for person in people {
      let photos = try person.rows("SELECT title, name FROM photo JOIN album ON album.id = photo.album")
      #expect(photos == ["beach|summer"], "\(person.name)")
      #expect(try person.rows("SELECT name FROM album ORDER BY name") == ["summer", "winter"], "\(person.name)")
    }
  }
}
