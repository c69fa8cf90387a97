import CBuckiaSQLite

/// A file that SQLite has open: the only safe way to read a database file while a connection uses it.
///
/// Opening and closing the file by its path would drop the locks that this process holds on it
/// (<https://sqlite.org/howtocorrupt.html>). A handle is valid as long as its connection is open, and must not be used at
/// the same time as the connection.
package final class SQLiteFileHandle {
  /// One of a database's files.
  package enum File: Sendable {
    /// The database.
    case database
    /// Its write-ahead log, in WAL mode.
    case log
  }

  private let file: UnsafeMutablePointer<sqlite3_file>
  private let connection: SQLiteHandle
  private let ownsConnection: Bool

  /// Gets a file of a connection's database `main`.
  ///
  /// - Returns: nil when there is no such file: for a database in memory, or without a log.
  package init?(_ which: File, of connection: borrowing SQLiteConnection) {
    let operation = which == .database ? SQLITE_FCNTL_FILE_POINTER : SQLITE_FCNTL_JOURNAL_POINTER
    guard let found = Self.file(operation, of: connection.handle) else { return nil }
    file = found
    self.connection = connection.handle
    ownsConnection = false
  }

  private init(_ file: UnsafeMutablePointer<sqlite3_file>, owning connection: SQLiteHandle) {
    self.file = file
    self.connection = connection
    ownsConnection = true
  }

  deinit { if ownsConnection { connection.routines.close_v2(connection.pointer) } }

  private static func file(_ operation: Int32, of connection: SQLiteHandle) -> UnsafeMutablePointer<sqlite3_file>? {
    var found: UnsafeMutablePointer<sqlite3_file>?
    guard connection.routines.file_control(connection.pointer, "main", operation, &found) == SQLITE_OK, let found,
      found.pointee.pMethods != nil
    else { return nil }
    return found
  }

  /// Opens the database's file once more, for another thread.
  ///
  /// SQLite opens it, which keeps the locks of this process. The new handle takes no locks: it reads the state that a
  /// transaction of the first connection sees, while that is open.
  ///
  /// - Returns: nil if SQLite cannot open the file again, or its path now leads to another file.
  package func another() -> SQLiteFileHandle? {
    let routines = connection.routines
    var opened: OpaquePointer?
    let name = SQLiteConnection.plainName(connection.path)
    let code = routines.open_v2(name, &opened, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX)
    let again = opened.map { SQLiteHandle($0, of: connection.library, path: connection.path) }
    guard code == SQLITE_OK, let again, let second = Self.file(SQLITE_FCNTL_FILE_POINTER, of: again) else {
      routines.close_v2(opened)
      return nil
    }
    let handle = SQLiteFileHandle(second, owning: again)
    return second.pointee.pMethods == file.pointee.pMethods && isInPlace && handle.isInPlace ? handle : nil
  }

  /// True if the file's path still leads to it.
  private var isInPlace: Bool {
    var hasMoved: Int32 = 1
    return file.pointee.pMethods.pointee.xFileControl(file, SQLITE_FCNTL_HAS_MOVED, &hasMoved) == SQLITE_OK
      && hasMoved == 0
  }

  /// The present size of the file in bytes.
  package func byteCount() throws(SQLiteError) -> Int64 {
    var size: sqlite3_int64 = 0
    let code = file.pointee.pMethods.pointee.xFileSize(file, &size)
    guard code == SQLITE_OK else { throw SQLiteError(code: code, message: "cannot be examined", path: connection.path) }
    return size
  }

  /// Fills a buffer with the bytes at an offset.
  ///
  /// - Returns: The number of read bytes; fewer than requested only at the end of the file.
  package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SQLiteError) -> Int {
    let code = file.pointee.pMethods.pointee.xRead(file, buffer.baseAddress, Int32(buffer.count), offset)
    if code == SQLITE_OK { return buffer.count }
    guard code == Self.shortRead else {
      throw SQLiteError(code: code, message: "cannot be read", path: connection.path)
    }
    return max(0, min(buffer.count, Int(clamping: try byteCount() - offset)))
  }

  /// `SQLITE_IOERR_SHORT_READ`, a macro that Swift does not import.
  private static let shortRead = SQLITE_IOERR | 2 << 8

  /// The state of a write-ahead log, according to its shared index.
  package struct LogState: Equatable, Sendable {
    /// The number of frames up to the last commit.
    package let frameCount: Int
    /// A counter that changes with every commit.
    package let change: UInt32
    /// The salts of the log's header, in its byte order.
    package let salts: UInt64
    /// The cumulative checksum up to the last frame.
    package let checksum: UInt64
  }

  /// The current state of the log; nil if there is no shared index, or another connection is writing it.
  ///
  /// Call this on the database's file after the connection has read something, because the index is open then. When the
  /// states before and after a transaction begins are equal, that is the state the transaction sees.
  /// See <https://sqlite.org/walformat.html#the_wal_index_file_format>.
  package func logState() -> LogState? {
    guard file.pointee.pMethods.pointee.iVersion >= 2, let map = file.pointee.pMethods.pointee.xShmMap,
      let barrier = file.pointee.pMethods.pointee.xShmBarrier
    else { return nil }
    var region: UnsafeMutableRawPointer?
    guard map(file, 0, 32 << 10, 0, &region) == SQLITE_OK, let region else { return nil }
    // The header exists twice, and the copies are written one after the other: when they are equal, both are complete.
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
