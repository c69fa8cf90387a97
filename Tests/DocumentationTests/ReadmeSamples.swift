import Buckia
import Testing

/// What an app does first.
private func exchange(before: String, now: String, outbox: String, notes: String, inbound: String) throws {
  // Send what changed between two copies of a database.
  let sent = try DatabaseManager(now).createDatabaseDiff(since: before, output: .folder(outbox))
  print(sent.path ?? "nothing has changed")

  // Apply everything in a folder, each file exactly once.
  let database = DatabaseManager(notes)
  var options = ApplyOptions()
  options.conflicts = [.table("tags"): .takeIncoming, .otherwise: .keepLocal]
  let report = try database.processInboundChanges([inbound], options: options)
  for diff in report.rejected { print(diff.path, diff.reason ?? "") }
  // Look back: what met a local change, and what arrived.
  for conflict in try database.conflicts() { print(conflict.table, conflict.outcome) }
  for entry in try database.log() { print(entry.file, entry.state) }
}

@Suite("Samples of the README")
struct ReadmeSamples {
  @Test("Two databases exchange their changes")
  func exchanges() throws {
    let files = try SampleFiles(ours: "UPDATE notes SET title = 'Ferry' WHERE id = 1; UPDATE tags SET colour = 'red'")
    try files.deliver()
    let printed = try Printed.lines {
      try exchange(
        before: files.before, now: files.now, outbox: files.outbox, notes: files.mine, inbound: files.inbound)
    }
    #expect(try files.folder.names(in: "outbox").count == 1)
    #expect(try files.titles() == ["Ferry", "Radio", "Harbour"])
    #expect(try files.colours() == ["green"])
    #expect(printed.contains("tags tookIncoming"))
    #expect(printed.last?.hasSuffix(".bdiff applied") == true)
  }
}
