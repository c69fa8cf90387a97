import Buckia
import SQLiteChangesets
import TestSupport
import Testing

@testable import BuckiaFormat

/// Rows without a key, or with NULL in it, that people share with each other. They are identified by their content.
@Suite struct KeylessShareTests {
  private static let all = ShareScope(name: "all") { SharedTable("note") }

  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func people(
    _ names: [String] = ["anna", "ben"], _ sql: String = "CREATE TABLE note(title, body)"
  ) throws -> [SharingPerson] {
    try names.map { try SharingPerson($0, in: folder, sql) }
  }

  /// Lets all people share with each other and apply the shares, a few times.
  private func exchange(_ people: [SharingPerson], _ scope: ShareScope = all, times: Int = 2) throws {
    for _ in 0..<times {
      for one in people {
        for other in people where other.name != one.name { try one.share(scope, with: other) }
      }
      for person in people { try person.receive() }
    }
  }

  private func notes(_ person: SharingPerson, _ table: String = "note") throws -> [String] {
    try person.rows("SELECT * FROM \(table)").sorted()
  }

  @Test(arguments: ["note(title, body)", "note(id TEXT, title, body, PRIMARY KEY(id, title))"])
  func `the number of equal and other rows stays the same, however often they are shared`(table: String) throws {
    let people = try people(["anna", "ben"], "CREATE TABLE \(table)")
    let (anna, ben) = (people[0], people[1])
    try anna.run("INSERT INTO note(title, body) VALUES ('a', NULL), ('a', NULL), ('b', 1)")
    try ben.run("INSERT INTO note(title, body) VALUES ('b', 1), ('c', 1.5)")
    try exchange(people, times: 5)
    #expect(try notes(anna).count == 5)
    #expect(try notes(anna) == notes(ben))
    try anna.share(Self.all, with: ben) { $0.resyncs = true }
    try ben.receive()
    #expect(try notes(anna) == notes(ben))
    #expect(try anna.share(Self.all, with: ben).id == nil)
    #expect(try ben.share(Self.all, with: anna).id == nil)
  }

  @Test func `a deletion and an edit made before the first share reach the sender`() throws {
    let people = try people()
    let (anna, ben) = (people[0], people[1])
    try anna.run("INSERT INTO note VALUES ('a', 1), ('b', 1), ('b', 1), ('c', 1)")
    try anna.share(Self.all, with: ben)
    try ben.receive()
    try ben.run("DELETE FROM note WHERE title = 'a'; UPDATE note SET body = 2 WHERE title = 'c'")
    try ben.run("DELETE FROM note WHERE rowid = (SELECT rowid FROM note WHERE title = 'b' LIMIT 1)")
    // A resync does not bring back deleted rows.
    try anna.share(Self.all, with: ben) { $0.resyncs = true }
    try ben.receive()
    try ben.share(Self.all, with: anna)
    try anna.receive()
    #expect(try notes(anna) == ["b|1", "c|2"])
    #expect(try notes(ben) == notes(anna))
  }

