@testable import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas
import TestSupport
import Testing

@Suite("Contested keys")
final class ContestedKeysTests {
  private let connection: SQLiteConnection

  init() throws {
    connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try Ledger.prepare(on: connection)
  }

  private func keys(of sender: String = "", entry: Int64 = 1) -> ContestedKeys {
    ContestedKeys(of: sender, entry: entry, on: connection)
  }

  private func record(_ integer: Int64) -> [UInt8] {
    var writer = ChangesetWriter()
    writer.append(integer: integer)
    return writer.bytes
  }

  private func rowCount() throws -> Int64? {
    try connection.integer("SELECT count(*) FROM buckia_contested_key")
  }

  @Test(
    "Any number of keys is kept once, by sender and table, whatever the name's case", arguments: [1, 15, 16, 17, 100])
  func kept(count: Int) throws {
    #expect(try !ContestedKeys.exist(on: connection))
    let keys = keys(of: "a")
    for _ in 0..<2 {
      for number in 0..<count { try keys.add([1, UInt8(number)], of: "Person", isTaken: false) }
      try keys.flush()
    }
    #expect(try rowCount() == Int64(count))
    #expect(try ContestedKeys.exist(on: connection))
    #expect(try keys.exist(in: "PERSON"))
    #expect(try !keys.exist(in: "phone"))
    #expect(try keys.contains([1, 0], of: "person", for: .change))
    #expect(try !keys.contains([1], of: "person", for: .change))
    #expect(try !self.keys(of: "b").contains([1, 0], of: "person", for: .change))
    try keys.remove([1, 0], of: "person")
    #expect(try !keys.contains([1, 0], of: "person", for: .change))
  }

  @Test("Keys rolled back by a savepoint are not written later")
  func rewound() throws {
    let keys = keys()
    for first: UInt8 in [1, 3] {
      try keys.add([first], of: "t", isTaken: false)
      try keys.add(record(Int64(first)), of: "t", isTaken: false)
      if first == 1 { try keys.flush() }
    }
    keys.rewind()
    try keys.flush()
    #expect(try keys.contains([1], of: "t", for: .change) && keys.contains(record(1), of: "t", for: .change))
    #expect(try !keys.contains([3], of: "t", for: .change) && !keys.contains(record(3), of: "t", for: .change))
  }

  @Test("Consecutive integers take one row, whatever their order")
  func runs() throws {
    let keys = keys()
    var random = SeededGenerator(seed: 5)
    for number in (1...10_000).shuffled(using: &random) { try keys.add(record(Int64(number)), of: "t", isTaken: false) }
    try keys.flush()
    #expect(try rowCount() == 1)
    #expect(try connection.text("SELECT key || ' ' || last FROM buckia_contested_key") == "1 10000")
    try keys.remove(record(77), of: "t")
    #expect(try rowCount() == 2)
    #expect(try [76, 77, 78].map { try keys.contains(record($0), of: "t", for: .change) } == [true, false, true])
  }

  @Test("A key that a diff has taken is not contested for that diff, but is for others", arguments: [false, true])
  func taken(isInteger: Bool) throws {
    let key = isInteger ? record(7) : [UInt8(ascii: "k")]
    let purposes: [ContestedKeys.Purpose] = [.change, .reference]
    let taking = keys(entry: 2)
    try taking.add(key, of: "t", isTaken: true)
    #expect(try purposes.map { try taking.contains(key, of: "t", for: $0) } == [false, false])
    let resumed = ContestedKeys(of: "", entry: 2, isResumed: true, on: connection)
    #expect(try purposes.map { try resumed.contains(key, of: "t", for: $0) } == [false, false])
    #expect(try purposes.map { try keys(entry: 3).contains(key, of: "t", for: $0) } == [true, true])
  }

  @Test(
    "References see keys of earlier diffs, and of the applied part of their own diff", arguments: [false, true])
  func left(isInteger: Bool) throws {
    let key = isInteger ? record(7) : [UInt8(ascii: "k")]
    let purposes: [ContestedKeys.Purpose] = [.change, .reference]
    let leaving = keys(entry: 2)
    try leaving.add(key, of: "t", isTaken: false)
    #expect(try purposes.map { try leaving.contains(key, of: "t", for: $0) } == [true, false])
    let resumed = ContestedKeys(of: "", entry: 2, isResumed: true, on: connection)
    #expect(try purposes.map { try resumed.contains(key, of: "t", for: $0) } == [true, true])
    #expect(try purposes.map { try keys(entry: 3).contains(key, of: "t", for: $0) } == [true, true])
    // The latest record counts.
    let taking = keys(entry: 3)
    try taking.add(key, of: "t", isTaken: true)
    #expect(try !taking.contains(key, of: "t", for: .change))
    #expect(try rowCount() == 1)
  }

  @Test("Any keys, added, taken and removed in any order, match those of a set", arguments: 0..<20)
  func likeASet(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let spans: [ClosedRange<Int64>] = [0...40, -20...20, (.max - 30)...(.max), (.min)...(.min + 30)]
    let span = try #require(spans.randomElement(using: &random))
    // The last addition of each key.
    var model: [Int64: (entry: Int64, isTaken: Bool)] = [:]
    var current = keys(entry: 1)
    var entry: Int64 = 1
    for _ in 0..<300 {
      let first = Int64.random(in: span, using: &random)
      switch Int.random(in: 0..<6, using: &random) {
      case 0:
        try current.remove(record(first), of: "t")
        model[first] = nil
      case 1:
        try current.flush()
        entry += 1
        current = keys(entry: entry)
      case 2:
        for key in span {
          let known = model[key]
          let isContested = known.map { $0.entry != entry || !$0.isTaken } ?? false
          #expect(try current.contains(record(key), of: "t", for: .change) == isContested, "\(key)")
          let isEarlier = known.map { $0.entry != entry } ?? false
          #expect(try current.contains(record(key), of: "t", for: .reference) == isEarlier, "\(key)")
        }
        #expect(try current.exist(in: "t") == !model.isEmpty)
      default:
        let last = min(span.upperBound, first.addingReportingOverflow(Int64.random(in: 0..<9, using: &random)).0)
        let isTaken = random.oneIn(3)
        for key in first...max(first, last) {
          try current.add(record(key), of: "t", isTaken: isTaken)
          model[key] = (entry, isTaken)
        }
      }
    }
    try current.flush()
    var stored: [Int64] = []
    try connection.forEachRow(of: "SELECT key, last FROM buckia_contested_key ORDER BY key") {
      stored += Array($0.integer(at: 0)...$0.integer(at: 1))
    }
    #expect(stored == model.keys.sorted())
  }
}
