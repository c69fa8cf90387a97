import CBuckiaSQLite

/// A file as SQLite itself has it open: the only way to read a database beside a connection to it.
///
/// Opening and closing it by its path would drop the locks that this process holds on it
/// (<https://sqlite.org/howtocorrupt.html>). Good for as long as the connection is open; for one thread at a time, which must
/// not be at the same time that the connection is used.
public final class SQLiteFileHandle {
  /// Which of a database's files.
  public enum File: Sendable {
    /// The database.
    case database
    /// Its write-ahead log, in WAL mode.
    case log
  }

  private let file: UnsafeMutablePointer<sqlite3_file>
  private let path: String
  /// The connection that has the file open, where that is nobody else's.
  private let owner: OpaquePointer?

  /// Asks a connection for a handle of its database `main`.
  ///
  /// - Returns: nil when there is no such file: a database in memory, no log.
  public init?(_ which: File, of connection: borrowing SQLiteConnection) {
    let operation = which == .database ? SQLITE_FCNTL_FILE_POINTER : SQLITE_FCNTL_JOURNAL_POINTER
    guard let found = Self.file(operation, of: connection.handle) else { return nil }
    file = found
    path = connection.path
    owner = nil
  }

  private init(_ file: UnsafeMutablePointer<sqlite3_file>, path: String, ownedBy owner: OpaquePointer) {
    self.file = file
    self.path = path
    self.owner = owner
  }

  deinit { sqlite3_close_v2(owner) }

  private static func file(_ operation: Int32, of connection: OpaquePointer) -> UnsafeMutablePointer<sqlite3_file>? {
    var found: UnsafeMutablePointer<sqlite3_file>?
    guard sqlite3_file_control(connection, "main", operation, &found) == SQLITE_OK, let found,
      found.pointee.pMethods != nil
    else { return nil }
    return found
  }

  /// The database's file once more, for another thread.
  ///
  /// SQLite opens it by its path, which keeps the locks of this process. No lock is taken by it, so what is read is what a
  /// transaction of the first connection sees, as long as that lasts.
  ///
  /// - Returns: nil when SQLite cannot open it again, or what is at its path is no longer this file.
  public func another() -> SQLiteFileHandle? {
    var opened: OpaquePointer?
    guard
      sqlite3_open_v2(SQLiteConnection.plainName(path), &opened, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, nil)
        == SQLITE_OK, let opened, let second = Self.file(SQLITE_FCNTL_FILE_POINTER, of: opened)
    else {
      sqlite3_close_v2(opened)
      return nil
    }
    let handle = SQLiteFileHandle(second, path: path, ownedBy: opened)
    return second.pointee.pMethods == file.pointee.pMethods && isInPlace && handle.isInPlace ? handle : nil
  }

  /// Whether the file is known to be what is at its path at this moment.
  private var isInPlace: Bool {
    var hasMoved: Int32 = 1
    return file.pointee.pMethods.pointee.xFileControl(file, SQLITE_FCNTL_HAS_MOVED, &hasMoved) == SQLITE_OK
      && hasMoved == 0
  }

  /// How many bytes the file has now.
  public func byteCount() throws(SQLiteError) -> Int64 {
    var size: sqlite3_int64 = 0
    let code = file.pointee.pMethods.pointee.xFileSize(file, &size)
    guard code == SQLITE_OK else { throw SQLiteError(code: code, message: "cannot be examined", path: path) }
    return size
  }

  /// Fills a buffer with the bytes from an offset on.
  ///
  /// - Returns: How many bytes there were: fewer than asked for only where the file ends.
  public func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SQLiteError) -> Int {
    let code = file.pointee.pMethods.pointee.xRead(file, buffer.baseAddress, Int32(buffer.count), offset)
    if code == SQLITE_OK { return buffer.count }
    guard code == Self.shortRead else { throw SQLiteError(code: code, message: "cannot be read", path: path) }
    return max(0, min(buffer.count, Int(clamping: try byteCount() - offset)))
  }

  /// `SQLITE_IOERR_SHORT_READ`, a macro that Swift does not import.
  private static let shortRead = SQLITE_IOERR | 2 << 8

  /// The state of a write-ahead log, as its shared index has it.
  public struct LogState: Equatable, Sendable {
    /// How many frames there are up to the last commit.
    public let frameCount: Int
    /// Changes with every commit.
    public let change: UInt32
    /// The salts of the log's header, in its byte order.
    public let salts: UInt64
    /// The running checksum behind the last frame.
    public let checksum: UInt64
  }

  /// What the log's shared index says at this moment; nil when there is none, or someone is just writing it.
  ///
  /// To be asked of the database's file, after the connection has read something: the index is open then. A reader sees
  /// the state that this gives before and after its transaction has begun, when it is the same.
  /// See <https://sqlite.org/walformat.html#the_wal_index_file_format>.
  public func logState() -> LogState? {
    guard file.pointee.pMethods.pointee.iVersion >= 2, let map = file.pointee.pMethods.pointee.xShmMap,
      let barrier = file.pointee.pMethods.pointee.xShmBarrier
    else { return nil }
    var region: UnsafeMutableRawPointer?
    guard map(file, 0, 32 << 10, 0, &region) == SQLITE_OK, let region else { return nil }
    // There are two copies of the header, written one after the other: when they are equal, both are whole.
    let one = Self.header(at: region)
    barrier(file)
    let two = Self.header(at: region + Self.headerBytes)
    guard one == two, one[0] == 3_007_000, UInt8(truncatingIfNeeded: UInt32(littleEndian: one[3])) == 1 else {
      return nil
    }
    return LogState(
      frameCount: Int(one[4]), change: one[2],
      salts: UInt64(UInt32(bigEndian: one[8])) << 32 | UInt64(UInt32(bigEndian: one[9])),
      checksum: UInt64(one[6]) << 32 | UInt64(one[7]))
  }

  private static let headerBytes = 48

  private static func header(at address: UnsafeMutableRawPointer) -> [UInt32] {
    (0..<headerBytes / 4).map { address.load(fromByteOffset: 4 * $0, as: UInt32.self) }
  }
}
