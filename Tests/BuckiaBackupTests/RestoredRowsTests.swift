import Buckia
import BuckiaBackup
import Foundation
import TestSupport
import Testing

/// Rows are brought back from a point into a database that is in use.
@Suite struct RestoredRowsTests {
  private let folder: TemporaryFolder
  private let store: BackupStore
  private let home: BuckiaHome

  init() throws {
    folder = try TemporaryFolder()
    store = BackupStore(folder: folder.file("store"))
    home = BuckiaHome(path: folder.file("home"))
  }

  private var path: String { folder.file("photos.sqlite") }
  private var database: DatabaseManager { DatabaseManager(path, home: home) }

  private func run(_ sql: String) throws { try TestDatabases.run("PRAGMA foreign_keys = ON; \(sql)", on: path) }

  private func photos() throws -> [String] { try TestDatabases.texts("SELECT title FROM photo ORDER BY id", on: path) }

  /// A backup of albums with photos.
  private func prepare() async throws {
    try run(
      """
      CREATE TABLE album(name TEXT PRIMARY KEY);
      CREATE TABLE photo(id INTEGER PRIMARY KEY, album REFERENCES album ON DELETE CASCADE, title TEXT, seen INTEGER);
      CREATE TABLE word(text);
      INSERT INTO album VALUES ('sea'), ('hills'), ('town');
      INSERT INTO photo VALUES (1,'sea','boat',0), (2,'sea','sand',0), (3,'hills','tree',0), (4,'town','house',0);
      INSERT INTO word VALUES ('one'), ('one'), ('two')
      """)
    try await store.backUp(database)
  }

  private func scope(_ table: TableName, _ condition: String? = nil) -> ShareScope {
    var shared = SharedTable(table)
    shared.condition = condition
    return ShareScope(tables: [shared])
  }

  @Test func `a deleted row comes back with the row that it refers to, and an undo takes both back`() async throws {
    try await prepare()
    try run("DELETE FROM album WHERE name = 'sea'")
    let (point, report, _) = try await store.restoreRows(of: scope("photo", "id = 2"), into: database)
    #expect(point.sequence == 1)
    #expect(try photos() == ["sand", "tree", "house"])
    #expect(try TestDatabases.texts("SELECT name FROM album ORDER BY 1", on: path) == ["hills", "sea", "town"])
    let outcome = try #require(report?.applied.first)
    #expect(outcome.path.hasSuffix(".bdiff") && !outcome.path.contains("/"))
    let id = try #require(outcome.id)
    _ = try database.undo([.diff("\(id)")])
    #expect(try photos() == ["tree", "house"])
    #expect(try TestDatabases.texts("SELECT name FROM album ORDER BY 1", on: path) == ["hills", "town"])
  }

  @Test func `a row that has left the condition since comes back to it, and other rows stay`() async throws {
    try await prepare()
    try run(
      """
      UPDATE photo SET album = 'town', title = 'wave' WHERE id = 1; UPDATE photo SET title = 'rock' WHERE id = 3;
      INSERT INTO photo VALUES (5, 'sea', 'gull', 0)
      """)
    try await store.restoreRows(of: scope("photo", "album = 'sea'"), into: database)
    #expect(try photos() == ["boat", "sand", "rock", "house", "gull"])
    // A row that was moved into the condition had other values, which it gets back.
    try run("UPDATE photo SET album = 'sea' WHERE id = 4")
    try await store.restoreRows(of: scope("photo", "album = 'sea'"), into: database)
    #expect(try TestDatabases.texts("SELECT album FROM photo WHERE id = 4", on: path) == ["town"])
  }

  @Test func `newer rows are deleted only on request`() async throws {
    try await prepare()
    try run("INSERT INTO photo VALUES (5, 'sea', 'gull', 0), (6, 'town', 'street', 0)")
    #expect(try await store.restoreRows(of: scope("photo"), into: database).report == nil)
    try await store.restoreRows(of: scope("photo", "album = 'sea'"), into: database, deletesNewer: true)
    #expect(try photos() == ["boat", "sand", "tree", "house", "street"])
    try await store.restoreRows(of: scope("photo"), into: database, deletesNewer: true)
    #expect(try photos() == ["boat", "sand", "tree", "house"])
  }

  @Test func `columns that a scope leaves out keep their values`() async throws {
    try await prepare()
    try run("UPDATE photo SET title = 'wave', seen = 1 WHERE id = 1")
    var shared = SharedTable("photo")
    shared.omittedColumns = ["seen"]
    try await store.restoreRows(of: ShareScope(tables: [shared]), into: database)
    #expect(try TestDatabases.texts("SELECT title || seen FROM photo WHERE id = 1", on: path) == ["boat1"])
  }

