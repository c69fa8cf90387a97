import Buckia
import BuckiaApply
import BuckiaDiff
import BuckiaDiffFiles
import BuckiaSchemaPlans
import SQLiteSchemas
import TestSupport
import Testing

/// Nobody can tell from two schemas that a column was renamed: its author declares it, and receivers remember.
@Suite struct RenameTests {
  private let folder: TemporaryFolder
  private let home: BuckiaHome
  private let older: String
  private let newer: String
  private static let rename = ColumnRename(table: "notes", from: "title", to: "heading")

  init() throws {
    folder = try TemporaryFolder()
    home = BuckiaHome(path: folder.file("home"))
    older = try TestDatabases.run(
      """
      CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT, stars INT);
      INSERT INTO notes VALUES (1, 'one', 1), (2, 'two', 2), (3, 'three', 3)
      """, on: folder.file("older"))
    newer = try folder.copy("older", to: "newer")
    try TestDatabases.run(
      "ALTER TABLE notes RENAME COLUMN title TO heading; UPDATE notes SET heading = 'TWO' WHERE id = 2", on: newer)
  }

  private func diff(from one: String, to other: String, _ renames: [ColumnRename]) throws -> DiffReport {
    try DatabaseManager(other).createDatabaseDiff(
      since: one, output: .folder(folder.path), options: DiffOptions(renames: renames), home: home)
  }

  @discardableResult
  private func apply(
    _ diff: DiffReport, to database: String, _ mode: SchemaMode = .additive
  ) throws -> DiffOutcome {
    let path = try #require(diff.path)
    let report = try DatabaseManager(database).processInboundChanges([path], options: ApplyOptions(schema: mode))
    return try #require(report.diffs.first)
  }

  @Test("A declared rename costs nothing: unchanged rows do not travel, and the column keeps its name here")
  func declared() throws {
    let report = try diff(from: older, to: newer, [Self.rename])
    #expect(report.tables.map(\.updated) == [1])
    #expect(report.skipped == [])
    #expect(report.comparedByRows.map(\.reason.description) == ["its columns were renamed"])
    let manifest = try DiffFile.verified(at: try #require(report.path)).manifest
    #expect(manifest.critical == ["renames"])
    #expect(manifest.renames == [Self.rename])
    let mine = try folder.copy("older", to: "mine")
    let outcome = try apply(report, to: mine)
    #expect(outcome.state == .applied && outcome.conflicts == 0)
    #expect(outcome.plan.map(\.description) == ["rename notes.heading: it is called title here"])
    #expect(try TestDatabases.rows("SELECT title FROM notes WHERE id = 2", on: mine) == ["'84.87.79'"])

    // What comes later does not declare it again.
    let latest = try folder.copy("newer", to: "latest")
    try TestDatabases.run("UPDATE notes SET heading = 'ONE' WHERE id = 1", on: latest)
    let later = try diff(from: newer, to: latest, [])
    #expect(try apply(later, to: mine).plan.map(\.action) == [.rename])
    #expect(try TestDatabases.rows("SELECT title FROM notes WHERE id = 1", on: mine) == ["'79.78.69'"])

    // This app is upgraded, and a person whose app is not sends something.
    try TestDatabases.run("ALTER TABLE notes RENAME COLUMN title TO heading", on: mine)
    let other = try folder.copy("older", to: "other")
    try TestDatabases.run("UPDATE notes SET title = '3' WHERE id = 3", on: other)
    let old = try diff(from: older, to: other, [])
    #expect(try apply(old, to: mine).plan.map(\.description) == ["rename notes.title: it is called heading here"])
    #expect(
      try TestDatabases.rows("SELECT heading FROM notes", on: mine) == ["'79.78.69'", "'84.87.79'", "'51'"])
  }

  @Test("Nothing but the name may have changed, and in the mode exact that is a difference")
  func nameAlone() throws {
    try TestDatabases.run("UPDATE notes SET heading = 'two' WHERE id = 2", on: newer)
    let report = try diff(from: older, to: newer, [Self.rename])
    let mine = try folder.copy("older", to: "mine")
    #expect(try apply(report, to: mine, .exact).state == .rejected)
    let outcome = try apply(report, to: mine, .hold)
    #expect(outcome.state == .applied && outcome.heldParts == 0)
    let again = try diff(from: newer, to: newer, [])
    #expect(again.path == nil)
  }

  @Test("Undeclared it is a new column with all its values, and the old one stays")
  func undeclared() throws {
    let report = try diff(from: older, to: newer, [])
    #expect(report.tables.map(\.updated) == [3])
    #expect(report.skipped.map(\.name) == ["notes.title"])
    let mine = try folder.copy("older", to: "mine")
    try apply(report, to: mine)
    #expect(
      try TestDatabases.rows("SELECT title, heading FROM notes WHERE id = 2", on: mine) == ["'116.119.111'|'84.87.79'"])
  }

  @Test("A key can be renamed, too")
  func key() throws {
    try TestDatabases.run("ALTER TABLE notes RENAME COLUMN id TO number", on: newer)
    let report = try diff(
      from: older, to: newer, [Self.rename, ColumnRename(table: "NOTES", from: "ID", to: "number")])
    #expect(report.tables.map(\.updated) == [1])
    let mine = try folder.copy("older", to: "mine")
    #expect(try apply(report, to: mine).updated == 1)
    #expect(try TestDatabases.rows("SELECT title FROM notes WHERE id = 2", on: mine) == ["'84.87.79'"])
  }

  @Test(
    "What is no rename is refused",
    arguments: [
      ColumnRename(table: "notes", from: "nothing", to: "heading"),
      ColumnRename(table: "notes", from: "title", to: "nothing"),
      ColumnRename(table: "notes", from: "stars", to: "heading"),
    ])
  func wrong(rename: ColumnRename) throws {
    let error = #expect(throws: BuckiaError.self) { try diff(from: older, to: newer, [rename]) }
    #expect(error?.code.rawValue == "columns-differ")
    #expect(error?.message.contains("has not become") == true)
  }

  @Test("A column is found under every name that it has had")
  func names() throws {
    let renames = ColumnRenames([
      ColumnRename(table: "t", from: "a", to: "b"), ColumnRename(table: "T", from: "B", to: "c"),
    ])
    #expect(renames.otherNames(of: "C", in: "t") == ["B", "a"])
    #expect(renames.otherNames(of: "a", in: "t") == ["b", "c"])
    #expect(renames.otherNames(of: "a", in: "u") == [])
  }
}
