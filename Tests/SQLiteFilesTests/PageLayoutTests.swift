import SQLiteConnections
import Testing
import TestSupport

@testable import SQLiteFiles

/// Databases with unusual page layouts: reserved bytes, pointer map pages, damage.
@Suite struct PageLayoutTests {
  /// The header of a database.
  private static func header(pageSize: Int, reserved: Int = 0, largestRoot: Int) throws -> DatabaseHeader {
    try headerBytes(pageSize: pageSize, reserved: reserved, largestRoot: largestRoot)
      .withUnsafeBytes { try DatabaseHeader($0) }
  }

  private static func headerBytes(pageSize: Int, reserved: Int = 0, largestRoot: Int = 0) -> [UInt8] {
    var bytes = Array("SQLite format 3\0".utf8) + [UInt8](repeating: 0, count: 84)
    let size = pageSize == 65_536 ? 1 : pageSize
    bytes[16] = UInt8(size >> 8)
    bytes[17] = UInt8(size & 0xff)
    bytes[18] = 1
    bytes[19] = 1
    bytes[20] = UInt8(reserved)
    bytes[21] = 64
    bytes[22] = 32
    bytes[23] = 32
    bytes[55] = UInt8(largestRoot)
    bytes[59] = 1
    return bytes
  }

  @Test(
    "A header with an invalid value is refused",
    arguments: [
      (17, 1), (16, 0), (16, 3), (20, 33), (18, 0), (18, 3), (19, 9), (21, 63), (22, 0), (23, 255),
      (56, 1), (59, 4),
    ])
  func invalidHeader(offset: Int, value: UInt8) throws {
    var bytes = Self.headerBytes(pageSize: 512)
    bytes[offset] = value
    let error = #expect(throws: DatabaseFileError.self) { try bytes.withUnsafeBytes { try DatabaseHeader($0) } }
    #expect(error?.code == .badHeader)
  }

