import Testing

@testable import BuckiaSharing

/// The sums by which two sides can tell whether they have the same rows.
@Suite struct StateSumsTests {
  /// From the reference implementation: the key is 00 to 0f, the message 00, 01 … with the given number of bytes.
  @Test(arguments: [
    (0, "a3817f04ba25a8e66df67214c7550293"), (1, "da87c1d86b99af44347659119b22fc45"),
    (15, "5493e99933b0a8117e08ec0f97cfc3d9"), (31, "2939b0183223fafc1723de4f52c43d35"),
  ])
  func `the hash is SipHash-2-4 with 128 bits`(_ count: Int, _ expected: String) {
    let hash = SipHash(key: Array(0..<16)).hash((0..<count).map { UInt8($0) })
    let digits = Array("0123456789abcdef")
    #expect(String(hash.bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }) == expected)
  }

  @Test func `sums carry and borrow across their halves`() throws {
    var sum = Sum128(low: .max, high: .max)
    sum += Sum128(low: 1, high: 0)
    #expect(sum == Sum128())
    sum -= Sum128(low: 1, high: 0)
    #expect(sum == Sum128(low: .max, high: .max))
    #expect(try #require(Sum128(sum.bytes)) == sum)
    #expect(Sum128([1, 2, 3]) == nil)
  }

  @Test func `rows are added and removed in any order, and the sums return to zero`() throws {
    let hasher = StateHasher(key: Array(0..<16), table: "Photo")
    var sums = StateSums()
    let rows = (0..<100).map { hasher.place([UInt8($0)]) }
    for (content, row) in rows.enumerated() { sums.add(hasher.row(row.key, UInt64(content)), to: row.bucket) }
    var other = StateSums()
    for (content, row) in rows.enumerated().reversed() {
      other.add(hasher.row(row.key, UInt64(content)), to: row.bucket)
    }
    #expect(sums == other)
    #expect(try #require(StateSums(rowCount: 100, encoded: sums.encoded)) == sums)
    // Another table name is another table, but its case does not matter.
    #expect(StateHasher(key: Array(0..<16), table: "pHOTO").place([1]).key == rows[1].key)
    #expect(StateHasher(key: Array(0..<16), table: "photos").place([1]).key != rows[1].key)
    #expect(StateHasher(key: Array(1..<17), table: "photo").place([1]).key != rows[1].key)
    // Letters of the key are folded to lower case.
    #expect(hasher.place([3, 1, 0x61]).key == hasher.place([3, 1, 0x41]).key)
    for (content, row) in rows.enumerated() { sums.remove(hasher.row(row.key, UInt64(content)), from: row.bucket) }
    #expect(sums == StateSums())
  }

  @Test func `two rows with swapped contents are another state`() {
    let hasher = StateHasher(key: Array(0..<16), table: "photo")
    let (first, second) = (hasher.place([1]), hasher.place([2]))
    var sums = StateSums()
    sums.add(hasher.row(first.key, 7), to: first.bucket)
    sums.add(hasher.row(second.key, 8), to: second.bucket)
    var swapped = StateSums()
    swapped.add(hasher.row(first.key, 8), to: first.bucket)
    swapped.add(hasher.row(second.key, 7), to: second.bucket)
    #expect(sums != swapped)
    #expect(sums.differences(from: swapped) == Set([first.bucket, second.bucket]).sorted())
  }

  @Test(arguments: [[1, 2], Array(repeating: 0, count: 16), Array(repeating: 3, count: 34)] as [[UInt8]])
  func `malformed sums are refused`(_ bytes: [UInt8]) {
    #expect(StateSums(rowCount: 1, encoded: bytes) == nil)
  }
}
