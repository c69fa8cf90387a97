/// The pages of a database as one reader sees them: those of the file, and over them those of its log.
///
/// ```swift
/// let pages = try DatabasePages(FileBytes(opening: "notes.sqlite"))
/// let page = PageBuffer(size: pages.header.pageSize)
/// try pages.read(1, into: page.bytes)
/// ```
///
/// For use by one thread at a time.
public final class DatabasePages {
  /// The header, as the log has it where that has the first page.
  public let header: DatabaseHeader
  /// How many pages the database has.
  public let pageCount: Int
  /// The log, where there is one with a commit in it.
  public let log: WriteAheadLog?

  /// The database file.
  let file: any ByteSource
  private let logFile: (any ByteSource)?

  /// Reads header and log.
  ///
  /// Nothing here takes a lock. Beside other processes the caller holds a read transaction open for as long as pages are
  /// read, and says which state of the log that transaction sees.
  ///
  /// - Parameters:
  ///   - file: The database file.
  ///   - logFile: Its log, where there is one.
  ///   - limit: The state of the log to read; nil for its last commit.
  /// - Throws: `DatabaseFileError` when it is no database; what the sources throw.
  public init(_ file: any ByteSource, log logFile: (any ByteSource)? = nil, upTo limit: WriteAheadLog.EndMark? = nil)
    throws
  {
    self.file = file
    self.logFile = logFile
    let log = try logFile.flatMap { try WriteAheadLog($0, upTo: limit) }
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
      throw DatabaseFileError(.notADatabase, count == 0 ? "it is empty" : "it is too short for an SQLite database")
    }
    header = try bytes.withUnsafeBytes { (bytes) throws(DatabaseFileError) in try DatabaseHeader(bytes) }
    let held = Int(try file.byteCount() / Int64(header.pageSize))
    if let log {
      guard log.pageSize == header.pageSize else {
        throw DatabaseFileError(.badHeader, "the log has pages of another size")
      }
      pageCount = log.pageCount
      // Free pages need be in neither, but whoever claims billions of them is after our memory.
      guard pageCount - held <= log.mark.frameCount + Self.unwrittenLimit else {
        throw DatabaseFileError(.truncated, "the log speaks of \(pageCount) pages, and the file has \(held)")
      }
    } else {
      pageCount = header.pageCount ?? held
      guard pageCount <= held else {
        throw DatabaseFileError(.truncated, "the file has \(held) of \(pageCount) pages")
      }
    }
    self.log = log
  }

  /// How many pages may be neither in the file nor in the log.
  private static let unwrittenLimit = 1 << 20

  /// Whether the log has been begun anew since it was read, so that what was read may be wrong.
  public func isStale() throws -> Bool {
    guard let log, let logFile else { return false }
    return try log.isStale(logFile)
  }

  /// The pages that come from the log, in no order.
  var loggedPages: [Int] { log.map { Array($0.pages) } ?? [] }

  /// Reads a page.
  ///
  /// - Parameters:
  ///   - page: Its number, from 1.
  ///   - buffer: Takes `header.pageSize` bytes.
  /// - Throws: `DatabaseFileError` with `truncated` when there is no such page; what the source throws.
  public func read(_ page: Int, into buffer: UnsafeMutableRawBufferPointer) throws {
    guard page >= 1, page <= pageCount else {
      throw DatabaseFileError(.truncated, page: page, "it is needed, and the database has \(pageCount) pages")
    }
    let size = header.pageSize
    let target = UnsafeMutableRawBufferPointer(rebasing: buffer[..<size])
    let count =
      if let logFile, let offset = log?.offset(ofPage: page) {
        try logFile.read(into: target, at: offset)
      } else {
        try file.read(into: target, at: Int64(page - 1) * Int64(size))
      }
    guard count == size else { throw DatabaseFileError(.truncated, page: page, "the file ends before its end") }
  }
}

/// Memory for one page.
public final class PageBuffer {
  /// The bytes; writable for whoever reads a page into them.
  public let bytes: UnsafeMutableRawBufferPointer

  /// Takes memory for a page of a database.
  public init(size: Int) { bytes = .allocate(byteCount: size, alignment: 16) }

  deinit { bytes.deallocate() }
}
