import Buckia
import Testing

/// Applies a folder.
private func receive(notes: String, inbound: String) throws {
  let database = DatabaseManager(notes)
  let report = try database.processInboundChanges([inbound])
  for diff in report.diffs {
    switch diff.state {
    case .applied, .alreadyApplied: break
    case .held: print(diff.path, "is stored in part until the app is upgraded")
    case .waiting, .quarantined, .rejected: print(diff.path, diff.reason ?? "")
    }
  }
}

/// Looks before it applies.
private func preview(database: DatabaseManager, inbound: String) throws {
  let options = ApplyOptions(isDryRun: true)
  let report = try database.processInboundChanges([inbound], options: options)
  for diff in report.diffs { print(diff.inserted, diff.updated, diff.deleted, diff.conflicts) }
  for conflict in report.dryRunConflicts { print(conflict.table, conflict.kind) }
}

/// Asks for the rows that a view has to show again.
private func refresh(database: DatabaseManager, inbound: String) throws {
  var options = ApplyOptions()
  options.changedRowLimit = 1_000
  let report = try database.processInboundChanges([inbound], options: options)
  for rows in report.changedRows {
    if let keys = rows.keys { print(rows.table, keys) } else { print(rows.table, "has changed") }
  }
}

/// Takes a diff back, and brings it back again.
private func takeBack(database: DatabaseManager, id: String) throws {
  let report = try database.undo([.diff(id)])
  for diff in report.undone { print(diff.inserted, diff.updated, diff.deleted, diff.conflicts) }
  // Changed your mind? An undo can be taken back, too.
  try database.undo(report.undone.map { .diff($0.id.description) })
}

/// Looks into a folder.
private func inspect(inbound: String) throws {
  for file in try DiffInspection.verify([inbound]).files where file.isGood {
    try DiffInspection.open(file.path).forEachChange { change in
      print(change.operation, change.table)
    }
  }
}

@Suite("Samples about receiving")
struct ReceivingSamples {
  @Test("Files of a folder are applied, and refused ones are named")
  func folder() throws {
    let files = try SampleFiles()
    try files.deliver()
    #expect(try Printed.lines { try receive(notes: files.mine, inbound: files.inbound) } == [])
    #expect(try files.titles() == ["Ship", "Radio", "Harbour"])
    try files.deliverDamage()
    #expect(try Printed.lines { try receive(notes: files.mine, inbound: files.inbound) }.count == 1)
  }

  @Test("A dry run changes nothing")
  func dryRun() throws {
    let files = try SampleFiles()
    try files.deliver()
    #expect(
      try Printed.lines { try preview(database: files.database, inbound: files.inbound) } == ["1 2 0 0"])
    #expect(try files.titles() == ["Boat", "Radio"])
  }

  @Test("The report lists the keys of changed rows")
  func changedRows() throws {
    let files = try SampleFiles(theirs: "UPDATE notes SET title = 'Ship' WHERE id = 1")
    try files.deliver()
    let printed = try Printed.lines { try refresh(database: files.database, inbound: files.inbound) }
    #expect(printed.count == 1)
    #expect(printed.first?.hasPrefix("notes [[") == true)
  }

  @Test("A diff can be taken back, and brought back")
  func undo() throws {
    let files = try SampleFiles()
    let sent = try files.deliver()
    try files.database.processInboundChanges([files.inbound])
    let id = try #require(sent.id).description
    #expect(try Printed.lines { try takeBack(database: files.database, id: id) } == ["0 2 1 0"])
    #expect(try files.titles() == ["Ship", "Radio", "Harbour"])
  }

  @Test("A file can be read without being applied")
  func inspection() throws {
    let files = try SampleFiles(theirs: "DELETE FROM notes WHERE id = 2")
    try files.deliver()
    #expect(try Printed.lines { try inspect(inbound: files.inbound) } == ["delete notes"])
  }
}