  @Test func `equal rows without a key come back as often as they were there`() async throws {
    try await prepare()
    try run("DELETE FROM word WHERE text = 'one'; INSERT INTO word VALUES ('three')")
    try await store.restoreRows(of: scope("word"), into: database)
    #expect(
      try TestDatabases.texts("SELECT text FROM word ORDER BY 1", on: path) == ["one", "one", "three", "two"])
  }

  @Test(arguments: [false, true])
  func `of equal rows, and of rows with NULL in the key, as many come back as the point has`(
    deletesNewer: Bool
  ) async throws {
    try run("CREATE TABLE tag(id TEXT PRIMARY KEY, n); INSERT INTO tag VALUES (NULL, 1), ('x', 2)")
    try await prepare()
    try run(
      """
      INSERT INTO word VALUES ('one'), ('one'), ('new'); DELETE FROM word WHERE text = 'two';
      DELETE FROM tag; INSERT INTO tag VALUES (NULL, 5), ('y', 6)
      """)
    for table in ["word", "tag"] as [TableName] {
      try await store.restoreRows(of: scope(table), into: database, deletesNewer: deletesNewer)
    }
    let words = deletesNewer ? ["one", "one", "two"] : ["new", "one", "one", "one", "one", "two"]
    #expect(try TestDatabases.texts("SELECT text FROM word ORDER BY 1", on: path) == words)
    let tags = deletesNewer ? ["1", "2"] : ["1", "2", "5", "6"]
    #expect(try TestDatabases.texts("SELECT n FROM tag ORDER BY 1", on: path) == tags)
  }

  @Test func `under keep-local a changed row stays, and is a conflict`() async throws {
    try await prepare()
    try run("UPDATE photo SET title = 'wave' WHERE id = 1; DELETE FROM photo WHERE id = 2")
    let result = try await store.restoreRows(of: scope("photo"), into: database, options: ApplyOptions())
    #expect(try photos() == ["wave", "sand", "tree", "house"])
    let outcome = try #require(result.report?.applied.first)
    #expect(outcome.conflicts == 1 && outcome.inserted == 1)
  }

  @Test func `a dropped table comes back with the rows that its rows refer to`() async throws {
    try await prepare()
    try run("DROP TABLE photo; DELETE FROM album")
    try await store.restoreRows(of: scope("photo"), into: database)
    #expect(try photos() == ["boat", "sand", "tree", "house"])
    #expect(try TestDatabases.texts("SELECT name FROM album ORDER BY 1", on: path) == ["hills", "sea", "town"])
    #expect(try await store.restoreRows(of: scope("photo"), into: database).report == nil)
  }

  @Test func `a dropped table is made again, and dropped columns stay dropped`() async throws {
    try await prepare()
    try run("ALTER TABLE photo DROP COLUMN seen; DROP TABLE word; DELETE FROM photo WHERE id = 4")
    try await store.restoreRows(of: scope("word"), into: database)
    #expect(try TestDatabases.texts("SELECT text FROM word ORDER BY 1", on: path) == ["one", "one", "two"])
    let missing = try await store.restoreRows(of: scope("photo"), into: database).missingColumns
    #expect(missing == ["photo.seen"])
    #expect(try photos() == ["boat", "sand", "tree", "house"])
    let columns = try TestDatabases.texts("SELECT name FROM pragma_table_info('photo')", on: path)
    #expect(columns == ["id", "album", "title"])
  }

  @Test func `a dry run changes nothing, and a policy can keep what is here`() async throws {
    try await prepare()
    try run("UPDATE photo SET title = 'wave' WHERE id = 1; DELETE FROM photo WHERE id = 2")
    let dry = try await store.restoreRows(
      of: scope("photo"), into: database, options: ApplyOptions(conflicts: .takeIncoming, isDryRun: true))
    #expect(dry.report?.diffs.first?.state == .applied)
    #expect(try photos() == ["wave", "tree", "house"])
    try await store.restoreRows(of: scope("photo"), into: database)
    #expect(try photos() == ["boat", "sand", "tree", "house"])
  }

  @Test func `restored rows are sent with the next share`() async throws {
    try await prepare()
    let ben = DatabaseManager(folder.file("ben.sqlite"), home: BuckiaHome(path: folder.file("ben")))
    try TestDatabases.run("VACUUM", on: ben.path)
    let identity = try home.makeIdentity(named: "Anna")
    try home.addContact(ben.home.makeIdentity(named: "Ben").card.text)
    let recipient = try ShareRecipient(home.contact(named: "Ben"))
    func exchange() throws {
      let outbox = folder.file("outbox")
      try database.share(scope("photo"), to: [recipient], output: .folder(outbox), signedBy: identity)
      try ben.processInboundChanges([outbox], options: ApplyOptions(conflicts: .takeIncoming))
    }
    let query = "SELECT title FROM photo ORDER BY id"
    try exchange()
    #expect(try TestDatabases.texts(query, on: ben.path).count == 4)
    try run("DELETE FROM photo WHERE id < 3")
    try exchange()
    #expect(try TestDatabases.texts(query, on: ben.path) == ["tree", "house"])
    try await store.restoreRows(of: scope("photo", "id = 1"), into: database)
    try exchange()
    #expect(try TestDatabases.texts(query, on: ben.path) == ["boat", "tree", "house"])
  }

  @Test func `a scope that does not fit is refused`() async throws {
    try await prepare()
    for scope in [scope("nothing"), scope("photo", "no = 1")] {
      await #expect(throws: BuckiaError.self) { try await store.restoreRows(of: scope, into: database) }
    }
  }
}
