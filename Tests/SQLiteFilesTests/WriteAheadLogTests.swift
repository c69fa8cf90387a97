import SQLiteConnections
@testable import SQLiteFiles
import Testing
import TestSupport

/// A log over its database: what a reader sees who comes now.
@Suite struct WriteAheadLogTests {
  private let folder: TemporaryFolder
  private let path: String
  private let keeper: Keeper

  /// As long as it is open the log is not copied into the database.
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

  /// How many rows the table has, by the files alone.
  private static func count(_ database: [UInt8], _ log: [UInt8]) throws -> Int {
    let cursor = try BTreeCursor(DatabasePages(MemoryBytes(database), log: MemoryBytes(log)), root: 2)
    var count = 0
    while try cursor.next() { count += 1 }
    return count
  }

  @Test("Each commit counts, whole or not at all, wherever the log is cut off")
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
        // Before the first commit there is no table, and before that no database.
        #expect(error.code == .truncated || error.code == .notADatabase || error.code == .badPage)
      }
    }
    #expect(seen == [0, 7, 14, 21, 28])
  }

  @Test("A frame that is damaged ends the log before the commit that it belongs to")
  func damaged() throws {
    for _ in 0..<3 { try insert(7) }
    let database = try Self.bytes(of: path)
    let log = try Self.bytes(of: path + "-wal")
    for place in stride(from: 60, to: log.count, by: 211) {
      var broken = log
      broken[place] ^= 0x10
      let read = try WriteAheadLog(MemoryBytes(broken))
      let whole = try #require(try WriteAheadLog(MemoryBytes(log)))
      #expect((read?.mark.frameCount ?? 0) < whole.mark.frameCount)
      if let read { #expect(read.mark.frameCount * 1_048 + 32 <= place + 1_048) }
    }
    #expect(try Self.count(database, log) == 21)
  }

  @Test("What an earlier round of the log has left behind does not count")
  func leftOver() throws {
    for _ in 0..<5 { try insert(30) }
    try keeper.execute("PRAGMA wal_checkpoint(RESTART)")
    try insert(1)
    let log = try #require(try WriteAheadLog(MemoryBytes(Self.bytes(of: path + "-wal"))))
    #expect(log.mark.frameCount < 5)
    #expect(try Self.count(Self.bytes(of: path), Self.bytes(of: path + "-wal")) == 151)
  }

  @Test("A state that a reader has seen can be read later; one from before a new beginning cannot")
  func mark() throws {
    try insert(7)
    let first = try #require(try WriteAheadLog(MemoryBytes(Self.bytes(of: path + "-wal")))).mark
    try insert(7)
    let bytes = try Self.bytes(of: path + "-wal")
    #expect(try WriteAheadLog(MemoryBytes(bytes), upTo: first)?.mark == first)
    #expect(try #require(try WriteAheadLog(MemoryBytes(bytes))).mark.frameCount > first.frameCount)
    try keeper.execute("PRAGMA wal_checkpoint(RESTART)")
    try insert(1)
    let restarted = MemoryBytes(try Self.bytes(of: path + "-wal"))
    #expect(try WriteAheadLog(restarted, upTo: first) == nil)
    let stale = try #require(try WriteAheadLog(MemoryBytes(bytes)))
    #expect(try stale.isStale(restarted))
    #expect(try !stale.isStale(MemoryBytes(bytes)))
  }

  @Test("A log whose checksums are right and that speaks of billions of pages takes no memory for them")
  func billions() throws {
    try insert(7)
    var log = try Self.bytes(of: path + "-wal")
    let frameBytes = WriteAheadLog.frameHeaderBytes + 1_024
    var checksum = LogChecksum(isBigEndian: log[3] & 1 == 1)
    checksum.add(log, 0..<24)
    for start in stride(from: WriteAheadLog.headerBytes, to: log.count, by: frameBytes) {
      let isCommit = log[start + 4..<start + 8].contains { $0 != 0 }
      if isCommit { log.replaceSubrange(start + 4..<start + 8, with: [0xff, 0xff, 0xff, 0xf0]) }
      checksum.add(log, start..<start + 8)
      checksum.add(log, start + WriteAheadLog.frameHeaderBytes..<start + frameBytes)
      let bytes = withUnsafeBytes(of: checksum.value.bigEndian) { Array($0) }
      log.replaceSubrange(start + 16..<start + 24, with: bytes)
    }
    #expect(try WriteAheadLog(MemoryBytes(log))?.pageCount == 0xffff_fff0)
    let error = #expect(throws: DatabaseFileError.self) {
      _ = try DatabasePages(MemoryBytes(Self.bytes(of: path)), log: MemoryBytes(log))
    }
    #expect(error?.code == .truncated)
  }
}

extension LogChecksum {
  fileprivate mutating func add(_ bytes: [UInt8], _ range: Range<Int>) {
    bytes.withUnsafeBytes { add(UnsafeRawBufferPointer(rebasing: $0[range])) }
  }
}
