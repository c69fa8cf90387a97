import Buckia
import Foundation
import SQLiteConnections
import TestSupport
import Testing

/// People who give the same integer keys to different rows, and share them.
@Suite struct CollidingShareTests {
  /// A person with a database and a home.
  private final class Person {
    let name: String
    let path: String
    let home: BuckiaHome
    let folder: TemporaryFolder

    init(_ name: String, in folder: TemporaryFolder, _ sql: String) throws {
      self.name = name
      self.folder = folder
      path = try TestDatabases.run(sql, on: folder.file("\(name).sqlite"))
      home = BuckiaHome(path: folder.file("home of \(name)"))
    }

    func run(_ sql: String) throws { try TestDatabases.run(sql, on: path) }

    @discardableResult
    func share(_ scope: ShareScope, with other: Person, resyncing: Bool = false) throws -> ShareReport {
      var options = ShareOptions()
      options.isUnencrypted = true
      options.resyncs = resyncing
      return try DatabaseManager(path, home: home).share(
        scope, to: [ShareRecipient(other.name)], output: .folder(folder.file("for \(other.name)")), options: options)
    }

    @discardableResult
    func receive(_ options: ApplyOptions = ApplyOptions()) throws -> ApplyReport {
      try folder.makeFolder("for \(name)")
      let report = try DatabaseManager(path, home: home).processInboundChanges(
        [folder.file("for \(name)")], options: options)
      #expect(report.diffs.allSatisfy { $0.state == .applied }, "\(report.diffs.map { $0.reason ?? "" })")
      let conflicts = try DatabaseManager(path).conflicts()
      #expect(report.diffs.allSatisfy { $0.conflicts == 0 }, "\(name): \(conflicts)")
      return report
    }

    func rows(_ query: String) throws -> [String] {
      let connection = try SQLiteConnection(opening: path, as: .readOnly)
      #expect(try connection.integer("SELECT count(*) FROM pragma_foreign_key_check") == 0)
      return try TestDatabases.texts(query, on: connection)
    }

    /// The photos with their comments, without keys.
    func album() throws -> [String] {
      try rows(
        """
        SELECT p.title, coalesce((SELECT group_concat(text, ',') FROM
          (SELECT text FROM comment WHERE photo = p.id ORDER BY text)), '') FROM photo AS p ORDER BY 1, 2
        """)
    }
  }

  private static let schema = """
    CREATE TABLE photo(id INTEGER PRIMARY KEY, title TEXT);
    CREATE TABLE comment(id INTEGER PRIMARY KEY, photo INTEGER REFERENCES photo(id), text TEXT);
    """
  private static let scope = ShareScope(name: "album") {
    SharedTable("photo")
    SharedTable("comment")
  }

  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func people(_ schema: String = schema, _ rows: String...) throws -> [Person] {
    try zip(["anna", "ben", "cara"], rows).map { try Person($0, in: folder, schema + $1) }
  }

  private func rows(of name: String) -> String {
    """
    INSERT INTO photo VALUES (1,'beach of \(name)'),(2,'sea of \(name)');
    INSERT INTO comment VALUES (1,1,'nice \(name)'),(2,2,'blue \(name)'),(3,2,'deep \(name)');
    """
  }

  private static let contacts = """
    CREATE TABLE contact(id INTEGER PRIMARY KEY, mail TEXT COLLATE NOCASE, name TEXT);
    CREATE TABLE note(id INTEGER PRIMARY KEY, contact INTEGER REFERENCES contact(id), text TEXT);
    """

