import SQLiteFiles
import TestSupport
import Testing

/// Digests of the leaves of a table: two leaves with the same digest contain the same rows.
@Suite struct LeafDigestsTests {
  private static let key = [UInt8](1...16)
  private static let pageSize = 512

  private let folder: TemporaryFolder
  private let path: String

  init() throws {
    folder = try TemporaryFolder()
    path = try TestDatabases.run(
      """
      PRAGMA page_size = \(Self.pageSize); CREATE TABLE t(id INTEGER PRIMARY KEY, v);
      WITH s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 400)
      INSERT INTO t SELECT n * 10, CASE WHEN n % 50 = 0 THEN zeroblob(2000) ELSE 'row ' || n END FROM s
      """, on: folder.file("database"))
  }

  private func digests(_ bytes: [UInt8]? = nil, key: [UInt8] = key) throws -> [LeafDigest] {
    try DatabasePages(MemoryBytes(bytes ?? fileBytes(path)))
      .leafDigests(root: BTreeCursorTests.root(of: "t", in: path), key: key)
  }

  /// The leaves that differ.
  private func changed(by sql: String) throws -> Set<Int64> {
    let before = try Set(digests())
    try TestDatabases.run(sql, on: path)
    return try Set(before.symmetricDifference(digests()).map(\.firstRowID))
  }

  @Test func `digests are in row order, and start where the leaves do`() throws {
    let found = try digests()
    #expect(found.count > 10)
    #expect(found.first?.firstRowID == 10)
    #expect(zip(found, found.dropFirst()).allSatisfy { $0.firstRowID < $1.firstRowID })
    #expect(try digests() == found)
    #expect(try Set(digests(key: [UInt8](2...17))).isDisjoint(with: found))
  }

  @Test func `a row changes the digest of its own leaf, and no other`() throws {
    let leaves = try digests().map(\.firstRowID)
    let leaf = try #require(leaves.last { $0 <= 1_230 })
    #expect(try changed(by: "UPDATE t SET v = 'Row ' || 123 WHERE id = 1230") == [leaf])
    #expect(try changed(by: "UPDATE t SET v = v").isEmpty)
    let end = try #require(leaves.last)
    #expect(try changed(by: "DELETE FROM t WHERE id = 4000").contains(end))
  }

  @Test func `a digest depends on each byte of a page and of an overflow chain`() throws {
    let pages = try DatabasePages(MemoryBytes(fileBytes(path)))
    let buffer = PageBuffer(size: Self.pageSize)
    try pages.read(3, into: buffer.bytes)
    let hasher = PageHasher(key: Self.key, pageSize: Self.pageSize)
    func hash(after earlier: PageHash) -> PageHash { hasher.hash(UnsafeRawBufferPointer(buffer.bytes), after: earlier) }
    let zero = PageHash(high: 0, low: 0)
    var found: Set<PageHash> = [
      hash(after: zero), hash(after: PageHash(high: 0, low: 1)), hash(after: PageHash(high: 1, low: 0)),
    ]
    for offset in 0..<Self.pageSize {
      buffer.bytes[offset] ^= 1
      found.insert(hash(after: zero))
      buffer.bytes[offset] ^= 1
    }
    #expect(found.count == Self.pageSize + 3)

    // A change of an overflow page alone.
    var bytes = try fileBytes(path)
    let before = try digests(bytes)
    let isLeafOrTree = { (page: Int) in [2, 5, 10, 13].contains(bytes[page * Self.pageSize]) }
    let page = try #require((1..<bytes.count / Self.pageSize).last { !isLeafOrTree($0) })
    bytes[page * Self.pageSize + 100] ^= 1
    #expect(try Set(before).symmetricDifference(digests(bytes)).count == 2)
  }

  @Test func `a table of one page has no digests`() throws {
    try TestDatabases.run("DELETE FROM t WHERE id > 20", on: path)
    #expect(try digests().isEmpty)
  }

  @Test func `checkpointed changes change the digests`() throws {
    let before = try Set(digests())
    try TestDatabases.run("PRAGMA journal_mode = WAL", on: path)
    let copy = try folder.copy("database", to: "copy")
    try TestDatabases.run("PRAGMA journal_mode = WAL; UPDATE t SET v = 'Row' WHERE id IN (10, 2000)", on: path)
    // The last connection has copied the log into the file; the copy has neither.
    let now = try Set(digests())
    #expect(now.subtracting(before).count == 2)
    let file = try MemoryBytes(fileBytes(copy))
    let unlogged = try DatabasePages(file).leafDigests(root: BTreeCursorTests.root(of: "t", in: copy), key: Self.key)
    #expect(Set(unlogged) == before)
  }

  @Test(arguments: Seeds.shards)
  func `a damaged file gives digests or an error`(shard: Int) throws {
    let whole = try fileBytes(path)
    let root = try BTreeCursorTests.root(of: "t", in: path)
    try Seeds.tryEach(400, shard: shard) { seed in
      var random = SeededGenerator(seed: seed)
      let bytes = whole.damaged(pageSize: Self.pageSize, &random)
      do {
        let found = try DatabasePages(MemoryBytes(bytes)).leafDigests(root: root, key: Self.key)
        #expect(zip(found, found.dropFirst()).allSatisfy { $0.firstRowID < $1.firstRowID }, "\(Seeds.replay(seed))")
      } catch is DatabaseFileError {}
    }
  }
}
