import SQLiteConnections
import SQLiteFiles
import Testing
import TestSupport

/// Rows read from the file are those that SQLite reads.
@Suite struct BTreeCursorTests {
  private static let pageSizes = [512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 65_536]

  /// A database with a rowid table and a WITHOUT ROWID table, and rows from a few bytes to many pages.
  static func database(pageSize: Int, rows: Int, in folder: TemporaryFolder, also: String = "") throws -> String {
    try TestDatabases.run(
      """
      PRAGMA page_size = \(pageSize); PRAGMA auto_vacuum = \(pageSize % 3);
      CREATE TABLE rowids(id INTEGER PRIMARY KEY, a, b TEXT, c REAL);
      CREATE TABLE keys(k TEXT PRIMARY KEY, a, b) WITHOUT ROWID;
      WITH s(n) AS (SELECT -3 UNION ALL SELECT n + 1 FROM s WHERE n < \(rows))
      INSERT INTO rowids SELECT n * n * n, CASE n % 5 WHEN 0 THEN NULL WHEN 1 THEN n * 9999999 WHEN 2 THEN zeroblob(n)
        WHEN 3 THEN n / 3.0 ELSE -n END, printf('%.*c', CASE n % 50 WHEN 0 THEN 40 * n ELSE n % 90 END, 'x'), n FROM s;
      INSERT INTO keys SELECT 'k' || id, a, b FROM rowids; \(also)
      """, on: folder.file("database"))
  }

  static func rows(_ cursor: BTreeCursor, fields: Int) throws -> [[String]] {
    let record = RecordReader(limit: fields)
    var rows: [[String]] = []
    while try cursor.next() {
      try record.read(try cursor.payload(), page: cursor.page)
      rows.append([String(cursor.rowID)] + (0..<record.columnCount).map { Self.text(record.value(at: $0)) })
    }
    return rows
  }

  private static func text(_ value: RecordReader.Value?) -> String {
    switch value {
    case nil: "missing"
    case .null: "NULL"
    case .integer(let value): "\(value)"
    case .real(let value): "\(value)"
    case .text(let bytes): String(decoding: bytes, as: UTF8.self)
    case .blob(let bytes): "x\(Array(bytes))"
    }
  }

  static func query(_ sql: String, on path: String) throws -> [[String]] {
    let connection = try SQLiteConnection(opening: path, as: .readOnly)
    var rows: [[String]] = []
    try connection.forEachRow(of: sql) { row in
      rows.append(
        (0..<row.columnCount).map { column in
          switch row.storageClass(at: column) {
          case .null: "NULL"
          case .integer: "\(row.integer(at: column))"
          case .real: "\(row.real(at: column))"
          case .text: row.text(at: column) ?? ""
          case .blob: "x\(row.blob(at: column))"
          }
        })
    }
    return rows
  }

  /// Advances both cursors side by side, as a comparison of the rows does.
  private static func merge(_ rows: PageComparison.ChangedRows) throws {
    let record = RecordReader(limit: 4)
    while try rows.older.next(), try rows.newer.next() {
      if try rows.isSameRecord() { continue }
      for cursor in [rows.older, rows.newer] { try record.read(try cursor.payload(), page: cursor.page) }
    }
  }

  static func root(of table: String, in path: String) throws -> Int {
    let connection = try SQLiteConnection(opening: path, as: .readOnly)
    return Int(
      try #require(try connection.integer("SELECT rootpage FROM sqlite_schema WHERE name = ?1", binding: [table])))
  }

  @Test("A cursor returns all rows in order, for every page size", arguments: pageSizes)
  func allRows(pageSize: Int) throws {
    let folder = try TemporaryFolder()
    let path = try Self.database(pageSize: pageSize, rows: 900, in: folder)
    let pages = try DatabasePages(FileBytes(opening: path))
    #expect(pages.header.pageSize == pageSize)
    let byRowID = try Self.rows(BTreeCursor(pages, root: Self.root(of: "rowids", in: path)), fields: 4)
    // The rowid is stored as NULL, and whole numbers of a REAL column as integers.
    let wanted = try Self.query("SELECT id, NULL, a, b, CAST(c AS INT) FROM rowids ORDER BY id", on: path)
    #expect(byRowID == wanted)
    let byKey = try Self.rows(BTreeCursor(pages, root: Self.root(of: "keys", in: path), isTable: false), fields: 3)
    #expect(byKey == (try Self.query("SELECT 0, k, a, b FROM keys ORDER BY k", on: path)))
  }

  // The example in the documentation of DatabasePages.
  @Test("The schema table on page 1 gives the root page of each table")
  func schema() throws {
    let folder = try TemporaryFolder()
    let path = try Self.database(pageSize: 512, rows: 10, in: folder)
    let pages = try DatabasePages(FileBytes(opening: path))
    let schema = try BTreeCursor(pages, root: 1)
    let record = RecordReader(limit: 5)
    var roots: [String: Int] = [:]
    while try schema.next() {
      try record.read(schema.payload(), page: schema.page)
      if case .text(let name)? = record.value(at: 1), case .integer(let root)? = record.value(at: 3) {
        roots[String(decoding: name, as: UTF8.self)] = Int(root)
      }
    }
    #expect(roots == ["rowids": try Self.root(of: "rowids", in: path), "keys": try Self.root(of: "keys", in: path)])
  }

  @Test("A database with random damage is read to the end, or fails with a DatabaseFileError", arguments: 0..<4)
  func damage(shard: Int) throws {
    let folder = try TemporaryFolder()
    let path = try Self.database(pageSize: 512, rows: 120, in: folder)
    let file = try FileBytes(opening: path)
    var bytes = [UInt8](repeating: 0, count: Int(try file.byteCount()))
    _ = try bytes.withUnsafeMutableBytes { try file.read(into: $0, at: 0) }
    let roots = [try Self.root(of: "rowids", in: path), try Self.root(of: "keys", in: path)]
    var errors = 0
    try Seeds.tryEach(400, shard: shard) { seed in
      var random = SeededGenerator(seed: seed)
      var damaged = bytes
      for _ in 0..<Int.random(in: 1...6, using: &random) {
        let place = Int.random(in: random.oneIn(3) ? 100..<damaged.count : 512..<2_048, using: &random)
        damaged[place] = random.oneIn(2) ? UInt8.random(in: 0...255, using: &random) : random.oneIn(2) ? 0xff : 0
      }
      if random.oneIn(6) { damaged.removeLast(Int.random(in: 1..<damaged.count, using: &random)) }
      for (index, root) in roots.enumerated() {
        do {
          let pages = try DatabasePages(MemoryBytes(damaged))
          _ = try Self.rows(BTreeCursor(pages, root: root, isTable: index == 0), fields: 4)
          let comparison = try PageComparison(older: pages, newer: DatabasePages(MemoryBytes(bytes)))
          try Self.merge(comparison.changedRows(older: root, newer: root, isTable: index == 0))
        } catch is DatabaseFileError {
          errors += 1
        }
      }
    }
    #expect(errors > 10)
  }
}
