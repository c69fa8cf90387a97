import SQLiteConnections
import SQLiteFiles
import TestSupport
import Testing

/// The check of the pages that have changed, compared with SQLite's check of all pages.
@Suite struct ChangedPageCheckTests {
  private static let pageSize = 512

  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// - Parameter overflows: True for some rows with overflow pages, which a complete check is needed for if they do not change.
  private func database(_ seed: UInt64 = 0, overflows: Bool = false) throws -> String {
    try TestDatabases.run(
      """
      PRAGMA page_size = \(Self.pageSize);
      CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, b BLOB); CREATE INDEX i ON t(a);
      CREATE TABLE k(a TEXT, b, PRIMARY KEY (a, b)) WITHOUT ROWID;
      WITH s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 600)
      INSERT INTO t SELECT n * 10, 'row ' || n, CASE WHEN n % 40 = 0 AND \(overflows) THEN randomblob(3000) END FROM s;
      INSERT INTO k SELECT a, id FROM t;
      """, on: folder.file("database \(seed)"))
  }

  /// The pages that differ between two states.
  private func changed(_ before: [UInt8], _ after: [UInt8]) -> (PageBitmap, [Int]) {
    let count = after.count / Self.pageSize
    let numbers = (1...count).filter { page in
      let place = (page - 1) * Self.pageSize..<page * Self.pageSize
      return place.upperBound > before.count || before[place] != after[place]
    }
    let pages = PageBitmap(upTo: count)
    for number in numbers { pages.insert(number) }
    return (pages, numbers)
  }

  private func check(_ bytes: [UInt8], _ changed: PageBitmap) throws -> Bool {
    try DatabasePages(MemoryBytes(bytes)).checkChanges(changed)
  }

  /// True if SQLite finds damage.
  private func isDamaged(_ bytes: [UInt8], _ seed: UInt64) throws -> Bool {
    let path = try folder.write(bytes, to: "damaged \(seed)")
    do { return try SQLiteConnection(opening: path, as: .immutable).damage() != nil } catch { return true }
  }

  @Test(arguments: Seeds.shards) func `what an app writes is in order`(shard: Int) throws {
    try Seeds.tryEach(40, shard: shard) { try editRandomly(seed: $0) }
  }

  private func editRandomly(seed: UInt64) throws {
    let path = try database(seed, overflows: true)
    var random = SeededGenerator(seed: seed)
    for round in 0..<12 {
      let before = try fileBytes(path)
      let id = random.next(upperBound: UInt64(700)) * 10
      let statements = [
        "UPDATE t SET a = a || ' longer' WHERE id BETWEEN \(id) AND \(id) + 300",
        "DELETE FROM t WHERE id BETWEEN \(id) AND \(id) + 1500",
        "INSERT INTO t(a, b) SELECT a || \(round), zeroblob(id % 900) FROM t WHERE id > \(id) LIMIT 100",
        "DELETE FROM k WHERE b BETWEEN \(id) AND \(id) + 2000", "INSERT OR IGNORE INTO k SELECT a, id FROM t",
        "UPDATE t SET b = randomblob(3000) WHERE b IS NOT NULL AND id > \(id)",
        "CREATE TABLE IF NOT EXISTS u\(round % 3) AS SELECT * FROM t", "DROP TABLE IF EXISTS u\(round % 3)", "VACUUM",
        "DELETE FROM t",
      ]
      try TestDatabases.run(statements[Int(random.next(upperBound: UInt64(statements.count)))], on: path)
      let after = try fileBytes(path)
      // Overflow pages of unchanged rows need a complete check. What the changed pages are is in order in any case.
      _ = try check(after, changed(before, after).0)
    }
  }

  @Test func `an edit of rows without overflow needs no complete check`() throws {
    let path = try database()
    let before = try fileBytes(path)
    try TestDatabases.run(
      "UPDATE t SET a = upper(a) WHERE id BETWEEN 100 AND 350; DELETE FROM k WHERE b < 900", on: path)
    let after = try fileBytes(path)
    #expect(try check(after, changed(before, after).0))
    try TestDatabases.run("PRAGMA auto_vacuum = FULL; VACUUM", on: path)
    #expect(try !check(fileBytes(path), changed(after, fileBytes(path)).0))
  }

  @Test(arguments: Seeds.shards) func `a changed page that was not written is found if SQLite finds it`(shard: Int)
    throws
  {
    try Seeds.tryEach(200, shard: shard) { try loseWrite(seed: $0) }
  }

  private func loseWrite(seed: UInt64) throws {
    let path = try database(seed)
    var random = SeededGenerator(seed: seed)
    let before = try fileBytes(path)
    let id = random.next(upperBound: UInt64(500)) * 10
    try TestDatabases.run(
      [
        "INSERT INTO t SELECT id + 3, a, zeroblob(60) FROM t WHERE id BETWEEN \(id) AND \(id) + 900",
        "DELETE FROM t WHERE id BETWEEN \(id) AND \(id) + 2000", "UPDATE t SET a = a || ' longer' WHERE id > \(id)",
        "UPDATE t SET b = randomblob(2000) WHERE id BETWEEN \(id) AND \(id) + 400",
      ][Int(seed % 4)], on: path)
    var bytes = try fileBytes(path)
    let numbers = changed(before, bytes).1.filter { $0 > 1 && $0 * Self.pageSize <= before.count }
    guard !numbers.isEmpty else { throw Seeds.Unsuitable() }
    let place = (numbers[Int(random.next(upperBound: UInt64(numbers.count)))] - 1) * Self.pageSize
    bytes.replaceSubrange(place..<place + Self.pageSize, with: before[place..<place + Self.pageSize])
    guard try isDamaged(bytes, seed) else { throw Seeds.Unsuitable() }
    do { #expect(try !check(bytes, changed(before, bytes).0), "\(Seeds.replay(seed))") } catch is DatabaseFileError {}
  }

  @Test(arguments: Seeds.shards) func `damage that SQLite finds in a changed page is found`(shard: Int) throws {
    try Seeds.tryEach(200, shard: shard) { try damageRandomly(seed: $0) }
  }

  private func damageRandomly(seed: UInt64) throws {
    let path = try database(seed)
    let before = try fileBytes(path)
    try TestDatabases.run("UPDATE t SET a = a || '!' WHERE id % 70 = 0", on: path)
    var bytes = try fileBytes(path)
    let (pages, numbers) = changed(before, bytes)
    var random = SeededGenerator(seed: seed)
    let page = numbers[Int(random.next(upperBound: UInt64(numbers.count)))]
    let start = (page - 1) * Self.pageSize
    switch seed % 4 {
    case 0: for place in start..<start + Self.pageSize { bytes[place] = 0 }
    case 1: for place in start..<start + Self.pageSize { bytes[place] = UInt8.random(in: 0...255, using: &random) }
    case 2:
      // Another page of the database, as from a write to the wrong place.
      let other = (page == 2 ? 2 : 1) * Self.pageSize
      for place in 0..<Self.pageSize { bytes[start + place] = bytes[other + place] }
    default:
      // The pointers to the cells.
      for place in start + 8..<start + 14 { bytes[place] = 0xff }
    }
    guard try isDamaged(bytes, seed) else { throw Seeds.Unsuitable() }
    #expect(throws: DatabaseFileError.self, "\(Seeds.replay(seed))") { try check(bytes, pages) }
  }
}
