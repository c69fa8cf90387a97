import Buckia
import BuckiaApply
import BuckiaBytes
import BuckiaDiff
import BuckiaFormat
import SQLiteSchemas
import TestSupport
import Testing

/// Two schemas do not show that a column was renamed. Its author declares it, and receivers record it for that author.
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
    try DatabaseManager(other, home: home).createDatabaseDiff(
      since: one, output: .folder(folder.path), options: DiffOptions(renames: renames))
  }

  @discardableResult
  private func apply(
    _ diff: DiffReport, to database: String, _ mode: SchemaMode = .additive
  ) throws -> DiffOutcome {
    let path = try #require(diff.path)
    let report = try DatabaseManager(database).processInboundChanges([path], options: ApplyOptions(schema: mode))
    return try #require(report.diffs.first)
  }

  @Test("With a declared rename, unchanged rows are not sent, and the column keeps its local name")
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
    #expect(try TestDatabases.rows("SELECT * FROM buckia_rename", on: mine) == [])
  }

  @Test("A declared rename applies to later diffs of the same sender, and to those of no other sender")
  func remembered() throws {
    let mine = try folder.copy("older", to: "mine")
    try apply(sign(diff(from: older, to: newer, [Self.rename]), by: 1), to: mine)
    let latest = try folder.copy("newer", to: "latest")
    try TestDatabases.run("UPDATE notes SET heading = 'ONE' WHERE id = 1", on: latest)

    let another = try folder.copy("mine", to: "another")
    #expect(try apply(diff(from: newer, to: latest, []), to: another).plan.map(\.action) == [.add, .keep])
    let third = try folder.copy("mine", to: "third")
    #expect(try apply(sign(diff(from: newer, to: latest, []), by: 2), to: third).plan.map(\.action) == [.add, .keep])
    #expect(try TestDatabases.rows("SELECT title FROM notes WHERE id = 1", on: third) == ["'111.110.101'"])

    #expect(try apply(sign(diff(from: newer, to: latest, []), by: 1), to: mine).plan.map(\.action) == [.rename])
    #expect(try TestDatabases.rows("SELECT title FROM notes WHERE id = 1", on: mine) == ["'79.78.69'"])

    // The receiver's app is upgraded, and the sender's other device is not.
    try TestDatabases.run("ALTER TABLE notes RENAME COLUMN title TO heading", on: mine)
    let other = try folder.copy("older", to: "other")
    try TestDatabases.run("UPDATE notes SET title = '3' WHERE id = 3", on: other)
    let old = try sign(diff(from: older, to: other, []), by: 1)
    #expect(try apply(old, to: mine).plan.map(\.description) == ["rename notes.title: it is called heading here"])
    #expect(
      try TestDatabases.rows("SELECT heading FROM notes", on: mine) == ["'79.78.69'", "'84.87.79'", "'51'"])
  }

  @Test("Held changes are applied although the rename of their key is not declared again")
  func heldBesideRenamedKey() throws {
    try TestDatabases.run(
      "ALTER TABLE notes RENAME COLUMN id TO number; ALTER TABLE notes ADD COLUMN more; UPDATE notes SET more = 5",
      on: newer)
    let key = ColumnRename(table: "notes", from: "id", to: "number")
    let mine = try folder.copy("older", to: "mine")
    #expect(try apply(diff(from: older, to: newer, [Self.rename, key]), to: mine, .hold).heldParts == 1)
    try TestDatabases.run("ALTER TABLE notes ADD COLUMN more", on: mine)
    try folder.makeFolder("empty")
    let empty = folder.file("empty")
    let report = try DatabaseManager(mine).processInboundChanges([empty])
    #expect(report.diffs.map(\.state) == [.applied])
    #expect(try TestDatabases.rows("SELECT more FROM notes", on: mine) == ["5", "5", "5"])
  }

  @Test("Only renames of existing columns are kept, and no more than the newest 1,000 of a sender")
  func bounded() throws {
    let mine = try TestDatabases.run(
      "CREATE TABLE notes(id INTEGER PRIMARY KEY, title, stars)", on: folder.file("mine"))
    let notes = TableDefinition(
      name: "notes", columns: ["id", "title", "stars"].map { ColumnDefinition(name: $0) }, primaryKey: [0])
    for number in 0..<3 {
      let renames = (0..<400).flatMap { index in
        [
          ("nothing", "title", "a\(index)"), ("notes", "a\(index)", "b\(index)"),
          ("notes", "title", "n\(number).\(index)"),
        ]
        .map { ColumnRename(table: TableName($0.0), from: $0.1, to: $0.2) }
      }
      let id = Exchange.id(at: 1_700_000_000 + Int64(number))
      var writer = DiffFileWriter()
      writer.signer = try signer(1)
      let path = folder.file(DiffFileName.diff(id))
      try writer.write(
        DiffFileDraft(
          manifest: Manifest(id: id, critical: ["renames"], sender: Manifest.Sender(), renames: renames),
          schema: .included([notes])),
        changeset: TemporaryBuffer(
          insertion(into: "notes", keyFlags: [1, 0, 0], values: [10 + Int64(number), 1, 1])),
        to: path)
      let report = try DatabaseManager(mine).processInboundChanges([path])
      #expect(report.diffs.map(\.state) == [.applied])
    }
    let kept = "SELECT substr(new_name, 1, 2) AS new, count(*) FROM buckia_rename GROUP BY new ORDER BY new"
    #expect(try TestDatabases.rows(kept, on: mine).map { $0.split(separator: "|").last } == ["200", "400", "400"])
  }

  private func sign(_ report: DiffReport, by person: UInt8) throws -> DiffReport {
    try BuckiaTests.sign(fileAt: try #require(report.path), by: person)
    return report
  }

  @Test("A diff with only a rename is applied in the mode hold, and refused in the mode exact")
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

  @Test("An undeclared rename is a new column with all its values, and the old column stays")
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
    "A declaration that is no rename is refused",
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
