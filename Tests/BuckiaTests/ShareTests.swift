import Buckia
import BuckiaLedger
import TestSupport
import Testing

/// Sharing a part of a database: the first share, later shares, and events in between.
@Suite struct ShareTests {
  private let folder: TemporaryFolder
  private let home: BuckiaHome
  private let path: String

  private static let schema = """
    CREATE TABLE album(id INTEGER PRIMARY KEY, name TEXT, note TEXT);
    CREATE TABLE photo(id INTEGER PRIMARY KEY, album INTEGER REFERENCES album(id), title TEXT, owner INTEGER);
    CREATE TABLE log(text);
    INSERT INTO album VALUES (1,'summer','mine'),(2,'winter','private');
    INSERT INTO photo VALUES (1,1,'beach',7),(2,1,'sea',7),(3,2,'snow',7);
    INSERT INTO log VALUES ('a'),('a'),('b');
    """

  private static let scope = ShareScope(name: "summer") {
    SharedTable("album").where("id = :album", ["album": 1]).omitting("note")
    SharedTable("photo").children(of: "album").rewriting("owner", to: .null)
  }

  init() throws {
    folder = try TemporaryFolder()
    home = BuckiaHome(path: folder.file("home"))
    path = try TestDatabases.run(Self.schema, on: folder.file("anna.sqlite"))
    try TestDatabases.run("VACUUM", on: folder.file("ben.sqlite"))
  }

  private var outbox: String { folder.file("outbox") }

  @discardableResult
  private func share(
    _ scope: ShareScope = scope, to names: [String] = ["ben"], _ change: (inout ShareOptions) -> Void = { _ in }
  ) throws -> ShareReport {
    var options = ShareOptions()
    options.isUnencrypted = true
    change(&options)
    return try DatabaseManager(path, home: home).share(
      scope, to: names.map { ShareRecipient($0) }, output: .folder(outbox), options: options)
  }

  private func run(_ sql: String) throws { try TestDatabases.run(sql, on: path) }

  /// Applies all files of the outbox to a database, and returns its rows.
  private func received(in name: String = "ben.sqlite", _ query: String) throws -> [String] {
    var options = ApplyOptions()
    options.keepsFiles = true
    let report = try DatabaseManager(folder.file(name), home: BuckiaHome(path: folder.file("home of \(name)")))
      .processInboundChanges([outbox], options: options)
    #expect(report.rejected.isEmpty)
    return try rows(query, of: name)
  }

  private func rows(_ query: String, of name: String) throws -> [String] {
    try TestDatabases.texts(query, on: folder.file(name))
  }

  private static let photos = "SELECT * FROM photo ORDER BY id"

  @Test func `a column that is added later is shared with a warning if the scope omits columns by name`() throws {
    #expect(try share { $0.isDryRun = true }.warnings == [Warning(.laterColumns, "album")])
    #expect(try share().warnings.isEmpty)
    #expect(try DatabaseManager(path).examine().warnings.contains(Warning(.laterColumns, "album")))
    try run("ALTER TABLE album ADD COLUMN secret TEXT DEFAULT 'x'; ALTER TABLE photo ADD COLUMN place TEXT DEFAULT 'y'")
    let preview = try share { $0.isDryRun = true }
    #expect(preview.warnings == [Warning(.laterColumns, "album"), Warning(.newColumnShared, "album", "secret")])
    #expect(try share().warnings == [Warning(.newColumnShared, "album", "secret")])
    #expect(try received("SELECT secret FROM album") == ["x"])
  }

  @Test func `if the scope names the shared columns, a column that is added later is not shared`() throws {
    let scope = ShareScope {
      SharedTable("album").columns("NAME")
      SharedTable("photo").children(of: "album").columns("album", "title").rewriting("owner", to: .null)
    }
    #expect(try share(scope) { $0.isDryRun = true }.warnings.isEmpty)
    let first = try share(scope)
    #expect(first.tables.map(\.columns) == [["id", "name"], ["id", "album", "title", "owner"]])
    #expect(try received("SELECT * FROM album") == ["1|summer", "2|winter"])
    try run("ALTER TABLE album ADD COLUMN secret TEXT DEFAULT 'x'")
    #expect(try share(scope).id == nil)
    try run("UPDATE album SET name = 'autumn' WHERE id = 2")
    #expect(try share(scope).warnings.isEmpty)
    #expect(try received("SELECT * FROM album") == ["1|summer", "2|autumn"])
    #expect(try DatabaseManager(path).examine().warnings.filter { $0.code == .laterColumns }.isEmpty)
  }

