import Dispatch

/// The pages of a database: those of the database file, overlaid by those of its write-ahead log.
///
/// Reading begins here. The root page of each table is in `sqlite_schema`, whose own root page is page 1:
///
/// ```swift
/// let pages = try DatabasePages(FileBytes(opening: "notes.db"))
/// let schema = try BTreeCursor(pages, root: 1)
/// let record = RecordReader(limit: 5)  // type, name, tbl_name, rootpage, sql
/// while try schema.next() {
///   try record.read(schema.payload(), page: schema.page)
///   if case .text(let name)? = record.value(at: 1), case .integer(let root)? = record.value(at: 3) {
///     print(String(decoding: name, as: UTF8.self), "starts at page", root)
///   }
/// }
/// ```
///
/// Reading takes no lock. When other connections may write, hold a read transaction open while pages are read, and pass
/// the end mark of that transaction. Use an instance from one thread at a time.
public final class DatabasePages {
  /// The database header; from the log when the log has page 1.
  public let header: DatabaseHeader
  /// The number of pages of the database.
  public let pageCount: Int
  /// The write-ahead log; nil if there is none, or no commit in it.
  public let log: WriteAheadLog?

  /// The database file.
  let file: any ByteSource
  private let logFile: (any ByteSource)?
  /// The most pages that file and log together can hold. `pageCount` is what a header claims.
  let storedPageCount: Int

  /// Reads the headers of a database file and its write-ahead log, and indexes the log.
  ///
  /// - Parameters:
  ///   - file: The database file.
  ///   - logFile: The write-ahead log; nil if there is none.
  ///   - endMark: The state of the log to read; nil for its last commit.
  /// - Throws: `DatabaseFileError` with `notADatabase`, `badHeader`, `truncated` or `badLog`; what a source throws.
  public init(_ file: any ByteSource, log logFile: (any ByteSource)? = nil, upTo endMark: WriteAheadLog.EndMark? = nil)
    throws
  {
    self.file = file
    self.logFile = logFile
    let log = try logFile.flatMap { try WriteAheadLog($0, upTo: endMark) }
    var bytes = [UInt8](repeating: 0, count: DatabaseHeader.byteCount)
    let place = log?.offset(ofPage: 1)
    let count = try bytes.withUnsafeMutableBytes { buffer in
      if let place, let logFile {
        try logFile.read(into: buffer, at: place)
      } else {
        try file.read(into: buffer, at: 0)
      }
    }
    guard count == bytes.count else {
      throw DatabaseFileError(.notADatabase, "the file is \(count == 0 ? "empty" : "too short for an SQLite database")")
    }
    header = try bytes.withUnsafeBytes { (bytes) throws(DatabaseFileError) in try DatabaseHeader(bytes) }
    let held = Int(try file.byteCount() / Int64(header.pageSize))
    if let log {
      guard log.pageSize == header.pageSize else {
        throw DatabaseFileError(.badHeader, "the page sizes of the database and its write-ahead log differ")
      }
      pageCount = log.pageCount
      // Freelist pages may be in neither file, but memory is allocated by the page count, and anyone can claim billions.
      guard pageCount - held <= log.endMark.frameCount + Self.missingPageLimit else {
        throw DatabaseFileError(.truncated, "the log claims \(pageCount) pages, and the file has \(held)")
      }
    } else {
      pageCount = header.pageCount ?? min(held, Self.pageCountLimit)
      guard pageCount <= held else {
        throw DatabaseFileError(.truncated, "the file has \(held) of \(pageCount) pages")
      }
    }
    storedPageCount = min(pageCount, held + (log?.endMark.frameCount ?? 0))
    self.log = log
  }

  /// The same pages, read from other sources.
  private init(_ pages: DatabasePages, _ file: any ByteSource, log logFile: (any ByteSource)?) {
    self.file = file
    self.logFile = logFile
    header = pages.header
    pageCount = pages.pageCount
    storedPageCount = pages.storedPageCount
    log = pages.log
  }

  /// The same pages twice, for one thread each. This instance is not to be used meanwhile.
  ///
  /// - Returns: nil if the file cannot be read by two threads.
  /// - Throws: What the source throws.
  package func forTwoThreads() throws -> (DatabasePages, DatabasePages)? {
    guard let second = try file.duplicate() else { return nil }
    // Few pages are in the log.
    let logFile = logFile.map { LockedBytes($0) }
    return (DatabasePages(self, file, log: logFile), DatabasePages(self, second, log: logFile))
  }

  /// The most pages that may be missing from both files.
  private static let missingPageLimit = 1 << 20
  /// The most pages of a database. See <https://sqlite.org/limits.html#max_page_count>.
  private static let pageCountLimit = 4_294_967_294

  /// True if the log has been reset since it was read. If so, pages read from it since then may be wrong.
  ///
  /// - Throws: What the source throws.
  public func isStale() throws -> Bool {
    guard let log, let logFile else { return false }
    return try log.isStale(logFile)
  }

