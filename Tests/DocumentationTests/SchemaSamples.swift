import Buckia
import TestSupport
import Testing

/// Shows what would become of the schema.
private func showPlan(database: DatabaseManager, inbound: String) throws {
  for diff in try database.processInboundChanges([inbound], options: ApplyOptions(isDryRun: true)).diffs {
    for note in diff.plan { print(note.table, note.column ?? "", note.action) }
  }
}

/// Leaves the schema to the app's own upgrade.
private func applyAndHold(database: DatabaseManager, inbound: String) throws {
  let options = ApplyOptions(schema: .hold)
  for diff in try database.processInboundChanges([inbound], options: options).diffs where diff.state == .held {
    print(diff.heldParts, "tables or columns wait for an upgrade")
  }
}

/// Declares a renamed column.
private func sendRename(before: String, now: String, outbox: String) throws {
  var options = DiffOptions()
  options.renames = [ColumnRename(table: "notes", from: "title", to: "heading")]
  let report = try DatabaseManager(now).createDatabaseDiff(
    since: before, output: .folder(outbox), options: options)
  print(report.tables.flatMap(\.renames).map(\.newName))
}

@Suite("Samples about schemas that differ")
struct SchemaSamples {
  @Test("A dry run shows what becomes of each column")
  func plan() throws {
    let files = try SampleFiles(
      theirs: "ALTER TABLE notes ADD COLUMN place TEXT; UPDATE notes SET place = 'harbour'")
    try files.deliver()
    #expect(
      try Printed.lines { try showPlan(database: files.database, inbound: files.inbound) } == ["notes place add"])
  }

  @Test("What has no place is held until the app's own upgrade has made one")
  func hold() throws {
    let files = try SampleFiles(
      theirs: "ALTER TABLE notes ADD COLUMN place TEXT; UPDATE notes SET place = 'harbour' WHERE id = 1")
    try files.deliver()
    #expect(
      try Printed.lines { try applyAndHold(database: files.database, inbound: files.inbound) }
        == ["1 tables or columns wait for an upgrade"])
    try TestDatabases.run("ALTER TABLE notes ADD COLUMN place TEXT", on: files.mine)
    try files.database.processInboundChanges([files.inbound])
    #expect(try TestDatabases.texts("SELECT place FROM notes WHERE id = 1", on: files.mine) == ["harbour"])
  }

  @Test("A declared rename finds the column under its old name")
  func rename() throws {
    let files = try SampleFiles(
      theirs: "ALTER TABLE notes RENAME COLUMN title TO heading; UPDATE notes SET heading = 'Ship' WHERE id = 1")
    let printed = try Printed.lines { try sendRename(before: files.before, now: files.now, outbox: files.outbox) }
    #expect(printed == ["[\"heading\"]"])
    try files.database.processInboundChanges([files.outbox])
    #expect(try files.titles() == ["Ship", "Radio"])
  }
}
