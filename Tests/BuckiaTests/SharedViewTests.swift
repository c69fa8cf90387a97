import Buckia
import Foundation
import SQLiteConnections
import TestSupport
import Testing

/// The view `buckia_shared` shows with whom a row is shared, and if they have it.
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

  @Test func `the view joins a row to its streams and their acknowledgements`() throws {
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

  @Test func `the view shows which of several recipients have acknowledged a share`() throws {
    let cara = try SharingPerson("cara", in: folder, Self.schema)
    for person in [anna, ben, cara] { try person.home.makeIdentity(named: person.name) }
    func share(_ person: SharingPerson, with names: [String], into output: String) throws {
      var options = ShareOptions()
      options.isUnencrypted = true
      try DatabaseManager(person.path, home: person.home).share(
        Self.album, to: names.map { ShareRecipient($0) }, output: .folder(folder.file(output)), options: options,
        signedBy: person.home.identity())
    }
    /// Applies the files for both, and shares back.
    func answer(_ person: SharingPerson) throws {
      let report = try DatabaseManager(person.path, home: person.home).processInboundChanges(
        [folder.file("for both")], options: ApplyOptions(keepsFiles: true))
      #expect(report.rejected.isEmpty)
      try share(person, with: ["anna"], into: "for anna")
      try anna.receive()
    }
    func acknowledged() throws -> [String] {
      try anna.rows(
        """
        SELECT DISTINCT people, sequence, acknowledged_by, acknowledged FROM buckia_shared
        WHERE direction = 'sent' AND table_name = 'photo' AND key = 'a' ORDER BY acknowledged_by
        """)
    }
    let people = #"["ben","cara"]"#
    let (bens, caras) = (try ben.home.identity().card.key, try cara.home.identity().card.key)
    try share(anna, with: ["ben", "cara"], into: "for both")
    #expect(try acknowledged() == ["\(people)|1|NULL|NULL"])
    try answer(ben)
    #expect(try acknowledged() == ["\(people)|1|\(bens)|1"])
    try anna.run("UPDATE photo SET title = 'x' WHERE id = 'a'")
    try share(anna, with: ["ben", "cara"], into: "for both")
    #expect(try acknowledged() == ["\(people)|2|\(bens)|0"])
    try answer(cara)
    #expect(try acknowledged() == ["\(people)|2|\(bens)|0", "\(people)|2|\(caras)|1"].sorted())
    try ben.run("UPDATE photo SET title = 'y' WHERE id = 'b'")
    try answer(ben)
    #expect(try acknowledged() == ["\(people)|2|\(bens)|1", "\(people)|2|\(caras)|1"].sorted())
  }

  @Test func `the view has a column for each column of a key`() throws {
    try anna.share(Self.album, with: ben)
    try ben.receive()
    for person in [anna, ben] {
      #expect(
        try person.rows("SELECT key, key2, key3, key4 FROM buckia_shared WHERE table_name = 'mark'")
          == ["1|here|NULL|NULL"])
    }
    // Integer keys are stored in blocks.
    try anna.run("INSERT INTO album SELECT column1, 'x' FROM (VALUES (-129),(-1),(0),(127),(128),(1000000))")
    try anna.share(ShareScope(name: "all albums") { SharedTable("album") }, with: ben)
    try ben.receive()
    #expect(
      try ben.rows("SELECT DISTINCT key FROM buckia_shared WHERE table_name = 'album' ORDER BY 1")
        == ["-129", "-1", "0", "1", "2", "127", "128", "1000000"])
  }

  @Test func `the example query of the specification runs`() throws {
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
    try DatabaseManager(anna.path, home: anna.home).initialize()
    #expect(try anna.rows("SELECT * FROM buckia_shared") == [])
    try anna.share(Self.album, with: ben)
    try anna.share(Self.album, with: ben) { $0.resyncs = true }
    try anna.run("ALTER TABLE photo RENAME TO picture; ALTER TABLE album RENAME COLUMN name TO title")
  }

  @Test func `the view works with hundreds of streams`() throws {
    try DatabaseManager(anna.path, home: anna.home).initialize()
    try anna.share(Self.album, with: ben)
    // A compound SELECT may have 500 terms.
    try anna.run(
      (10..<520).map {
        "INSERT INTO buckia_baseline VALUES (\($0), 1, 't\($0)', ''); CREATE TABLE buckia_baseline_\($0)(id INTEGER PRIMARY KEY); INSERT INTO buckia_baseline_\($0) VALUES (\($0));"
      }.joined())
    try anna.share(Self.album, with: SharingPerson("cara", in: folder, Self.schema))
    #expect(try anna.rows("SELECT table_name FROM buckia_shared WHERE key = 519") == ["t519"])
    #expect(try anna.rows("SELECT count(*) FROM buckia_shared WHERE key > 9 AND table_name GLOB 't[0-9]*'") == ["510"])
  }

  @Test func `a diff contains neither the view nor its tables`() throws {
    try anna.share(Self.album, with: ben)
    let before = try TestDatabases.run(Self.schema, on: folder.file("before.sqlite"))
    let report = try DatabaseManager(anna.path, home: anna.home).createDatabaseDiff(
      since: before, output: .folder(folder.file("diffs")))
    #expect(report.skipped.filter { $0.name.contains("buckia") } == [])
    #expect(report.tables.map(\.name).sorted() == ["album", "mark", "photo"])
  }
}