  /// The numbers of the pages in the log, in no particular order.
  var loggedPages: [Int] { log.map { Array($0.pages) } ?? [] }

  /// Reads consecutive pages. A page that is in neither file, such as a free one that was never written, is all zeros.
  ///
  /// - Parameters:
  ///   - count: The number of pages.
  ///   - first: The number of the first page, from 1.
  ///   - buffer: Receives the pages.
  /// - Throws: What a source throws; `DatabaseFileError`.
  package func readAll(_ count: Int, from first: Int, into buffer: UnsafeMutableRawBufferPointer) throws {
    let size = header.pageSize
    let wanted = UnsafeMutableRawBufferPointer(rebasing: buffer[..<(count * size)])
    let found = try file.read(into: wanted, at: Int64(first - 1) * Int64(size))
    if found < wanted.count {
      UnsafeMutableRawBufferPointer(rebasing: wanted[found...]).initializeMemory(as: UInt8.self, repeating: 0)
    }
    guard let log, let logFile else { return }
    for page in first..<first + count {
      guard let offset = log.offset(ofPage: page) else { continue }
      let place = UnsafeMutableRawBufferPointer(rebasing: wanted[(page - first) * size..<(page - first + 1) * size])
      guard try logFile.read(into: place, at: offset) == size else {
        throw DatabaseFileError(.truncated, page: page, "the write-ahead log ends inside the page")
      }
    }
  }

  /// Reads a page.
  ///
  /// - Parameters:
  ///   - page: The page number, from 1.
  ///   - buffer: Receives the page; at least `header.pageSize` bytes.
  /// - Throws: `DatabaseFileError` with `truncated` when there is no such page; what a source throws.
  public func read(_ page: Int, into buffer: UnsafeMutableRawBufferPointer) throws {
    guard page >= 1, page <= pageCount else {
      throw DatabaseFileError(.truncated, page: page, "the page is needed, and the database has \(pageCount) pages")
    }
    let size = header.pageSize
    precondition(buffer.count >= size, "the buffer is smaller than a page")
    let target = UnsafeMutableRawBufferPointer(rebasing: buffer[..<size])
    let count =
      if let logFile, let offset = log?.offset(ofPage: page) {
        try logFile.read(into: target, at: offset)
      } else {
        try file.read(into: target, at: Int64(page - 1) * Int64(size))
      }
    guard count == size else { throw DatabaseFileError(.truncated, page: page, "the file ends inside the page") }
  }
}

/// A source with a lock: one thread reads at a time.
private final class LockedBytes: ByteSource {
  private let source: any ByteSource
  private let queue = DispatchQueue(label: "SQLiteFiles.LockedBytes")

  init(_ source: any ByteSource) { self.source = source }

  func byteCount() throws -> Int64 { try queue.sync { try source.byteCount() } }

  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws -> Int {
    try queue.sync { try source.read(into: buffer, at: offset) }
  }
}

/// Memory for one page.
public final class PageBuffer {
  /// The bytes of the page, writable.
  public let bytes: UnsafeMutableRawBufferPointer

  /// Allocates memory for a page.
  ///
  /// - Parameter size: The page size in bytes.
  public init(size: Int) { bytes = .allocate(byteCount: size, alignment: 16) }

  deinit { bytes.deallocate() }
}

/// The header of a database file: its first 100 bytes. See <https://sqlite.org/fileformat2.html#the_database_header>.
public struct DatabaseHeader: Equatable, Sendable {
  /// The encoding of all text in the database.
  public enum TextEncoding: UInt32, Sendable {
    /// Nothing has been stored yet.
    case undecided = 0
    /// UTF-8.
    case utf8 = 1
    /// UTF-16, little-endian.
    case utf16LittleEndian = 2
    /// UTF-16, big-endian.
    case utf16BigEndian = 3
  }

  /// The size of the header in bytes.
  public static let byteCount = 100

  /// The page size in bytes: a power of two from 512 to 65,536.
  public let pageSize: Int
  /// The number of reserved bytes at the end of each page, which extensions use.
  public let reservedBytes: Int
  /// True if the database is in WAL mode, by its read version.
  public let usesWAL: Bool
  /// The number of pages; nil if the header's number is out of date and the size of the file counts.
  public let pageCount: Int?
  /// The page number of the first freelist trunk page; 0 when the freelist is empty.
  public let firstFreelistTrunkPage: Int
  /// The number of freelist pages.
  public let freelistPageCount: Int
  /// The schema cookie, which changes with every change of the schema.
  public let schemaCookie: UInt32
  /// The page number of the largest root page in an auto-vacuum or incremental-vacuum database; else 0.
  public let largestRootPage: Int
  /// The encoding of all text in the database.
  public let encoding: TextEncoding
  /// The user version, set by `PRAGMA user_version`.
  public let userVersion: UInt32
  /// The application id, set by `PRAGMA application_id`.
  public let applicationID: UInt32

