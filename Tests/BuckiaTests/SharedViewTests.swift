import Buckia
import Foundation
import SQLiteConnections
import TestSupport
import Testing

/// The view `buckia_shared` tells with whom a row is shared, and whether they have it.
@Suite struct SharedViewTests {
  private static let schema = """
    CREATE TABLE album(id INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE photo(id TEXT PRIMARY KEY, album INTEGER REFERENCES album(id), title TEXT);
    CREATE TABLE mark(album INTEGER, "the place" TEXT, x, PRIMARY KEY (album, "the place")) WITHOUT ROWID;
    """
  private static let rows = """
    INSERT INTO album VALUES (1,'summer'),(2,'winter');
    INSERT INTO photo VALUES ('a',1,'beach'),('b',1,'sea'),('c',2,'snow');
    INSERT INTO mark VALUES (1,'here',0);
    """
  private static let album = ShareScope(name: "album") {
    SharedTable("album").where("id = 1")
    SharedTable("photo").children(of: "album")
    SharedTable("mark")
  }

  private let folder: TemporaryFolder
  private let anna: SharingPerson
  private let ben: SharingPerson

  init() throws {
    folder = try TemporaryFolder()
    anna = try SharingPerson("anna", in: folder, Self.schema + Self.rows)
    ben = try SharingPerson("ben", in: folder, Self.schema)
  }

  private static let photos = """
    SELECT p.id, s.direction, s.people, s.sequence, s.acknowledged FROM photo AS p
    LEFT JOIN buckia_shared AS s ON s.table_name = 'photo' AND s.key = p.id ORDER BY p.id, s.direction
    """

  @Test func `a row is joined to the streams that have it, and to who has acknowledged them`() throws {
    try anna.share(Self.album, with: ben)
    #expect(
      try anna.rows(Self.photos) == [#"a|sent|["ben"]|1|NULL"#, #"b|sent|["ben"]|1|NULL"#, "c|NULL|NULL|NULL|NULL"])
    try ben.receive()
    #expect(try ben.rows(Self.photos) == ["a|received||1|NULL", "b|received||1|NULL"])
    try ben.share(Self.album, with: anna)
    try anna.receive()
    #expect(
      try anna.rows(Self.photos).prefix(2) == ["a|received||1|NULL", #"a|sent|["ben"]|1|1"#])
    try anna.run("UPDATE photo SET title = 'x' WHERE id = 'a'; UPDATE photo SET album = 2 WHERE id = 'b'")
    try anna.share(Self.album, with: ben)
    #expect(
      try anna.rows(Self.photos)
        == ["a|received||1|NULL", #"a|sent|["ben"]|2|0"#, "b|received||1|NULL", "c|NULL|NULL|NULL|NULL"])
    #expect(
      try anna.rows(
        "SELECT DISTINCT stream = lower(hex((SELECT stream FROM buckia_share))) FROM buckia_shared WHERE direction = 'sent'"
      )
        == ["1"])
    #expect(try anna.rows("SELECT count(DISTINCT diff) FROM buckia_shared") == ["2"])
  }

  @Test func `keys of several columns are columns of their own`() throws {
    try anna.share(Self.album, with: ben)
    try ben.receive()
    for person in [anna, ben] {
      #expect(
        try person.rows("SELECT key, key2, key3, key4 FROM buckia_shared WHERE table_name = 'mark'")
          == ["1|here|NULL|NULL"])
    }
  }

  @Test func `the example of the specification runs`() throws {
    try anna.share(Self.album, with: ben)
    let page = try String(contentsOfFile: Self.repository + "/Schemas/ledger.md", encoding: .utf8)
    let parts = page.components(separatedBy: "## buckia_shared\n")
    let sample = try #require(parts.last?.components(separatedBy: "```sql\n").dropFirst().first)
    let query = try #require(sample.components(separatedBy: "\n```").first)
    #expect(try anna.rows(query) == [#"a|beach|["ben"]|NULL"#, #"b|sea|["ben"]|NULL"#])
  }

  private static let repository = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent()
    .deletingLastPathComponent().path

  @Test func `a database in which nothing is shared has the view, too, and tables can be renamed`() throws {
    try DatabaseManager(anna.path).initialize(home: anna.home)
    #expect(try anna.rows("SELECT * FROM buckia_shared") == [])
    try anna.share(Self.album, with: ben)
    try anna.share(Self.album, with: ben) { $0.resyncs = true }
    try anna.run("ALTER TABLE photo RENAME TO picture; ALTER TABLE album RENAME COLUMN name TO title")
  }

  @Test func `hundreds of streams fit`() throws {
    try DatabaseManager(anna.path).initialize(home: anna.home)
    try anna.share(Self.album, with: ben)
    // A compound SELECT may have 500 terms.
    try anna.run(
      (10..<520).map {
        "INSERT INTO buckia_shadow VALUES (\($0), 1, 't\($0)', ''); CREATE TABLE buckia_shadow_\($0)(id INTEGER PRIMARY KEY); INSERT INTO buckia_shadow_\($0) VALUES (\($0));"
      }.joined())
    try anna.share(Self.album, with: SharingPerson("cara", in: folder, Self.schema))
    #expect(try anna.rows("SELECT table_name FROM buckia_shared WHERE key = 519") == ["t519"])
    #expect(try anna.rows("SELECT count(*) FROM buckia_shared WHERE key > 9 AND table_name GLOB 't[0-9]*'") == ["510"])
  }

  @Test func `neither the view nor its tables travel`() throws {
    try anna.share(Self.album, with: ben)
    let before = try TestDatabases.run(Self.schema, on: folder.file("before.sqlite"))
    let report = try DatabaseManager(anna.path).createDatabaseDiff(
      since: before, output: .folder(folder.file("diffs")), home: anna.home)
    #expect(report.skipped.filter { $0.name.contains("buckia") } == [])
    #expect(report.tables.map(\.name).sorted() == ["album", "mark", "photo"])
  }
}
