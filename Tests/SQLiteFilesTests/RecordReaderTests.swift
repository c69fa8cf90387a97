import SQLiteFiles
import Testing
import TestSupport

@Suite struct RecordReaderTests {
  /// The values that a reader finds, as text.
  private static func values(_ bytes: [UInt8], limit: Int = 10) throws -> [String] {
    let record = RecordReader(limit: limit)
    return try bytes.withUnsafeBytes { bytes in
      try record.read(bytes, page: 7)
      return (0..<record.columnCount).map { column in
        switch record.value(at: column) {
        case nil: "missing"
        case .null: "NULL"
        case .integer(let value): "\(value)"
        case .real(let value): "\(value)"
        case .text(let bytes): "'\(String(decoding: bytes, as: UTF8.self))'"
        case .blob(let bytes): "x\(Array(bytes))"
        }
      }
    }
  }

  // https://sqlite.org/fileformat2.html#record_format: the size of the header, serial types, values.
  @Test(
    "Each serial type has its value",
    arguments: [
      ([1], []),
      ([2, 0], ["NULL"]),
      ([2, 1, 0xff], ["-1"]),
      ([3, 2, 8, 0x80, 0x00], ["-32768", "0"]),
      ([3, 3, 9, 0x01, 0x00, 0x02], ["65538", "1"]),
      ([2, 4, 0x7f, 0xff, 0xff, 0xff], ["2147483647"]),
      ([2, 5, 0x80, 0, 0, 0, 0, 0], ["-140737488355328"]),
      ([2, 6, 0x80, 0, 0, 0, 0, 0, 0, 0], ["-9223372036854775808"]),
      ([2, 7, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0], ["1.5"]),
      // SQLite stores no NaN, and reads one as NULL.
      ([2, 7, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0], ["NULL"]),
      ([3, 12, 13], ["x[]", "''"]),
      ([3, 16, 17, 1, 2, 0x61, 0x62], ["x[1, 2]", "'ab'"]),
    ] as [([UInt8], [String])])
  func serialTypes(bytes: [UInt8], expected: [String]) throws {
    #expect(try Self.values(bytes) == expected)
  }

  @Test(
    "A record whose header does not match its size is refused",
    arguments: [
      [], [0], [2], [9, 0], [2, 10], [2, 11], [2, 1], [2, 1, 0, 0], [2, 0x81], [2, 7, 0], [3, 0, 0, 0],
      [2, 0x8f, 0xff, 0xff, 0xff, 0x7f], [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
      [10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
    ] as [[UInt8]])
  func malformed(bytes: [UInt8]) {
    let error = #expect(throws: DatabaseFileError.self) { try Self.values(bytes) }
    #expect(error?.code == .badRecord && error?.page == 7)
  }

  @Test("Only as many columns are decoded as the limit says", arguments: [(-1, 0), (0, 0), (2, 2), (Int.max, 3)])
  func limit(limit: Int, count: Int) throws {
    #expect(try Self.values([4, 8, 9, 8], limit: limit) == Array(["0", "1", "0"].prefix(count)))
  }

  @Test("A column that the record does not have has no value", arguments: [-1, 1, .max])
  func missing(column: Int) throws {
    let record = RecordReader(limit: 5)
    try [UInt8]([2, 8]).withUnsafeBytes { bytes in
      try record.read(bytes, page: 1)
      #expect(record.value(at: column) == nil)
    }
  }

  @Test("Random bytes are refused, or give values inside the record", arguments: Seeds.shards)
  func random(shard: Int) throws {
    try Seeds.tryEach(1_600, shard: shard) { seed in
      var random = SeededGenerator(seed: seed)
      let isLikely = random.oneIn(2)
      var bytes = (0..<Int.random(in: 0...40, using: &random)).map { _ in
        UInt8.random(in: 0...(isLikely ? 20 : 255), using: &random)
      }
      if isLikely, !bytes.isEmpty { bytes[0] = UInt8(Int.random(in: 1...min(8, bytes.count), using: &random)) }
      // Exactly as long as its bytes, so that reading beyond it would be found by a sanitizer.
      do { _ = try Self.values(bytes) } catch let error as DatabaseFileError { #expect(error.code == .badRecord) }
    }
  }
}
