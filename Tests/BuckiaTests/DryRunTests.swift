import Buckia
import Foundation
import SQLiteConnections
import TestSupport
import Testing

/// A dry run does everything in one transaction that is rolled back, and holds no lock while it waits for files.
@Suite struct DryRunTests {
  private static let schema = """
    CREATE TABLE notes(id INTEGER PRIMARY KEY, text); CREATE TABLE others(x);
    INSERT INTO notes VALUES (1, 'one'), (2, 'two')
    """
  private static let dry = ApplyOptions(isDryRun: true)

  /// Five files, the third of which meets a conflict.
  private func exchange() throws -> Exchange {
    let exchange = try Exchange(Self.schema)
    for number in 3...7 {
      try exchange.send(
        number == 5 ? "UPDATE notes SET text = 'theirs' WHERE id = 2" : "INSERT INTO notes VALUES (\(number), 'x')")
    }
    try TestDatabases.run("UPDATE notes SET text = 'mine' WHERE id = 2", on: exchange.mine)
    return exchange
  }

  /// Writes on another connection, which does not wait for locks.
  private func write(to path: String) throws {
    let other = try SQLiteConnection(opening: path, as: .readWrite, busyTimeout: 0)
    try other.execute("INSERT INTO others VALUES (1)")
  }

  @Test("While a dry run waits for files to be verified, other connections can write")
  func othersWrite() throws {
    let exchange = try exchange()
    var writes = 0
    let report = try exchange.database.processInboundChanges(
      [exchange.inbound], options: Self.dry,
      progress: { progress in
        guard progress.activity == .verifying else { return }
        try write(to: exchange.mine)
        writes += 1
      })
    #expect(report.diffs.map(\.state) == [.applied, .applied, .applied, .applied, .applied])
    #expect(report.dryRunConflicts.count == 1)
    #expect(writes >= 5)
    #expect(try exchange.rows("SELECT count(*) FROM others") == ["\(writes)"])
    #expect(try exchange.rows("SELECT count(*) FROM notes") == ["2"])
  }

  @Test("A dry run does not read verified files again while it holds the write lock")
  func readOnce() throws {
    let exchange = try exchange()
    _ = try exchange.folder.write(Array("nonsense".utf8), to: "inbound/\(Exchange.id(at: 1_600_000_000)).bdiff")
    let report = try exchange.database.processInboundChanges(
      [exchange.inbound], options: Self.dry,
      progress: { progress in
        guard progress.activity == .applying else { return }
        for name in try exchange.folder.names(in: "inbound") {
          try FileManager.default.removeItem(atPath: exchange.folder.file("inbound/\(name)"))
        }
      })
    #expect(report.diffs.map(\.state) == [.rejected, .applied, .applied, .applied, .applied, .applied])
    #expect(report.diffs.allSatisfy { $0.warnings.isEmpty })
    #expect(report.dryRunConflicts.count == 1)
  }

  @Test("Files that do not fit in memory are read again, with the same result", arguments: [0, 9_000, 18_000, 1 << 20])
  func withoutRoom(_ memoryLimit: Int) throws {
    let exchange = try exchange()
    _ = try exchange.folder.write(Array("nonsense".utf8), to: "inbound/\(Exchange.id(at: 1_600_000_000)).bdiff")
    var options = Self.dry
    options.memoryLimit = memoryLimit
    let report = try exchange.apply(options)
    #expect(report.diffs.map(\.state) == [.rejected, .applied, .applied, .applied, .applied, .applied])
    #expect(report.diffs.map(\.inserted) == [0, 1, 1, 0, 1, 1])
    #expect(report.dryRunConflicts.count == 1)
    #expect(try exchange.rows("SELECT count(*) FROM notes") == ["2"])
    #expect(try exchange.folder.names(in: "inbound").count == 6)
    #expect(try exchange.apply().diffs.map(\.state) == report.diffs.map(\.state))
  }

  @Test("A dry run can be stopped while files are verified")
  func stopped() throws {
    struct Stop: Error {}
    let exchange = try exchange()
    #expect(throws: Stop.self) {
      try exchange.database.processInboundChanges(
        [exchange.inbound], options: Self.dry, progress: { if $0.activity == .verifying { throw Stop() } })
    }
  }
}
