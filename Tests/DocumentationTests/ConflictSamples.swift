import Buckia
import TestSupport
import Testing

/// Decides by table and column.
private func applyWithPolicies(database: DatabaseManager, inbound: String) throws {
  var options = ApplyOptions()
  options.conflicts = [
    .table("tags"): .takeIncoming,
    .column("title", of: "notes"): .takeIncoming,
    .otherwise: .keepLocal,
  ]
  try database.processInboundChanges([inbound], options: options)
}

/// Decides row by row.
private func applyWithResolver(database: DatabaseManager, inbound: String) throws {
  try database.processInboundChanges(
    [inbound],
    resolver: { conflict in
      guard conflict.table == "notes", conflict.kind == .data else { return .useDefault }
      // The later edit wins.
      guard let here = conflict.local.integer("edited"), let there = conflict.incoming.integer("edited") else {
        return .useDefault
      }
      return there > here ? .takeIncoming : .keepLocal
    })
}

/// Writes values of its own.
private func applyWithMerge(database: DatabaseManager, inbound: String) throws {
  try database.processInboundChanges(
    [inbound],
    resolver: { conflict in
      guard let here = conflict.local.text("title"), let there = conflict.incoming.text("title") else {
        return .useDefault
      }
      return .write(["title": .text("\(here) / \(there)")])
    })
}

/// Shows what was decided.
private func review(database: DatabaseManager) throws {
  for conflict in try database.conflicts() {
    print(conflict.table, conflict.kind, conflict.outcome)
    for cell in conflict.incoming ?? [] {
      if let value = cell.value { print("  ", cell.column, value) }
    }
  }
}

/// Decides recorded conflicts.
private func decideLater(database: DatabaseManager) throws {
  try database.resolve([1], taking: .incoming, options: ResolveOptions(decidedBy: "Ben"))
  try database.resolve([1], taking: .values(["title": "Both"]))

  var filter = ConflictFilter()
  filter.table = "tags"
  filter.isOpen = true
  let report = try database.resolve(matching: filter, taking: .incoming)
  for conflict in report.refused { print(conflict.id, conflict.refusal?.reason ?? "") }
}

@Suite("Samples about conflicts")
struct ConflictSamples {
  private let files: SampleFiles

  init() throws {
    files = try SampleFiles(
      ours: "UPDATE notes SET title = 'Ferry', edited = 15 WHERE id = 1; UPDATE tags SET colour = 'red'")
    try files.deliver()
  }

  private func edited() throws -> [String] {
    try TestDatabases.texts("SELECT edited FROM notes WHERE id = 1", on: files.mine)
  }

  @Test("Policies decide by table and by column")
  func policies() throws {
    try applyWithPolicies(database: files.database, inbound: files.inbound)
    #expect(try files.titles() == ["Ship", "Radio", "Harbour"])
    #expect(try files.colours() == ["green"])
    #expect(try edited() == ["15"])
  }

  @Test("A resolver lets the later edit win, and leaves the rest to the policies")
  func laterEdit() throws {
    try applyWithResolver(database: files.database, inbound: files.inbound)
    #expect(try files.titles() == ["Ship", "Radio", "Harbour"])
    #expect(try edited() == ["20"])
    #expect(try files.colours() == ["red"])
  }

  @Test("A resolver can write values of its own")
  func merge() throws {
    try applyWithMerge(database: files.database, inbound: files.inbound)
    #expect(try files.titles().first == "Ferry / Ship")
  }

  @Test("Recorded conflicts have the version that was not written")
  func records() throws {
    try files.database.processInboundChanges([files.inbound])
    let printed = try Printed.lines { try review(database: files.database) }
    #expect(printed.contains("notes data keptLocal"))
    #expect(printed.contains { $0.contains("Ship") })
  }

  @Test("Recorded conflicts are decided later, one by one or all of a table")
  func later() throws {
    try files.database.processInboundChanges([files.inbound])
    #expect(try Printed.lines { try decideLater(database: files.database) }.isEmpty)
    #expect(try files.titles().first == "Both")
    #expect(try files.colours() == ["green"])
  }
}