  @Test(arguments: [true, false])
  func `a contact that both sides have added is matched by a column, and the notes of both refer to it`(
    isInScope: Bool
  ) throws {
    let people = try people(
      Self.contacts,
      "INSERT INTO contact VALUES (1, 'eve@x', 'Eve'), (2, 'al@x', 'Al'); INSERT INTO note VALUES (1, 1, 'by anna')",
      "INSERT INTO contact VALUES (1, 'joe@x', 'Joe'), (7, 'eve@x', 'Eve'); INSERT INTO note VALUES (1, 7, 'by ben')")
    let (anna, ben) = (people[0], people[1])
    let contact = isInScope ? SharedTable("contact").matching("mail") : SharedTable("contact")
    let scope = ShareScope(name: "contacts") {
      contact
      SharedTable("note")
    }
    var options = ApplyOptions()
    if !isInScope { options.matches = ["contact": ["mail"]] }
    try anna.share(scope, with: ben)
    try ben.share(scope, with: anna)
    let report = try ben.receive(options)
    #expect(report.diffs[0].warnings.filter { $0.code == .matchedRows }.map(\.arguments) == [["contact", "1"]])
    try anna.receive(options)
    let wanted = ["al@x|Al|", "eve@x|Eve|by anna,by ben", "joe@x|Joe|"]
    let query = """
      SELECT mail, name, coalesce((SELECT group_concat(text, ',') FROM
        (SELECT text FROM note WHERE contact = c.id ORDER BY text)), '') FROM contact AS c ORDER BY 1
      """
    #expect(try anna.rows(query) == wanted)
    #expect(try ben.rows(query) == wanted)
    try anna.run("UPDATE contact SET name = 'Eva' WHERE mail = 'eve@x'; INSERT INTO note VALUES (20, 1, 'more')")
    try anna.share(scope, with: ben)
    try ben.receive(options)
    #expect(try ben.rows(query)[1] == "eve@x|Eva|by anna,by ben,more")
    options.matches = ["contact": ["typo"]]
    #expect(throws: BuckiaError.self) { try ben.receive(options) }
  }

  private static let both = [
    "beach of anna|nice anna", "beach of ben|nice ben", "sea of anna|blue anna,deep anna",
    "sea of ben|blue ben,deep ben",
  ]

  @Test(arguments: ["", " AUTOINCREMENT"])
  func `both have all photos, each with its own comments, and later edits and deletions find the right rows`(
    kind: String
  ) throws {
    let schema = Self.schema.replacingOccurrences(of: "PRIMARY KEY", with: "PRIMARY KEY\(kind)")
    let people = try people(schema, rows(of: "anna"), rows(of: "ben"))
    let (anna, ben) = (people[0], people[1])
    try anna.share(Self.scope, with: ben)
    try ben.receive()
    #expect(try ben.album() == Self.both)
    // No local row has another key.
    #expect(try ben.rows("SELECT title FROM photo WHERE id < 3 ORDER BY id") == ["beach of ben", "sea of ben"])
    try ben.share(Self.scope, with: anna)
    try anna.receive()
    #expect(try anna.album() == Self.both)
    #expect(try anna.rows("SELECT title FROM photo WHERE id < 3 ORDER BY id") == ["beach of anna", "sea of anna"])
    // Each edits rows of the other.
    try anna.run(
      "UPDATE photo SET title = 'beach!' WHERE title = 'beach of ben'; DELETE FROM comment WHERE text = 'blue ben'")
    try anna.run("INSERT INTO comment(photo, text) SELECT id, 'by anna' FROM photo WHERE title = 'sea of ben'")
    try anna.share(Self.scope, with: ben)
    try ben.run("UPDATE comment SET text = 'deep!' WHERE text = 'deep anna'")
    try ben.run("INSERT INTO comment(photo, text) SELECT id, 'by ben' FROM photo WHERE title = 'sea of anna'")
    try ben.receive()
    #expect(try ben.rows("SELECT title FROM photo WHERE id = 1") == ["beach!"])
    try ben.share(Self.scope, with: anna)
    try anna.receive()
    let expected = [
      "beach of anna|nice anna", "beach!|nice ben", "sea of anna|blue anna,by ben,deep!", "sea of ben|by anna,deep ben",
    ]
    #expect(try anna.album() == expected)
    #expect(try ben.album() == expected)
    // Both have the same fingerprint, whatever keys the rows have.
    let words = try [anna, ben].map { person in
      try DatabaseManager(person.path, home: person.home).status(includesWords: true).words.map(\.words)
    }
    #expect(words[0] == words[1] && words[0].count == 1, "\(words)")
    try ben.run("UPDATE photo SET title = 'sea?' WHERE title = 'sea of ben'")
    #expect(try DatabaseManager(ben.path, home: ben.home).status(includesWords: true).words.map(\.words) != words[1])
    try ben.run("UPDATE photo SET title = 'sea of ben' WHERE title = 'sea?'")
    // Nothing is left to send.
    #expect(try anna.share(Self.scope, with: ben).id == nil)
    #expect(try ben.share(Self.scope, with: anna).id == nil)
  }

