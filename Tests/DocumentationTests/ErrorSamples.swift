import Buckia
import TestSupport
import Testing

/// Tells errors apart.
private func applyWithErrors(database: DatabaseManager, inbound: String) throws {
  do {
    let report = try database.processInboundChanges([inbound])
    for diff in report.rejected { print(diff.path, diff.code?.rawValue ?? "", diff.reason ?? "") }
  } catch let error as BuckiaError where error.isBusy {
    print("another program writes to the database; try again later")
  } catch let error as BuckiaError where error.code == .noDatabase {
    print(error.context.path ?? "", "does not exist")
  }
}

@Suite("Samples about errors")
struct ErrorSamples {
  @Test("A damaged file is reported, and is no error")
  func damage() throws {
    let files = try SampleFiles()
    try files.deliverDamage()
    let printed = try Printed.lines { try applyWithErrors(database: files.database, inbound: files.inbound) }
    #expect(printed.count == 1)
    #expect(printed.first?.hasPrefix(files.inbound) == true)
  }

  @Test("A locked database and a missing one are errors with codes")
  func codes() throws {
    let files = try SampleFiles()
    try files.deliver()
    var database = files.database
    database.busyTimeout = 0
    let sqlite = try LoadedSQLite.linked.get()
    try sqlite.withHandle(to: files.mine) { connection in
      try sqlite.execute("BEGIN EXCLUSIVE", on: connection)
      let printed = try Printed.lines { try applyWithErrors(database: database, inbound: files.inbound) }
      #expect(printed == ["another program writes to the database; try again later"])
    }
    let missing = DatabaseManager(files.folder.file("missing.sqlite"))
    #expect(
      try Printed.lines { try applyWithErrors(database: missing, inbound: files.inbound) }
        == ["\(missing.path) does not exist"])
  }
}