  // Pointer map pages are a fifth of the usable size, and one, apart. With pages of 1,024 bytes one of them would be the
  // lock-byte page; then it is the page after that.
  @Test(
    "Pointer map pages are where SQLite puts them, also at the lock-byte page",
    arguments: [
      (512, 0, [2, 105, 208, 311], [1, 3, 104, 106]), (512, 32, [2, 99, 196], [1, 3, 105]),
      (4_096, 0, [2, 822, 1_642], [3, 821, 823, 262_145]), (65_536, 0, [2, 13_110], [13_109, 16_385]),
      (1_024, 0, [2, 207, 1_048_372, 1_048_578, 1_048_782], [1_048_577, 1_048_579, 1_048_783]),
    ])
  func pointerMaps(pageSize: Int, reserved: Int, maps: [Int], others: [Int]) throws {
    let header = try Self.header(pageSize: pageSize, reserved: reserved, largestRoot: 3)
    for page in maps { #expect(header.isPointerMap(page), "\(page)") }
    for page in others { #expect(!header.isPointerMap(page), "\(page)") }
    let plain = try Self.header(pageSize: pageSize, reserved: reserved, largestRoot: 0)
    for page in maps { #expect(!plain.isPointerMap(page), "\(page)") }
  }

  @Test("The lock-byte page is the one at 1 GiB", arguments: [512, 4_096, 65_536])
  func lockBytePage(pageSize: Int) throws {
    let header = try Self.header(pageSize: pageSize, largestRoot: 0)
    #expect((header.lockBytePage - 1) * pageSize == 1 << 30)
  }

  /// An empty database of one page with reserved bytes.
  private static func reserving(_ count: Int, pageSize: Int, in folder: TemporaryFolder, _ name: String) throws
    -> String
  {
    let path = try TestDatabases.run(
      "PRAGMA page_size = \(pageSize); CREATE TABLE t(v); DROP TABLE t; VACUUM", on: folder.file("empty-\(name)"))
    var bytes = try fileBytes(path)
    try #require(bytes.count == pageSize)
    bytes[20] = UInt8(count)
    // The start of the cell content area: the usable size.
    bytes[105] = UInt8((pageSize - count) >> 8)
    bytes[106] = UInt8((pageSize - count) & 0xff)
    return try folder.write(bytes, to: name)
  }

  @Test(
    "Rows are read and compared with any number of reserved bytes",
    arguments: [(512, 32), (1_024, 1), (4_096, 28), (4_096, 255)])
  func reserved(pageSize: Int, count: Int) throws {
    let folder = try TemporaryFolder()
    let older = try Self.reserving(count, pageSize: pageSize, in: folder, "older")
    try TestDatabases.run(
      """
      CREATE TABLE t(id INTEGER PRIMARY KEY, v);
      WITH s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 400)
      INSERT INTO t SELECT n, printf('%.*c', CASE n % 40 WHEN 0 THEN 50 * n ELSE n % 90 END, 'x') FROM s
      """, on: older)
    let newer = try folder.copy("older", to: "newer")
    try TestDatabases.run("UPDATE t SET v = v || '.' WHERE id IN (80, 213)", on: newer)

    let pages = try DatabasePages(FileBytes(opening: newer))
    // Otherwise SQLite has ignored the header, and nothing is tested.
    try #require(pages.header.usableSize == pageSize - count)
    try #require(
      TestDatabases.rows("PRAGMA integrity_check", on: newer) == [
        "'\("ok".utf8.map(String.init).joined(separator: "."))'"
      ])
    let root = try BTreeCursorTests.root(of: "t", in: newer)
    let found = try BTreeCursorTests.rows(BTreeCursor(pages, root: root), fields: 2)
    #expect(found == (try BTreeCursorTests.query("SELECT id, NULL, v FROM t ORDER BY id", on: newer)))

    let comparison = try PageComparison(older: DatabasePages(FileBytes(opening: older)), newer: pages)
    let rows = try comparison.changedRows(older: root, newer: root, isTable: true)
    let candidates = try BTreeCursorTests.rows(rows.newer, fields: 2).map { $0[0] }
    #expect(Set(candidates).isSuperset(of: ["80", "213"]))
    #expect(candidates.count < 200)
  }

  @Test("Rows and pointer map pages are found after auto-vacuum has moved pages", arguments: [1, 2])
  func autoVacuum(mode: Int) throws {
    let folder = try TemporaryFolder()
    let path = try TestDatabases.run(
      """
      PRAGMA page_size = 512; PRAGMA auto_vacuum = \(mode);
      CREATE TABLE gone(v); CREATE TABLE t(id INTEGER PRIMARY KEY, v);
      WITH s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 600) INSERT INTO gone SELECT printf('%.99c', 'x') FROM s;
      INSERT INTO t(v) SELECT v || printf('%.*c', rowid % 50 * 20, 'y') FROM gone; DROP TABLE gone;
      PRAGMA incremental_vacuum(100)
      """, on: folder.file("database"))
    let pages = try DatabasePages(FileBytes(opening: path))
    #expect(pages.pageCount > 300)
    let root = try BTreeCursorTests.root(of: "t", in: path)
    let found = try BTreeCursorTests.rows(BTreeCursor(pages, root: root), fields: 2)
    #expect(found == (try BTreeCursorTests.query("SELECT id, NULL, v FROM t ORDER BY id", on: path)))
    // An entry of a pointer map is a type from 1 to 5 and a page number.
    let buffer = PageBuffer(size: 512)
    var maps = 0
    for page in 1...pages.pageCount where pages.header.isPointerMap(page) {
      try pages.read(page, into: buffer.bytes)
      let entries = min(512 / 5, pages.pageCount - page)
      for entry in 0..<entries { #expect((1...5).contains(buffer.bytes[5 * entry]), "page \(page), entry \(entry)") }
      maps += 1
    }
    #expect(maps == (pages.pageCount - 2) / 103 + 1)
  }

  /// A source that cannot be duplicated.
  private final class SingleReader: ByteSource {
    private let bytes: MemoryBytes
    init(_ bytes: [UInt8]) { self.bytes = MemoryBytes(bytes) }
    func byteCount() -> Int64 { bytes.byteCount() }
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int {
      bytes.read(into: buffer, at: offset)
    }
  }

  @Test("Two threads find the same differing pages as one", arguments: [512, 4_096, 65_536])
  func twoThreads(pageSize: Int) throws {
    let folder = try TemporaryFolder()
    let path = try TestDatabases.run(
      "PRAGMA page_size = \(pageSize); CREATE TABLE t(v); INSERT INTO t VALUES (zeroblob(24000000))",
      on: folder.file("database"))
    let older = try fileBytes(path)
    try TestDatabases.run("INSERT INTO t VALUES (zeroblob(400000))", on: path)
    var newer = try fileBytes(path)
    let (count, longer) = (older.count / pageSize, newer.count / pageSize)
    var expected = Set(count + 1...longer)
    for page in [3, 63, 64, 65, count / 2 - 64, count / 2 - 1, count / 2, count / 2 + 1, count - 1, count] {
      newer[page * pageSize - 1] ^= 1
      expected.insert(page)
    }
    // Page 1 and perhaps page 2 differ, because there are more rows.
    for page in 1...2
    where older[(page - 1) * pageSize..<page * pageSize] != newer[(page - 1) * pageSize..<page * pageSize] {
      expected.insert(page)
    }
    for (one, two) in [
      (MemoryBytes(older), MemoryBytes(newer)) as (any ByteSource, any ByteSource),
      (SingleReader(older), MemoryBytes(newer)), (SingleReader(older), SingleReader(newer)),
    ] {
      let comparison = try PageComparison(older: DatabasePages(one), newer: DatabasePages(two))
      #expect(Set((1...longer).filter { !comparison.differences.isEqual($0) }) == expected)
      #expect(comparison.differingCount == expected.count)
    }
  }

  @Test("An error that a source throws in either thread reaches the caller", arguments: [2, 20])
  func failingSource(megabyte: Int64) throws {
    struct Failure: Error {}
    final class Failing: ByteSource {
      let bytes: MemoryBytes
      let place: Int64
      init(_ bytes: MemoryBytes, from place: Int64) { (self.bytes, self.place) = (bytes, place) }
      func byteCount() -> Int64 { bytes.byteCount() }
      func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws -> Int {
        if (offset..<offset + Int64(buffer.count)).contains(place) { throw Failure() }
        return bytes.read(into: buffer, at: offset)
      }
      func duplicate() -> (any ByteSource)? { self }
    }
    let folder = try TemporaryFolder()
    let path = try TestDatabases.run(
      "CREATE TABLE t(v); INSERT INTO t VALUES (zeroblob(24000000))", on: folder.file("database"))
    let bytes = MemoryBytes(try fileBytes(path))
    #expect(throws: Failure.self) {
      try PageComparison(
        older: DatabasePages(bytes), newer: DatabasePages(Failing(bytes, from: megabyte << 20)))
    }
  }

  @Test("A cycle of overflow pages is not followed for more pages than the file has")
  func cyclicChain() throws {
    let folder = try TemporaryFolder()
    let path = try TestDatabases.run(
      "PRAGMA page_size = 512; CREATE TABLE t(v); INSERT INTO t VALUES (zeroblob(5000))", on: folder.file("database"))
    var bytes = try fileBytes(path)
    // The first two pages of the chain point to themselves, and the last page of the file differs.
    for page in [3, 4] { bytes[(page - 1) * 512 + 3] = UInt8(page) }
    let older = try DatabasePages(MemoryBytes(bytes))
    bytes[bytes.count - 1] ^= 1
    let comparison = try PageComparison(older: older, newer: DatabasePages(MemoryBytes(bytes)))
    #expect(comparison.differingCount == 1)
    #expect(!comparison.differences.chainDiffers(from: 3, bytes: 5_000))
    #expect(comparison.differences.chainDiffers(from: 3, bytes: 0x7fff_ffff))
    #expect(comparison.differences.chainDiffers(from: older.pageCount, bytes: 400))
  }

  @Test("An error names the damaged interior page")
  func damagedInteriorPage() throws {
    let folder = try TemporaryFolder()
    let older = try BTreeCursorTests.database(pageSize: 512, rows: 400, in: folder)
    let root = try BTreeCursorTests.root(of: "rowids", in: older)
    var bytes = try fileBytes(older)
    let start = (root - 1) * 512
    try #require(bytes[start] == BTreePageType.tableInterior.rawValue)
    // The first child is far beyond the end of the file.
    let cell = Int(bytes[start + 12]) << 8 | Int(bytes[start + 13])
    bytes[start + cell] = 0x7f
    let newer = try DatabasePages(MemoryBytes(bytes))
    let error = #expect(throws: DatabaseFileError.self) {
      try PageComparison(older: DatabasePages(FileBytes(opening: older)), newer: newer)
        .changedRows(older: root, newer: root, isTable: true)
    }
    #expect(error?.code == .badPage)
    #expect(error?.page ?? 0 >= 0x7f00_0000)
    bytes[start] = 0x77
    let other = try DatabasePages(MemoryBytes(bytes))
    let second = #expect(throws: DatabaseFileError.self) {
      try PageComparison(older: DatabasePages(FileBytes(opening: older)), newer: other)
        .changedRows(older: root, newer: root, isTable: true)
    }
    #expect(second?.page == root)
    #expect(second.map { "\($0)" } == "page \(root): the page is not a b-tree page")
  }
}
