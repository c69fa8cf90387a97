import Buckia
import Testing

/// Makes the ledger tables.
private func prepare(notes: String) throws {
  let report = try DatabaseManager(notes).initialize(trust: .any)
  if report.created { print("the ledger tables were made") }
}

/// Lists what arrived.
private func showLog(database: DatabaseManager) throws {
  for entry in try database.log() {
    print(entry.file, entry.state, entry.inserted, entry.updated, entry.deleted, entry.reason ?? "")
  }
}

/// Shows where the database stands.
private func showStatus(database: DatabaseManager) throws {
  let status = try database.status()
  print(status.ledger?.waiting ?? 0, "files wait,", status.openConflicts, "conflicts are open")
  for stream in status.streams { print(stream.sender, stream.sequence, stream.id?.unixSeconds ?? 0) }
}

@Suite("Samples about the ledger")
struct LedgerSamples {
  @Test("The ledger tables can be made in advance")
  func preparation() throws {
    let files = try SampleFiles()
    #expect(try Printed.lines { try prepare(notes: files.mine) } == ["the ledger tables were made"])
    try files.deliver()
    #expect(try !files.database.processInboundChanges([files.inbound]).createdLedger)
  }

  @Test("The log has a line for each file, refused ones included")
  func log() throws {
    let files = try SampleFiles()
    try files.deliver()
    try files.database.processInboundChanges([files.inbound])
    try files.deliverDamage()
    try files.database.processInboundChanges([files.inbound])
    let printed = try Printed.lines { try showLog(database: files.database) }
    #expect(printed.count == 2)
    #expect(printed.contains { $0.contains(".bdiff applied 1 2 0") })
    #expect(printed.contains { $0.contains(".bdiff rejected 0 0 0") })
  }

  @Test("The status counts what waits and what is open")
  func status() throws {
    let files = try SampleFiles(ours: "UPDATE notes SET title = 'Raft' WHERE id = 1")
    try files.deliver()
    try files.database.processInboundChanges([files.inbound])
    #expect(try Printed.lines { try showStatus(database: files.database) } == ["0 files wait, 1 conflicts are open"])
  }
}
