import BuckiaFormat
import TestSupport
import Testing

@testable import Buckia
@testable import SQLiteConnections

/// Diffs of one dataset are refused by databases of another dataset.
@Suite struct DatasetTests {
  private static let schema = "CREATE TABLE item(id TEXT PRIMARY KEY, title TEXT)"

  private let folder: TemporaryFolder
  private let home: BuckiaHome

  init() throws {
    folder = try TemporaryFolder()
    home = BuckiaHome(path: folder.file("home"))
    // Two databases of one app: a list of recipes and one of songs.
    for name in ["recipes", "songs"] { try TestDatabases.run(Self.schema, on: folder.file("\(name).sqlite")) }
  }

  private func database(_ name: String) -> DatabaseManager {
    DatabaseManager(folder.file("\(name).sqlite"), home: home)
  }

  @discardableResult
  private func begin(_ name: String) throws -> Dataset { try database(name).beginDataset() }

  /// Adds a row to a database and sends it.
  @discardableResult
  private func send(_ title: String, from name: String, raw: Bool = false) throws -> String {
    let before = try folder.copy("\(name).sqlite", to: "before-\(title).sqlite")
    try TestDatabases.run("INSERT INTO item VALUES ('\(title)', '\(title)')", on: folder.file("\(name).sqlite"))
    let report = try database(name).createDatabaseDiff(
      since: before, output: .folder(folder.file("out")), options: DiffOptions(isRaw: raw))
    return try #require(report.path)
  }

  private func apply(
    _ files: [String], to name: String, _ change: (inout ApplyOptions) -> Void = { _ in }
  ) throws -> ApplyReport {
    var options = ApplyOptions()
    change(&options)
    return try database(name).processInboundChanges(files, options: options)
  }

  private func titles(_ name: String) throws -> [String] {
    try TestDatabases.texts("SELECT title FROM item ORDER BY 1", on: folder.file("\(name).sqlite"))
  }