  @Test(arguments: [
    (SharedTable("album").columns("nama"), "the scope shares column \"album.nama\", which does not exist"),
    (SharedTable("album").columns("name").omitting("note"), "both columns of table \"album\" that are shared and"),
  ])
  func `a scope with unknown or contradictory columns is refused`(table: SharedTable, message: String) throws {
    let error = #expect(throws: BuckiaError.self) { try share(ShareScope(tables: [table])) }
    #expect(error?.code == .invalidScope && error?.description.contains(message) == true)
  }

  @Test func `the first share is a snapshot, and the next one has the changes since`() throws {
    let first = try share()
    #expect(first.isSnapshot)
    #expect(first.sequence == 1)
    #expect(first.tables.map(\.name) == ["album", "photo"])
    #expect(first.tables.map(\.columns) == [["id", "name"], ["id", "album", "title", "owner"]])
    #expect(try received(Self.photos) == ["1|1|beach|NULL", "2|1|sea|NULL"])
    #expect(try rows("SELECT * FROM album", of: "ben.sqlite") == ["1|summer"])

    #expect(try share().id == nil)
    try run("UPDATE photo SET title = 'the sea' WHERE id = 2; INSERT INTO photo VALUES (4,1,'sun',9),(5,2,'ice',9)")
    try run("DELETE FROM photo WHERE id = 1; UPDATE album SET note = 'secret'")
    let second = try share()
    #expect(!second.isSnapshot)
    #expect(second.sequence == 2)
    #expect(second.tables.map(\.name) == ["photo"])
    #expect(second.tables.map { [$0.inserted, $0.updated, $0.deleted, $0.withdrawn] } == [[1, 1, 1, 0]])
    #expect(try received(Self.photos) == ["2|1|the sea|NULL", "4|1|sun|NULL"])
    #expect(try share().id == nil)
  }

  @Test func `changes that are not shared make no file`() throws {
    try share()
    try run("UPDATE album SET note = 'x'; UPDATE photo SET owner = 3; INSERT INTO log VALUES ('c')")
    #expect(try share().id == nil)
  }

  @Test func `each group of recipients has its own stream`() throws {
    let ben = try share()
    let cara = try share(to: ["cara"])
    #expect(cara.isSnapshot)
    #expect(ben.id != cara.id)
    try run("UPDATE photo SET title = 'x' WHERE id = 1")
    #expect(try share(to: ["cara"]).sequence == 2)
    #expect(try share().sequence == 2)
    #expect(try share(to: ["cara", "ben"]).isSnapshot)
    #expect(try share(to: ["ben", "cara"]).id == nil)
  }

  @Test func `a dry run reports the rows that would be sent, and changes nothing`() throws {
    let report = try share { $0.isDryRun = true }
    #expect(report.isDryRun)
    #expect(report.id == nil)
    #expect(report.bytes > 0)
    #expect(report.tables.map { $0.changes.map(\.key) } == [[[1]], [[1], [2]]])
    #expect(try share().sequence == 1)
    try run("UPDATE photo SET title = 'x' WHERE id = 1; DELETE FROM photo WHERE id = 2")
    for _ in 0..<2 {
      let next = try share { $0.isDryRun = true }
      #expect(next.tables.flatMap { $0.changes.map { "\($0.operation) \($0.key)" } } == ["delete [2]", "update [1]"])
    }
    #expect(try share().sequence == 2)
  }

