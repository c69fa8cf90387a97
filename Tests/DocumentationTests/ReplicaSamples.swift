import Buckia
import Foundation
import TestSupport
import Testing

/// Says what became of the replica.
private func applyAndTell(database: DatabaseManager, inbound: String, home: BuckiaHome) throws {
  let report = try database.processInboundChanges([inbound], home: home)
  for remark in report.warnings { print(remark) }
}

/// Looks whether it was restored.
private func look(database: DatabaseManager, home: BuckiaHome) throws {
  if let replica = try database.status(home: home).replica, replica.standing != .present {
    print("The database was restored or copied; it begins anew with the next call.")
  }
}

/// Keeps the diffs of other databases out.
private func join(database: DatabaseManager, home: BuckiaHome, otherCopy: DatabaseManager, otherHome: BuckiaHome) throws
{
  let dataset = try database.beginDataset(home: home)
  try otherCopy.joinDataset(dataset, home: otherHome)
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
    try files.database.initialize(home: home)
    let backup = try files.folder.copy(files.mine, to: "backup.sqlite")
    try files.deliver()
    #expect(try Printed.lines { try applyAndTell(database: files.database, inbound: files.inbound, home: home) } == [])
    #expect(try Printed.lines { try look(database: files.database, home: home) } == [])
    try FileManager.default.removeItem(atPath: files.mine)
    _ = try files.folder.copy(backup, to: "mine.sqlite")
    #expect(try Printed.lines { try look(database: files.database, home: home) }.count == 1)
    let told = try Printed.lines { try applyAndTell(database: files.database, inbound: files.inbound, home: home) }
    #expect(told.count == 1)
    #expect(try Printed.lines { try look(database: files.database, home: home) } == [])
  }

  @Test("Copies of a database belong to the same dataset")
  func dataset() throws {
    let files = try SampleFiles()
    let copy = DatabaseManager(try files.folder.copy(files.mine, to: "copy.sqlite"))
    try join(
      database: files.database, home: BuckiaHome(path: files.folder.file("home")), otherCopy: copy,
      otherHome: BuckiaHome(path: files.folder.file("other home")))
    let dataset = try copy.dataset()
    #expect(try dataset != nil && dataset == files.database.dataset())
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