  @Test func `a file of another dataset is refused, and the reason says what to do`() throws {
    let recipes = try begin("recipes")
    let songs = try begin("songs")
    let soup = try send("soup", from: "recipes")
    let report = try apply([soup], to: "songs")
    let refused = try #require(report.diffs.first)
    #expect(refused.state == .rejected)
    #expect(refused.code == .otherDataset)
    #expect(
      refused.reason
        == "it is of the dataset \(recipes), and this database belongs to the dataset \(songs): it was made from another shared "
        + "database; apply it to a copy of that one, or, if the two are one, make this database part of it with "
        + "`buckia init DATABASE --dataset \(recipes)`")
    #expect(try titles("songs") == [])
    #expect(try database("songs").log().map(\.state) == [.rejected])
    // Once the database has joined the dataset, the file is applied.
    try database("songs").joinDataset(recipes)
    #expect(try apply([soup], to: "songs").diffs.map(\.state) == [.applied])
    #expect(try titles("songs") == ["soup"])
    #expect(try database("songs").log().map(\.state) == [.applied])
  }

  @Test func `copies of a database are different replicas of the same dataset`() throws {
    let dataset = try begin("recipes")
    _ = try folder.copy("recipes.sqlite", to: "copy.sqlite")
    let soup = try send("soup", from: "recipes")
    #expect(try apply([soup], to: "copy").diffs.map(\.state) == [.applied])
    let bread = try send("bread", from: "copy")
    #expect(try apply([bread], to: "recipes").diffs.map(\.state) == [.applied])
    #expect(try titles("recipes") == ["bread", "soup"])
    let (one, other) = (try database("recipes").status(), try database("copy").status())
    #expect(one.replica?.id != other.replica?.id)
    #expect([one.dataset, other.dataset] == [dataset, dataset])
  }

  @Test func `a database without a dataset adopts that of the first file, with a warning, and refuses others`() throws {
    let dataset = try begin("recipes")
    try begin("songs")
    let files = try [send("soup", from: "recipes"), send("ballad", from: "songs"), send("bread", from: "recipes")]
    try TestDatabases.run(Self.schema, on: folder.file("new.sqlite"))
    let report = try apply(files, to: "new")
    #expect(report.diffs.map(\.state) == [.applied, .rejected, .applied])
    #expect(report.diffs.map(\.warnings) == [[Warning(.datasetAdopted, "\(dataset)")], [], []])
    #expect(try database("new").dataset() == dataset)
    #expect(try titles("new") == ["bread", "soup"])
  }

  @Test func `a file that is not applied does not change the dataset of a database`() throws {
    try begin("recipes")
    let soup = try send("soup", from: "recipes")
    try TestDatabases.run("\(Self.schema); INSERT INTO item VALUES ('soup', 'cold')", on: folder.file("new.sqlite"))
    #expect(try apply([soup], to: "new") { $0.conflicts = .abort }.diffs.map(\.state) == [.rejected])
    #expect(try database("new").dataset() == nil)
    let dry = try apply([soup], to: "new") { $0.isDryRun = true }
    #expect(dry.diffs.flatMap(\.warnings).map(\.code) == [.datasetAdopted])
    #expect(try database("new").dataset() == nil)
    #expect(try apply([soup], to: "new").diffs.map(\.state) == [.applied])
    #expect(try database("new").dataset() != nil)
  }

  @Test func `if an app does not adopt datasets, a database without a dataset refuses a file with one`() throws {
    try begin("songs")
    let ballad = try send("ballad", from: "songs")
    let report = try apply([ballad], to: "recipes") { $0.adoptsDataset = false }
    #expect(report.diffs.map(\.code) == [.otherDataset])
    #expect(report.diffs.first?.reason?.contains("this database belongs to none") == true)
    #expect(try database("recipes").dataset() == nil)
  }

  @Test(arguments: [true, false])
  func `changesets, and diffs of databases without a dataset, are applied`(raw: Bool) throws {
    let soup = try send("soup", from: "recipes", raw: raw)
    try begin("songs")
    let report = try apply([soup], to: "songs")
    #expect(report.diffs.map(\.state) == [.applied])
    #expect(try titles("songs") == ["soup"])
  }

  @Test func `a dataset that is adopted in the app's transaction is committed or rolled back with it`() throws {
    let dataset = try begin("songs")
    let ballad = try send("ballad", from: "songs")
    try begin("recipes")
    let soup = try send("soup", from: "recipes")
    let path = try TestDatabases.run(Self.schema, on: folder.file("new.sqlite"))
    let connection = try SQLiteConnection(opening: path, as: .readWrite)
    for end in ["ROLLBACK", "COMMIT"] {
      try connection.execute("BEGIN")
      let report = try DatabaseManager.borrowing(connection.handle.pointer, home: home) {
        try $0.processInboundChanges([ballad, soup])
      }
      #expect(report.diffs.map(\.state) == [.applied, .rejected])
      try connection.execute(end)
      #expect(try database("new").dataset() == (end == "COMMIT" ? dataset : nil))
    }
    // The adopted dataset also counts on the app's connection.
    let report = try DatabaseManager.borrowing(connection.handle.pointer, home: home) {
      try $0.processInboundChanges([soup])
    }
    #expect(report.diffs.map(\.code) == [.otherDataset])
    #expect(try titles("new") == ["ballad"])
  }

  @Test func `a database that has a dataset cannot begin another one, and the error names its dataset`() throws {
    let dataset = try begin("recipes")
    let error = #expect(throws: BuckiaError.self) { try begin("recipes") }
    #expect(error?.code == .datasetExists)
    #expect(error?.description.contains("\(dataset)") == true)
    #expect(try database("recipes").dataset() == dataset)
    #expect(Dataset("\(dataset)") == dataset)
    #expect(Dataset(String("\(dataset)".dropLast())) == nil)
  }

  @Test func `files of different datasets cannot be joined into one`() throws {
    try begin("recipes")
    try begin("songs")
    let files = try [send("soup", from: "recipes"), send("ballad", from: "songs")]
    for (places, isRefused) in [([0, 1], true), ([0, 0], false)] {
      do {
        let report = try RewrittenChanges(concatenating: places.map { files[$0] }).write(
          to: .path(folder.file("joined-\(isRefused).bdiff")), home: home)
        #expect(!isRefused && report.id != nil)
      } catch let error as BuckiaError {
        #expect(isRefused && error.code == .otherDataset, "\(error)")
      }
    }
  }
}
