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
/// happens. Write everything, then read it any number of times. Not for use by two threads at once.
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
  /// Where the file is mapped just now, once for each `withBytes` that is running.
  private var mappings: [(address: UnsafeMutableRawPointer, count: Int)] = []

  /// The mapping of a spool that is read while it is written; never changed after init.
  private var lasting: (address: UnsafeMutableRawPointer, count: Int)?

  /// How many bytes are gathered for one write to the file: changes are small, system calls are not.
  private static let writeSize = 256 << 10

  /// Makes an empty spool.
  ///
  /// - Parameters:
  ///   - folder: Where the temporary file goes, if one is needed.
  ///   - memoryLimit: How many bytes stay in memory before a file takes over.
  public init(folder: String = ChangesetSpool.temporaryFolder, memoryLimit: Int = 4 << 20) {
    self.folder = folder
    self.memoryLimit = memoryLimit
  }

  /// Makes a spool that holds the given bytes.
  public init(_ bytes: [UInt8]) {
    folder = ChangesetSpool.temporaryFolder
    memoryLimit = Int.max
    memory = bytes
    count = bytes.count
  }

  /// Makes a spool for so many bytes, which one thread appends while another reads those that it has flushed.
  ///
  /// The file is as long as it will be from the beginning, and mapped once. `withBytes` gives all of it; what has not been
  /// appended and flushed yet reads as zeros.
  ///
  /// - Throws: `Failure` when the temporary file cannot be made.
  public init(folder: String = ChangesetSpool.temporaryFolder, arriving expected: Int) throws(Failure) {
    self.folder = folder
    memoryLimit = 0
    try moveToFile()
    guard ftruncate(descriptor, off_t(expected)) == 0,
      let address = mmap(nil, max(expected, 1), PROT_READ, MAP_SHARED, descriptor, 0), address != MAP_FAILED
    else { throw Failure(action: "make", folder: folder, errno: errno) }
    lasting = (address, expected)
  }

  deinit {
    if let lasting { munmap(lasting.address, max(lasting.count, 1)) }
    if descriptor >= 0 { close(descriptor) }
  }

  /// `TMPDIR`, or `/tmp`.
  public static var temporaryFolder: String {
    guard let value = getenv("TMPDIR"), value.pointee != 0 else { return "/tmp" }
    return String(cString: value)
  }

  /// How many bytes it will hold, where that was said in the beginning; else how many it holds.
  public var expected: Int { lasting?.count ?? count }

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
    try other.withBytes { span in
      try append(0..<span.byteCount, of: span)
    }
  }

  /// Gives the bytes to `body`; they must not be kept beyond it. `body` may append to the spool and sees the bytes as
  /// they were before.
  ///
  /// A spool in a file is mapped into memory, so its pages are read as they are touched and can be dropped again.
  ///
  /// - Throws: `Failure` when the file cannot be written to the end or mapped; whatever `body` throws.
  public func withBytes<Result>(_ body: (RawSpan) throws -> Result) throws -> Result {
    if let lasting {
      // Sound: the mapping lasts as long as the spool, and its file has this length from the beginning.
      return try body(UnsafeRawBufferPointer(start: lasting.address, count: lasting.count).bytes)
    }
    guard descriptor >= 0, count > 0 else {
      // A copy of the array (not of its bytes), so that `body` may use the spool.
      let held = memory
      return try held.withRawSpan(body)
    }
    try flush()
    let mapped = count
    guard let address = mmap(nil, mapped, PROT_READ, MAP_PRIVATE, descriptor, 0), address != MAP_FAILED else {
      throw Failure(action: "read", folder: folder, errno: errno)
    }
    mappings.append((address, mapped))
    defer {
      mappings.removeLast()
      munmap(address, mapped)
    }
    // Sound: the mapping covers `mapped` bytes and outlives `body`; nobody else has the unlinked file and the spool only
    // adds to it, so it cannot shrink.
    return try body(UnsafeRawBufferPointer(start: address, count: mapped).bytes)
  }

  /// Says that bytes which `withBytes` has given are not looked at for some time: a mapped file gives their memory back.
  /// They can be read again, at the price of reading the file.
  public func release(_ range: Range<Int>) {
    let mappings = lasting.map { [$0] } ?? mappings
    guard !mappings.isEmpty else { return }
    let page = Int(sysconf(Int32(_SC_PAGESIZE)))
    let start = (range.lowerBound + page - 1) / page * page
    let end = range.upperBound / page * page
    guard start < end else { return }
    for mapping in mappings where end <= mapping.count {
      // Nothing is lost when the system does not follow the advice.
      _ = madvise(mapping.address + start, end - start, MADV_DONTNEED)
    }
  }

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