  @Test(arguments: [false, true])
  func `a dry run estimates the size of the file to within a fifth`(isUnencrypted: Bool) throws {
    let signer = try home.makeIdentity(named: "Anna")
    let recipient = try ShareRecipient(AgeIdentity().recipient())
    func shared(isDryRun: Bool) throws -> ShareReport {
      var options = ShareOptions()
      options.isUnencrypted = isUnencrypted
      options.isDryRun = isDryRun
      return try DatabaseManager(path, home: home).share(
        Self.scope, to: [recipient], output: .folder(outbox), options: options, signedBy: signer)
    }
    try run(
      """
      WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
      INSERT INTO photo SELECT i, 1, hex(randomblob(20)), 7 FROM n
      """)
    for edit in ["", "UPDATE photo SET title = hex(randomblob(30)) WHERE id % 10 = 0; DELETE FROM photo WHERE id = 2"] {
      try run(edit)
      let preview = try shared(isDryRun: true).bytes
      let report = try shared(isDryRun: false)
      let size = try fileBytes(#require(report.path)).count
      #expect(report.bytes == size)
      #expect(abs(preview - size) * 5 <= size, "\(preview) bytes were said, and there are \(size)")
    }
  }

  @Test func `a row with a dangling reference is left out and named, and sent once its parent exists`() throws {
    try run("INSERT INTO photo VALUES (9,77,'of no album',7)")
    let scope = ShareScope(name: "all") { SharedTable("photo").omitting("owner") }
    let first = try share(scope)
    #expect(
      first.leftOut.map { "\($0.table) \($0.columns) \($0.parent) \($0.reason) \($0.count)" } == [
        "photo [\"album\"] album noParent 1"
      ])
    #expect(first.leftOut.first?.rows.map(\.key) == [[9]])
    #expect(first.warnings.map(\.code) == [.rowsWithoutParent, .parentColumnsLeftOut])
    #expect(try received(Self.photos) == ["1|1|beach", "2|1|sea", "3|2|snow"])
    var status = try DatabaseManager(path, home: home).status()
    #expect(status.leftOut.map { "\($0.people) \($0.table) \($0.rows)" } == ["ben photo 1"])

    // Nothing has changed, and the row is still named.
    let second = try share(scope)
    #expect(second.id == nil)
    #expect(second.leftOut == first.leftOut)
    try run("INSERT INTO album VALUES (77,'found',NULL)")
    #expect(try share(scope).leftOut.isEmpty)
    #expect(try received(Self.photos) == ["1|1|beach", "2|1|sea", "3|2|snow", "9|77|of no album"])
    status = try DatabaseManager(path, home: home).status()
    #expect(status.leftOut.isEmpty)
  }

  @Test(arguments: [
    "photo(id INTEGER PRIMARY KEY, album INTEGER REFERENCES album(id), title TEXT)",
    "photo(id TEXT PRIMARY KEY, album INTEGER REFERENCES album(id), title TEXT)",
    "photo(id TEXT, album INTEGER REFERENCES album(id), title TEXT, PRIMARY KEY(id, title)) WITHOUT ROWID",
    "photo(id, album INTEGER REFERENCES album(id), title TEXT)",
  ])
  func `a sent row whose reference dangles since then stays at the recipients as sent last`(photo: String) throws {
    try run("DROP TABLE photo; CREATE TABLE \(photo); INSERT INTO photo VALUES (1,1,'beach'),(2,1,'sea'),(3,2,'snow')")
    let scopes = [
      ShareScope(name: "whole") { SharedTable("photo") },
      ShareScope(name: "some") { SharedTable("photo").where("title <> 'x'") },
      ShareScope(
        name: "children",
        tables: [SharedTable("album").where("id < 9"), SharedTable("photo").children(of: "album").where("1")]),
    ]
    for scope in scopes { try share(scope, to: [scope.name ?? ""]) }
    // One photo refers to a missing album, and another one to a deleted album.
    try run(
      "UPDATE photo SET album = 77 WHERE id = 1; INSERT INTO photo VALUES (4,2,'new'); DELETE FROM album WHERE id = 1")
    for scope in scopes {
      let report = try share(scope, to: [scope.name ?? ""])
      #expect(report.leftOut.map(\.count).reduce(0, +) == 2)
      let changed = report.tables.first { $0.name == "photo" }
      #expect([changed?.inserted, changed?.updated, changed?.withdrawn] == [1, 0, 0])
      // Without a key, only a row with the same content is the same row.
      #expect(changed?.deleted == (photo.hasPrefix("photo(id,") ? 1 : 0))
      #expect(try share(scope, to: [scope.name ?? ""]).id == nil)
    }
    try run("INSERT INTO album VALUES (1,'summer',NULL); UPDATE photo SET album = 2 WHERE id = 1")
    for scope in scopes {
      let report = try share(scope, to: [scope.name ?? ""])
      #expect(report.leftOut.isEmpty)
      let changed = report.tables.first { $0.name == "photo" }
      #expect([changed?.inserted, changed?.updated] == (photo.hasPrefix("photo(id,") ? [1, 0] : [0, 1]))
      #expect(changed?.deleted == 0)
      #expect(try share(scope, to: [scope.name ?? ""]).id == nil)
    }
  }