  @Test func `rows that a third person has relayed to their author keep their keys when the author resyncs`() throws {
    let people = try people(Self.schema, rows(of: "anna"), rows(of: "ben"), "")
    let (anna, ben, cara) = (people[0], people[1], people[2])
    try ben.share(Self.scope, with: anna)
    try anna.receive()
    // Cara shares Ben's rows back to him. Anna does not know Cara.
    try ben.share(Self.scope, with: cara)
    try cara.receive()
    try cara.share(Self.scope, with: ben)
    try ben.receive()
    let before = try anna.rows("SELECT * FROM photo ORDER BY id")
    try anna.run("UPDATE photo SET title = 'beach!' WHERE title = 'beach of ben'")
    try ben.run("UPDATE photo SET title = 'sea!' WHERE title = 'sea of ben'")
    try ben.share(Self.scope, with: anna, resyncing: true)
    let report = try anna.receive()
    #expect(report.diffs.map { [$0.inserted, $0.updated, $0.deleted] } == [[0, 1, 0]])
    let expected = before.map {
      $0.replacingOccurrences(of: "sea of ben", with: "sea!").replacingOccurrences(of: "beach of ben", with: "beach!")
    }
    #expect(try anna.rows("SELECT * FROM photo ORDER BY id") == expected)
  }

  @Test func `a third person who receives the rows from both, in any order, has each row once`() throws {
    for order in [[0, 1], [1, 0]] {
      let folder = try TemporaryFolder()
      let names = ["anna", "ben", "cara"]
      let people = try names.map { try Person($0, in: folder, Self.schema + ($0 == "cara" ? "" : rows(of: $0))) }
      let (anna, ben, cara) = (people[0], people[1], people[2])
      try anna.share(Self.scope, with: ben)
      try ben.receive()
      try ben.share(Self.scope, with: anna)
      try anna.receive()
      for place in order {
        try people[place].share(Self.scope, with: cara)
        try cara.receive()
        #expect(try cara.album() == Self.both)
      }
      // Cara's changes find the right rows at both.
      try cara.run("UPDATE photo SET title = 'by cara' WHERE title = 'beach of ben'")
      for change in ["SELECT 1", "DELETE FROM comment WHERE text = 'deep anna'"] {
        try cara.run(change)
        for other in [anna, ben] {
          try cara.share(Self.scope, with: other)
          try other.receive()
        }
      }
      let expected = [
        "beach of anna|nice anna", "by cara|nice ben", "sea of anna|blue anna", "sea of ben|blue ben,deep ben",
      ]
      #expect(try anna.album() == expected, "\(order)")
      #expect(try ben.album() == expected, "\(order)")
      #expect(try ben.rows("SELECT title FROM photo WHERE id = 1") == ["by cara"])
    }
  }

  @Test func `rows that are equal in every column are one row, and stay one row`() throws {
    let people = try people(
      Self.schema, rows(of: "both") + "INSERT INTO photo VALUES (3,'anna')",
      rows(of: "both") + "INSERT INTO photo VALUES (3,'ben')"
    )
    let (anna, ben) = (people[0], people[1])
    try anna.share(Self.scope, with: ben)
    try ben.receive()
    #expect(try ben.rows("SELECT count(*) FROM photo") == ["4"])
    #expect(try ben.rows("SELECT count(*) FROM comment") == ["3"])
    // Anna has these rows already, so Ben's edit in his first share is no conflict.
    try ben.run("UPDATE photo SET title = 'by ben' WHERE title = 'beach of both'")
    try ben.share(Self.scope, with: anna)
    try anna.receive()
    #expect(try anna.rows("SELECT title FROM photo ORDER BY 1") == ["anna", "ben", "by ben", "sea of both"])
  }

