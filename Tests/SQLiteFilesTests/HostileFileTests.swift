import SQLiteFiles
import Testing
import TestSupport

/// Files made to cost more memory or time than their size allows, and files that are no databases.
@Suite struct HostileFileTests {
  private static let pageSize = 512

  /// A number as a varint.
  private static func varint(_ number: Int) -> [UInt8] {
    var bytes = [UInt8(number & 0x7f)]
    var rest = number >> 7
    while rest > 0 {
      bytes.insert(UInt8(rest & 0x7f) | 0x80, at: 0)
      rest >>= 7
    }
    return bytes
  }

  /// A database in which each of many rows claims a chain of 1,500 overflow pages, which is a cycle of 40.
  private static func cyclicChains(in folder: TemporaryFolder) throws -> (bytes: [UInt8], root: Int) {
    let path = try TestDatabases.run(
      """
      PRAGMA page_size = \(pageSize); CREATE TABLE t(id INTEGER PRIMARY KEY, v);
      WITH s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 50) INSERT INTO t SELECT n, zeroblob(20000) FROM s
      """, on: folder.file("database"))
    var bytes = try fileBytes(path)
    func number(_ offset: Int, _ count: Int) -> Int { bytes[offset..<offset + count].reduce(0) { $0 << 8 | Int($1) } }
    // A payload of 20,005 bytes has 39 of them on a page with 512 usable bytes.
    let (size, local) = (20_005, 39 + (20_005 - 39) % 508)
    var found = 0
    for page in 1..<bytes.count / pageSize {
      let start = page * pageSize
      guard bytes[start] == 13 else { continue }
      for index in 0..<number(start + 3, 2) {
        let cell = start + number(start + 8 + 2 * index, 2)
        try #require(Array(bytes[cell..<cell + 3]) == Self.varint(size))
        bytes.replaceSubrange(cell..<cell + 3, with: Self.varint(size + 508 * 1_500))
        // The rowid takes one byte; the number of the first overflow page follows the local payload.
        let first = number(cell + 4 + local, 4)
        var last = first
        while number((last - 1) * pageSize, 4) != 0 { last = number((last - 1) * pageSize, 4) }
        for offset in 0..<4 { bytes[(last - 1) * pageSize + offset] = UInt8(first >> (24 - 8 * offset) & 0xff) }
        found += 1
      }
    }
    try #require(found == 50)
    return (bytes, try BTreeCursorTests.root(of: "t", in: path))
  }

  @Test("Rows cannot claim more overflow pages together than the database has")
  func sharedChains() throws {
    let folder = try TemporaryFolder()
    let (bytes, root) = try Self.cyclicChains(in: folder)
    let rows = try BTreeCursor(DatabasePages(MemoryBytes(bytes)), root: root)
    var count = 0
    let error = #expect(throws: DatabaseFileError.self) {
      while try rows.next() {
        _ = try rows.payload()
        count += 1
      }
    }
    #expect(error?.code == .cycle)
    #expect((1..<10).contains(count))
  }

  @Test("A comparison does not follow a cycle of overflow pages for each row")
  func comparedChains() throws {
    let folder = try TemporaryFolder()
    let (bytes, root) = try Self.cyclicChains(in: folder)
    var changed = bytes
    // The last page is an overflow page, so chains have to be followed.
    changed[changed.count - 1] ^= 1
    let comparison = try PageComparison(
      older: DatabasePages(MemoryBytes(bytes)), newer: DatabasePages(MemoryBytes(changed)))
    let error = #expect(throws: DatabaseFileError.self) {
      _ = try comparison.changedRows(older: root, newer: root, isTable: true)
    }
    #expect(error?.code == .cycle)
  }

  @Test("A row that claims to be larger than the file is refused before memory is allocated")
  func hugeRow() throws {
    let folder = try TemporaryFolder()
    let path = try TestDatabases.run(
      "PRAGMA page_size = 512; CREATE TABLE t(v); INSERT INTO t VALUES (zeroblob(2000100))",
      on: folder.file("database"))
    var bytes = try fileBytes(path)
    let root = try BTreeCursorTests.root(of: "t", in: path)
    let page = (root - 1) * Self.pageSize
    let cell = page + Int(bytes[page + 8]) << 8 + Int(bytes[page + 9])
    // A varint of four bytes over one of three, which makes the next byte the rowid. 39 bytes of the payload stay local.
    let claimed = 39 + 508 * 500_000
    bytes.replaceSubrange(cell..<cell + 4, with: Self.varint(claimed))
    let rows = try BTreeCursor(DatabasePages(MemoryBytes(bytes)), root: root)
    #expect(try rows.next())
    #expect(rows.payloadBytes == claimed)
    let error = #expect(throws: DatabaseFileError.self) { _ = try rows.payload() }
    #expect(error?.code == .badOverflow)
    #expect(error?.description == "page \(root): a record claims to be larger than the file")
  }

  @Test("A file that does not start with a database header is named as such", arguments: [0, 1, 99, 100, 5_000])
  func noDatabase(count: Int) throws {
    let error = #expect(throws: DatabaseFileError.self) {
      _ = try DatabasePages(MemoryBytes([UInt8](repeating: 0x53, count: count)))
    }
    #expect(error?.code == .notADatabase)
    #expect(error?.page == nil)
  }

  @Test("A file that cannot be opened is named with the system's reason")
  func missingFile() throws {
    let folder = try TemporaryFolder()
    let error = #expect(throws: DatabaseFileError.self) { _ = try FileBytes(opening: folder.file("none")) }
    #expect(error?.code == .unreadable)
    #expect(error?.description == "\(folder.file("none")) cannot be opened: No such file or directory")
    try folder.makeFolder("folder")
    #expect(throws: DatabaseFileError.self) { _ = try DatabasePages(FileBytes(opening: folder.file("folder"))) }
  }

  @Test("Databases with different page sizes are not compared")
  func pageSizes() throws {
    let folder = try TemporaryFolder()
    let pages = try [512, 1_024].map { size in
      let path = try TestDatabases.run(
        "PRAGMA page_size = \(size); CREATE TABLE t(v)", on: folder.file("database-\(size)"))
      return try DatabasePages(FileBytes(opening: path))
    }
    let error = #expect(throws: DatabaseFileError.self) { _ = try PageComparison(older: pages[0], newer: pages[1]) }
    #expect(error?.code == .pageSizesDiffer)
  }
}