/// What an examination reports about hidden references, and about the stored state of streams.
@Suite struct SharingExaminationTests {
  private static func hidden(_ sql: String) throws -> [[String]] {
    let folder = try TemporaryFolder()
    let path = try TestDatabases.run(sql, on: folder.file("a"))
    return try DatabaseManager(path).examine().warnings.filter { $0.code == .hiddenReference }.map(\.arguments)
  }

  @Test(arguments: ["photo_id", "photoID", "id_photo", "PHOTO_ID", "photos", "Photos"])
  func `an integer column that is named after a table is reported as a hidden reference`(_ name: String) throws {
    #expect(
      try Self.hidden(
        "CREATE TABLE photos(id INTEGER PRIMARY KEY); CREATE TABLE mark(id TEXT PRIMARY KEY, \(name) INT)")
        == [["mark", name, "photos"]])
  }

  @Test(arguments: [
    "CREATE TABLE mark(id TEXT PRIMARY KEY, photo_id INTEGER REFERENCES photos(id))",
    "CREATE TABLE mark(id TEXT PRIMARY KEY, photos INTEGER REFERENCES photos(id))",
    "CREATE TABLE mark(id TEXT PRIMARY KEY, photo_id TEXT)", "CREATE TABLE mark(id TEXT PRIMARY KEY, photos TEXT)",
    "CREATE TABLE mark(id TEXT PRIMARY KEY, photos REAL)", "CREATE TABLE mark(id TEXT PRIMARY KEY, photos)",
    "CREATE TABLE mark(id TEXT PRIMARY KEY, photo INTEGER)", "CREATE TABLE mark(id TEXT PRIMARY KEY, film_id INTEGER)",
  ])
  func `columns with a declared reference, another type or another name are not reported`(_ sql: String) throws {
    #expect(try Self.hidden("CREATE TABLE photos(id INTEGER PRIMARY KEY); \(sql)") == [])
  }

  @Test func `columns that refer to text keys, and key columns, are not reported`() throws {
    #expect(
      try Self.hidden("CREATE TABLE photo(id TEXT PRIMARY KEY); CREATE TABLE mark(id TEXT PRIMARY KEY, photo_id INT)")
        == [])
    #expect(try Self.hidden("CREATE TABLE photo(photo_id INTEGER PRIMARY KEY)") == [])
    #expect(
      try Self.hidden("CREATE TABLE photo(id TEXT PRIMARY KEY); CREATE TABLE mark(id TEXT PRIMARY KEY, photo INT)")
        == [])
    // A column with the name of its own table is no reference.
    #expect(try Self.hidden("CREATE TABLE price(id INTEGER PRIMARY KEY, price INTEGER)") == [])
  }

  @Test func `a reference that a scope declares is not reported`() throws {
    let folder = try TemporaryFolder()
    let schema = "CREATE TABLE photo(id INTEGER PRIMARY KEY); CREATE TABLE mark(id TEXT PRIMARY KEY, photo_id INTEGER);"
    let anna = try SharingPerson("anna", in: folder, schema)
    let ben = try SharingPerson("ben", in: folder, schema)
    try anna.share(
      ShareScope(
        tables: [SharedTable("photo"), SharedTable("mark")],
        references: [SharedReference("mark", ["photo_id"], to: "photo", ["id"])]), with: ben)
    #expect(try DatabaseManager(anna.path).examine().warnings.filter { $0.code == .hiddenReference } == [])
  }

  @Test func `a shared table whose keys can be reused is reported`() throws {
    let folder = try TemporaryFolder()
    let schema = """
      CREATE TABLE photo(id INTEGER PRIMARY KEY); CREATE TABLE mark(id INTEGER PRIMARY KEY AUTOINCREMENT);
      CREATE TABLE own(id INTEGER PRIMARY KEY); CREATE TABLE text(id TEXT PRIMARY KEY);
      """
    let (anna, ben) = (try SharingPerson("anna", in: folder, schema), try SharingPerson("ben", in: folder, schema))
    func named() throws -> [Warning] {
      try DatabaseManager(anna.path).examine().warnings.filter { $0.code == .reusedKeys }
    }
    #expect(try named() == [])
    try anna.run("INSERT INTO photo VALUES (1); INSERT INTO mark VALUES (1); INSERT INTO text VALUES ('a')")
    try anna.share(
      ShareScope(tables: [SharedTable("photo"), SharedTable("mark"), SharedTable("text")]), with: ben)
    #expect(try named() == [Warning(.reusedKeys, "photo")])
  }

  @Test func `stream state that another program has altered is reported`() throws {
    let folder = try TemporaryFolder()
    let schema = "CREATE TABLE photo(id INTEGER PRIMARY KEY, title TEXT) WITHOUT ROWID;"
    let anna = try SharingPerson("anna", in: folder, schema + "INSERT INTO photo VALUES (1,'a'),(2,'b')")
    let ben = try SharingPerson("ben", in: folder, schema)
    try anna.share(ShareScope(name: "all") { SharedTable("photo") }, with: ben)
    try ben.receive()
    for (person, damage) in [
      (anna, "UPDATE buckia_baseline_1 SET title = 'x' WHERE id = 1"),
      (ben, "DELETE FROM buckia_provenance_1 WHERE k0 = 2"),
    ] {
      #expect(try DatabaseManager(person.path).examine().warnings.filter { $0.code == .stateAltered } == [])
      try person.run(damage)
      #expect(
        try DatabaseManager(person.path).examine().warnings.filter { $0.code == .stateAltered }.map { $0.arguments[0] }
          == ["photo"])
    }
  }
}
