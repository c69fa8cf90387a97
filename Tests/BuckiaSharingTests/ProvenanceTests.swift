import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections
import TestSupport
import Testing

@testable import BuckiaSharing

/// The rows that streams have brought, with keys in blocks and one by one.
@Suite struct ProvenanceTests {
  private static let stream = [UInt8](repeating: 7, count: 16)
  private static let other = [UInt8](repeating: 8, count: 16)

  /// A database with two tables that have the same rows, one with an integer key.
  private final class Bench {
    let connection: SQLiteConnection
    let tables: [KeyedTable]

    init() throws {
      connection = try SQLiteConnection(opening: ":memory:", as: .create)
      try Ledger.prepare(on: connection)
      try connection.execute(
        "CREATE TABLE i(id INTEGER PRIMARY KEY, v); CREATE TABLE k(id INT NOT NULL PRIMARY KEY, v)")
      let schema = try SchemaReader(connection)
      tables = try ["i", "k"].compactMap { name in
        let entry = try #require(schema.entry(named: TableName(name)))
        let definition = try schema.definition(of: entry)
        return KeyedTable(definition, definition)
      }
    }

    /// Passes a row of each table to `body`.
    func withRow<Result>(_ key: Int64, _ value: Int64 = 0, _ body: (KeyedTable, [ValueSlice], RawSpan) throws -> Result)
      throws
      -> [Result]
    {
      var writer = ChangesetWriter()
      writer.append(ChangesetValue.integer(key))
      writer.append(ChangesetValue.integer(value))
      return try writer.bytes.withRawSpan { bytes in
        var position = 0
        let row = (0..<2).map { _ in ValueSlice(verified: bytes, at: &position) }
        return try tables.map { try body($0, row, bytes) }
      }
    }
  }

  private static func keys(_ provenance: Provenance, _ table: KeyedTable, _ stream: [UInt8]) throws -> Set<[UInt8]> {
    var keys: Set<[UInt8]> = []
    try provenance.forEach(of: table, stream: stream, from: "") { key, _ in keys.insert(key) }
    return keys
  }

  @Test(arguments: Seeds.shards)
  func `blocks of integers contain the same keys as single keys`(shard: Int) throws {
    try Seeds.tryEach(60, shard: shard) { seed in
      var random = SeededGenerator(seed: seed)
      let bench = try Bench()
      var provenance = Provenance(on: bench.connection)
      let range: ClosedRange<Int64> = random.oneIn(2) ? -300...300 : Int64.min...Int64.max
      let usual =
        (0..<40).map { _ in Int64.random(in: range, using: &random) } + [Int64.min, -1, 0, 127, 128, Int64.max]
      for step in 0..<120 {
        let key = usual.randomElement(using: &random) ?? 0
        let stream = random.oneIn(3) ? Self.other : Self.stream
        let value = Int64.random(in: 0..<3, using: &random)
        let note = Comment(rawValue: "step \(step): \(Seeds.replay(seed))")
        switch Int.random(in: 0..<7, using: &random) {
        case 0, 1, 2:
          let isOwn = random.oneIn(3)
          _ = try bench.withRow(key, value) {
            try provenance.add($1, $2, of: $0, stream: stream, from: "", isOwn: isOwn)
          }
        case 3: _ = try bench.withRow(key) { try provenance.remove($1, $2, of: $0, stream: stream, from: "") }
        case 4:
          let found = try bench.withRow(key) { try provenance.hash($1, $2, of: $0, streams: [stream], from: "") }
          #expect(found[0] == found[1], note)
        case 5:
          let found = try bench.withRow(key) {
            [
              try provenance.stays($1, $2, of: $0, withoutStreams: [stream], from: ""),
              try provenance.brought($1, $2, of: $0, by: [""]),
            ]
          }
          #expect(found[0] == found[1], note)
        default:
          // As the next diff would find it.
          try provenance.flush()
          provenance = Provenance(on: bench.connection)
        }
        for stream in [Self.stream, Self.other] where step % 10 == 0 {
          let found = try bench.tables.map { try Self.keys(provenance, $0, stream) }
          #expect(found[0] == found[1], note)
        }
      }
    }
  }