  @Test func `a row for which the condition fails is left out and named, and sent once it is corrected`() throws {
    try run("INSERT INTO album VALUES (3, '{\"open\": 1}', NULL), (4, 'no JSON', NULL); DELETE FROM album WHERE id < 3")
    let scope = ShareScope(name: "open") {
      SharedTable("album").where("json_extract(name, '$.open') = :open", ["open": 1])
    }
    for name in ["{\"open\": 1}", "no JSON"] {
      try run("INSERT INTO album(name) VALUES ('\(name)')")
      let report = try share(scope)
      #expect(report.tables.map(\.inserted) == (name == "no JSON" ? [] : [2]))
      #expect(report.leftOut.map(\.reason) == [.conditionFails])
      #expect(report.leftOut.map(\.count) == [name == "no JSON" ? 2 : 1])
      let words = try DatabaseManager(path, home: home).status(includesWords: true).words
      #expect(words.map(\.problem) == [nil])
    }
    try run("UPDATE album SET name = '{\"open\": 1}'")
    #expect(try share(scope).leftOut.isEmpty)
    #expect(try received("SELECT id FROM album") == ["3", "4", "5", "6"])
  }

  @Test func `columns beyond the limit of a diff are sent with the next shares`() throws {
    try share()
    for column in 0..<150 { try run("ALTER TABLE photo ADD COLUMN c\(column) DEFAULT \(column)") }
    try run("UPDATE photo SET c149 = 'new'")
    for _ in 0..<3 { try share() }
    #expect(try received("SELECT c0, c100, c149 FROM photo WHERE id = 1") == ["0|100|new"])
    #expect(try share().id == nil)
  }

  @Test func `a dry run that leaves rows out changes nothing`() throws {
    try share()
    try run("INSERT INTO photo VALUES (9,77,'of no album',7)")
    let before = try fileBytes(path)
    let report = try share(ShareScope(name: "other") { SharedTable("photo") }) { $0.isDryRun = true }
    #expect(report.leftOut.map(\.count) == [1])
    #expect(try fileBytes(path) == before)
  }

