import SQLiteFiles
import TestSupport
import Testing

/// Digests of the leaves of indexes and WITHOUT ROWID tables.
@Suite struct EntryDigestsTests {
  private static let key = [UInt8](1...16)
  private static let pageSize = 512

  private let folder: TemporaryFolder
  private let path: String

  init() throws {
    folder = try TemporaryFolder()
    path = try TestDatabases.run(
      """
      PRAGMA page_size = \(Self.pageSize); CREATE TABLE t(id TEXT PRIMARY KEY, v) WITHOUT ROWID;
      WITH s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 3000)
      INSERT INTO t SELECT printf('%05d', n * 10), CASE WHEN n % 50 = 0 THEN zeroblob(2000) ELSE 'row ' || n END FROM s
      """, on: folder.file("database"))
  }

  private struct Print: Hashable {
    let first: [UInt8]?
    let hash: PageHash
  }

  private func prints(_ bytes: [UInt8]? = nil, key: [UInt8] = key) throws -> [Print] {
    let record = RecordReader(limit: 1)
    var found: [Print] = []
    let pages = try DatabasePages(MemoryBytes(bytes ?? fileBytes(path)))
    try pages.forEachEntryDigest(root: BTreeCursorTests.root(of: "t", in: path), key: key) { first, page, hash in
      var text: [UInt8]?
      if let first {
        try record.read(first, page: page)
        if case .text(let bytes) = record.value(at: 0) { text = Array(bytes) }
      }
      found.append(Print(first: text, hash: hash))
    }
    return found
  }

  /// The leaves that differ, by their first keys.
  private func changed(by sql: String) throws -> Set<String> {
    let before = try Set(prints())
    try TestDatabases.run(sql, on: path)
    return try Set(before.symmetricDifference(prints()).map { String(decoding: $0.first ?? [], as: UTF8.self) })
  }

  @Test func `digests are in key order, and each starts with the entry between leaves`() throws {
    let found = try prints()
    #expect(found.count > 100)
    #expect(found.first?.first == nil)
    let firsts = found.dropFirst().map { String(decoding: $0.first ?? [], as: UTF8.self) }
    #expect(firsts == firsts.sorted() && Set(firsts).count == firsts.count)
    #expect(firsts.allSatisfy { $0.count == 5 })
    #expect(try prints() == found)
    #expect(try Set(prints(key: [UInt8](2...17)).map(\.hash)).isDisjoint(with: found.map(\.hash)))
  }

  @Test func `each row changes the digest of its own leaf, and no other`() throws {
    let firsts = try prints().map { String(decoding: $0.first ?? [], as: UTF8.self) }
    // Rows in leaves, between them, and in the pages above.
    for number in stride(from: 1, through: 3_000, by: 23) {
      let id = String(repeating: "0", count: 5 - "\(number * 10)".count) + "\(number * 10)"
      let leaf = try #require(firsts.last { $0 <= id })
      // The length stays the same, so that no row moves.
      let found = try changed(
        by: """
          UPDATE t SET v = CASE typeof(v) WHEN 'text' THEN upper(v) ELSE CAST(zeroblob(1999) || 'x' AS BLOB) END
          WHERE id = '\(id)'
          """)
      #expect(found == [leaf], "\(id)")
    }
  }

  @Test func `the hash of a part depends on each byte and on its length`() {
    let hasher = PageHasher(key: Self.key, pageSize: Self.pageSize)
    var bytes = [UInt8](repeating: 0, count: 45)
    func hash(_ count: Int) -> PageHash { bytes.withUnsafeBytes { hasher.hash(part: .init(rebasing: $0[..<count])) } }
    var found = Set((0...45).map { hash($0) })
    for offset in bytes.indices {
      bytes[offset] = 1
      found.insert(hash(45))
      bytes[offset] = 0
    }
    #expect(found.count == 46 + 45)
  }

  @Test(arguments: Seeds.shards)
  func `a damaged file gives digests or an error`(shard: Int) throws {
    let whole = try fileBytes(path)
    try Seeds.tryEach(400, shard: shard) { seed in
      var random = SeededGenerator(seed: seed)
      let bytes = whole.damaged(pageSize: Self.pageSize, &random)
      do {
        let found = try prints(bytes)
        #expect(found.count <= bytes.count / Self.pageSize, "\(Seeds.replay(seed))")
      } catch is DatabaseFileError {}
    }
  }
}