  @Test func `a row that three people have stays deleted when one deletes it`() throws {
    let people = try people(["anna", "ben", "cleo"])
    try people[0].run("INSERT INTO note VALUES ('a', 1), ('a', 1), ('b', 1)")
    try exchange(people, times: 3)
    try people[1].run("DELETE FROM note WHERE title = 'b'")
    try people[2].run("INSERT INTO note VALUES ('b', 1), ('d', 1)")
    try exchange(people, times: 3)
    for person in people { #expect(try notes(person) == ["a|1", "a|1", "b|1", "d|1"]) }
    for one in people {
      for other in people where other.name != one.name { #expect(try one.share(Self.all, with: other).id == nil) }
    }
  }

  @Test(arguments: 0..<4)
  func `a row to which several people give the same value stays one row`(sharing: Int) throws {
    let people = try people(["anna", "ben", "cleo", "dora"])
    try people[0].run("INSERT INTO note VALUES ('a', NULL), ('b', NULL)")
    for person in people[1...] { try people[0].share(Self.all, with: person) }
    for person in people[1...] { try person.receive() }
    for person in people[(sharing & 1)...] { try person.run("UPDATE note SET body = 1 WHERE title = 'a'") }
    if sharing & 2 != 0 {
      for person in people { for other in people where other !== person { try person.share(Self.all, with: other) } }
    }
    try exchange(people, times: 4)
    for person in people { #expect(try notes(person) == ["a|1", "b|NULL"], "\(person.name)") }
  }

  @Test func `rows of a table that gets a new column stay the same rows`() throws {
    let people = try people()
    let (anna, ben) = (people[0], people[1])
    try anna.run("INSERT INTO note VALUES ('a', 1), ('a', 1), ('b', 1)")
    try exchange(people)
    try anna.run("ALTER TABLE note ADD COLUMN colour DEFAULT 'red'")
    try anna.run("UPDATE note SET colour = 'blue' WHERE title = 'b'")
    try anna.share(Self.all, with: ben)
    var options = ApplyOptions()
    options.schema = .additive
    try ben.receive(options)
    try exchange(people)
    #expect(try notes(anna) == ["a|1|red", "a|1|red", "b|1|blue"])
    #expect(try notes(ben) == notes(anna))
  }

  @Test func `rows with omitted columns are the same rows`() throws {
    let people = try people()
    let (anna, ben) = (people[0], people[1])
    let titles = ShareScope(name: "titles") { SharedTable("note").omitting("body") }
    try anna.run("INSERT INTO note VALUES ('a', 'secret'), ('b', 'secret')")
    for _ in 0..<3 {
      try anna.share(titles, with: ben)
      try ben.receive()
      try ben.share(Self.all, with: anna)
      try anna.receive()
    }
    #expect(try notes(anna) == ["a|secret", "b|secret"])
    #expect(try ben.rows("SELECT title, body IS NULL FROM note ORDER BY 1") == ["a|1", "b|1"])
    try ben.run("DELETE FROM note WHERE title = 'a'")
    try ben.share(Self.all, with: anna)
    try anna.receive()
    #expect(try notes(anna) == ["b|secret"])
  }

  @Test func `a row that leaves the scope is withdrawn, not deleted, and comes back`() throws {
    let sql = "CREATE TABLE album(id TEXT PRIMARY KEY, public); CREATE TABLE photo(album REFERENCES album(id), name)"
    let people = try people(["anna", "ben"], sql)
    let (anna, ben) = (people[0], people[1])
    let public1 = ShareScope(name: "public") {
      SharedTable("album").where("public = 1")
      SharedTable("photo").children(of: "album")
    }
    let everything = ShareScope(name: "everything") {
      SharedTable("album")
      SharedTable("photo")
    }
    try anna.run("INSERT INTO album VALUES ('x', 1); INSERT INTO photo VALUES ('x', 'p'), ('x', 'p'), ('x', 'q')")
    func round() throws {
      try anna.share(public1, with: ben)
      try ben.receive()
      try ben.share(everything, with: anna)
      try anna.receive()
    }
    try round()
    #expect(try notes(ben, "photo") == ["x|p", "x|p", "x|q"])
    try anna.run("UPDATE album SET public = 0")
    try round()
    try round()
    #expect(try notes(ben, "photo") == [])
    #expect(try notes(anna, "photo") == ["x|p", "x|p", "x|q"])
    try anna.run("UPDATE album SET public = 1")
    try round()
    #expect(try notes(ben, "photo") == ["x|p", "x|p", "x|q"])
    #expect(try notes(anna, "photo") == ["x|p", "x|p", "x|q"])
  }

  @Test func `a row that a constraint refuses is not sent as deleted`() throws {
    let people = try people(["anna", "ben"], "CREATE TABLE note(title UNIQUE, body)")
    let (anna, ben) = (people[0], people[1])
    try anna.run("INSERT INTO note VALUES ('a', 1), ('b', 1)")
    try ben.run("INSERT INTO note VALUES ('a', 2)")
    try anna.share(Self.all, with: ben)
    try ben.receive()
    try ben.share(Self.all, with: anna)
    try anna.receive()
    #expect(try notes(anna) == ["a|1", "b|1"])
    #expect(try notes(ben) == ["a|2", "b|1"])
  }

  @Test(arguments: [
    "photo(album INTEGER REFERENCES album(id), title)", "photo(title TEXT PRIMARY KEY, album REFERENCES album(id))",
  ])
  func `an album that one of three people deletes comes back for the photo that another adds`(table: String) throws {
    let people = try ["anna", "ben", "cara"].map {
      try HostileContact($0, in: folder, "CREATE TABLE album(id INTEGER PRIMARY KEY, name); CREATE TABLE \(table)")
    }
    for (place, person) in people.enumerated() { for other in people.dropFirst(place + 1) { try person.meet(other) } }
    let scope = ShareScope(name: "albums") {
      SharedTable("album")
      SharedTable("photo")
    }
    func share(_ person: HostileContact) throws {
      let others = people.filter { $0.name != person.name }
      let sent = try DatabaseManager(person.path, home: person.home).share(
        scope, to: others.map { try ShareRecipient(person.home.contact(named: $0.name)) },
        output: .folder(folder.file("of all")), signedBy: person.home.identity())
      guard let path = sent.path else { return }
      for other in others {
        _ = try folder.write(fileBytes(path), to: "for \(other.name)/\(path.split(separator: "/").last ?? "")")
      }
    }
    try people[0].run("INSERT INTO album VALUES (1, 'summer')")
    try share(people[0])
    for person in people { #expect(try person.receive(.latest).allSatisfy { $0.state == .applied }) }
    try people[1].run("INSERT INTO photo(album, title) VALUES (1, 'beach')")
    try people[2].run("DELETE FROM album")
    for _ in 0..<4 {
      for person in people { try share(person) }
      for person in people {
        try person.receive(.latest)
        #expect(try person.rows("PRAGMA foreign_key_check") == [])
      }
    }
    for person in people {
      #expect(try person.rows("SELECT album.name, title FROM photo JOIN album ON album.id = album") == ["summer|beach"])
    }
  }

  @Test func `a row that one of several recipients has sent and another has relayed can be deleted`() throws {
    let people = try HostileContact.people(["anna", "ben", "cara"], in: folder, "CREATE TABLE note(title, body)")
    let (anna, ben, cara) = (people[0], people[1], people[2])
    try anna.share(Self.all, withAll: [ben, cara])
    try ben.run("INSERT INTO note VALUES ('a', 1), ('a', 1)")
    try ben.share(Self.all, withAll: [anna, cara])
    try cara.receive()
    try cara.share(Self.all, withAll: [anna, ben])
    try anna.receive()
    try anna.run("DELETE FROM note WHERE rowid = 1")
    for _ in 0..<2 {
      for person in people {
        try person.share(Self.all, withAll: people.filter { $0 !== person })
      }
      for person in people { try person.receive() }
    }
    for person in people { #expect(try person.rows("SELECT * FROM note") == ["a|1"], "\(person.name)") }
  }

  @Test func `a row that waits for its parent is not sent as deleted`() throws {
    let people = try HostileContact.people(
      ["anna", "ben"], in: folder,
      "CREATE TABLE album(id TEXT PRIMARY KEY, name); CREATE TABLE photo(album REFERENCES album(id), title)")
    let (anna, ben) = (people[0], people[1])
    let scope = ShareScope(name: "albums") {
      SharedTable("album")
      SharedTable("photo")
    }
    try anna.run("INSERT INTO album VALUES ('s', 'summer')")
    try anna.share(scope, with: ben)
    try ben.receive()
    try ben.share(scope, with: anna)
    try anna.receive()
    try anna.run("INSERT INTO photo VALUES ('s', 'beach')")
    try ben.run("DELETE FROM album")
    try anna.share(scope, with: ben)
    try ben.receive()
    let sent = try ben.share(scope, with: anna)
    #expect(sent.tables.allSatisfy { $0.name != "photo" || $0.deleted == 0 })
    for _ in 0..<3 {
      for (one, other) in [(anna, ben), (ben, anna)] {
        try one.receive()
        try one.share(scope, with: other)
      }
    }
    for person in people { #expect(try person.rows("SELECT * FROM photo") == ["s|beach"], "\(person.name)") }
  }

  @Test func `two people have the same words even if only one shares a table without a key`() throws {
    let tables = "CREATE TABLE note(title, body); CREATE TABLE thing(id TEXT PRIMARY KEY)"
    let (anna, ben) = (try HostileContact("anna", in: folder, tables), try HostileContact("ben", in: folder, tables))
    try anna.meet(ben)
    func words(_ person: HostileContact) throws -> [[String]] {
      try DatabaseManager(person.path, home: person.home).status(includesWords: true).words.map(\.words)
    }
    try anna.run("INSERT INTO note VALUES ('a', 1), ('a', 1), ('b', 1)")
    try ben.run("INSERT INTO note VALUES ('b', 1), ('mine', 1); INSERT INTO thing VALUES ('t')")
    for _ in 0..<2 {
      try anna.share(Self.all, with: ben)
      try ben.receive()
      #expect(try words(ben) == words(anna))
      try ben.share(ShareScope(name: "things") { SharedTable("thing") }, with: anna)
      try anna.receive()
      #expect(try words(ben) == words(anna))
    }
    try ben.run("DELETE FROM note WHERE title = 'a'")
    #expect(try words(ben) != words(anna))
  }

  @Test func `copies of a dataset end with the same rows`() throws {
    let anna = try people(["anna"])[0]
    try anna.run("INSERT INTO note VALUES ('a', 1), ('a', 1), ('b', 1), ('c', 1)")
    _ = try DatabaseManager(anna.path, home: anna.home).beginDataset()
    _ = try folder.copy(anna.path, to: "copy.sqlite")
    let ben = try SharingPerson("ben", in: folder, "SELECT 1")
    _ = try folder.write(fileBytes(folder.file("copy.sqlite")), to: "ben.sqlite")
    try anna.run("DELETE FROM note WHERE title = 'b'")
    try ben.run("UPDATE note SET body = 2 WHERE title = 'c'")
    try exchange([anna, ben], times: 3)
    #expect(try notes(anna) == ["a|1", "a|1", "c|2"])
    #expect(try notes(ben) == notes(anna))
  }

  @Test func `a sender who claims more rows than a diff has adds only a few`() throws {
    let anna = try HostileContact(
      "anna", in: folder, "CREATE TABLE note(title, body); INSERT INTO note VALUES ('a', 1)")
    let mallory = try HostileContact("mallory", in: folder, "CREATE TABLE note(title, body)")
    try anna.meet(mallory)
    try anna.share(Self.all, with: mallory)
    try mallory.run("INSERT INTO note VALUES ('b', 1)")
    try mallory.receive()
    try mallory.share(Self.all, with: anna) { draft in
      for run in draft.annotations?.keys?.runs.indices ?? 0..<0 {
        for name in draft.annotations?.keys?.runs[run].names.indices ?? 0..<0 {
          draft.annotations?.keys?.runs[run].names[name].copies = RowKeys.Copies(inserted: 1 << 40, deleted: 0)
        }
      }
    }
    #expect(try anna.receive().map(\.state) == [.applied])
    let rows = try anna.rows("SELECT title, count(*) FROM note GROUP BY title")
    // Counts of rows that were inserted here are ignored.
    #expect(rows.first == "a|1")
    #expect(try #require(rows.last?.split(separator: "|").last.flatMap { Int($0) }) <= 16)
  }
}