  @Test func `equal rows with one key at two replicas are one row at a third, where another row has the key`() throws {
    let equal = "INSERT INTO photo VALUES (1,'of both'); INSERT INTO comment VALUES (1,1,'nice')"
    let people = try people(
      Self.schema, equal, equal, "INSERT INTO photo VALUES (1,'of cara'); INSERT INTO comment VALUES (1,1,'good')")
    for _ in 0..<3 {
      for one in people { for other in people where other !== one { try one.share(Self.scope, with: other) } }
      for person in people { try person.receive() }
    }
    for person in people { #expect(try person.album() == ["of both|nice", "of cara|good"]) }
  }

  @Test func `equal rows whose parents are different rows stay different rows`() throws {
    let people = try people(
      Self.schema, "INSERT INTO photo VALUES (1,'of anna'); INSERT INTO comment VALUES (1,1,'nice')",
      "INSERT INTO photo VALUES (1,'of ben'); INSERT INTO comment VALUES (1,1,'nice')")
    let (anna, ben) = (people[0], people[1])
    try anna.share(Self.scope, with: ben)
    try ben.receive()
    #expect(try ben.album() == ["of anna|nice", "of ben|nice"])
  }

  @Test(arguments: [
    "text TEXT PRIMARY KEY, photo INTEGER REFERENCES photo(id)", "text, photo INTEGER REFERENCES photo(id)",
  ])
  func `a row of a table without an integer key finds its parent even if it is sent alone`(columns: String) throws {
    let tables = "CREATE TABLE photo(id INTEGER PRIMARY KEY, title); CREATE TABLE comment(\(columns));"
    let anna = try Person("anna", in: folder, "\(tables) INSERT INTO photo VALUES (1, 'of anna')")
    let ben = try Person("ben", in: folder, "\(tables) INSERT INTO photo VALUES (1, 'of ben')")
    let scope = ShareScope(name: "all") {
      SharedTable("photo")
      SharedTable("comment")
    }
    try ben.share(scope, with: anna)
    try anna.receive()
    try anna.run("DELETE FROM photo WHERE title = 'of anna'")
    try anna.run("INSERT INTO comment(text, photo) SELECT 'nice', id FROM photo WHERE title = 'of ben'")
    try anna.share(scope, with: ben)
    try ben.receive()
    #expect(try ben.rows("SELECT title, text FROM comment JOIN photo ON id = photo") == ["of ben|nice"])
  }

  @Test func `self references and cycles of foreign keys follow mapped keys`() throws {
    let schema = """
      CREATE TABLE folder(id INTEGER PRIMARY KEY, parent INTEGER REFERENCES folder(id), cover INTEGER REFERENCES item(id), name TEXT);
      CREATE TABLE item(id INTEGER PRIMARY KEY, folder INTEGER REFERENCES folder(id), name TEXT);
      """
    func rows(_ name: String) -> String {
      """
      INSERT INTO folder VALUES (1,NULL,2,'top \(name)'),(2,1,1,'sub \(name)'),(3,3,NULL,'loop \(name)');
      INSERT INTO item VALUES (1,2,'one \(name)'),(2,1,'two \(name)');
      """
    }
    let scope = ShareScope(name: "tree") {
      SharedTable("folder")
      SharedTable("item")
    }
    let query = """
      SELECT f.name, p.name, c.name, (SELECT group_concat(name) FROM item WHERE folder = f.id) FROM folder AS f
      LEFT JOIN folder AS p ON p.id = f.parent LEFT JOIN item AS c ON c.id = f.cover ORDER BY 1
      """
    let people = try people(schema, rows("a"), rows("b"))
    try people[0].share(scope, with: people[1])
    try people[1].receive()
    try people[1].share(scope, with: people[0])
    try people[0].receive()
    let expected = [
      "loop a|loop a|NULL|NULL", "loop b|loop b|NULL|NULL", "sub a|top a|one a|one a", "sub b|top b|one b|one b",
      "top a|NULL|two a|two a", "top b|NULL|two b|two b",
    ]
    #expect(try people[0].rows(query) == expected)
    #expect(try people[1].rows(query) == expected)
  }

  @Test func `composite keys with a reference, and keys that are references, follow mapped keys`() throws {
    let schema = """
      CREATE TABLE photo(id INTEGER PRIMARY KEY, title TEXT);
      CREATE TABLE tag(id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE photo_tag(photo INTEGER REFERENCES photo(id), tag INTEGER REFERENCES tag(id), since TEXT, PRIMARY KEY (photo, tag)) WITHOUT ROWID;
      CREATE TABLE vote(photo INTEGER, tag INTEGER, who TEXT, PRIMARY KEY (photo, tag, who), FOREIGN KEY (photo, tag) REFERENCES photo_tag(photo, tag));
      CREATE TABLE place(photo INTEGER PRIMARY KEY REFERENCES photo(id), name TEXT);
      """
    func rows(_ name: String) -> String {
      """
      INSERT INTO photo VALUES (1,'p1 \(name)'),(2,'p2 \(name)'); INSERT INTO tag VALUES (1,'t1 \(name)'),(2,'shared');
      INSERT INTO photo_tag VALUES (1,1,'\(name)'),(1,2,'\(name)'),(2,2,'\(name)');
      INSERT INTO vote VALUES (1,1,'x'),(2,2,'y'); INSERT INTO place VALUES (1,'at \(name)');
      """
    }
    let scope = ShareScope(name: "all") {
      for table in ["photo", "tag", "photo_tag", "vote", "place"] { SharedTable(TableName(table)) }
    }
    let query = """
      SELECT p.title, t.name, pt.since, (SELECT who FROM vote WHERE photo = p.id AND tag = t.id), (SELECT name FROM place WHERE photo = p.id)
      FROM photo_tag AS pt JOIN photo AS p ON p.id = pt.photo JOIN tag AS t ON t.id = pt.tag ORDER BY 1, 2
      """
    let people = try people(schema, rows("a"), rows("b"))
    try people[0].share(scope, with: people[1])
    try people[1].receive()
    try people[1].share(scope, with: people[0])
    try people[0].receive()
    let expected = [
      "p1 a|shared|a|NULL|at a", "p1 a|t1 a|a|x|at a", "p1 b|shared|b|NULL|at b", "p1 b|t1 b|b|x|at b",
      "p2 a|shared|a|y|NULL", "p2 b|shared|b|y|NULL",
    ]
    #expect(try people[0].rows(query) == expected)
    #expect(try people[1].rows(query) == expected)
    #expect(try people[0].rows("SELECT count(*) FROM tag") == ["3"])
  }

  @Test func `references that only the scope declares follow mapped keys`() throws {
    let schema =
      "CREATE TABLE photo(id INTEGER PRIMARY KEY, title); CREATE TABLE comment(id INTEGER PRIMARY KEY, photo INTEGER, text);"
    let people = try people(schema, rows(of: "anna"), rows(of: "ben"))
    let scope = ShareScope(
      name: "album", tables: [SharedTable("photo"), SharedTable("comment")],
      references: [SharedReference("comment", ["photo"], to: "photo")])
    try people[0].share(scope, with: people[1])
    try people[1].receive()
    #expect(try people[1].album() == Self.both)
  }

  @Test func `a second snapshot updates the rows that the first one has brought`() throws {
    let people = try people(Self.schema, rows(of: "anna"), rows(of: "ben"))
    let (anna, ben) = (people[0], people[1])
    try anna.share(Self.scope, with: ben)
    try ben.receive()
    try anna.run("UPDATE photo SET title = 'sand' WHERE id = 1; DELETE FROM comment WHERE id = 3")
    try anna.share(Self.scope, with: ben, resyncing: true)
    try ben.receive()
    #expect(
      try ben.album() == [
        "beach of ben|nice ben", "sand|nice anna", "sea of anna|blue anna", "sea of ben|blue ben,deep ben",
      ])
  }

