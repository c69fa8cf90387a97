#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Bytes on their way from one stage to the next: in memory while they are few, in a temporary file beyond.
///
/// The file is unlinked the moment it is made, so it is private to this process and gone when the spool is, whatever
/// happens. It is never mapped: readers copy parts of it into buffers of their own. Write everything, then read it any
/// number of times. Not for use by two threads at once, unless it was made for that.
public final class ChangesetSpool {
  /// Why a spool could not be written or read.
  public struct Failure: Error, Sendable, CustomStringConvertible {
    /// What was tried.
    public let action: String
    /// The folder of the temporary file.
    public let folder: String
    /// The system's error number.
    public let errno: Int32

    /// Whether the volume has no room left.
    public var isFullDisk: Bool { errno == ENOSPC || errno == EDQUOT }

    /// A sentence for people.
    public var description: String {
      "cannot \(action) a temporary file in \(folder): \(String(cString: strerror(errno)))"
        + (isFullDisk ? "; free some space or set TMPDIR to a larger volume" : "")
    }
  }

  /// How many bytes the spool holds.
  public private(set) var count = 0

  /// All bytes while there is no file, then those that have not been written to it yet.
  private var memory: [UInt8] = []
  private var descriptor: Int32 = -1
  private let folder: String
  private let memoryLimit: Int
  /// How much of a file is read at once where nothing else is said.
  public static let windowBytes = 512 << 10
  /// How much of the file is read at once.
  let windowBytes: Int
  /// How many bytes there will be, where one thread reads while another appends.
  private let arriving: Int?

  /// How many bytes are gathered for one write to the file: changes are small, system calls are not.
  private static let writeSize = 256 << 10

  /// Makes an empty spool.
  ///
  /// - Parameters:
  ///   - folder: Where the temporary file goes, if one is needed.
  ///   - memoryLimit: How many bytes stay in memory before a file takes over.
  ///   - windowBytes: How much of the file is read at once. What does not fit is read in one larger piece.
  public init(
    folder: String = ChangesetSpool.temporaryFolder, memoryLimit: Int = 4 << 20,
    windowBytes: Int = ChangesetSpool.windowBytes
  ) {
    self.folder = folder
    self.memoryLimit = memoryLimit
    self.windowBytes = windowBytes
    arriving = nil
  }

  /// Makes a spool that holds the given bytes in memory.
  public init(_ bytes: [UInt8]) {
    folder = ChangesetSpool.temporaryFolder
    memoryLimit = Int.max
    windowBytes = Self.windowBytes
    arriving = nil
    memory = bytes
    count = bytes.count
  }

  /// Makes a spool for so many bytes, which one thread appends while another reads those that it has flushed.
  ///
  /// - Throws: `Failure` when the temporary file cannot be made.
  public init(
    folder: String = ChangesetSpool.temporaryFolder, arriving expected: Int,
    windowBytes: Int = ChangesetSpool.windowBytes
  ) throws(Failure) {
    self.folder = folder
    memoryLimit = 0
    self.windowBytes = windowBytes
    arriving = expected
    try moveToFile()
  }

  /// An empty spool that keeps its file in the same folder and is read in the same way.
  ///
  /// - Parameter memoryLimit: How many bytes stay in memory before a file takes over.
  public func makeEmpty(memoryLimit: Int = 4 << 20) -> ChangesetSpool {
    ChangesetSpool(folder: folder, memoryLimit: min(memoryLimit, self.memoryLimit), windowBytes: windowBytes)
  }

  deinit {
    if descriptor >= 0 { close(descriptor) }
  }

  /// `TMPDIR`, or `/tmp`.
  public static var temporaryFolder: String {
    guard let value = getenv("TMPDIR"), value.pointee != 0 else { return "/tmp" }
    return String(cString: value)
  }

  /// How many bytes it will hold, where that was said in the beginning; else how many it holds.
  public var expected: Int { arriving ?? count }

  /// Whether nothing has been written.
  public var isEmpty: Bool { count == 0 }

  /// Adds bytes at the end.
  ///
  /// - Throws: `Failure` when the temporary file cannot be made or written; the spool is then of no more use.
  public func append(_ bytes: UnsafeRawBufferPointer) throws(Failure) {
    if descriptor < 0, bytes.count > memoryLimit - count { try moveToFile() }
    if descriptor >= 0, memory.count + bytes.count > Self.writeSize {
      try flush()
      if bytes.count > Self.writeSize {
        try write(bytes)
        count += bytes.count
        return
      }
    }
    memory.append(contentsOf: bytes)
    count += bytes.count
  }

  /// Adds bytes at the end.
  ///
  /// - Throws: `Failure`, as ``append(_:)-(UnsafeRawBufferPointer)``.
  public func append(_ bytes: [UInt8]) throws(Failure) {
    try bytes.withUnsafeBufferPointer { (buffer) throws(Failure) in try append(UnsafeRawBufferPointer(buffer)) }
  }

  /// Adds a range of other bytes.
  ///
  /// - Throws: `Failure`, as ``append(_:)-(UnsafeRawBufferPointer)``.
  public func append(_ range: Range<Int>, of bytes: RawSpan) throws(Failure) {
    try bytes.extracting(range).withUnsafeBytes { (buffer) throws(Failure) in try append(buffer) }
  }