  @Test func `earlier rows that are not in a snapshot are forgotten`() throws {
    let bench = try Bench()
    let provenance = Provenance(on: bench.connection)
    for key in Int64(0)..<300 {
      _ = try bench.withRow(key) { try provenance.add($1, $2, of: $0, stream: Self.stream, from: "", isOwn: false) }
    }
    for table in bench.tables {
      #expect(try !provenance.hadRows(of: table, stream: Self.stream, from: ""))
      let kept = try Set(
        Self.keys(provenance, table, Self.stream).sorted { $0.lexicographicallyPrecedes($1) }.prefix(3))
      let gone = KeySets("test", on: bench.connection).make()
      try provenance.remove(of: table, stream: Self.stream, from: "", noting: gone) { !kept.contains($0) }
      #expect(try Self.keys(provenance, table, Self.stream) == kept)
    }
    try provenance.flush()
    provenance.reload()
    for table in bench.tables {
      #expect(try provenance.hadRows(of: table, stream: Self.stream, from: ""))
      #expect(try Self.keys(provenance, table, Self.stream).count == 3)
    }
    // A block without rows is deleted.
    #expect(try bench.connection.integer("SELECT count(*) FROM buckia_provenance_1") == 1)
  }

  @Test func `streams of few rows share a table, and each of them is found`() throws {
    let bench = try Bench()
    let tables = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name GLOB 'buckia_provenance_[0-9]*'"
    let streams = (UInt8(0)..<50).map { [UInt8](repeating: $0, count: 16) }
    for (key, stream) in streams.enumerated() {
      let provenance = Provenance(on: bench.connection)
      for key in [Int64(key), 1_000] {
        _ = try bench.withRow(key) { try provenance.add($1, $2, of: $0, stream: stream, from: "", isOwn: false) }
      }
      try provenance.flush()
    }
    #expect(try bench.connection.integer(tables) == 2)
    let provenance = Provenance(on: bench.connection)
    for (key, stream) in streams.enumerated() {
      let found = try bench.withRow(Int64(key)) { try provenance.found($1, $2, of: $0).map(\.entry.stream) }
      #expect(found == [[stream], [stream]])
    }
    #expect(try bench.withRow(1_000) { try provenance.found($1, $2, of: $0).count } == [50, 50])
    // Forgetting a stream keeps those of the others, and forgetting the last one drops the table.
    for (number, stream) in streams.enumerated() {
      for table in bench.tables { try provenance.forget(stream, from: "", table.name) }
      #expect(try bench.withRow(1_000) { try provenance.found($1, $2, of: $0).count } == [49 - number, 49 - number])
    }
    #expect(try bench.connection.integer(tables) == 0)
  }

  @Test(arguments: [10, 40_000])
  func `a set contains any number of added keys`(count: Int64) throws {
    let bench = try Bench()
    let sets = KeySets("test", on: bench.connection)
    let (set, other) = (sets.make(), sets.make())
    func key(_ number: Int64) -> [UInt8] {
      var writer = ChangesetWriter()
      writer.append(integer: number)
      return writer.bytes
    }
    for number in 0..<count {
      try set.insert(key(number * 7919 % count))
      try other.insert(key(-1 - number))
    }
    try set.insert(key(0))
    var found: Set<[UInt8]> = []
    try set.forEach { found.insert($0) }
    #expect(found == Set((0..<count).map(key)))
    #expect(try set.contains(key(count - 1)) && !set.contains(key(count)) && !set.contains(key(-1)))
    try sets.clear()
    let next = sets.make()
    for number in 0..<count { try next.insert(key(number + 1)) }
    #expect(try next.contains(key(count)) && !next.contains(key(0)))
  }
}
