#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A file that a stranger may have put there, open for one reading from its first byte to its last.
///
/// It is opened without following a link and without waiting for a pipe, must be a regular file, and everything is read
/// through one descriptor: what is checked is what is used, whoever replaces the file meanwhile.
final class InboundFile {
  private static let bufferBytes = 1 << 16

  let path: String
  /// The size when it was opened.
  let size: Int64
  /// How many bytes have been handed out.
  private(set) var offset: Int64 = 0
  /// SHA-256 of the bytes handed out.
  private(set) var digest = RunningDigest()

  private let descriptor: Int32
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bufferBytes, alignment: 16)
  private var buffered: Range<Int> = 0..<0

  /// Opens a file.
  ///
  /// - Throws: `DiffFileError` with code `notRegularFile`, or one of the system's.
  init(at path: String) throws(DiffFileError) {
    self.path = path
    let file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard file >= 0 else {
      let number = errno
      if number == ELOOP { throw Self.notRegular("it is a symbolic link", path) }
      // A socket, or a device without a driver.
      if number == ENXIO { throw Self.notRegular("it is no regular file", path) }
      throw .system("it cannot be opened", errno: number, path: path, otherwise: .unreadable)
    }
    var status = stat()
    guard fstat(file, &status) == 0 else {
      let number = errno
      close(file)
      throw .system("it cannot be examined", errno: number, path: path, otherwise: .unreadable)
    }
    guard status.st_mode & S_IFMT == S_IFREG else {
      close(file)
      throw Self.notRegular(
        status.st_mode & S_IFMT == S_IFDIR ? "it is a folder" : "it is a pipe, a device or a socket", path)
    }
    descriptor = file
    size = Int64(status.st_size)
  }

  deinit {
    close(descriptor)
    buffer.deallocate()
  }

  private static func notRegular(_ message: String, _ path: String) -> DiffFileError {
    DiffFileError(.notRegularFile, "\(message), and only regular files are read", path: path)
  }

  /// Hands out up to `limit` bytes; nothing at the end. They stay good until the next call.
  func read(upTo limit: Int) throws(DiffFileError) -> UnsafeRawBufferPointer {
    if buffered.isEmpty { try fill() }
    let count = min(limit, buffered.count)
    let bytes = UnsafeRawBufferPointer(rebasing: buffer[buffered.lowerBound..<(buffered.lowerBound + count)])
    buffered = (buffered.lowerBound + count)..<buffered.upperBound
    offset += Int64(count)
    digest.update(bytes)
    return bytes
  }

  /// Fills all of `destination`.
  ///
  /// - Throws: `DiffFileError` with code `truncated` when the file ends before.
  func read(into destination: UnsafeMutableRawBufferPointer) throws(DiffFileError) {
    var rest = destination
    while !rest.isEmpty {
      let bytes = try read(upTo: rest.count)
      guard !bytes.isEmpty else {
        throw DiffFileError(.truncated, "the file ends too early", path: path, offset: Int(offset))
      }
      rest.copyMemory(from: bytes)
      rest = UnsafeMutableRawBufferPointer(rebasing: rest[bytes.count...])
    }
  }

  /// Whether every byte has been handed out.
  func isAtEnd() throws(DiffFileError) -> Bool {
    if buffered.isEmpty { try fill() }
    return buffered.isEmpty
  }

  private func fill() throws(DiffFileError) {
    while true {
      #if canImport(Glibc)
        let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
      #elseif canImport(Musl)
        let count = Musl.read(descriptor, buffer.baseAddress, buffer.count)
      #else
        let count = Darwin.read(descriptor, buffer.baseAddress, buffer.count)
      #endif
      if count >= 0 {
        buffered = 0..<count
        return
      }
      let number = errno
      guard number == EINTR else {
        throw .system("it cannot be read", errno: number, path: path, otherwise: .unreadable)
      }
    }
  }
}