  @Test func `the key mapping of a deleted row does not apply to a new row with its key`() throws {
    let people = try people(Self.schema, rows(of: "anna"), rows(of: "ben"))
    let (anna, ben) = (people[0], people[1])
    try anna.share(Self.scope, with: ben)
    try ben.receive()
    try ben.share(Self.scope, with: anna)
    try anna.receive()
    try ben.run("DELETE FROM comment WHERE photo = 4; DELETE FROM photo WHERE id = 4")
    try ben.share(Self.scope, with: anna)
    try anna.receive()
    #expect(try anna.rows("SELECT id, title FROM photo WHERE id < 3") == ["1|beach of anna"])
    try ben.run("INSERT INTO photo VALUES (4,'new of ben')")
    try ben.share(Self.scope, with: anna)
    try anna.receive()
    #expect(
      try anna.rows("SELECT title FROM photo ORDER BY 1") == [
        "beach of anna", "beach of ben", "new of ben", "sea of ben",
      ])
    #expect(
      try ben.rows("SELECT title FROM photo ORDER BY 1") == [
        "beach of anna", "beach of ben", "new of ben", "sea of ben",
      ])
  }

  @Test func `the key of a deleted row is given to no other row before all recipients know of the deletion`() throws {
    // Anna deletes her photo. Ben, whose own photo has the same key, knows of the deletion, and Cara does not.
    let people = try people(Self.schema, "", "INSERT INTO photo VALUES (1,'of ben')", "")
    let (anna, ben, cara) = (people[0], people[1], people[2])
    try anna.run("INSERT INTO photo VALUES (1,'of anna')")
    for other in [ben, cara] {
      try anna.share(Self.scope, with: other)
      try other.receive()
    }
    try anna.run("DELETE FROM photo")
    try anna.share(Self.scope, with: ben)
    try ben.receive()
    try ben.share(Self.scope, with: anna)
    try anna.receive()
    try cara.run("INSERT INTO comment VALUES (1,1,'nice')")
    try cara.share(Self.scope, with: anna)
    let report = try DatabaseManager(anna.path, home: anna.home).processInboundChanges([folder.file("for anna")])
    #expect(report.diffs.map(\.conflicts) == [1], "what it hangs on is gone")
    let connection = try SQLiteConnection(opening: anna.path, as: .readOnly)
    #expect(try connection.integer("SELECT count(*) FROM photo WHERE title = 'of ben'") == 1)
    #expect(
      try connection.integer("SELECT count(*) FROM comment JOIN photo ON photo.id = photo") == 0,
      "it was about another photo")
  }

  @Test func `a relay does not bring back a deleted row, and no row that arrives with it gets its key`() throws {
    let people = try people(Self.schema, "", "INSERT INTO photo VALUES (1,'of ben')", "")
    let (anna, ben, cara) = (people[0], people[1], people[2])
    try anna.run("INSERT INTO photo VALUES (1,'of anna')")
    for other in [ben, cara] {
      try anna.share(Self.scope, with: other)
      try other.receive()
    }
    try anna.run("DELETE FROM photo")
    try anna.share(Self.scope, with: ben)
    try ben.receive()
    // Cara does not know of the deletion yet, and shares the photo with Ben, who then shares both photos with Anna.
    try cara.share(Self.scope, with: ben)
    try ben.receive()
    try anna.share(Self.scope, with: cara)
    try ben.share(Self.scope, with: anna)
    try anna.receive()
    #expect(try anna.album() == ["of ben|"])
    #expect(try anna.rows("SELECT title FROM photo WHERE id = 1") == [])
    try cara.run("INSERT INTO comment VALUES (1,1,'nice')")
    try cara.share(Self.scope, with: anna)
    let report = try DatabaseManager(anna.path, home: anna.home).processInboundChanges([folder.file("for anna")])
    #expect(report.diffs.map(\.conflicts) == [1], "what it hangs on is gone")
    #expect(try anna.album() == ["of ben|"])
  }

  @Test func `if the greatest key is in use, a row with a colliding key gets a smaller one`() throws {
    let people = try people(
      Self.schema, "INSERT INTO photo VALUES (\(Int64.max),'of anna')",
      "INSERT INTO photo VALUES (\(Int64.max),'of ben')")
    try people[0].share(Self.scope, with: people[1])
    let report = try DatabaseManager(people[1].path, home: people[1].home).processInboundChanges(
      [folder.file("for ben")])
    #expect(report.diffs.map(\.conflicts) == [0])
    #expect(try people[1].rows("SELECT title FROM photo ORDER BY id") == ["of anna", "of ben"])
  }
}
