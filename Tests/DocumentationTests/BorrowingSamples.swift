import Buckia
import TestSupport
import Testing

/// Applies files in a transaction of the app.
private func apply(connection: OpaquePointer, inbound: String) throws -> Set<String> {
  let changed = try DatabaseManager.borrowing(connection) { database in
    try database.processInboundChanges([inbound]).changedTables
  }
  return changed
}

/// Uses a connection of another copy of SQLite.
private func applyWithCopy(library: LoadedSQLite, connection: OpaquePointer, inbound: String) throws {
  let copy = try SQLiteCopy(resolving: { name in library.address(of: name) })
  let report = try DatabaseManager.borrowing(connection, of: copy) { database in
    try database.processInboundChanges([inbound])
  }
  print(report.applied.count)
}

@Suite("Samples about the app's own transaction")
struct BorrowingSamples {
  @Test("Files are applied in the app's transaction, and stay in their folder")
  func transaction() throws {
    let files = try SampleFiles()
    try files.deliver()
    let sqlite = try LoadedSQLite.linked.get()
    let changed = try sqlite.withHandle(to: files.mine) { connection in
      try sqlite.execute("BEGIN IMMEDIATE", on: connection)
      let changed = try apply(connection: connection, inbound: files.inbound)
      try sqlite.execute("COMMIT", on: connection)
      return changed
    }
    #expect(changed == ["notes", "tags"])
    #expect(try files.titles() == ["Ship", "Radio", "Harbour"])
    #expect(try files.folder.names(in: "inbound").count == 1)
    #expect(try files.database.processInboundChanges([files.inbound]).diffs.map(\.state) == [.alreadyApplied])
    #expect(try files.folder.names(in: "inbound").isEmpty)
  }

  @Test(
    "A connection of another copy of SQLite is used through that copy",
    .enabled(if: LoadedSQLite.obstacle == nil, "another copy of SQLite can be loaded"))
  func anotherCopy() throws {
    let files = try SampleFiles()
    try files.deliver()
    let library = try LoadedSQLite.second.get()
    let printed = try Printed.lines {
      try library.withHandle(to: files.mine) { connection in
        try applyWithCopy(library: library, connection: connection, inbound: files.inbound)
      }
    }
    #expect(printed == ["1"])
    #expect(try files.titles() == ["Ship", "Radio", "Harbour"])
  }
}
