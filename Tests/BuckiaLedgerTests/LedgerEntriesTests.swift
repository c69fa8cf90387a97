import BuckiaKSUID
import BuckiaLedger
import SQLiteConnections
import Testing

@Suite("Looking files up in the ledger")
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

  @Test("A manifest is known by its digest whoever sends it; another one with its id is not its sender's second")
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
    "Numbers go on behind the greatest entry, and before it once no greater one is left",
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
}
