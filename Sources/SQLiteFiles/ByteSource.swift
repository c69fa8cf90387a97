#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The bytes of a file, read at any place.
///
/// Beside an open SQLite connection the source must be SQLite's own file handle: opening and closing a database file by its
/// path drops every lock that this process holds on it, another connection's included
/// (<https://sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_>).
public protocol ByteSource: AnyObject {
  /// How many bytes the file has now.
  func byteCount() throws -> Int64

  /// Fills a buffer with the bytes from an offset on.
  ///
  /// - Returns: How many bytes there were: fewer than asked for only where the file ends.
  /// - Throws: When the system cannot read.
  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws -> Int

  /// The same file once more, for another thread to read while this one does.
  ///
  /// - Returns: nil when it cannot be had, or may by now be another file.
  func duplicate() throws -> (any ByteSource)?
}

extension ByteSource {
  /// Says that there is no other.
  public func duplicate() throws -> (any ByteSource)? { nil }
}

/// Bytes that are in memory.
public final class MemoryBytes: ByteSource {
  private let bytes: [UInt8]

  /// Takes the bytes of a whole file.
  public init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// How many bytes there are.
  public func byteCount() -> Int64 { Int64(bytes.count) }

  /// Copies the bytes from an offset on.
  ///
  /// - Returns: How many bytes there were.
  public func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int {
    guard offset >= 0, offset < Int64(bytes.count) else { return 0 }
    let count = min(buffer.count, bytes.count - Int(offset))
    bytes.withUnsafeBytes {
      buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[Int(offset)..<Int(offset) + count]))
    }
    return count
  }

  /// The same bytes: any number of threads may read them.
  public func duplicate() -> (any ByteSource)? { self }
}

/// A file that this source opens itself: only for a process that has no SQLite connection to it.
public final class FileBytes: ByteSource {
  /// A file could not be opened or read.
  public struct Failure: Error, Sendable, CustomStringConvertible {
    /// What was tried.
    public let action: String
    /// The file.
    public let path: String
    /// The system's error number.
    public let errno: Int32

    /// A sentence for people.
    public var description: String { "\(path): cannot \(action): \(String(cString: strerror(errno)))" }
  }

  private let path: String
  private let descriptor: Int32

  /// Opens a file for reading.
  public init(opening path: String) throws(Failure) {
    self.path = path
    descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw Failure(action: "open it", path: path, errno: errno) }
  }

  deinit { close(descriptor) }

  /// How many bytes the file has now.
  ///
  /// - Throws: `Failure`.
  public func byteCount() throws -> Int64 {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw Failure(action: "examine it", path: path, errno: errno) }
    return Int64(status.st_size)
  }

  /// Fills a buffer with the bytes from an offset on.
  ///
  /// - Returns: How many bytes there were.
  /// - Throws: `Failure`.
  public func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws -> Int {
    var done = 0
    while done < buffer.count, let start = buffer.baseAddress {
      let count = pread(descriptor, start + done, buffer.count - done, off_t(offset) + off_t(done))
      if count == 0 { break }
      if count < 0 {
        if errno == EINTR { continue }
        throw Failure(action: "read it", path: path, errno: errno)
      }
      done += count
    }
    return done
  }
  /// The same source: any number of threads may read it.
  public func duplicate() -> (any ByteSource)? { self }
}
