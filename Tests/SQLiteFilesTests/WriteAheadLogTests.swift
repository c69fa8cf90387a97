import SQLiteConnections
@testable import SQLiteFiles
import Testing
import TestSupport

/// A database file overlaid by its write-ahead log.
@Suite struct WriteAheadLogTests {
  private let folder: TemporaryFolder
  private let path: String
  private let keeper: Keeper

  /// An open connection, which keeps the log from being checkpointed and deleted.
  private final class Keeper {
    let connection: SQLiteConnection
    init(_ path: String) throws { connection = try SQLiteConnection(opening: path, as: .create) }
    func execute(_ sql: String) throws { try connection.execute(sql) }
  }

  init() throws {
    folder = try TemporaryFolder()
    path = folder.file("database")
    keeper = try Keeper(path)
    try keeper.execute(
      """
      PRAGMA page_size = 1024; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;
      CREATE TABLE t(id INTEGER PRIMARY KEY, v)
      """)
  }

  private func insert(_ count: Int) throws {
    try keeper.execute(
      """
      WITH s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < \(count))
      INSERT INTO t(v) SELECT printf('%.200c', 'x') || n FROM s
      """)
  }

  private static func bytes(of path: String) throws -> [UInt8] {
    let file = try FileBytes(opening: path)
    var bytes = [UInt8](repeating: 0, count: Int(try file.byteCount()))
    _ = try bytes.withUnsafeMutableBytes { try file.read(into: $0, at: 0) }
    return bytes
  }

  /// The number of rows of the table, read from both files.
  private static func count(_ database: [UInt8], _ log: [UInt8]) throws -> Int {
    let cursor = try BTreeCursor(DatabasePages(MemoryBytes(database), log: MemoryBytes(log)), root: 2)
    var count = 0
    while try cursor.next() { count += 1 }
    return count
  }

  @Test("A log that is cut off anywhere ends with its last whole commit")
  func cut() throws {
    for _ in 0..<4 { try insert(7) }
    let database = try Self.bytes(of: path)
    let log = try Self.bytes(of: path + "-wal")
    #expect(try Self.count(database, log) == 28)
    var seen: Set<Int> = []
    for end in stride(from: log.count, to: 0, by: -37) {
      do {
        let count = try Self.count(database, Array(log[..<end]))
        #expect(count % 7 == 0)
        seen.insert(count)
      } catch let error as DatabaseFileError {
        // Before the first commit there is no table, and before that no database header.
        #expect(error.code == .truncated || error.code == .notADatabase || error.code == .badPage)
      }
    }
    #expect(seen == [0, 7, 14, 21, 28])
  }

