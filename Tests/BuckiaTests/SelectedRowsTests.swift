import Buckia
import BuckiaFormat
import BuckiaDiff
import SQLiteConnections
import Testing
import TestSupport

/// Diff files of selected rows and columns, of a database without a base, and of an open connection.
@Suite struct SelectedRowsTests {
  private static let schema = """
    CREATE TABLE notes(id INTEGER PRIMARY KEY, owner INT, text TEXT, secret TEXT); CREATE TABLE tags(name TEXT PRIMARY KEY);
    INSERT INTO notes VALUES (1, 7, 'one', 's'), (2, 8, 'two', 's'); INSERT INTO tags VALUES ('a');
    """

  private let folder: TemporaryFolder
  private let database: String
  private let home: BuckiaHome

  init() throws {
    folder = try TemporaryFolder()
    database = try TestDatabases.run(Self.schema, on: folder.file("database"))
    home = BuckiaHome(path: folder.file("home"))
  }

  @Test("A diff without a base is a snapshot, which makes the selected rows and columns in an empty database")
  func snapshot() throws {
    let options = DiffOptions(
      selections: ["notes": RowSelection(where: "owner = $me", ["me": 7], omitting: ["secret"])])
    let report = try DatabaseManager(database, home: home).createDatabaseDiff(
      since: nil, output: .folder(folder.path), options: options)
    let path = try #require(report.path)
    #expect(try DiffFile.verified(at: path).manifest.kind == .snapshot)
    #expect(report.tables.map(\.inserted) == [1, 1])
    let target = try TestDatabases.run("PRAGMA user_version = 1", on: folder.file("target"))
    #expect(try DatabaseManager(target).processInboundChanges([path]).diffs.map(\.state) == [.applied])
    #expect(try TestDatabases.rows("SELECT * FROM notes", on: target) == ["1|7|'111.110.101'"])
    #expect(try TestDatabases.rows("SELECT count(*) FROM tags", on: target) == ["1"])
  }

  @Test("New ids are greater than those that the database has applied, whatever the home")
  func newestID() throws {
    let target = try TestDatabases.run("PRAGMA user_version = 1", on: folder.file("target"))
    func diff() throws -> DiffReport {
      // Each home has a clock of its own, which does not know the other ids.
      try DatabaseManager(target, home: BuckiaHome(path: folder.file("home\(UInt64.random(in: 0...(.max)))")))
        .createDatabaseDiff(since: nil, output: .folder(folder.path))
    }
    let report = try DatabaseManager(database, home: home).createDatabaseDiff(since: nil, output: .folder(folder.path))
    _ = try DatabaseManager(target).processInboundChanges([try #require(report.path)])
    for _ in 0..<20 { #expect(try #require(try diff().id) > #require(report.id)) }
  }

  @Test("A diff of a connection has the changes in its open transaction")
  func borrowed() throws {
    let connection = try SQLiteConnection(opening: database, as: .readWrite)
    try connection.execute("BEGIN; INSERT INTO notes VALUES (3, 7, 'three', 's')")
    let copy = try folder.copy("database", to: "copy")
    let report = try DatabaseManager.writeDiff(
      from: RowSource(opening: copy), to: RowSource(on: connection), output: .folder(folder.path), home: home)
    #expect(report.tables.map(\.inserted) == [1])
    try connection.execute("ROLLBACK")
    #expect(try DatabaseManager(copy).processInboundChanges([try #require(report.path)]).diffs.map(\.inserted) == [1])
  }
}
