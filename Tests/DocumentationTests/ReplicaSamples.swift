import Buckia
import Foundation
import TestSupport
import Testing

/// Says what became of the replica.
private func applyAndTell(notes: String, inbound: String, home: BuckiaHome) throws {
  let database = DatabaseManager(notes, home: home)
  let report = try database.processInboundChanges([inbound])
  for warning in report.warnings { print(warning) }
}

/// Looks if it was restored.
private func look(database: DatabaseManager) throws {
  if let replica = try database.status().replica, replica.standing != .present {
    print("The database was restored or copied; it begins again with the next call.")
  }
}

/// Keeps the diffs of other databases out.
private func join(database: DatabaseManager, otherCopy: DatabaseManager) throws {
  let dataset = try database.beginDataset()
  try otherCopy.joinDataset(dataset)
}

/// Lets triggers ask who is writing.
private func addFunction(to connection: OpaquePointer) throws {
  try DatabaseManager.addApplyingFunction(to: connection)
}

@Suite("Samples about replicas")
struct ReplicaSamples {
  @Test("A restored backup is seen before, and told of once")
  func restored() throws {
    let files = try SampleFiles()
    let home = BuckiaHome(path: files.folder.file("home"))
    let database = DatabaseManager(files.mine, home: home)
    try database.initialize()
    let backup = try files.folder.copy(files.mine, to: "backup.sqlite")
    try files.deliver()
    #expect(try Printed.lines { try applyAndTell(notes: files.mine, inbound: files.inbound, home: home) } == [])
    #expect(try Printed.lines { try look(database: database) } == [])
    try FileManager.default.removeItem(atPath: files.mine)
    _ = try files.folder.copy(backup, to: "mine.sqlite")
    #expect(try Printed.lines { try look(database: database) }.count == 1)
    let told = try Printed.lines { try applyAndTell(notes: files.mine, inbound: files.inbound, home: home) }
    #expect(told.count == 1)
    #expect(try Printed.lines { try look(database: database) } == [])
  }

  @Test("Copies of a database belong to the same dataset")
  func dataset() throws {
    let files = try SampleFiles()
    let database = DatabaseManager(files.mine, home: BuckiaHome(path: files.folder.file("home")))
    let copy = DatabaseManager(
      try files.folder.copy(files.mine, to: "copy.sqlite"), home: BuckiaHome(path: files.folder.file("other home")))
    try join(database: database, otherCopy: copy)
    let dataset = try copy.dataset()
    #expect(try dataset != nil && dataset == database.dataset())
  }

  @Test("A trigger can call the function on a connection of the app")
  func function() throws {
    let files = try SampleFiles()
    try TestDatabases.run(
      "CREATE TRIGGER edited AFTER UPDATE ON tags WHEN NOT buckia_applying() BEGIN DELETE FROM notes; END",
      on: files.mine)
    let sqlite = try LoadedSQLite.linked.get()
    try sqlite.withHandle(to: files.mine) { connection in
      try addFunction(to: connection)
      try sqlite.execute("UPDATE tags SET colour = 'red'", on: connection)
    }
    #expect(try files.titles() == [])
  }
}