  @Test("A damaged frame ends the log before the commit that it belongs to")
  func damaged() throws {
    for _ in 0..<3 { try insert(7) }
    let database = try Self.bytes(of: path)
    let log = try Self.bytes(of: path + "-wal")
    for place in stride(from: 60, to: log.count, by: 211) {
      var broken = log
      broken[place] ^= 0x10
      let read = try WriteAheadLog(MemoryBytes(broken))
      let whole = try #require(try WriteAheadLog(MemoryBytes(log)))
      #expect((read?.endMark.frameCount ?? 0) < whole.endMark.frameCount)
      if let read { #expect(read.endMark.frameCount * 1_048 + 32 <= place + 1_048) }
    }
    #expect(try Self.count(database, log) == 21)
  }

  @Test("Frames from before a reset of the log are ignored")
  func leftOver() throws {
    for _ in 0..<5 { try insert(30) }
    try keeper.execute("PRAGMA wal_checkpoint(RESTART)")
    try insert(1)
    let log = try #require(try WriteAheadLog(MemoryBytes(Self.bytes(of: path + "-wal"))))
    #expect(log.endMark.frameCount < 5)
    #expect(try Self.count(Self.bytes(of: path), Self.bytes(of: path + "-wal")) == 151)
  }

  @Test("An end mark can be read up to after more commits, but not after a reset")
  func mark() throws {
    try insert(7)
    let first = try #require(try WriteAheadLog(MemoryBytes(Self.bytes(of: path + "-wal")))).endMark
    try insert(7)
    let bytes = try Self.bytes(of: path + "-wal")
    #expect(try WriteAheadLog(MemoryBytes(bytes), upTo: first)?.endMark == first)
    #expect(try #require(try WriteAheadLog(MemoryBytes(bytes))).endMark.frameCount > first.frameCount)
    try keeper.execute("PRAGMA wal_checkpoint(RESTART)")
    try insert(1)
    let restarted = MemoryBytes(try Self.bytes(of: path + "-wal"))
    #expect(try WriteAheadLog(restarted, upTo: first) == nil)
    let stale = try #require(try WriteAheadLog(MemoryBytes(bytes)))
    #expect(try stale.isStale(restarted))
    #expect(try !stale.isStale(MemoryBytes(bytes)))
  }

  @Test("A valid log that claims more pages than exist gets no memory for them")
  func claimedPages() throws {
    try insert(7)
    let database = try Self.bytes(of: path)
    let log = try Self.bytes(of: path + "-wal")
    let billions = Self.claiming([0xff, 0xff, 0xff, 0xf0], in: log)
    #expect(try WriteAheadLog(MemoryBytes(billions))?.pageCount == 0xffff_fff0)
    let error = #expect(throws: DatabaseFileError.self) {
      _ = try DatabasePages(MemoryBytes(database), log: MemoryBytes(billions))
    }
    #expect(error?.code == .truncated)
    // Freelist pages may be in neither file, so some pages more than exist are allowed.
    let pages = try DatabasePages(MemoryBytes(database), log: MemoryBytes(Self.claiming([0, 0, 0xff, 0xf0], in: log)))
    #expect(pages.pageCount == 0xfff0)
    #expect(pages.storedPageCount < 20)
  }

  /// The log with another page count in each commit frame, and checksums that match.
  private static func claiming(_ pageCount: [UInt8], in log: [UInt8]) -> [UInt8] {
    var log = log
    let frameBytes = WriteAheadLog.frameHeaderBytes + 1_024
    var checksum = LogChecksum(isBigEndian: log[3] & 1 == 1)
    checksum.add(log, 0..<24)
    for start in stride(from: WriteAheadLog.headerBytes, to: log.count, by: frameBytes) {
      let isCommit = log[start + 4..<start + 8].contains { $0 != 0 }
      if isCommit { log.replaceSubrange(start + 4..<start + 8, with: pageCount) }
      checksum.add(log, start..<start + 8)
      checksum.add(log, start + WriteAheadLog.frameHeaderBytes..<start + frameBytes)
      let bytes = withUnsafeBytes(of: checksum.value.bigEndian) { Array($0) }
      log.replaceSubrange(start + 16..<start + 24, with: bytes)
    }
    return log
  }

  @Test("A log with random damage gives the rows of some commit, or a DatabaseFileError", arguments: Seeds.shards)
  func randomDamage(shard: Int) throws {
    for _ in 0..<3 { try insert(7) }
    let database = try Self.bytes(of: path)
    let log = try Self.bytes(of: path + "-wal")
    try Seeds.tryEach(200, shard: shard) { seed in
      var random = SeededGenerator(seed: seed)
      var damaged = log
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        // Half of the damage is in the header of the log.
        let place = Int.random(in: random.oneIn(2) ? 0..<32 : 0..<log.count, using: &random)
        damaged[place] = UInt8.random(in: 0...255, using: &random)
      }
      let count: Int?
      do { count = try Self.count(database, damaged) } catch is DatabaseFileError { count = nil }
      #expect([nil, 0, 7, 14, 21].contains(count))
    }
  }
}

extension LogChecksum {
  fileprivate mutating func add(_ bytes: [UInt8], _ range: Range<Int>) {
    bytes.withUnsafeBytes { add(UnsafeRawBufferPointer(rebasing: $0[range])) }
  }
}
