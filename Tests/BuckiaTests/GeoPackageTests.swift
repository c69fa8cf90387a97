import Buckia
import Foundation
import SQLiteConnections
import Testing
import TestSupport

/// Real GeoPackages made by other programs, if they are available.
@Suite struct GeoPackageTests {
  /// The folder beside the repository, or the one that `BUCKIA_GPKG` names.
  private static let folder: URL = {
    if let path = ProcessInfo.processInfo.environment["BUCKIA_GPKG"] { return URL(fileURLWithPath: path) }
    let package = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    return package.deletingLastPathComponent().appendingPathComponent("shared/data/gpkg")
  }()

  private static let hasFiles = FileManager.default.fileExists(
    atPath: folder.appendingPathComponent("base.gpkg").path)

  struct Pair: CustomTestStringConvertible {
    let old: String
    let new: String
    var testDescription: String { "\(old) → \(new)" }
  }

  static let pairs: [Pair] = {
    let versions = [
      "base", "modified_1_geom", "inserted_1_A", "inserted_1_B", "updated_A", "updated_B", "added-column",
      "added-table",
    ]
    var pairs = versions.flatMap { old in versions.filter { $0 != old }.map { Pair(old: old, new: $0) } }
    for (one, other) in [("triggers-base", "triggers-modified"), ("fk-base", "fk-modified")] {
      pairs += [Pair(old: one, new: other), Pair(old: other, new: one)]
    }
    return pairs
  }()

  private func spatialIndexes(of path: String) throws -> [String: [String]] {
    let names = try names("type = 'table' AND sql LIKE 'CREATE VIRTUAL TABLE % USING rtree%'", in: path)
    var content: [String: [String]] = [:]
    for name in names {
      content[name] = try TestDatabases.rows("SELECT * FROM \"\(name)\" ORDER BY id", on: path)
    }
    return content
  }

  private func names(_ condition: String, in path: String) throws -> [String] {
    try TestDatabases.texts("SELECT name FROM sqlite_schema WHERE \(condition) ORDER BY name", on: path)
  }

  @Test("The spatial indexes of a real GeoPackage equal the author's", .enabled(if: hasFiles), arguments: pairs)
  func spatialIndexes(_ pair: Pair) throws {
    let folder = try TemporaryFolder()
    let old = try folder.copy(Self.folder.appendingPathComponent("\(pair.old).gpkg").path, to: "old.gpkg")
    let new = try folder.copy(Self.folder.appendingPathComponent("\(pair.new).gpkg").path, to: "new.gpkg")
    let mine = try folder.copy("old.gpkg", to: "mine.gpkg")
    let triggers = try names("type = 'trigger'", in: mine)
    let diff = try DatabaseManager(new, home: BuckiaHome(path: folder.file("home"))).createDatabaseDiff(
      since: old, output: .file(folder.file("it.bdiff"), replacing: false))
    let path = try #require(diff.path)
    let report = try DatabaseManager(mine).processInboundChanges([path])
    #expect(report.diffs.map(\.state) == [.applied])
    #expect(report.diffs.flatMap(\.warnings) == [])

    let found = try spatialIndexes(of: mine)
    #expect(!found.isEmpty)
    for (name, rows) in try spatialIndexes(of: new) where found[name] != nil {
      #expect(found[name] == rows, "\(name)")
    }
    let connection = try SQLiteConnection(opening: mine, as: .readWrite)
    for name in found.keys { #expect(try connection.text("SELECT rtreecheck('\(name)')") == "ok") }
    #expect(try names("type = 'trigger'", in: mine) == triggers)
  }
}