  @Test func `a file that could not be written is delivered by the next call`() throws {
    let blocked = folder.file("blocked")
    try TestDatabases.run("CREATE TABLE t(x)", on: blocked)
    var options = ShareOptions()
    options.isUnencrypted = true
    #expect(throws: (any Error).self) {
      try DatabaseManager(path, home: home).share(
        Self.scope, to: [ShareRecipient("ben")], output: .file(blocked, replacing: false), options: options)
    }
    try run("UPDATE photo SET title = 'later' WHERE id = 1")
    let report = try share()
    #expect(report.delivered.count == 1)
    #expect(report.sequence == 2)
    #expect(try received(Self.photos) == ["1|1|later|NULL", "2|1|sea|NULL"])
  }

  @Test func `rows without a key are shared by their content`() throws {
    let scope = ShareScope { SharedTable("log") }
    try share(scope)
    #expect(try received("SELECT text FROM log ORDER BY 1") == ["a", "a", "b"])
    try run("DELETE FROM log WHERE rowid = 1; INSERT INTO log VALUES ('d')")
    try share(scope)
    #expect(try received("SELECT text FROM log ORDER BY 1") == ["a", "b", "d"])
  }

  @Test func `a new column of a shared table is sent, for existing rows, too`() throws {
    try share()
    try run("ALTER TABLE photo ADD COLUMN stars INTEGER DEFAULT 3; UPDATE photo SET stars = 5 WHERE id = 1")
    #expect(try share().tables.map(\.updated) == [1])
    #expect(try received("SELECT id, stars FROM photo ORDER BY id") == ["1|5", "2|3"])
    #expect(try share().id == nil)
  }

  @Test func `with keep, rows that have left the scope stay at the recipient`() throws {
    try share()
    #expect(try received(Self.photos).count == 2)
    try run("UPDATE photo SET album = 2 WHERE id = 2; UPDATE photo SET title = 'sand' WHERE id = 1")
    let report = try share { $0.onLeave = .keep }
    #expect(report.tables.map { [$0.updated, $0.deleted, $0.withdrawn, $0.kept] } == [[1, 0, 0, 1]])
    #expect(try received(Self.photos) == ["1|1|sand|NULL", "2|1|sea|NULL"])
  }

  @Test func `a kept row that returns to the scope is a conflict only if both sides have changed it`() throws {
    let scope = ShareScope(name: "beach") { SharedTable("photo").where("album = 1").omitting("owner") }
    let ben = folder.file("ben.sqlite")
    try run("INSERT INTO photo VALUES (4,1,'rock',7),(5,1,'pier',7)")
    try share(scope)
    #expect(try received(Self.photos).count == 4)
    try run("UPDATE photo SET album = 2")
    #expect(try share(scope) { $0.onLeave = .keep }.id == nil)
    try TestDatabases.run(
      "ALTER TABLE photo ADD COLUMN stars; UPDATE photo SET title = 'mine' WHERE id IN (4, 5)", on: ben)
    try run("UPDATE photo SET album = 1; UPDATE photo SET title = title || '!' WHERE id IN (2, 5)")
    #expect(try share(scope) { $0.onLeave = .keep }.tables.last?.inserted == 5)
    let expected = ["1|beach", "2|sea!", "3|snow", "4|mine", "5|mine"]
    #expect(try received("SELECT id, title FROM photo ORDER BY id") == expected)
    let conflicts = try DatabaseManager(ben).conflicts()
    #expect(conflicts.map { $0.key.map(\.value) } == [[.integer(5)]])
  }

  @Test func `a share with more people replaces the one with fewer`() throws {
    let scope = ShareScope(name: "all") {
      SharedTable("album")
      SharedTable("photo")
      SharedTable("log")
    }
    let ben = folder.file("ben.sqlite")
    try TestDatabases.run("VACUUM", on: folder.file("cleo.sqlite"))
    try share(scope)
    #expect(try received(Self.photos).count == 3)
    try TestDatabases.run("UPDATE photo SET title = 'mine' WHERE id = 2", on: ben)
    try run(
      "DELETE FROM photo WHERE id = 1; DELETE FROM log WHERE text = 'b'; UPDATE album SET name = 'autumn' WHERE id = 1")
    let wider = try share(scope, to: ["ben", "cleo"])
    #expect(wider.isSnapshot)
    #expect(wider.warnings == [Warning(.shareReplaced, "\"ben\"")])
    #expect(try received("SELECT id, title FROM photo ORDER BY id") == ["2|mine", "3|snow"])
    #expect(try rows("SELECT * FROM log", of: "ben.sqlite") == ["a", "a"])
    #expect(try rows("SELECT name FROM album ORDER BY id", of: "ben.sqlite") == ["autumn", "winter"])
    #expect(try DatabaseManager(ben).conflicts().isEmpty)
    try run("DELETE FROM photo WHERE id = 3")
    #expect(try share(scope, to: ["cleo", "ben"]).warnings.isEmpty)
    #expect(try received("SELECT id, title FROM photo ORDER BY id") == ["2|mine"])
    #expect(try received(in: "cleo.sqlite", "SELECT id, title FROM photo ORDER BY id") == ["2|sea"])
    #expect(try share(scope).warnings == [Warning(.shareBeside, "\"ben\", \"cleo\"")])
    #expect(try received("SELECT id, title FROM photo ORDER BY id") == ["2|mine"])
    #expect(try DatabaseManager(ben).conflicts().isEmpty)
  }

  @Test func `a share of a restored database begins another stream with a snapshot`() throws {
    try share()
    let backup = try folder.copy("anna.sqlite", to: "backup.sqlite")
    try run("UPDATE photo SET title = 'lost' WHERE id = 1")
    try share()
    #expect(try received(Self.photos) == ["1|1|lost|NULL", "2|1|sea|NULL"])
    try folder.write(fileBytes(backup), to: "anna.sqlite")
    let report = try share()
    #expect(report.isSnapshot)
    #expect(report.sequence == 1)
    #expect(report.warnings.contains { $0.code == .replicaRestored })
  }
}
