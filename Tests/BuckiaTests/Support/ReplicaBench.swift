import BuckiaBytes
import SQLiteSchemas
import Foundation
import SQLiteConnections
import TestSupport
import Testing

@testable import Buckia

/// Databases that are replicas, and the home that records them.
struct ReplicaBench {
  let folder: TemporaryFolder
  let home: BuckiaHome
  /// The database.
  let path: String

  init(_ schema: String = "CREATE TABLE notes(id INTEGER PRIMARY KEY, n)") throws {
    folder = try TemporaryFolder()
    home = BuckiaHome(path: folder.file("home"))
    path = try TestDatabases.run(schema, on: folder.file("notes.sqlite"))
    try folder.makeFolder("inbound")
  }

  /// Creates the ledger if it is missing, and returns the warnings about the replica.
  @discardableResult
  func initialize(_ path: String? = nil, home: BuckiaHome? = nil) throws -> [Warning] {
    try DatabaseManager(path ?? self.path, home: home ?? self.home).initialize().warnings
  }

  /// Applies a new file with one row, and returns the warnings about the replica.
  @discardableResult
  func apply(to path: String? = nil, home: BuckiaHome? = nil, _ options: ApplyOptions = ApplyOptions()) throws
    -> [Warning]
  {
    let row = Int64.random(in: 1...Int64.max)
    let file = "inbound/\(Exchange.id(at: 1_700_000_000)).changeset"
    try folder.write(insertion(into: "notes", values: [row, 1]), to: file)
    let report = try DatabaseManager(path ?? self.path, home: home ?? self.home).processInboundChanges(
      [folder.file(file)], options: options)
    #expect(report.diffs.map(\.state) == [.applied])
    return report.warnings
  }

  /// Inserts a row and makes a diff.
  @discardableResult
  func diff(of path: String? = nil, _ options: DiffOptions = DiffOptions()) throws -> DiffReport {
    let path = path ?? self.path
    let before = try folder.copy(path, to: "before-\(UInt64.random(in: 0...UInt64.max)).sqlite")
    try TestDatabases.run("INSERT INTO notes VALUES (abs(random()), 2)", on: path)
    return try DatabaseManager(path, home: home).createDatabaseDiff(
      since: before, output: .folder(folder.file("outbox")), options: options)
  }

  /// The replica that the database has recorded.
  func replica(_ path: String? = nil) throws -> Replica? {
    try Replica.read(on: SQLiteConnection(opening: path ?? self.path, as: .readOnly))
  }

  /// Replaces the contents of a file, in place or by a new file.
  func replace(_ target: String? = nil, with source: String, inPlace: Bool = true) throws {
    let target = URL(fileURLWithPath: target ?? path)
    try Data(contentsOf: URL(fileURLWithPath: source)).write(to: target, options: inPlace ? [] : .atomic)
  }

  func move(_ path: String, to name: String) throws -> String {
    try FileManager.default.moveItem(atPath: path, toPath: folder.file(name))
    return folder.file(name)
  }
}