  /// The usable size of a page in bytes: the page size less the reserved bytes.
  public var usableSize: Int { pageSize - reservedBytes }

  /// True if a page is a pointer map page, which only auto-vacuum databases have. See
  /// <https://sqlite.org/fileformat2.html#pointer_map_or_ptrmap_pages>.
  func isPointerMap(_ page: Int) -> Bool {
    guard largestRootPage > 0, page >= 2 else { return false }
    let stride = usableSize / 5 + 1
    let place = (page - 2) / stride * stride + 2
    return page == (place == lockBytePage ? place + 1 : place)
  }

  /// The number of the lock-byte page, the one that contains the byte at 1 GiB. See
  /// <https://sqlite.org/fileformat2.html#the_lock_byte_page>.
  var lockBytePage: Int { (1 << 30) / pageSize + 1 }

  /// Reads a header.
  ///
  /// - Parameter bytes: The first bytes of the file, at least ``byteCount`` of them.
  /// - Throws: `DatabaseFileError` with `notADatabase` or `badHeader`.
  public init(_ bytes: UnsafeRawBufferPointer) throws(DatabaseFileError) {
    guard bytes.count >= Self.byteCount, bytes.prefix(16).elementsEqual("SQLite format 3\0".utf8) else {
      throw DatabaseFileError(.notADatabase, "the file is not an SQLite database, or is encrypted")
    }
    let size = bytes.number16(at: 16)
    pageSize = size == 1 ? 65_536 : size
    guard pageSize >= 512, pageSize & (pageSize - 1) == 0 else { throw Self.invalid("page size", size) }
    reservedBytes = Int(bytes[20])
    guard pageSize - reservedBytes >= 480 else { throw Self.invalid("number of reserved bytes", reservedBytes) }
    guard bytes[21] == 64, bytes[22] == 32, bytes[23] == 32 else {
      throw DatabaseFileError(.badHeader, "the payload fractions in the database header are invalid")
    }
    guard (1...2).contains(bytes[18]), (1...2).contains(bytes[19]) else {
      throw DatabaseFileError(.badHeader, "the database needs a newer version of SQLite")
    }
    usesWAL = bytes[19] == 2
    let count = bytes.number32(at: 28)
    // Versions of SQLite before 3.7.0 do not write the count. They increment the change counter at 24, but not its copy
    // at 92 (https://sqlite.org/fileformat2.html#in_header_database_size).
    pageCount = count > 0 && bytes.number32(at: 24) == bytes.number32(at: 92) ? Int(count) : nil
    firstFreelistTrunkPage = Int(bytes.number32(at: 32))
    freelistPageCount = Int(bytes.number32(at: 36))
    schemaCookie = bytes.number32(at: 40)
    largestRootPage = Int(bytes.number32(at: 52))
    guard let encoding = TextEncoding(rawValue: bytes.number32(at: 56)) else {
      throw Self.invalid("text encoding", Int(bytes.number32(at: 56)))
    }
    self.encoding = encoding
    userVersion = bytes.number32(at: 60)
    applicationID = bytes.number32(at: 68)
  }

  private static func invalid(_ field: String, _ value: Int) -> DatabaseFileError {
    DatabaseFileError(.badHeader, "the \(field) in the database header is \(value), which is invalid")
  }
}

/// Why a database file or its write-ahead log cannot be read: damage, or a failure of the file system.
public struct DatabaseFileError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The kinds of error.
  public enum Code: String, Sendable {
    /// The file does not start with the header of an SQLite database.
    case notADatabase = "not-a-database"
    /// The database header holds an invalid value.
    case badHeader = "bad-header"
    /// The file ends before a page that is needed.
    case truncated
    /// A page is not of the type that its place in the b-tree requires.
    case badPage = "bad-page"
    /// A cell extends beyond its page, or holds an invalid value.
    case badCell = "bad-cell"
    /// An overflow chain ends too early, or leads to a page that does not exist.
    case badOverflow = "bad-overflow"
    /// The header of a record does not match the size of the record.
    case badRecord = "bad-record"
    /// Two pointers lead to one page, or a b-tree is too deep.
    case cycle
    /// The write-ahead log does not hold the requested state.
    case badLog = "bad-log"
    /// The two databases of a comparison have different page sizes or reserved bytes.
    case pageSizesDiffer = "page-sizes-differ"
    /// The operating system cannot open or read the file.
    case unreadable
  }

  /// The kind of error.
  public let code: Code
  /// The number of the page at fault, from 1; nil if the error is not about one page.
  public let page: Int?
  /// The error, in English.
  public let message: String

  init(_ code: Code, page: Int? = nil, _ message: String) {
    self.code = code
    self.page = page
    self.message = message
  }

  /// The message, after the page number when there is one.
  public var description: String { page.map { "page \($0): \(message)" } ?? message }

  static func visitedTwice(_ page: Int) -> DatabaseFileError {
    DatabaseFileError(.cycle, page: page, "two pointers lead to this page")
  }
}
