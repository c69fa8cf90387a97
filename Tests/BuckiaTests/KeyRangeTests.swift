import Buckia
import SQLiteConnections
import TestSupport
import Testing

/// Copies of a database that assign integer keys from separate ranges.
@Suite struct KeyRangeTests {
  private static let schema = """
    CREATE TABLE photo(id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT);
    CREATE TABLE comment(id INTEGER PRIMARY KEY AUTOINCREMENT, photo INTEGER REFERENCES photo(id), text TEXT);
    """
  private static let scope = ShareScope(name: "album") {
    SharedTable("photo")
    SharedTable("comment")
  }

  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func person(_ name: String, _ sql: String = schema) throws -> SharingPerson {
    let person = try SharingPerson(name, in: folder, sql)
    try DatabaseManager(person.path, home: person.home).useKeyRanges()
    return person
  }

  private func add(_ title: String, by person: SharingPerson) throws {
    try person.run(
      """
      INSERT INTO photo(title) VALUES ('\(title)');
      INSERT INTO comment(photo, text) VALUES (last_insert_rowid(), 'of \(title)')
      """)
  }

  private func keys(_ person: SharingPerson) throws -> [String] {
    try person.rows(
      "SELECT p.id, p.title, c.id, c.text FROM photo AS p JOIN comment AS c ON c.photo = p.id ORDER BY p.title")
  }

  @Test func `rows that people add independently keep their keys when they are shared`() throws {
    let people = try ["anna", "ben", "cara"].map { try person($0) }
    for round in 0..<4 {
      for person in people { try add("\(person.name) \(round)", by: person) }
      for sender in people {
        for receiver in people where receiver !== sender {
          try sender.share(Self.scope, with: receiver)
          try receiver.receive()
        }
      }
    }
    let found = try keys(people[0])
    #expect(found.count == 12)
    for person in people {
      #expect(try keys(person) == found)
      // No row had to get another key.
      #expect(try person.rows("SELECT count(*) FROM buckia_origin_key") == ["0"])
    }
  }

  @Test func `plain diffs of two copies have no colliding keys`() throws {
    let origin = try TestDatabases.run(
      Self.schema + "INSERT INTO photo(title) VALUES ('first')", on: folder.file("origin"))
    var copies: [(path: String, home: BuckiaHome)] = []
    for name in ["anna", "ben"] {
      let path = try folder.copy("origin", to: name)
      let home = BuckiaHome(path: folder.file("home of \(name)"))
      try DatabaseManager(path, home: home).useKeyRanges()
      try TestDatabases.run("INSERT INTO photo(title) VALUES ('one of \(name)'), ('two of \(name)')", on: path)
      copies.append((path, home))
    }
    let files = try copies.map { path, home in
      try #require(
        try DatabaseManager(path, home: home).createDatabaseDiff(since: origin, output: .folder(folder.file("out")))
          .path)
    }
    for (place, copy) in copies.enumerated() {
      let report = try DatabaseManager(copy.path, home: copy.home).processInboundChanges([files[1 - place]])
      #expect(report.diffs.map(\.conflicts) == [0])
      try TestDatabases.run("INSERT INTO photo(title) VALUES ('later')", on: copy.path)
    }
    let later = try copies.map { try TestDatabases.rows("SELECT id FROM photo WHERE title = 'later'", on: $0.path) }
    #expect(later[0] != later[1])
    let others = try copies.map {
      try TestDatabases.rows("SELECT id, title FROM photo WHERE title <> 'later'", on: $0.path)
    }
    #expect(others[0].count == 5 && Set(others[0]) == Set(others[1]))
  }

  @Test func `a copy assigns other keys`() throws {
    let anna = try person("anna")
    try add("one", by: anna)
    let copy = try folder.copy("anna.sqlite", to: "copy")
    // The copy is recognized as one when it is used for the first time.
    try DatabaseManager(copy, home: anna.home).initialize()
    for path in [anna.path, copy] { try TestDatabases.run("INSERT INTO photo(title) VALUES ('two')", on: path) }
    let keys = try [anna.path, copy].map { try TestDatabases.rows("SELECT max(id) FROM photo", on: $0) }
    #expect(keys[0] != keys[1])
  }

  @Test func `tables that cannot have a range are named, and rows keep their keys`() throws {
    let path = try TestDatabases.run(
      """
      CREATE TABLE plain(id INTEGER PRIMARY KEY, v); CREATE TABLE named(id TEXT PRIMARY KEY);
      CREATE TABLE counted(id INTEGER PRIMARY KEY AUTOINCREMENT, v); INSERT INTO counted(v) VALUES (1), (2);
      """, on: folder.file("db"))
    let database = DatabaseManager(path, home: BuckiaHome(path: folder.file("home")))
    #expect(try database.examine().warnings.filter { $0.code == .integerKeys }.count == 2)
    let report = try database.useKeyRanges()
    #expect(report.tables == ["counted"])
    #expect(report.warnings == [Warning(.noKeyRange, "plain")])
    let warnings = try database.examine().warnings
    #expect(warnings.contains(Warning(.noKeyRange, "plain")) && !warnings.contains { $0.code == .integerKeys })
    #expect(try TestDatabases.rows("SELECT id FROM counted", on: path) == ["1", "2"])
    try TestDatabases.run("INSERT INTO counted(v) VALUES (3)", on: path)
    #expect(try TestDatabases.rows("SELECT max(id) % 1048576 FROM counted", on: path) == ["1"])
    #expect(try database.useKeyRanges(false).tables == [])
    #expect(try database.examine().warnings.filter { $0.code == .integerKeys }.count == 2)
  }
}
