/// The pages that a write-ahead log puts over those of its database file.
///
/// Frames count up to the last commit whose checksums are right and whose salts are those of the log's header, as SQLite
/// itself recovers a log: <https://sqlite.org/fileformat2.html#the_write_ahead_log>.
public struct WriteAheadLog: Sendable {
  /// One state of a log: what a reader sees who has begun at that moment.
  public struct EndMark: Equatable, Sendable {
    /// How many frames there are, the last of them a commit.
    public let frameCount: Int
    /// The salts, which change whenever the log is begun anew.
    public let salts: UInt64
    /// The running checksum behind the last frame.
    public let checksum: UInt64

    /// Describes a state.
    public init(frameCount: Int, salts: UInt64, checksum: UInt64) {
      self.frameCount = frameCount
      self.salts = salts
      self.checksum = checksum
    }
  }

  static let headerBytes = 32
  static let frameHeaderBytes = 24

  /// The size of a page in bytes.
  public let pageSize: Int
  /// How many pages the database has after the last commit.
  public let pageCount: Int
  /// The state that was read.
  public let mark: EndMark
  /// The last frame of each page, counted from 0.
  private let frames: [UInt32: UInt32]

  /// Reads a log.
  ///
  /// - Parameters:
  ///   - source: The log's bytes.
  ///   - limit: The state to read; nil for the last commit.
  /// - Returns: nil when there is no commit in it, or, with a limit, when the log has been begun anew since: it had been
  ///   copied into the database file before, which alone is what a reader of that state sees.
  /// - Throws: `DatabaseFileError` with `badLog` when the log does not hold the state that it is said to; what the source
  ///   throws.
  public init?(_ source: any ByteSource, upTo limit: EndMark? = nil) throws {
    guard let header = try LogHeader(source) else { return nil }
    if let limit, limit.salts != header.salts { return nil }
    var checksum = header.checksum
    var pending: [(page: UInt32, frame: UInt32)] = []
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
      pending.append((page, UInt32(count)))
      count += 1
      let pages = bytes.number32(at: 4)
      guard pages > 0 else { continue }
      for (page, frame) in pending { frames[page] = frame }
      pending.removeAll(keepingCapacity: true)
      committed = (count, Int(pages), checksum.value)
    }
    let found = committed.map { EndMark(frameCount: $0.count, salts: header.salts, checksum: $0.checksum) }
    if let limit, limit != found {
      if try LogHeader(source)?.salts != limit.salts { return nil }
      throw DatabaseFileError(.badLog, "the log is damaged: it holds \(count) of \(limit.frameCount) frames")
    }
    guard let found, let committed else { return nil }
    mark = found
    self.frames = frames
    pageSize = header.pageSize
    pageCount = committed.pages
  }

  /// Whether the log has been begun anew since it was read: what has been read through it since then may be anything.
  public func isStale(_ source: any ByteSource) throws -> Bool {
    try LogHeader(source)?.salts != mark.salts
  }

  /// Where the content of a page begins in the log; nil for a page that it does not have.
  func offset(ofPage page: Int) -> Int64? {
    frames[UInt32(truncatingIfNeeded: page)].map {
      Self.offset(ofFrame: Int($0), pageSize: pageSize) + Int64(Self.frameHeaderBytes)
    }
  }

  /// The pages that it has, in no order.
  var pages: some Sequence<Int> { frames.keys.lazy.map { Int($0) } }

  private static func offset(ofFrame frame: Int, pageSize: Int) -> Int64 {
    Int64(headerBytes) + Int64(frame) * Int64(frameHeaderBytes + pageSize)
  }
}

/// The header of a log that can be believed.
private struct LogHeader {
  let pageSize: Int
  let salts: UInt64
  /// The running checksum, which begins with the header's.
  let checksum: LogChecksum

  /// - Returns: nil when there is no such header: the log is empty, or about to be written.
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

/// The running checksum of a log: two sums over pairs of 32-bit words, each taking in the other.
struct LogChecksum {
  private let isBigEndian: Bool
  private var first: UInt32 = 0
  private var second: UInt32 = 0

  init(isBigEndian: Bool) { self.isBigEndian = isBigEndian }

  /// Both sums as they stand in the file, the first above the second.
  var value: UInt64 { UInt64(first) << 32 | UInt64(second) }

  /// Adds bytes, a multiple of eight.
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

extension UnsafeRawBufferPointer {
  /// Eight bytes as a big-endian number; the caller has checked that they are there.
  @inline(__always)
  func number64(at offset: Int) -> UInt64 {
    UInt64(bigEndian: loadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }
}
