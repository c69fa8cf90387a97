import SQLiteSchemas
import Foundation
import TestSupport
import Testing

@testable import Buckia
@testable import SQLiteConnections

/// Replicas on connections of the app, whose transactions may be rolled back, and in memory.
@Suite struct BorrowedReplicaTests {
  private func initialize(_ connection: borrowing SQLiteConnection, _ bench: ReplicaBench) throws -> [Warning] {
    try DatabaseManager.borrowing(connection.handle.pointer, home: bench.home) { try $0.initialize().warnings }
  }

  @Test("A replica that is initialized in the app's transaction is rolled back with it, without later warnings")
  func begun() throws {
    let bench = try ReplicaBench()
    let connection = try SQLiteConnection(opening: bench.path, as: .readWrite)
    for end in ["ROLLBACK", "COMMIT"] {
      try connection.execute("BEGIN")
      #expect(try initialize(connection, bench) == [])
      try connection.execute(end)
      #expect(try (bench.replica() != nil) == (end == "COMMIT"))
    }
    #expect(try initialize(connection, bench) == [])
  }

  @Test("A restored database is reported again after a rollback, and only once after a commit")
  func restored() throws {
    let bench = try ReplicaBench()
    try bench.apply()
    let backup = try bench.folder.copy(bench.path, to: "backup.sqlite")
    try bench.apply()
    try bench.replace(with: backup)
    let connection = try SQLiteConnection(opening: bench.path, as: .readWrite)
    for end in ["ROLLBACK", "COMMIT"] {
      try connection.execute("BEGIN")
      #expect(try initialize(connection, bench) == [Warning(.replicaRestored)])
      try connection.execute(end)
    }
    #expect(try initialize(connection, bench) == [])
  }

  @Test("Files that are applied in the app's transaction count as progress only after a commit")
  func progress() throws {
    let bench = try ReplicaBench()
    try bench.initialize()
    let replica = try bench.replica()
    let file = try bench.folder.write(insertion(into: "notes"), to: "file.changeset")
    let connection = try SQLiteConnection(opening: bench.path, as: .readWrite)
    for end in ["ROLLBACK", "COMMIT"] {
      try connection.execute("BEGIN")
      let report = try DatabaseManager.borrowing(connection.handle.pointer, home: bench.home) {
        try $0.processInboundChanges([file])
      }
      #expect(report.diffs.map(\.state) == [.applied])
      #expect(report.warnings == [])
      try connection.execute(end)
    }
    #expect(try initialize(connection, bench) == [])
    #expect(try bench.replica() == replica)
  }

  @Test(
    "A restored database is detected even if all is applied in the app's transactions", arguments: ["DELETE", "WAL"])
  func onlyInTransactions(journal: String) throws {
    let bench = try ReplicaBench()
    try TestDatabases.run("PRAGMA journal_mode = \(journal)", on: bench.path)
    func apply(_ row: Int64) throws -> [Warning] {
      let file = try bench.folder.write(insertion(into: "notes", values: [row, 1]), to: "\(row).changeset")
      let connection = try SQLiteConnection(opening: bench.path, as: .readWrite)
      try connection.execute("BEGIN IMMEDIATE")
      let report = try DatabaseManager.borrowing(connection.handle.pointer, home: bench.home) {
        try $0.processInboundChanges([file])
      }
      try connection.execute("COMMIT")
      return report.warnings
    }
    #expect(try apply(1) == [])
    let replica = try #require(try bench.replica())
    let backup = try bench.folder.copy(bench.path, to: "backup.sqlite")
    #expect(try apply(2) == [])
    #expect(bench.home.known(replica.id)?.progress?.entry == 1)
    #expect(try apply(3) == [])
    #expect(bench.home.known(replica.id)?.progress?.entry == 2)
    try bench.replace(with: backup)
    #expect(try apply(4) == [Warning(.replicaRestored)])
    #expect(try apply(5) == [])
  }

  @Test("A diff in a read transaction writes nothing, and still names the replica")
  func readingTransaction() throws {
    let bench = try ReplicaBench()
    try bench.initialize()
    let before = try bench.folder.copy(bench.path, to: "before.sqlite")
    let connection = try SQLiteConnection(opening: bench.path, as: .readWrite)
    try connection.execute("INSERT INTO notes VALUES (1, 1); BEGIN")
    let report = try DatabaseManager.borrowing(connection.handle.pointer, home: bench.home) {
      try $0.createDatabaseDiff(since: before, output: .folder(bench.folder.file("outbox")))
    }
    let state = connection.transactionState
    #expect(state != .write)
    #expect(report.warnings == [])
    let manifest = try DiffInspection.open(try #require(report.path)).manifest
    #expect("\(try #require(manifest))".contains("\(try #require(try bench.replica()).id)"))
    try connection.execute("COMMIT")
    #expect(try initialize(connection, bench) == [])
  }

  @Test("A database in memory is a replica while it exists; one that was loaded from a file is a copy")
  func inMemory() throws {
    let bench = try ReplicaBench()
    try bench.initialize()
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    for _ in 0..<2 { #expect(try initialize(connection, bench) == []) }
    let replica = try #require(try Replica.read(on: connection))
    #expect(bench.home.known(replica.id) == nil)
    let file = try SQLiteConnection(opening: bench.path, as: .readOnly)
    let copy = try SQLiteConnection(opening: ":memory:", as: .create)
    let source = try #require(
      file.handle.routines.backup_init(copy.handle.pointer, "main", file.handle.pointer, "main"))
    _ = file.handle.routines.backup_step(source, -1)
    _ = file.handle.routines.backup_finish(source)
    #expect(try initialize(copy, bench).map(\.code) == [.replicaCopied])
    #expect(try initialize(copy, bench) == [])
  }
}
