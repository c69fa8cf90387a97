import Buckia
import TestSupport
import Testing

/// Lets the later diff win.
private func applyLatest(notes: String, shared: String, inbound: String) throws {
  let database = DatabaseManager(notes)
  try database.keepClocks()

  var options = ApplyOptions(conflicts: .latest)
  options.snapshot = shared
  try database.processInboundChanges([inbound], options: options)
}

/// Tells who has written a row.
private func blame(database: DatabaseManager) throws {
  let origin = try database.origin(ofRowIn: "notes", key: ["id": .integer(1)])
  for column in origin.columns {
    print(column.name, column.source?.sender ?? "so from the beginning, or changed here")
  }
}

@Suite("Samples about converging")
struct ConvergingSamples {
  private let files: SampleFiles

  init() throws {
    files = try SampleFiles(ours: "UPDATE notes SET title = 'Ferry' WHERE id = 1")
    try files.deliver()
  }

  @Test("The later diff wins, and the row tells which it was")
  func later() throws {
    let shared = files.mine + ".shared"
    try applyLatest(notes: files.mine, shared: shared, inbound: files.inbound)
    #expect(try files.titles().first == "Ship")
    let printed = try Printed.lines { try blame(database: files.database) }
    #expect(printed.contains("title unsigned"))
    #expect(printed.contains { $0.hasSuffix("so from the beginning, or changed here") })
  }
}