  /// Adds all of another spool's bytes.
  ///
  /// - Throws: `Failure` when either file fails.
  public func append(contentsOf other: ChangesetSpool) throws {
    try other.forEachPiece { try append($0) }
  }

  // MARK: Reading

  /// All bytes, when they are in memory.
  var memoryContents: [UInt8]? { descriptor < 0 ? memory : nil }

  /// How many bytes there are; nil where another thread may be appending.
  var settledCount: Int? { arriving == nil ? count : nil }

  /// Reads bytes from an offset on.
  ///
  /// Where another thread appends, only what it has flushed may be asked for.
  ///
  /// - Returns: How many bytes were read: fewer than fit only where the spool ends.
  /// - Throws: `Failure` when the file cannot be read.
  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(Failure) -> Int {
    // What is still in memory is not looked at while the other thread may be changing it.
    let stored = arriving == nil ? count - memory.count : Int.max
    var done = 0
    while done < buffer.count, offset + done < stored, let start = buffer.baseAddress {
      let wanted = min(buffer.count - done, stored - offset - done)
      let found = pread(descriptor, start + done, wanted, off_t(offset + done))
      if found == 0 { break }
      if found > 0 { done += found } else if errno != EINTR { throw failure("read") }
    }
    if arriving == nil, done < buffer.count, offset + done >= stored, offset + done < count {
      let rest = memory[(offset + done - stored)...].prefix(buffer.count - done)
      rest.withUnsafeBytes { UnsafeMutableRawBufferPointer(rebasing: buffer[done...]).copyMemory(from: $0) }
      done += rest.count
    }
    return done
  }

  /// Gives a range of the bytes to `body` piece by piece: all at once when they are in memory.
  ///
  /// `body` may append to the spool and gets the bytes as they were before.
  ///
  /// - Throws: `Failure` when the file cannot be read; whatever `body` throws.
  public func forEachPiece(_ range: Range<Int>? = nil, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
    let range = range ?? 0..<count
    if let memory = memoryContents {
      return try memory.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[range])) }
    }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: min(windowBytes, range.count), alignment: 16)
    defer { buffer.deallocate() }
    var start = range.lowerBound
    while start < range.upperBound {
      let wanted = UnsafeMutableRawBufferPointer(rebasing: buffer[..<min(buffer.count, range.upperBound - start)])
      let found = try read(into: wanted, at: start)
      guard found > 0 else { throw failure("read") }
      try body(UnsafeRawBufferPointer(rebasing: wanted[..<found]))
      start += found
    }
  }

  /// Gives all bytes to `body` at once; they must not be kept beyond it. `body` may append to the spool and sees the bytes
  /// as they were before.
  ///
  /// Takes memory for all of them: what can be large is read with a ``ChangesetWindow``.
  ///
  /// - Throws: `Failure` when the file cannot be read; whatever `body` throws.
  public func withBytes<Result>(_ body: (RawSpan) throws -> Result) throws -> Result {
    // A copy of the array (not of its bytes), so that `body` may use the spool.
    if let memory = memoryContents { return try memory.withRawSpan(body) }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count)
    try forEachPiece { bytes.append(contentsOf: $0) }
    return try bytes.withRawSpan(body)
  }

  private func failure(_ action: String) -> Failure { Failure(action: action, folder: folder, errno: errno) }

  private func moveToFile() throws(Failure) {
    var template = Array("\(folder)/buckia-XXXXXX".utf8CString)
    let file = mkstemp(&template)
    guard file >= 0 else { throw Failure(action: "make", folder: folder, errno: errno) }
    descriptor = file
    guard unlink(template) == 0, fcntl(file, F_SETFD, FD_CLOEXEC) == 0 else {
      throw Failure(action: "hide", folder: folder, errno: errno)
    }
    try flush()
  }

  /// Writes to the file what is held in memory: a reader in another thread sees it then.
  public func flush() throws(Failure) {
    guard descriptor >= 0 else { return }
    var held: [UInt8] = []
    swap(&held, &memory)
    try held.withUnsafeBufferPointer { (buffer) throws(Failure) in try write(UnsafeRawBufferPointer(buffer)) }
    // The first flush gives back a large block, later ones keep their small one.
    held.removeAll(keepingCapacity: held.count <= Self.writeSize)
    memory = held
  }

  private func write(_ bytes: UnsafeRawBufferPointer) throws(Failure) {
    var rest = bytes
    while !rest.isEmpty {
      #if canImport(Darwin)
        let written = Darwin.write(descriptor, rest.baseAddress, rest.count)
      #elseif canImport(Musl)
        let written = Musl.write(descriptor, rest.baseAddress, rest.count)
      #else
        let written = Glibc.write(descriptor, rest.baseAddress, rest.count)
      #endif
      if written < 0 {
        if errno == EINTR { continue }
        throw Failure(action: "write", folder: folder, errno: errno)
      }
      rest = UnsafeRawBufferPointer(rebasing: rest[written...])
    }
  }
}
