import Buckia
import BuckiaFormat
import BuckiaApply
import Foundation
import SQLiteConnections
import Testing
import TestSupport

private let photos = """
  CREATE TABLE photos(id INTEGER PRIMARY KEY, pixels BLOB);
  CREATE TABLE notes(id INTEGER PRIMARY KEY, text TEXT);
  INSERT INTO notes VALUES (1, 'one')
  """

/// Large files are applied while the rest of them is still being read and verified. This does not change the result.
@Suite struct StreamedFileTests {
  private static let manyRows = """
    WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 90)
    INSERT INTO photos SELECT i, randomblob(100000) FROM n; INSERT INTO notes VALUES (2, 'two')
    """

  /// Damages a byte of the file at a fraction of its length.
  private func damage(_ path: String, at part: Double) throws {
    var bytes = try fileBytes(path)
    bytes[Int(Double(bytes.count - 1) * part)] ^= 0x10
    try Data(bytes).write(to: URL(fileURLWithPath: path))
  }

  @Test("Large files are applied completely, in a folder with small ones")
  func whole() throws {
    let exchange = try Exchange(photos)
    try exchange.send("INSERT INTO notes VALUES (3, 'three')")
    try exchange.send(Self.manyRows)
    try exchange.send("INSERT INTO photos VALUES (1000, x'00')")
    try exchange.send(
      "INSERT INTO photos VALUES (2000, randomblob(6000000)), (2001, x'01'); INSERT INTO notes VALUES (9, 'nine')")
    let report = try exchange.apply()
    #expect(report.diffs.map(\.state) == [.applied, .applied, .applied, .applied])
    #expect(report.diffs.map(\.inserted) == [1, 91, 1, 3])
    #expect(try exchange.rows("SELECT count(*), sum(length(pixels)) FROM photos") == ["93|15000002"])
    #expect(try exchange.rows("SELECT id FROM notes ORDER BY id") == ["1", "2", "3", "9"])
    #expect(try exchange.folder.names(in: "inbound").isEmpty)
  }

  @Test(
    "A file that is damaged anywhere changes nothing, and the others are applied",
    arguments: [
      0.05, 0.3, 0.5, 0.7, 0.9, 0.99, 0.9999, 1,
    ])
  func damaged(_ part: Double) throws {
    let exchange = try Exchange(photos)
    try exchange.send("INSERT INTO notes VALUES (3, 'three')")
    try damage(#require(try exchange.send(Self.manyRows).path), at: part)
    try exchange.send("INSERT INTO notes VALUES (4, 'four')")
    let report = try exchange.apply()
    #expect(report.diffs.map(\.state) == [.applied, .rejected, .applied])
    #expect(try exchange.rows("SELECT count(*) FROM photos") == ["0"])
    #expect(try exchange.rows("SELECT id FROM notes ORDER BY id") == ["1", "3", "4"])
    let refused = try exchange.database.log().filter { $0.state == .rejected }
    #expect(refused.count == 1 && refused.first?.reason?.isEmpty == false)
    #expect(try exchange.apply().diffs.map(\.state) == [.rejected])
  }

  @Test("Damage is reported even if the file would be refused for another reason, or was applied before")
  func precedence() throws {
    let exchange = try Exchange(photos)
    let path = try #require(try exchange.send(Self.manyRows).path)
    let copy = try exchange.folder.copy(path, to: "copy.bdiff")
    try damage(path, at: 0.8)
    try TestDatabases.run("INSERT INTO photos VALUES (1, 'mine')", on: exchange.mine)
    let damaged = try exchange.apply(ApplyOptions(conflicts: .abort)).diffs
    #expect(damaged.map(\.state) == [.rejected])
    #expect(damaged.first?.code != .conflict)
    #expect(try exchange.database.processInboundChanges([copy]).diffs.map(\.state) == [.applied])
    #expect(try exchange.apply().diffs.map(\.state) == [.rejected])
    #expect(try exchange.database.processInboundChanges([copy]).diffs.map(\.state) == [.alreadyApplied])
  }

  @Test("A file that is refused, tried in a dry run, stopped or quarantined changes nothing")
  func takenBack() throws {
    struct Stop: Error {}
    let exchange = try Exchange(photos)
    try exchange.send(Self.manyRows)
    try TestDatabases.run("INSERT INTO photos VALUES (80, 'mine')", on: exchange.mine)
    #expect(try exchange.apply(ApplyOptions(conflicts: .abort)).diffs.map(\.state) == [.rejected])
    #expect(try exchange.apply(ApplyOptions(isDryRun: true)).diffs.map(\.state) == [.applied])
    #expect(throws: Stop.self) { try exchange.apply { _ in throw Stop() } }
    #expect(try exchange.apply(ApplyOptions(trust: .known)).diffs.map(\.state) == [.quarantined])
    #expect(try exchange.rows("SELECT id, typeof(pixels) = 'text' FROM photos") == ["80|1"])
    let report = try exchange.apply(ApplyOptions(conflicts: .takeIncoming, trust: .any))
    #expect(report.diffs.map(\.state) == [.applied])
    #expect(report.diffs.map(\.conflicts) == [1])
    #expect(try exchange.rows("SELECT count(*), sum(length(pixels)) FROM photos") == ["90|9000000"])
  }
}
