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

  private var memory: [UInt8] = []
  private var descriptor: Int32 = -1
  private let folder: String
  private let memoryLimit: Int

  /// Makes an empty spool.
  ///
  /// - Parameters:
  ///   - folder: Where the temporary file goes, if one is needed.
  ///   - memoryLimit: How many bytes stay in memory before a file takes over.
  public init(folder: String = ChangesetSpool.temporaryFolder, memoryLimit: Int = 32 << 20) {
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

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// `TMPDIR`, or `/tmp`.
  public static var temporaryFolder: String {
    guard let value = getenv("TMPDIR"), value.pointee != 0 else { return "/tmp" }
    return String(cString: value)
  }

  /// Whether nothing has been written.
  public var isEmpty: Bool { count == 0 }

  /// Adds bytes at the end.
  ///
  /// - Throws: `Failure` when the temporary file cannot be made or written; the spool is then of no more use.
  public func append(_ bytes: UnsafeRawBufferPointer) throws(Failure) {
    if descriptor < 0, count + bytes.count <= memoryLimit {
      memory.append(contentsOf: bytes)
      count += bytes.count
      return
    }
    if descriptor < 0 { try moveToFile() }
    try write(bytes)
    count += bytes.count
  }

  /// Adds bytes at the end.
  ///
  /// - Throws: `Failure`, as ``append(_:)-(UnsafeRawBufferPointer)``.
  public func append(_ bytes: [UInt8]) throws(Failure) {
    var failure: Failure?
    bytes.withUnsafeBytes { buffer in
      do throws(Failure) { try append(buffer) } catch { failure = error }
    }
    if let failure { throw failure }
  }

  /// Adds all of another spool's bytes.
  ///
  /// - Throws: `Failure` when either file fails.
  public func append(contentsOf other: ChangesetSpool) throws {
    try other.withBytes { span in
      try span.withUnsafeBytes { try append($0) }
    }
  }

  /// Gives the bytes to `body`; they must not be kept beyond it.
  ///
  /// A spool in a file is mapped into memory, so its pages are read as they are touched and can be dropped again.
  ///
  /// - Throws: `Failure` when the file cannot be mapped; whatever `body` throws.
  public func withBytes<Result>(_ body: (RawSpan) throws -> Result) throws -> Result {
    guard descriptor >= 0, count > 0 else { return try memory.withUnsafeBytes { try body($0.bytes) } }
    guard let address = mmap(nil, count, PROT_READ, MAP_PRIVATE, descriptor, 0), address != MAP_FAILED else {
      throw Failure(action: "read", folder: folder, errno: errno)
    }
    defer { munmap(address, count) }
    // Sound: the mapping covers `count` bytes and outlives `body`; nobody else has the unlinked file, so it cannot shrink.
    return try body(UnsafeRawBufferPointer(start: address, count: count).bytes)
  }

  private func moveToFile() throws(Failure) {
    var template = Array("\(folder)/buckia-XXXXXX".utf8CString)
    let file = mkstemp(&template)
    guard file >= 0 else { throw Failure(action: "make", folder: folder, errno: errno) }
    unlink(template)
    _ = fcntl(file, F_SETFD, FD_CLOEXEC)
    descriptor = file
    let held = memory
    memory = []
    var failure: Failure?
    held.withUnsafeBytes { buffer in
      do throws(Failure) { try write(buffer) } catch { failure = error }
    }
    if let failure { throw failure }
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
