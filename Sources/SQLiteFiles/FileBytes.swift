import BuckiaBytes

/// A file opened for reading by its path.
///
/// - Important: Use it only when no SQLite connection of this process has the file open. Closing it drops the locks of
///   such a connection; see ``ByteSource``.
public final class FileBytes: ByteSource {
  private let path: String
  private let descriptor: Int32

  /// Opens a file for reading.
  ///
  /// - Parameter path: The path of a regular file.
  /// - Throws: `DatabaseFileError` with `unreadable`.
  public init(opening path: String) throws(DatabaseFileError) {
    self.path = path
    descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw Self.failure("opened", path) }
  }

  deinit { close(descriptor) }

  /// The current size of the file in bytes.
  ///
  /// - Throws: `DatabaseFileError` with `unreadable`.
  public func byteCount() throws -> Int64 {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw Self.failure("examined", path) }
    return Int64(status.st_size)
  }

  /// Fills a buffer with the bytes from an offset on.
  ///
  /// - Returns: The number of bytes read.
  /// - Throws: `DatabaseFileError` with `unreadable`.
  public func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws -> Int {
    var done = 0
    while done < buffer.count, let start = buffer.baseAddress {
      let count = pread(descriptor, start + done, buffer.count - done, off_t(offset) + off_t(done))
      if count == 0 { break }
      if count < 0 {
        if errno == EINTR { continue }
        throw Self.failure("read", path)
      }
      done += count
    }
    return done
  }

  /// Returns this source: positioned reads can run in any number of threads.
  public func duplicate() -> (any ByteSource)? { self }

  private static func failure(_ action: String, _ path: String) -> DatabaseFileError {
    DatabaseFileError(.unreadable, "\(path) cannot be \(action): \(String(cString: strerror(errno)))")
  }
}
