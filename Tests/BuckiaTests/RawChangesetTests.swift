import Buckia
import BuckiaFormat
import TestSupport
import Testing
@testable import SQLiteConnections

/// Changesets and patchsets that other programs have recorded with SQLite's session extension.
@Suite struct RawChangesetTests {
  private let exchange: Exchange
  private var home: BuckiaHome { BuckiaHome(path: exchange.folder.file("home")) }

  init() throws {
    exchange = try Exchange(
      """
      CREATE TABLE notes(id INTEGER PRIMARY KEY, text, n); CREATE INDEX byText ON notes(text);
      INSERT INTO notes VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)
      """)
  }

  /// Records edits of a copy of the base.
  private func record(_ edits: String, asPatchset: Bool = false) throws -> [UInt8] {
    let copy = try exchange.folder.copy("base.sqlite", to: "author-\(UInt64.random(in: 0...UInt64.max)).sqlite")
    let author = try SQLiteConnection(opening: copy, as: .readWrite)
    let session = try SQLiteSession(on: author)
    try session.attach()
    try author.execute(edits)
    return try asPatchset ? session.patchset() : session.changeset()
  }

  @Test("A patchset overwrites local edits, and a warning says that conflicts cannot be detected")
  func patchset() throws {
    try TestDatabases.run("UPDATE notes SET n = 100", on: exchange.mine)
    let edits = "UPDATE notes SET n = 7 WHERE id = 1; DELETE FROM notes WHERE id = 2;"
    try exchange.plantRaw(record("\(edits) INSERT INTO notes VALUES (4, 'd', 4)", asPatchset: true))
    let outcome = try #require(try exchange.apply().diffs.first)
    #expect(outcome.state == .applied && outcome.conflicts == 0)
    #expect(outcome.warnings == [Warning(.noOldValues, "2")])
    #expect(try exchange.rows("SELECT id, n FROM notes ORDER BY id") == ["1|7", "3|100", "4|4"])
  }

  @Test("A changeset, and a patchset of INSERTs, cause no such warning", arguments: [true, false])
  func withOldValues(asPatchset: Bool) throws {
    let edits =
      asPatchset ? "INSERT INTO notes VALUES (4, 'd', 4)" : "UPDATE notes SET n = 5; DELETE FROM notes WHERE id = 2"
    try exchange.plantRaw(record(edits, asPatchset: asPatchset))
    let outcome = try #require(try exchange.apply().diffs.first)
    #expect(outcome.state == .applied && outcome.warnings.isEmpty)
  }

  @Test("Recorded changes by ANALYZE are left out with a warning, and the rest is applied")
  func statistics() throws {
    let changes = try record("INSERT INTO notes VALUES (4, 'd', 4); ANALYZE")
    try #require(String(decoding: changes, as: UTF8.self).contains("sqlite_stat1"))
    let path = try exchange.plantRaw(changes)
    #expect(try DiffInspection.verify([path]).files.map(\.isGood) == [true])
    var tables: Set<String> = []
    try DiffInspection.open(path).forEachChange { tables.insert($0.table) }
    #expect(tables == ["notes", "sqlite_stat1"])
    let outcome = try #require(try exchange.apply().diffs.first)
    #expect(outcome.state == .applied && outcome.inserted == 1)
    #expect(outcome.warnings == [Warning(.rowsOfSQLite, "sqlite_stat1")])
    #expect(outcome.changedTables == ["notes"])
    #expect(try exchange.rows("SELECT count(*) FROM sqlite_schema WHERE name = 'sqlite_stat1'") == ["0"])
  }

