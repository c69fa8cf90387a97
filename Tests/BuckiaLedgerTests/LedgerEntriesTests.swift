import BuckiaBytes
import BuckiaLedger
import SQLiteConnections
import Testing

@Suite("Finding files in the ledger")
struct LedgerEntriesTests {
  private let id = KSUID(timestamp: 1, payloadHigh: 2, payloadLow: 3)

  private func database() throws -> SQLiteConnection {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try Ledger.prepare(on: connection)
    return connection
  }

  private func key(by sender: String, _ digest: UInt8, raw: Bool = false) -> LedgerKey {
    LedgerKey(sender: sender, id: id, digest: [UInt8](repeating: digest, count: 32), isRaw: raw)
  }

  @Test("A manifest is found by its digest from any sender; a sender's second one is an equivocation")
  func digestDecides() throws {
    let connection = try database()
    try LedgerEntries.record(key(by: "aa", 1), state: .applied, file: "f", at: 0, on: connection)
    let standings = try [key(by: "aa", 1), key(by: "", 1), key(by: "bb", 1), key(by: "aa", 2), key(by: "", 2)].map {
      try LedgerEntries.standing(of: $0, on: connection)
    }
    let applied = LedgerEntries.Standing.recorded(.applied)
    #expect(standings == [applied, applied, applied, .equivocation, .unknown])
    #expect(try LedgerEntries.standing(of: key(by: "", 1, raw: true), on: connection) == .unknown)
  }

  @Test(
    "Numbers continue after the greatest entry, and before it if no greater one is left",
    arguments: [
      ([], 1), ([1, 2, 7], 8), ([.max], 1), ([.max, .max - 1], 1), ([1, 5, .max], 6), ([.min, -1, 1, .max], 2),
      ([-5], 1),
    ] as [([Int64], Int64)])
  func numbers(entries: [Int64], next: Int64) throws {
    let connection = try database()
    for (place, entry) in entries.enumerated() {
      try LedgerEntries.record(
        key(by: "\(place)", 1), state: .applied, number: entry, file: "f", at: 0, on: connection)
    }
    #expect(try LedgerEntries.nextNumber(on: connection) == next)
  }

  @Test("The last record of a file is found by its id, or by name for a raw changeset or a refused file")
  func last() throws {
    let connection = try database()
    func last(_ file: String, _ id: KSUID) throws -> String? {
      try LedgerEntries.last(of: id, file: file, on: connection).map { "\($0.state.rawValue) \($0.recordedAt)" }
    }
    #expect(try last("a.bdiff", id) == nil)
    try LedgerEntries.record(key(by: "aa", 1), state: .applied, file: "a.bdiff", at: 3, on: connection)
    try LedgerEntries.record(
      LedgerKey(sender: "", id: nil, digest: [UInt8](repeating: 2, count: 32), isRaw: true), state: .applied,
      file: "b.changeset", at: 4, on: connection)
    try RefusedFiles.record(
      digest: [UInt8](repeating: 3, count: 32), id: nil, sender: "", state: .rejected, reason: "r", file: "c.bdiff",
      at: 5,
      on: connection)
    let other = KSUID(timestamp: 9, payloadHigh: 2, payloadLow: 3)
    #expect(try last("renamed.bdiff", id) == "applied 3")
    // Another file with that name has another id.
    #expect(try last("a.bdiff", other) == nil)
    #expect(try last("b.changeset", other) == "applied 4")
    #expect(try last("c.bdiff", other) == "rejected 5")
    try RefusedFiles.record(
      digest: [UInt8](repeating: 4, count: 32), id: id, sender: "bb", state: .quarantined, reason: "r", file: "x",
      at: 6,
      on: connection)
    #expect(try last("a.bdiff", id) == "quarantined 6")
  }

  // MARK: Tables

  private func tables(on connection: borrowing SQLiteConnection) throws -> Int64? {
    try connection.integer("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'buckia_%'")
  }

  @Test("Without room, no ledger tables are created", arguments: [1, 20, 60] as [Int64])
  func withoutRoom(pages: Int64) throws {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute("CREATE TABLE note(id); PRAGMA max_page_count = \(2 + pages)")
    let error = #expect(throws: SQLiteError.self) { try Ledger.prepare(on: connection) }
    #expect(error?.primaryCode == 13)
    let isOpen = connection.isInTransaction
    #expect(!isOpen)
    #expect(try tables(on: connection) == 0)
    try connection.execute("PRAGMA max_page_count = 1000000")
    #expect(try Ledger.prepare(on: connection))
    #expect(try !Ledger.prepare(on: connection))
  }

  @Test("Ledger tables created inside the application's transaction are removed when it is rolled back")
  func rolledBackByTheApplication() throws {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute("CREATE TABLE gone(x); CREATE VIEW broken AS SELECT x FROM gone; DROP TABLE gone; BEGIN")
    #expect(try Ledger.prepare(on: connection))
    try connection.execute("ROLLBACK")
    #expect(try !Ledger.exists(on: connection))
  }

  @Test("A ledger of another format is refused with its number", arguments: [Ledger.format + 1, 99, 0, -1])
  func otherFormat(number: Int64) throws {
    let connection = try database()
    try connection.execute("UPDATE buckia_settings SET value = \(number) WHERE name = 'format'")
    let error = #expect(throws: LedgerError.self) { try Ledger.prepare(on: connection) }
    #expect(error?.code == .newerLedger)
    #expect(error?.description.contains("the ledger tables have format \(number),") == true)
  }
}
