/// An index of a write-ahead log: which of its frames hold the current content of which pages.
///
/// As when SQLite recovers a log, frames count up to the last commit frame before the first frame whose salts differ from
/// the log's header or whose checksum is wrong. See <https://sqlite.org/fileformat2.html#the_write_ahead_log>.
public struct WriteAheadLog: Sendable {
  /// The end mark of a reader: the commit frame that its read transaction ends at. See
  /// <https://sqlite.org/wal.html#concurrency>.
  public struct EndMark: Equatable, Sendable {
    /// The number of frames up to and including the commit frame.
    public let frameCount: Int
    /// The salts of the log's header, which change with every reset of the log.
    public let salts: UInt64
    /// The cumulative checksum of the last frame.
    public let checksum: UInt64

    /// Creates an end mark.
    ///
    /// - Parameters:
    ///   - frameCount: The number of frames, `mxFrame` in the WAL index.
    ///   - salts: Both salts as they are in the header of the log, read as one big-endian number.
    ///   - checksum: Both checksums of the last frame, the first in the upper half.
    public init(frameCount: Int, salts: UInt64, checksum: UInt64) {
      self.frameCount = frameCount
      self.salts = salts
      self.checksum = checksum
    }
  }

  static let headerBytes = 32
  static let frameHeaderBytes = 24

  /// The page size in bytes.
  public let pageSize: Int
  /// The number of pages of the database after the last commit.
  public let pageCount: Int
  /// The end mark that was read up to.
  public let endMark: EndMark
  /// The index of the last frame of each page, from 0.
  private let frames: [UInt32: UInt32]

  /// Reads a write-ahead log.
  ///
  /// - Parameters:
  ///   - source: The log.
  ///   - limit: The state to read; nil for the last commit.
  /// - Returns: nil when the log contains no commit, or has been reset since `limit`. Either way a reader sees the
  ///   database file alone: a log is reset only after all of it has been checkpointed.
  /// - Throws: `DatabaseFileError` with `badLog` when the log does not contain the state `limit`; what the source throws.
  public init?(_ source: any ByteSource, upTo limit: EndMark? = nil) throws {
    guard let header = try LogHeader(source) else { return nil }
    if let limit, limit.salts != header.salts { return nil }
    var checksum = header.checksum
    var uncommitted: [(page: UInt32, frame: UInt32)] = []
    var frames: [UInt32: UInt32] = [:]
    var committed: (count: Int, pages: Int, checksum: UInt64)?
    let frame = UnsafeMutableRawBufferPointer.allocate(
      byteCount: Self.frameHeaderBytes + header.pageSize, alignment: 16)
    defer { frame.deallocate() }
    var count = 0
    while count < min(limit?.frameCount ?? Int(UInt32.max), Int(UInt32.max)) {
      guard try source.read(into: frame, at: Self.offset(ofFrame: count, pageSize: header.pageSize)) == frame.count
      else {
        break
      }
      let bytes = UnsafeRawBufferPointer(frame)
      guard bytes.number64(at: 8) == header.salts else { break }
      checksum.add(UnsafeRawBufferPointer(rebasing: bytes[..<8]))
      checksum.add(UnsafeRawBufferPointer(rebasing: bytes[Self.frameHeaderBytes...]))
      let page = bytes.number32(at: 0)
      guard page > 0, bytes.number64(at: 16) == checksum.value else { break }
      uncommitted.append((page, UInt32(count)))
      count += 1
      let pages = bytes.number32(at: 4)
      guard pages > 0 else { continue }
      for (page, frame) in uncommitted { frames[page] = frame }
      uncommitted.removeAll(keepingCapacity: true)
      committed = (count, Int(pages), checksum.value)
    }
    let found = committed.map { EndMark(frameCount: $0.count, salts: header.salts, checksum: $0.checksum) }
    if let limit, limit != found {
      if try LogHeader(source)?.salts != limit.salts { return nil }
      throw DatabaseFileError(
        .badLog, "the write-ahead log is damaged: \(count) of \(limit.frameCount) frames are valid")
    }
    guard let found, let committed else { return nil }
    endMark = found
    self.frames = frames
    pageSize = header.pageSize
    pageCount = committed.pages
  }

  /// True if the log has been reset since it was read. If so, pages read from it since then may be wrong.
  ///
  /// - Parameter source: The log.
  /// - Throws: What the source throws.
  public func isStale(_ source: any ByteSource) throws -> Bool {
    try LogHeader(source)?.salts != endMark.salts
  }

  /// The offset of a page's content in the log; nil if the log does not contain the page.
  func offset(ofPage page: Int) -> Int64? {
    frames[UInt32(truncatingIfNeeded: page)].map {
      Self.offset(ofFrame: Int($0), pageSize: pageSize) + Int64(Self.frameHeaderBytes)
    }
  }

  /// The numbers of the pages in the log, in no particular order.
  var pages: some Sequence<Int> { frames.keys.lazy.map { Int($0) } }

  private static func offset(ofFrame frame: Int, pageSize: Int) -> Int64 {
    Int64(headerBytes) + Int64(frame) * Int64(frameHeaderBytes + pageSize)
  }
}

/// The header of a write-ahead log. See <https://sqlite.org/fileformat2.html#wal_file_format>.
private struct LogHeader {
  let pageSize: Int
  let salts: UInt64
  /// The checksum of the header, with which the cumulative checksum of the frames starts.
  let checksum: LogChecksum

  /// Reads and checks a header.
  ///
  /// - Returns: nil when there is no valid header: the log is empty, or its header is just being written.
  init?(_ source: any ByteSource) throws {
    var storage = [UInt8](repeating: 0, count: WriteAheadLog.headerBytes)
    let count = try storage.withUnsafeMutableBytes { try source.read(into: $0, at: 0) }
    guard count == storage.count else { return nil }
    let found = storage.withUnsafeBytes { bytes -> (Int, UInt64, LogChecksum)? in
      let magic = bytes.number32(at: 0)
      guard magic & ~1 == 0x377f_0682, bytes.number32(at: 4) == 3_007_000 else { return nil }
      let pageSize = Int(bytes.number32(at: 8))
      guard (512...65_536).contains(pageSize), pageSize & (pageSize - 1) == 0 else { return nil }
      var checksum = LogChecksum(isBigEndian: magic & 1 == 1)
      checksum.add(UnsafeRawBufferPointer(rebasing: bytes[..<24]))
      guard checksum.value == bytes.number64(at: 24) else { return nil }
      return (pageSize, bytes.number64(at: 16), checksum)
    }
    guard let found else { return nil }
    (pageSize, salts, checksum) = found
  }
}

/// The cumulative checksum of a write-ahead log. See <https://sqlite.org/fileformat2.html#checksum_algorithm>.
struct LogChecksum {
  private let isBigEndian: Bool
  private var first: UInt32 = 0
  private var second: UInt32 = 0

  init(isBigEndian: Bool) { self.isBigEndian = isBigEndian }

  /// Both sums, the first in the upper half.
  var value: UInt64 { UInt64(first) << 32 | UInt64(second) }

  /// Adds bytes; their number is a multiple of eight.
  mutating func add(_ bytes: UnsafeRawBufferPointer) {
    var offset = 0
    var (first, second) = (first, second)
    while offset + 8 <= bytes.count {
      let one = bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
      let two = bytes.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)
      first = first &+ (isBigEndian ? UInt32(bigEndian: one) : UInt32(littleEndian: one)) &+ second
      second = second &+ (isBigEndian ? UInt32(bigEndian: two) : UInt32(littleEndian: two)) &+ first
      offset += 8
    }
    (self.first, self.second) = (first, second)
  }
}
