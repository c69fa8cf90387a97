import Dispatch

/// The pages of a database: those of the database file, overlaid by those of its write-ahead log.
///
/// This is where reading begins. The root page of each table is in `sqlite_schema`, whose own root page is page 1:
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
  /// The write-ahead log; nil when there is none, or no commit in it.
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
  ///   - logFile: The write-ahead log; nil when there is none.
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
  /// - Returns: nil where the file cannot be read by two threads.
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

  /// Whether the log has been reset since it was read. If so, pages read from it since then may be wrong.
  ///
  /// - Throws: What the source throws.
  public func isStale() throws -> Bool {
    guard let log, let logFile else { return false }
    return try log.isStale(logFile)
  }

  /// The numbers of the pages in the log, in no particular order.
  var loggedPages: [Int] { log.map { Array($0.pages) } ?? [] }

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

/// A source that is read by one thread at a time, whoever asks.
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
