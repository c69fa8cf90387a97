@testable import BuckiaLedger
import SQLiteConnections
import SQLiteSchemas
import Testing

@Suite("Contested keys")
struct ContestedKeysTests {
  private func prepared() throws -> SQLiteConnection {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try Ledger.prepare(on: connection)
    return connection
  }

  @Test(
    "Any number of keys is kept once, by sender and table, whatever the table's case", arguments: [1, 15, 16, 17, 100])
  func kept(count: Int) throws {
    let connection = try prepared()
    #expect(try !ContestedKeys.exist(on: connection))
    let keys = ContestedKeys(of: "a", on: connection)
    for _ in 0..<2 {
      for number in 0..<count { try keys.add([1, UInt8(number)], of: "Person") }
      try keys.flush()
    }
    #expect(try connection.integer("SELECT count(*) FROM buckia_contested_key") == Int64(count))
    #expect(try ContestedKeys.exist(on: connection))
    #expect(try keys.exist(in: "PERSON"))
    #expect(try !keys.exist(in: "phone"))
    #expect(try keys.contains([1, 0], of: "person"))
    #expect(try !keys.contains([1], of: "person"))
    #expect(try !ContestedKeys(of: "b", on: connection).contains([1, 0], of: "person"))
    try keys.remove([1, 0], of: "person")
    #expect(try !keys.contains([1, 0], of: "person"))
  }

  @Test("What a savepoint takes back is not written later")
  func rewound() throws {
    let connection = try prepared()
    let keys = ContestedKeys(of: "", on: connection)
    try keys.add([1], of: "t")
    try keys.flush()
    try keys.add([2], of: "t")
    keys.rewind()
    try keys.flush()
    #expect(try keys.contains([1], of: "t"))
    #expect(try !keys.contains([2], of: "t"))
  }

  @Test("A ledger of format 2 gets the table")
  func migrated() throws {
    let connection = try prepared()
    try connection.execute(
      """
      DROP TABLE buckia_contested_key; DROP TABLE buckia_value; DROP INDEX buckia_held_part_entry;
      UPDATE buckia_settings SET value = 2 WHERE name = 'format'
      """)
    #expect(try Ledger.prepare(on: connection) == .migrated(from: 2))
    #expect(try !ContestedKeys.exist(on: connection))
  }
}
