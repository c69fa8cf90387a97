import BuckiaApply
import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas
import SQLiteConnections
import TestSupport
import Testing

@testable import Buckia

/// The clock of the ids and the clock of the device.
@Suite struct ClockTests {
  private static let schema = "CREATE TABLE notes(id INTEGER PRIMARY KEY, n)"
  private var now: Int64 { WallClock.unixMilliseconds / 1_000 }

  /// Applies a file whose id is dated some seconds from now.
  @discardableResult
  private func apply(after seconds: Int64, in exchange: Exchange) throws -> ApplyReport {
    let row = Int64.random(in: 1...Int64.max)
    try exchange.plantRaw(insertion(into: "notes", values: [row, 1]), id: Exchange.id(at: now + seconds))
    return try exchange.apply()
  }

  private func diff(in exchange: Exchange) throws -> DiffReport {
    try TestDatabases.run("INSERT INTO notes VALUES (abs(random()), 0)", on: exchange.mine)
    return try exchange.database.createDatabaseDiff(
      since: exchange.base, output: .folder(exchange.folder.file("outbox")))
  }

  @Test("A clock behind the newest ledger entry or the newest id is reported, and new ids are still greater")
  func behind() throws {
    let exchange = try Exchange(Self.schema)
    try apply(after: 0, in: exchange)
    #expect(try apply(after: 200, in: exchange).warnings == [])
    // As if the clock of the device had been a day ahead.
    try TestDatabases.run("UPDATE buckia_ledger SET recorded_at = recorded_at + 86400000", on: exchange.mine)
    let report = try exchange.apply()
    #expect(report.warnings.map(\.code) == [.clockBehind])
    #expect(report.warnings.first?.arguments.count == 2)
    #expect(try diff(in: exchange).warnings.map(\.code) == [.clockBehind])
    let ahead = Exchange.id(at: now + 86_400)
    try TestDatabases.run(
      "UPDATE buckia_ledger SET recorded_at = 1, diff = '\(ahead)' WHERE entry = 1", on: exchange.mine)
    let made = try diff(in: exchange)
    #expect(made.warnings.map(\.code) == [.clockBehind])
    #expect(try #require(made.id) > ahead)
    #expect(try exchange.apply().warnings.map(\.code) == [.clockBehind])
  }

  @Test("A clock that is behind by no more than the tolerance causes no warning")
  func withinTolerance() throws {
    let exchange = try Exchange(Self.schema)
    #expect(try apply(after: 290, in: exchange).applied.count == 1)
    #expect(try exchange.apply().warnings == [])
    #expect(try diff(in: exchange).warnings == [])
  }

  @Test("A file whose id is more than five minutes ahead waits until it is within five minutes")
  func waitsForItsTime() throws {
    let exchange = try Exchange(Self.schema)
    let start: Int64 = 1_700_000_000
    let path = try exchange.plant(
      insertion(into: "notes", values: [7, 1]), definitions: definitions(of: exchange.base),
      id: Exchange.id(at: start + 302))
    let changes = try exchange.changes()
    let file = IncomingFile(
      path: path, name: changes.file, id: changes.key.id, sender: "", content: .verified(changes), byteCount: 100,
      digest: { changes.key.digest })
    for time in [start * 1_000, start * 1_000 + 1_999] {
      let waiting = try ReadyFiles.receive([file], into: exchange.mine, at: time)
      #expect(waiting.map(\.state) == [.waiting])
      #expect(waiting.map(\.code) == [.fromTheFuture])
      #expect(waiting.first?.reason?.contains("14 November 2023, 22:18 UTC, 5 minutes ahead") == true)
      #expect(try exchange.rows("SELECT id FROM notes") == [])
      #expect(try exchange.database.log().map(\.state) == [.waiting])
    }
    #expect(try ReadyFiles.receive([file], into: exchange.mine, at: start * 1_000 + 2_000).map(\.state) == [.applied])
    #expect(try exchange.rows("SELECT id FROM notes") == ["7"])
    #expect(try exchange.database.log().map(\.state) == [.applied])
  }

  @Test("Only applied files advance the clock; waiting and refused files do not")
  func onlyApplied() throws {
    let exchange = try Exchange(Self.schema)
    #expect(try apply(after: 3_600, in: exchange).diffs.map(\.state) == [.waiting])
    try exchange.plantRaw(Array("nonsense".utf8), id: Exchange.id(at: now + 200))
    #expect(try exchange.apply().diffs.map(\.state).contains(.rejected))
    let made = try #require(try diff(in: exchange).id)
    #expect(made.unixSeconds <= now + 1)
    #expect(try apply(after: 250, in: exchange).applied.count == 1)
    #expect(try #require(try diff(in: exchange).id).unixSeconds >= now + 200)
  }

  @Test("Diffs that answer each other with ids ahead of time push no clock beyond the tolerance")
  func ratchet() throws {
    let exchange = try Exchange(Self.schema)
    let start = now
    try apply(after: KSUIDClock.tolerance - 10, in: exchange)
    var last = try #require(try diff(in: exchange).id)
    for _ in 0..<5 {
      // Each side makes its id greater than the last id of the other side.
      var theirs = KSUIDClock(last: last)
      var generator = SystemRandomNumberGenerator()
      let answer = try theirs.next(unixSeconds: now, using: &generator)
      try exchange.plantRaw(insertion(into: "notes", values: [Int64.random(in: 1...Int64.max), 1]), id: answer)
      #expect(try exchange.apply().applied.count == 1)
      let made = try #require(try diff(in: exchange).id)
      #expect(made > answer)
      last = made
    }
    #expect(last.unixSeconds <= max(now, start + KSUIDClock.tolerance))
  }
}
