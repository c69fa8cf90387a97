import BuckiaBytes

/// A file whose bytes can be read at any offset: the input of everything in this module.
///
/// Use ``FileBytes`` for a file that no SQLite connection of this process has open, and ``MemoryBytes`` for an image in
/// memory. While a connection is open, implement the protocol on SQLite's own file handle
/// (`SQLITE_FCNTL_FILE_POINTER`): closing any other descriptor of the file drops all POSIX locks that this process holds
/// on it (<https://sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_>).
public protocol ByteSource: AnyObject {
  /// The current size of the file in bytes.
  func byteCount() throws -> Int64

  /// Fills a buffer with the bytes from an offset on.
  ///
  /// - Parameters:
  ///   - buffer: Receives the bytes.
  ///   - offset: The offset in the file, in bytes.
  /// - Returns: The number of bytes read; fewer than the size of the buffer only at the end of the file.
  /// - Throws: Any error. It reaches the caller unchanged.
  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws -> Int

  /// A source of the same file that a second thread can read while this one is read.
  ///
  /// - Returns: nil if the file cannot be opened twice, or its path can lead to another file by now. That is the
  ///   default.
  func duplicate() throws -> (any ByteSource)?
}

extension ByteSource {
  /// Returns nil: this source cannot be read by two threads.
  public func duplicate() throws -> (any ByteSource)? { nil }
}

/// The bytes of a file in memory.
public final class MemoryBytes: ByteSource {
  private let bytes: [UInt8]

  /// Creates a source from the content of a whole file.
  public init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// The number of bytes.
  public func byteCount() -> Int64 { Int64(bytes.count) }

  /// Copies the bytes from an offset on into a buffer.
  ///
  /// - Returns: The number of bytes copied.
  public func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int {
    guard offset >= 0, offset < Int64(bytes.count) else { return 0 }
    let count = min(buffer.count, bytes.count - Int(offset))
    bytes.withUnsafeBytes {
      buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[Int(offset)..<Int(offset) + count]))
    }
    return count
  }

  /// Returns this source: it is immutable.
  public func duplicate() -> (any ByteSource)? { self }
}
