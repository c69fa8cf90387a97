import Buckia
import Foundation
import TestSupport
import Testing

@Suite("Limits of files in folders")
struct InboundLimitTests {
  private let folder: TemporaryFolder
  private let database: String

  init() throws {
    folder = try TemporaryFolder()
    database = try TestDatabases.run(
      "CREATE TABLE note(id INTEGER PRIMARY KEY, text)", on: folder.file("notes.db"))
  }

  /// Runs statements, and sends their changes to the inbound folder.
  @discardableResult
  private func send(_ statements: String, isRaw: Bool = false) throws -> DiffReport {
    let name = "sent \(UInt64.random(in: 0...(.max))).db"
    let newer = try folder.copy("empty.db", to: name)
    try TestDatabases.run(statements, on: newer)
    var options = DiffOptions()
    options.isRaw = isRaw
    return try DatabaseManager(newer, home: BuckiaHome(path: folder.file("home"))).createDatabaseDiff(
      since: folder.file("empty.db"), output: .folder(folder.file("inbound")), options: options)
  }

  private func prepare() throws {
    _ = try folder.copy(database, to: "empty.db")
  }

  private func apply(
    _ path: String = "inbound", _ change: (inout ApplyOptions) -> Void = { _ in }
  ) throws -> [DiffOutcome] {
    var options = ApplyOptions()
    change(&options)
    return try DatabaseManager(database, home: BuckiaHome(path: folder.file("reader"))).processInboundChanges(
      [path.hasPrefix("/") ? path : folder.file(path)], options: options
    ).diffs
  }

  private func count() throws -> [String] { try TestDatabases.rows("SELECT count(*) FROM note", on: database) }

  @Test("A small file that unpacks to a large size is quarantined until a person names it", arguments: [false, true])
  func bomb(byID: Bool) throws {
    try prepare()
    let sent = try send("INSERT INTO note VALUES (1, zeroblob(70000000))")
    #expect(sent.bytes < 100_000)
    for _ in 0..<2 {
      let held = try #require(try apply().first)
      #expect(held.state == .quarantined)
      #expect(held.code == .overLimit)
      #expect(held.reason?.contains("applying it by its path") == true, "\(held.reason ?? "")")
      #expect(try count() == ["0"])
      #expect(try folder.names(in: "inbound").count == 1)
    }
    #expect(try apply { $0.isDryRun = true }.first?.code == .overLimit)
    let path = try #require(sent.path)
    let id = try #require(sent.id)
    #expect(try apply(byID ? "inbound" : path) { if byID { $0.limits.allowed = [id] } }.first?.state == .applied)
    #expect(try count() == ["1"])
    #expect(try DatabaseManager(database).status().ledger?.quarantined == 0)
  }

  @Test("A change that takes too much memory is quarantined in any file", arguments: [1, 20], [false, true])
  func largeChange(rows: Int, isRaw: Bool) throws {
    try prepare()
    let numbers = "WITH n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < \(rows))"
    let sent = try send(
      "\(numbers) INSERT INTO note SELECT i, randomblob(iif(i = \(rows), 1500000, 300000)) FROM n", isRaw: isRaw)
    let held = try #require(try apply { $0.memoryLimit = 2 << 20 }.first)
    #expect(held.state == .quarantined)
    #expect(held.code == .overLimit)
    #expect(try count() == ["0"])
    #expect(try apply { $0.memoryLimit = 4 << 20 }.first?.state == .applied)
    #expect(try count() == ["\(rows)"])
    withExtendedLifetime(sent) {}
  }

  @Test("A sender's bytes are limited per day, across calls", arguments: [false, true])
  func sender(isRaw: Bool) throws {
    try prepare()
    for id in 1...5 { try send("INSERT INTO note VALUES (\(id), randomblob(40000))", isRaw: isRaw) }
    for _ in 0..<3 {
      let outcomes = try apply { $0.limits.senderBytes = 100_000 }
      #expect(outcomes.filter { $0.code == .overLimit && $0.state == .quarantined }.count == 3)
      #expect(try count() == ["2"])
    }
    // A file that a person names does not count towards the limit.
    let left = try folder.names(in: "inbound").sorted()
    #expect(left.count == 3)
    #expect(try apply("inbound/\(left[0])") { $0.limits.senderBytes = 100_000 }.first?.state == .applied)
    #expect(try count() == ["3"])
    #expect(try apply { $0.limits.senderBytes = 180_000 }.filter { $0.state == .applied }.count == 2)
    #expect(try count() == ["5"])
  }

  @Test(
    "A damaged count of a sender's bytes is ignored, unless it has the date of today",
    arguments: ["'x'", "9223372036854775807", "'20000 9223372036854775807'", "x'00'"])
  func tampered(value: String) throws {
    try prepare()
    try DatabaseManager(database).initialize()
    let day = Int(Date().timeIntervalSince1970) / 86_400
    let shown = value.replacing("20000", with: "\(day)")
    try TestDatabases.run("INSERT INTO buckia_settings VALUES ('received-', \(shown))", on: database)
    try send("INSERT INTO note VALUES (1, 'x')")
    let outcome = try #require(try apply().first)
    #expect(outcome.state == (shown == value ? .applied : .quarantined))
  }
}
