import Buckia
import TestSupport
import Testing

/// Two people with the same shared rows have the same six words.
@Suite struct ComparedWordsTests {
  private static let schema = """
    CREATE TABLE album(id INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE photo(id TEXT PRIMARY KEY, album INTEGER REFERENCES album(id), title TEXT, owner INTEGER);
    """
  private static let rows = """
    INSERT INTO album VALUES (1,'summer'),(2,'winter');
    INSERT INTO photo VALUES ('a',1,'beach',7),('b',1,'sea',7),('c',2,'snow',7);
    """
  private static let album = ShareScope(name: "album") {
    SharedTable("album").where("id = 1")
    SharedTable("photo").children(of: "album")
  }

  private let folder: TemporaryFolder
  private let anna: SharingPerson
  private let ben: SharingPerson

  init() throws {
    folder = try TemporaryFolder()
    anna = try SharingPerson("anna", in: folder, Self.schema + Self.rows)
    ben = try SharingPerson("ben", in: folder, Self.schema)
  }

  private func words(_ person: SharingPerson) throws -> [[String]] {
    let report = try DatabaseManager(person.path, home: person.home).status(includesWords: true)
    return report.words.map(\.words)
  }

  private func exchange(_ scope: ShareScope = album) throws {
    for _ in 0..<2 {
      try anna.share(scope, with: ben)
      try ben.receive()
      try ben.share(scope, with: anna)
      try anna.receive()
    }
  }

  @Test func `a recipient who has received everything has the sender's words`() throws {
    try anna.share(Self.album, with: ben)
    #expect(try words(ben) == [])
    try ben.receive()
    #expect(try words(anna) == words(ben))
    let said = try #require(try words(anna).first)
    #expect(said.count == 6)
    #expect(try words(anna) == [said], "they are the same each time")
    let status = try DatabaseManager(anna.path, home: anna.home).status(includesWords: true)
    #expect(status.words.map(\.people) == ["ben"])
    #expect(status.words.map(\.rows) == [3])
    #expect(try DatabaseManager(anna.path, home: anna.home).status().words == [])
  }

  @Test(arguments: [
    "UPDATE photo SET title = 'x' WHERE id = 'a'", "DELETE FROM photo WHERE id = 'b'",
    "UPDATE photo SET title = CASE id WHEN 'a' THEN 'sea' ELSE 'beach' END WHERE album = 1",
    "UPDATE photo SET owner = '7x' WHERE id = 'a'",
  ])
  func `any difference in shared rows changes the words`(_ edit: String) throws {
    try anna.share(Self.album, with: ben)
    try ben.receive()
    let before = try words(ben)
    try ben.run(edit)
    #expect(try words(ben) != before)
    #expect(try words(anna) == before)
  }

  @Test func `rows outside the scope do not change the words`() throws {
    try anna.share(Self.album, with: ben)
    try ben.receive()
    try anna.run("UPDATE photo SET title = 'x' WHERE id = 'c'; INSERT INTO photo VALUES ('y',2,'y',1)")
    try ben.run("INSERT INTO photo VALUES ('own',NULL,'mine',1)")
    #expect(try words(anna) == words(ben))
  }

  @Test func `people who share an album in both directions have the same words once all files have arrived`() throws {
    try exchange()
    // Anna has acknowledged nothing that Ben sent, so Ben sees more than one set of words.
    #expect(try words(anna).count == 1)
    #expect(try words(ben).count == 3)
    #expect(try words(ben).contains(words(anna)[0]))
    try ben.run("INSERT INTO photo VALUES ('d',1,'new',2); UPDATE photo SET title = 'of ben' WHERE id = 'a'")
    #expect(try !words(ben).contains(words(anna)[0]))
    try ben.share(Self.album, with: anna)
    try anna.receive()
    #expect(try words(ben).contains(words(anna)[0]))
    try anna.run("DELETE FROM photo WHERE id = 'b'; UPDATE photo SET title = 'of anna' WHERE id = 'd'")
    try anna.share(Self.album, with: ben)
    try ben.receive()
    #expect(try words(anna) == words(ben))
    #expect(try anna.rows("SELECT id, title FROM photo WHERE album = 1 ORDER BY 1") == ["a|of ben", "d|of anna"])
  }

  @Test func `columns that the sender omits or rewrites do not change the words`() throws {
    let scope = ShareScope(name: "album") {
      SharedTable("album").where("id = 1")
      SharedTable("photo").children(of: "album").omitting("title").rewriting("owner", to: .integer(0))
    }
    try anna.share(scope, with: ben)
    try ben.receive()
    #expect(try words(anna) == words(ben))
    try anna.run("UPDATE photo SET title = 'x', owner = 9")
    try ben.run("UPDATE photo SET title = 'y'")
    #expect(try words(anna) == words(ben))
    try ben.run("UPDATE photo SET owner = 9")
    #expect(try words(anna) != words(ben))
  }

  @Test func `the same rows have different words for each recipient`() throws {
    let cara = try SharingPerson("cara", in: folder, Self.schema)
    try exchange()
    try anna.share(Self.album, with: cara)
    try cara.receive()
    #expect(try words(anna).count == 2)
    #expect(try words(ben).contains(words(anna)[0]))
    #expect(try words(anna)[1] == words(cara)[0])
    #expect(try words(anna)[0] != words(anna)[1], "the same rows have other words with somebody else")
  }

  @Test func `a scope whose tables are missing has a reason instead of words`() throws {
    try anna.share(Self.album, with: ben)
    try anna.run("DROP TABLE photo; DROP TABLE album")
    let status = try DatabaseManager(anna.path, home: anna.home).status(includesWords: true)
    #expect(status.words.map(\.words) == [[]])
    #expect(status.words[0].problem?.contains("album") == true)
  }
}