  @Test("An empty changeset, which SQLite records if nothing has changed, is valid and applied once")
  func nothing() throws {
    let changes = try record("UPDATE notes SET n = n")
    #expect(changes.isEmpty)
    let named = try exchange.folder.write(changes, to: "nothing")
    let filed = try exchange.plantRaw(changes)
    let before = try exchange.everythingButOurs()
    #expect(try DiffInspection.verify([named, filed]).files.map(\.isGood) == [true, true])
    try DiffInspection.open(named).forEachChange { _ in Issue.record("there is no change") }

    let report = try exchange.database.processInboundChanges([named])
    #expect(report.diffs.map(\.state) == [.applied])
    #expect(report.diffs.first?.warnings == [])
    #expect(try exchange.apply().diffs.map(\.state) == [.alreadyApplied])
    #expect(try exchange.everythingButOurs() == before)
    #expect(try exchange.database.log().map(\.state) == [.applied])

    // In a folder, an empty file may have only begun to arrive, so it stays there.
    #expect(try exchange.folder.names(in: "inbound").count == 1)
    try exchange.folder.write(
      record("DELETE FROM notes"), to: "inbound/\(exchange.folder.names(in: "inbound")[0])")
    let arrived = try exchange.apply()
    #expect(arrived.diffs.map(\.state) == [.applied] && arrived.diffs.map(\.deleted) == [3])
    #expect(try exchange.folder.names(in: "inbound") == [])
  }

  @Test("Inverting, joining and sorting empty changesets gives no changes and no file")
  func rewritingNothing() throws {
    let path = try exchange.folder.write([], to: "nothing")
    for rewritten in try [
      RewrittenChanges(inverting: path), RewrittenChanges(concatenating: [path, path]), RewrittenChanges(sorting: path),
    ] {
      #expect(rewritten.tables.isEmpty && rewritten.warnings.isEmpty)
      #expect(try rewritten.write(to: .folder(exchange.inbound), home: home).path == nil)
    }
    let change = try exchange.plantRaw(record("DELETE FROM notes WHERE id = 1"))
    let joined = try RewrittenChanges(concatenating: [path, change, path])
    #expect(joined.tables.map(\.deleted) == [1])
  }

  @Test("An empty file with the name of a diff file is refused")
  func emptyDiffFile() throws {
    let path = try exchange.folder.write([], to: "changes.bdiff")
    #expect(try DiffInspection.verify([path]).files.map(\.isGood) == [false])
    #expect(try exchange.database.processInboundChanges([path]).diffs.map(\.state) == [.rejected])
  }

  @Test(
    "A row whose key becomes another that compares equal is kept, even if the INSERT comes first",
    arguments: [true, false])
  func insertBeforeDelete(enforcesForeignKeys: Bool) throws {
    let exchange = try Exchange(
      """
      CREATE TABLE words(w TEXT PRIMARY KEY COLLATE NOCASE, n); CREATE TABLE loose(k PRIMARY KEY, n);
      INSERT INTO words VALUES ('apple', 1), ('pear', 2); INSERT INTO loose VALUES (2.0, 1), (0, 2), (5, 3)
      """)
    let path = exchange.folder.file("changes")
    try exchange.send(
      """
      UPDATE words SET w = 'Apple' WHERE n = 1; UPDATE loose SET k = 2 WHERE n = 1; UPDATE loose SET k = -0.0 WHERE n = 2
      """, raw: true, to: .file(path, replacing: false))
    // In SQLite's inverse of the changeset, the INSERT comes before the DELETE.
    let inverse = try StockChangesets.invert(fileBytes(path))
    try exchange.plantRaw(fileBytes(path), id: Exchange.id(at: 1_600_000_000))
    try exchange.plantRaw(inverse, id: Exchange.id(at: 1_600_000_001))
    let before = try exchange.everythingButOurs()
    let connection = try SQLiteConnection(opening: exchange.mine, as: .readWrite)
    try connection.execute("PRAGMA foreign_keys = \(enforcesForeignKeys)")
    let report = try DatabaseManager.borrowing(connection.handle.pointer) {
      try $0.processInboundChanges([exchange.inbound], options: ApplyOptions(conflicts: .abort))
    }
    #expect(report.diffs.map(\.state) == [.applied, .applied])
    #expect(try exchange.everythingButOurs() == before)
  }
}
