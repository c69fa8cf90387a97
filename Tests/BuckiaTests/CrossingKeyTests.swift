import Buckia
import BuckiaBytes
import Foundation
import TestSupport
import Testing

/// People have shared rows with the same UNIQUE value, or with keys that differ in their spelling only, before they
/// apply the shares of others.
@Suite struct CrossingKeyTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func people(_ schema: String, _ rows: [String]) throws -> [HostileContact] {
    let people = try zip(["anna", "ben", "cleo"], rows).map { try HostileContact($0, in: folder, schema + $1) }
    for (place, one) in people.enumerated() {
      for other in people[..<place] { try one.meet(other) }
    }
    return people
  }

  /// Lets each person share with all others.
  ///
  /// - Returns: True if there was anything to send.
  @discardableResult
  private func share(_ scope: ShareScope, among people: [HostileContact]) throws -> Bool {
    var hasSent = false
    for person in people {
      for other in people where other.name != person.name {
        if try person.share(scope, with: other).id != nil { hasSent = true }
      }
    }
    return hasSent
  }

  /// Applies and shares until there is nothing left to send.
  private func settle(_ scope: ShareScope, among people: [HostileContact], _ policies: ConflictPolicies) throws {
    var isQuiet = false
    for _ in 0..<6 where !isQuiet {
      for person in people {
        #expect(try person.receive(policies).allSatisfy { $0.state == .applied || $0.state == .alreadyApplied })
      }
      isQuiet = try !share(scope, among: people)
    }
    #expect(isQuiet)
  }

  private func expectSame(_ query: String, among people: [HostileContact]) throws -> [String] {
    let rows = try people[0].rows(query)
    for person in people {
      #expect(try person.rows(query) == rows, "\(person.name)")
      #expect(try person.rows("SELECT * FROM pragma_foreign_key_check").isEmpty, "\(person.name)")
    }
    return rows
  }

  private static let folders = """
    CREATE TABLE folder(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, up INTEGER REFERENCES folder);
    CREATE TABLE note(id INTEGER PRIMARY KEY, folder INTEGER REFERENCES folder ON DELETE SET NULL, title TEXT);
    CREATE TABLE photo(id INTEGER PRIMARY KEY, note INTEGER NOT NULL REFERENCES note);
    """
  private static let everything = ShareScope(name: "everything") {
    SharedTable("folder")
    SharedTable("note")
    SharedTable("photo")
  }
  private static let notes = """
    SELECT title, f.name, u.name, (SELECT count(*) FROM photo AS p WHERE p.note = n.id)
    FROM note AS n LEFT JOIN folder AS f ON f.id = n.folder LEFT JOIN folder AS u ON u.id = f.up ORDER BY title
    """

  @Test(arguments: [true, false], ["", "UPDATE folder SET name = 'work' WHERE name = 'later'"])
  func `of two rows with one UNIQUE value that two people have shared, one stays, and all references lead to it`(
    isAnnaFirst: Bool, rename: String
  ) throws {
    let name = rename.isEmpty ? "work" : "later"
    let people = try people(
      Self.folders,
      [
        """
        INSERT INTO folder VALUES (1, '\(name)', NULL), (2, 'home', 1);
        INSERT INTO note VALUES (1, 1, 'anna 1'), (2, 2, 'anna 2'); INSERT INTO photo VALUES (1, 1);
        """,
        """
        INSERT INTO folder VALUES (1, 'play', NULL), (2, 'work', NULL); INSERT INTO note VALUES (1, 2, 'ben 1');
        INSERT INTO photo VALUES (1, 1);
        """,
      ])
    try share(Self.everything, among: isAnnaFirst ? people : people.reversed())
    if !rename.isEmpty {
      // The diff that gave the row its value decides, not the diff that first sent the row.
      try people[0].run(rename)
      try people[0].share(Self.everything, with: people[1])
    }
    try settle(Self.everything, among: people, .latest)
    #expect(
      try expectSame(Self.notes, among: people) == ["anna 1|work|NULL|1", "anna 2|home|work|0", "ben 1|work|NULL|1"])
    #expect(try expectSame("SELECT name FROM folder ORDER BY name", among: people) == ["home", "play", "work"])
  }

  @Test func `of three rows with one UNIQUE value that three people have shared, one stays`() throws {
    let people = try people(
      Self.folders,
      (1...3).map {
        "INSERT INTO folder VALUES (\($0), 'work', NULL); INSERT INTO note VALUES (1, \($0), 'note \($0)');"
      })
    // Ids of the same second have no order.
    let now = UInt32(Int64(Date().timeIntervalSince1970) - KSUID.epoch)
    for (place, person) in people.enumerated() { try person.setClock(now + 20 + UInt32(place)) }
    try share(Self.everything, among: people)
    try settle(Self.everything, among: people, .latest)
    #expect(try expectSame(Self.notes, among: people) == (1...3).map { "note \($0)|work|NULL|0" })
  }

  private static let tags = ShareScope(name: "tags") { SharedTable("tag") }

  @Test(arguments: [ConflictPolicies.latest, .takeIncoming], [true, false])
  func `a key that two people have inserted with different spellings ends with one spelling`(
    _ policies: ConflictPolicies, isAnnaFirst: Bool
  ) throws {
    let people = try people(
      "CREATE TABLE tag(name TEXT PRIMARY KEY COLLATE NOCASE, color TEXT, more TEXT);",
      [
        "INSERT INTO tag VALUES ('red', 'of anna', 'same'), ('blue', 'same', 'same');",
        "INSERT INTO tag VALUES ('Red', 'of ben', 'same'), ('Blue', 'same', 'same');",
      ])
    try share(Self.tags, among: isAnnaFirst ? people : people.reversed())
    try settle(Self.tags, among: people, policies)
    let rows = try expectSame("SELECT * FROM tag ORDER BY name", among: people)
    #expect([["blue|same|same", "red|of anna|same"], ["Blue|same|same", "Red|of ben|same"]].contains(rows))
    // Later edits find the row.
    try people[0].run("UPDATE tag SET more = 'edited by anna'")
    try people[1].run("UPDATE tag SET color = 'edited by ben'")
    try share(Self.tags, among: people)
    try settle(Self.tags, among: people, policies)
    let edited = try expectSame("SELECT color, more FROM tag", among: people)
    #expect(edited == ["edited by ben|edited by anna", "edited by ben|edited by anna"])
  }

  @Test(arguments: [ConflictPolicies.latest, .takeIncoming], [true, false])
  func `a key that two people respell at the same time ends with one spelling`(
    _ policies: ConflictPolicies, isAnnaFirst: Bool
  ) throws {
    let people = try people(
      "CREATE TABLE tag(name TEXT PRIMARY KEY COLLATE NOCASE, color TEXT) WITHOUT ROWID;",
      ["INSERT INTO tag VALUES ('red', 'r');", ""])
    try share(Self.tags, among: people)
    try settle(Self.tags, among: people, policies)
    try people[0].run("UPDATE tag SET name = 'Red'")
    try people[1].run("UPDATE tag SET name = 'RED', color = 'R'")
    try share(Self.tags, among: isAnnaFirst ? people : people.reversed())
    try settle(Self.tags, among: people, policies)
    #expect(try expectSame("SELECT * FROM tag", among: people).count == 1)
  }

  @Test(arguments: [ConflictPolicies.latest, .takeIncoming], [true, false])
  func `a respelled key keeps its new spelling when another person relays the old row`(
    _ policies: ConflictPolicies, keepsClocks: Bool
  ) throws {
    let people = try people(
      "CREATE TABLE tag(name TEXT PRIMARY KEY COLLATE NOCASE, color TEXT);",
      ["INSERT INTO tag VALUES ('red', 'r');", "", ""])
    if keepsClocks || policies == .latest { for person in people { try DatabaseManager(person.path).keepClocks() } }
    var second = UInt32(Int64(Date().timeIntervalSince1970) - KSUID.epoch) + 20
    func share(_ person: HostileContact) throws -> Bool {
      second += 1
      try person.setClock(second)
      return try person.share(Self.tags, withAll: people.filter { $0.name != person.name }).id != nil
    }
    _ = try share(people[0])
    for person in people[1...] { try person.receive(policies) }
    try people[2].run("UPDATE tag SET name = 'Red'")
    _ = try share(people[2])
    var isQuiet = false
    for _ in 0..<5 where !isQuiet {
      isQuiet = try people.map { try share($0) }.allSatisfy { !$0 }
      for person in people { try person.receive(policies) }
    }
    #expect(isQuiet)
    #expect(try expectSame("SELECT * FROM tag", among: people) == ["Red|r"])
  }

  @Test(arguments: [ConflictPolicies.latest, .takeIncoming, .keepLocal], [true, false])
  func `a respelled row stays when its old and its new spelling arrive from different people`(
    _ policies: ConflictPolicies, isAnnaFirst: Bool
  ) throws {
    let people = try people(
      "CREATE TABLE tag(name TEXT PRIMARY KEY COLLATE NOCASE, color TEXT);",
      ["INSERT INTO tag VALUES ('red', 'r');", "", ""])
    if policies == .latest { for person in people { try DatabaseManager(person.path).keepClocks() } }
    try people[0].share(Self.tags, with: people[1])
    try people[1].receive(policies)
    try people[0].run("UPDATE tag SET name = 'Red'")
    try share(Self.tags, among: isAnnaFirst ? people : people.reversed())
    try settle(Self.tags, among: people, policies)
    #expect(try expectSame("SELECT * FROM tag", among: people) == ["Red|r"])
  }

  @Test(arguments: [true, false], ["red", "Red", "RED"])
  func `a row stays if one person respells its key while another person edits it`(
    isAnnaFirst: Bool, key: String
  ) throws {
    let policies = ConflictPolicies.latest
    let people = try people(
      "CREATE TABLE tag(name TEXT PRIMARY KEY COLLATE NOCASE, color TEXT);",
      ["INSERT INTO tag VALUES ('\(key)', 'r'), ('blue', 'b');", "", ""])
    try share(Self.tags, among: people)
    try settle(Self.tags, among: people, policies)
    try people[0].run("UPDATE tag SET name = 'rEd' WHERE name = 'red'")
    try people[2].run("UPDATE tag SET color = 'R' WHERE name = 'red'")
    try share(Self.tags, among: isAnnaFirst ? people : people.reversed())
    try settle(Self.tags, among: people, policies)
    let rows = try expectSame("SELECT * FROM tag ORDER BY name", among: people)
    #expect(rows.count == 2)
    // The INSERT with the new spelling sets all columns, so the edit wins only if it is later.
    if isAnnaFirst { #expect(rows.last?.hasSuffix("|R") == true, "\(rows)") }
  }
}
