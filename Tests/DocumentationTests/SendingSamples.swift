import Buckia
import TestSupport
import Testing

/// Writes what changed.
private func send(before: String, now: String, outbox: String) throws {
  let report = try DatabaseManager(now).createDatabaseDiff(since: before, output: .folder(outbox))
  for table in report.tables { print(table.name, table.inserted, table.updated, table.deleted) }
  for item in report.skipped { print(item.name, "is not in the file:", item.reason) }
}

/// Makes the first snapshot.
private func begin(_ now: String, _ shared: String) throws {
  // Once, at the beginning.
  try DatabaseManager(now).snapshot(to: shared)
}

/// Sends and receives, and keeps what both sides have.
private func exchange(now: String, shared: String, outbox: String, inbound: String) throws {
  // Send what changed since the last exchange, then apply what others have sent.
  try DatabaseManager(now).createDatabaseDiff(since: shared, output: .folder(outbox))
  var options = ApplyOptions()
  options.snapshot = shared
  try DatabaseManager(now).processInboundChanges([inbound], options: options)
}

/// Writes all rows.
private func sendEverything(now: String, file: String) throws {
  let report = try DatabaseManager(now).createDatabaseDiff(since: nil, output: .file(file, replacing: true))
  print(report.bytes, "bytes")
}

/// Writes some rows and columns.
private func sendSelection(before: String, now: String, outbox: String) throws {
  var options = DiffOptions()
  options.tables = ["notes"]
  options.selections["notes"] = RowSelection(where: "owner = :me", ["me": 7], omitting: ["draft"])
  let report = try DatabaseManager(now).createDatabaseDiff(
    since: before, output: .folder(outbox), options: options)
  print(report.tables.map(\.inserted))
}

/// Looks at a database before it is sent.
private func examine(notes: String) throws {
  let report = try DatabaseManager(notes).examine()
  for table in report.replicates { print(table.name, "is identified by", table.key) }
  for item in report.skipped { print(item.name, "does not replicate:", item.reason) }
  for warning in report.warnings { print(warning) }
}

/// Makes of one person's changes what they are on top of another's.
private func rebase(mine: String, theirs: String, outbox: String) throws {
  let options = RebaseOptions(policy: .takeIncoming, remapsKeys: true)
  let changes = try RewrittenChanges(rebasing: mine, onto: [theirs], options: options)
  for conflict in changes.rebase?.conflicts ?? [] { print(conflict.table, conflict.kind.rawValue) }
  let report = try changes.write(to: .folder(outbox))
  print(report.tables.map(\.name))
}

@Suite("Samples about sending")
struct SendingSamples {
  @Test("The report counts the changes of each table")
  func changes() throws {
    let files = try SampleFiles()
    let printed = try Printed.lines { try send(before: files.before, now: files.now, outbox: files.outbox) }
    #expect(printed.sorted() == ["notes 1 1 0", "tags 0 1 0"])
    #expect(try files.folder.names(in: "outbox").count == 1)
  }

  @Test("After an exchange nothing is left to be sent")
  func nothingIsLeft() throws {
    let files = try SampleFiles(ours: "UPDATE notes SET title = 'Wireless' WHERE id = 2")
    try files.deliver()
    let shared = files.folder.file("shared.sqlite")
    try begin(files.before, shared)
    try exchange(now: files.mine, shared: shared, outbox: files.outbox, inbound: files.inbound)
    #expect(try files.folder.names(in: "outbox").count == 1)
    #expect(try files.titles() == ["Ship", "Wireless", "Harbour"])
    let next = try files.database.createDatabaseDiff(since: shared, output: .folder(files.outbox))
    #expect(next.id == nil)
  }

  @Test("Without an older database all rows are sent")
  func everything() throws {
    let files = try SampleFiles()
    let file = files.folder.file("all.bdiff")
    let printed = try Printed.lines { try sendEverything(now: files.now, file: file) }
    #expect(printed.count == 1)
    #expect(try DiffInspection.verify([file]).files.map(\.isGood) == [true])
    let empty = DatabaseManager(files.folder.file("empty.sqlite"))
    try empty.initialize()
    #expect(try empty.processInboundChanges([file]).applied.map(\.inserted) == [4])
  }

  @Test("Only the selected rows and columns are sent")
  func selection() throws {
    let files = try SampleFiles(
      theirs: "INSERT INTO notes VALUES (3, 'Harbour', 20, 7, 'unfinished'), (4, 'Secret', 20, 8, NULL)")
    let printed = try Printed.lines { try sendSelection(before: files.before, now: files.now, outbox: files.outbox) }
    #expect(printed == ["[1]"])
    try files.database.processInboundChanges([files.outbox])
    #expect(try files.titles() == ["Boat", "Radio", "Harbour"])
    #expect(try TestDatabases.texts("SELECT draft FROM notes WHERE id = 3", on: files.mine) == ["NULL"])
  }

  @Test("An examination names what replicates and what does not")
  func examination() throws {
    let files = try SampleFiles(theirs: "CREATE VIEW v AS SELECT 1; CREATE INDEX titles ON notes(title)")
    let printed = try Printed.lines { try examine(notes: files.now) }
    #expect(printed.contains("notes is identified by id"))
    #expect(printed.contains { $0.hasPrefix("titles does not replicate:") })
  }

  @Test("Rebased changes apply where the others have been applied, and conflicts are listed")
  func rebasing() throws {
    let files = try SampleFiles(
      ours: "UPDATE notes SET title = 'Raft' WHERE id = 1; INSERT INTO notes VALUES (3, 'Pier', 20, 7, NULL)")
    let theirs = try #require(files.deliver().path)
    let mine = files.folder.file("mine.bdiff")
    try DatabaseManager(files.mine).createDatabaseDiff(since: files.before, output: .file(mine, replacing: false))
    let printed = try Printed.lines { try rebase(mine: mine, theirs: theirs, outbox: files.outbox) }
    #expect(printed == ["notes updated-by-both", "[\"notes\"]"])
    try DatabaseManager(files.before).processInboundChanges([files.inbound, files.outbox])
    #expect(
      try TestDatabases.texts("SELECT title FROM notes ORDER BY id", on: files.before) == [
        "Ship", "Radio", "Harbour", "Pier",
      ])
  }
}
