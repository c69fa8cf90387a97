/// An open file. Everything goes through one descriptor, also if the file is renamed or replaced meanwhile.
///
/// `read(into:)` and `write(_:)` share one position and go from the beginning to the end; those that take an offset do
/// not move it. The file is closed when the last reference to it goes.
package final class PosixFile: RandomAccessInput, ByteOutput {
  private var descriptor: Int32
  /// What errors say of it: "it", or where an unnamed file lies.
  private let subject: String
  private let path: String?
  /// How many bytes it had when it was opened.
  package let initialByteCount: Int64
  /// Which file it is, and in which state it was opened; nil for one that is not opened for reading alone.
  package let identity: FileIdentity?

  private init(_ descriptor: Int32, subject: String = "it", path: String?, status: stat? = nil) {
    self.descriptor = descriptor
    self.subject = subject
    self.path = path
    initialByteCount = status.map { Int64($0.st_size) } ?? 0
    identity = status.map { FileIdentity($0) }
  }

  /// Opens a file for reading whose origin is not trusted.
  ///
  /// Links are not followed, a pipe is not waited for, and everything but a regular file is refused.
  ///
  /// - Throws: `ByteStreamError` with code `notRegularFile`, or one of the system's.
  package convenience init(reading path: String) throws(ByteStreamError) {
    let file = systemOpen(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
    guard file >= 0 else {
      let number = errno
      if number == ELOOP { throw Self.notRegular("it is a symbolic link", path) }
      // A socket, or a device without a driver.
      if number == ENXIO { throw Self.notRegular("it is no regular file", path) }
      throw ByteStreamError("it cannot be opened", errno: number, path: path, otherwise: .unreadable)
    }
    var status = stat()
    guard fstat(file, &status) == 0 else {
      let number = errno
      close(file)
      throw ByteStreamError("it cannot be examined", errno: number, path: path, otherwise: .unreadable)
    }
    guard status.st_mode & S_IFMT == S_IFREG else {
      close(file)
      throw Self.notRegular(
        status.st_mode & S_IFMT == S_IFDIR ? "it is a folder" : "it is a pipe, a device or a socket", path)
    }
    self.init(file, path: path, status: status)
  }

  /// Opens what the process was given as its standard input: a regular file of which nothing has been read has an
  /// ``identity`` then, anything else has none, and can be read only once.
  ///
  /// - Throws: `ByteStreamError`.
  package static func standardInput() throws(ByteStreamError) -> PosixFile {
    let subject = "standard input"
    let file = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
    guard file >= 0 else {
      throw ByteStreamError("\(subject) cannot be read", errno: errno, path: nil, otherwise: .unreadable)
    }
    var status = stat()
    let isFile = fstat(file, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && lseek(file, 0, SEEK_CUR) == 0
    return PosixFile(file, subject: subject, path: nil, status: isFile ? status : nil)
  }

  private static func notRegular(_ what: String, _ path: String) -> ByteStreamError {
    ByteStreamError(.notRegularFile, "\(what), and only regular files are read", path: path)
  }

  /// Makes a new file for writing, with the permissions that the umask leaves.
  ///
  /// - Parameters:
  ///   - shownPath: The name that errors give the file.
  ///   - isPrivate: True if only its owner may read it.
  /// - Throws: `ByteStreamError` with code `alreadyExists` when anything has that name, or one of the system's.
  package convenience init(
    creating path: String, shownAs shownPath: String? = nil, isPrivate: Bool = false
  ) throws(ByteStreamError) {
    let file = systemOpen(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, isPrivate ? 0o600 : 0o666)
    guard file >= 0 else {
      throw ByteStreamError("it cannot be written", errno: errno, path: shownPath ?? path, otherwise: .unwritable)
    }
    self.init(file, path: shownPath ?? path)
  }

  /// Opens a file of ours for reading and writing, and makes it when it is missing. Only its owner may read it.
  ///
  /// - Throws: `ByteStreamError`.
  package convenience init(updating path: String) throws(ByteStreamError) {
    let file = systemOpen(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0o600)
    guard file >= 0 else {
      throw ByteStreamError("it cannot be opened", errno: errno, path: path, otherwise: .unwritable)
    }
    self.init(file, path: path)
  }

  /// Opens a file of ours in order to add bytes at its end, and makes it when it is missing. Only its owner may read it.
  ///
  /// - Throws: `ByteStreamError`.
  package convenience init(appendingTo path: String) throws(ByteStreamError) {
    let file = systemOpen(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0o600)
    guard file >= 0 else {
      throw ByteStreamError("it cannot be opened", errno: errno, path: path, otherwise: .unwritable)
    }
    self.init(file, path: path)
  }

  /// Makes a file without a name: private to this process, and gone with it whatever happens.
  ///
  /// - Throws: `ByteStreamError`.
  package convenience init(temporaryIn folder: String) throws(ByteStreamError) {
    let subject = "a temporary file in \(folder)"
    #if os(Linux)
      // It never has a name, so that not even a kill at the wrong moment leaves one behind.
      let unnamed = systemOpen(folder, O_RDWR | O_EXCL | Self.withoutName, 0o600)
      if unnamed >= 0 {
        self.init(unnamed, subject: subject, path: nil)
        return
      }
    #endif
    // Not every file system can do that.
    var template = Array("\(folder)/buckia-XXXXXX".utf8CString)
    let file = mkstemp(&template)
    guard file >= 0 else {
      let number = errno
      throw ByteStreamError("\(subject) cannot be made", errno: number, path: nil, otherwise: .unwritable)
    }
    guard unlink(template) == 0, fcntl(file, F_SETFD, FD_CLOEXEC) == 0 else {
      let number = errno
      close(file)
      throw ByteStreamError("\(subject) cannot be made private", errno: number, path: nil, otherwise: .unwritable)
    }
    self.init(file, subject: subject, path: nil)
  }

  #if os(Linux)
    /// `O_TMPFILE`, a macro that Swift does not import: <https://man7.org/linux/man-pages/man2/open.2.html>. The value is
    /// that of all processors that Swift supports.
    private static let withoutName = 0o20_000_000 | O_DIRECTORY
  #endif

  deinit { if descriptor >= 0 { close(descriptor) } }

  private func error(_ failure: String, _ code: ByteStreamError.Code) -> ByteStreamError {
    let number = errno
    return ByteStreamError("\(subject) cannot be \(failure)", errno: number, path: path, otherwise: code)
  }

  // MARK: Reading

  package func read(into buffer: UnsafeMutableRawBufferPointer) throws(ByteStreamError) -> Int {
    while true {
      let count = systemRead(descriptor, buffer)
      if count >= 0 { return count }
      if errno != EINTR { throw error("read", .unreadable) }
    }
  }

  package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(ByteStreamError) -> Int {
    var done = 0
    while done < buffer.count, let start = buffer.baseAddress {
      let count = pread(descriptor, start + done, buffer.count - done, off_t(offset + done))
      if count == 0 { break }
      if count > 0 { done += count } else if errno != EINTR { throw error("read", .unreadable) }
    }
    return done
  }

  /// Who can reach the file, besides the user that this process works for.
  package enum Privacy {
    case isPrivate
    /// Its permissions let others read or write it.
    case isOpenToOthers
    /// It is another user's.
    case belongsToOthers
  }

  /// Who can reach the file, as its owner and its permissions say.
  package func privacy() throws(ByteStreamError) -> Privacy {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw error("examined", .unreadable) }
    if status.st_uid != geteuid() { return .belongsToOthers }
    return status.st_mode & 0o077 == 0 ? .isPrivate : .isOpenToOthers
  }

  /// True if the permissions of the file let everybody read it.
  package func isReadableByAll() throws(ByteStreamError) -> Bool {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw error("examined", .unreadable) }
    return status.st_mode & 0o004 != 0
  }

  // MARK: Writing

  package func write(_ bytes: UnsafeRawBufferPointer) throws(ByteStreamError) {
    var rest = bytes
    while !rest.isEmpty {
      let count = systemWrite(descriptor, rest)
      if count < 0 {
        if errno == EINTR { continue }
        throw error("written", .unwritable)
      }
      rest = UnsafeRawBufferPointer(rebasing: rest[count...])
    }
  }

  /// Writes bytes at an offset.
  package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(ByteStreamError) {
    var done = 0
    while done < bytes.count, let start = bytes.baseAddress {
      let count = pwrite(descriptor, start + done, bytes.count - done, off_t(offset + done))
      if count >= 0 { done += count } else if errno != EINTR { throw error("written", .unwritable) }
    }
  }

  /// Lets the system begin to bring bytes to the disk that were written, so that there is less left to be waited for in the end.
  package func beginWriteback(_ range: Range<Int64>) {
    #if os(Linux)
      // What is written is on its way then, and what is on disk need not be kept in memory (posix_fadvise(2)). It is advice: its failure is none.
      _ = posix_fadvise(descriptor, off_t(range.lowerBound), off_t(range.count), POSIX_FADV_DONTNEED)
    #endif
  }

  /// Makes the file so many bytes long: cuts its end off, or adds zeros.
  package func truncate(to byteCount: Int64) throws(ByteStreamError) {
    while ftruncate(descriptor, off_t(byteCount)) != 0 {
      if errno != EINTR { throw error("written", .unwritable) }
    }
  }

  /// Waits until this process alone has the file locked; closing it unlocks it.
  ///
  /// - Returns: True if it is locked. Some file systems cannot do it.
  package func lock() -> Bool {
    while flock(descriptor, LOCK_EX) != 0 {
      if errno != EINTR { return false }
    }
    return true
  }

  /// Locks the file for this process alone, unless another one has it; closing it unlocks it.
  ///
  /// - Parameter answer: What to return where files cannot be locked.
  /// - Returns: True if no other process has it locked.
  package func tryLock(whereUnsupported answer: Bool = true) -> Bool {
    flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK && answer
  }

  /// Waits until everything that was written is on disk, and closes the file.
  package func syncAndClose() throws(ByteStreamError) {
    guard Self.sync(descriptor) == 0 else { throw error("written", .unwritable) }
    // A network file system may report only here that it could not store everything.
    let closed = close(descriptor)
    descriptor = -1
    guard closed == 0 else { throw error("written", .unwritable) }
  }

  private static func sync(_ descriptor: Int32) -> Int32 {
    #if canImport(Darwin)
      // On Apple systems fsync leaves the bytes in the drive's cache.
      if fcntl(descriptor, F_FULLFSYNC) == 0 { return 0 }
    #endif
    return fsync(descriptor)
  }

  /// Waits until the names in a folder are on disk.
  ///
  /// - Returns: The system's error number, or 0. Some file systems cannot do it: that is no error.
  static func syncFolder(_ folder: String) -> Int32 {
    let directory = systemOpen(folder, O_RDONLY | O_DIRECTORY)
    guard directory >= 0 else { return errno }
    defer { close(directory) }
    if fsync(directory) == 0 || errno == EINVAL || errno == ENOTSUP { return 0 }
    return errno
  }

  /// The path that a symbolic link leads to, from link to link, even if no file is there; any other path unchanged.
  package static func target(ofLink path: String) -> String {
    var path = path
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
    for _ in 0..<40 {
      let count = readlink(path, &buffer, buffer.count - 1)
      guard count > 0 else { return path }
      let target = String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
      let slash = path.utf8.lastIndex(of: UInt8(ascii: "/"))
      path = target.utf8.first == UInt8(ascii: "/") ? target : slash.map { "\(path[...$0])\(target)" } ?? target
    }
    return path
  }
}

// Inside the class the system's functions are hidden by its own methods of these names.

private func systemOpen(_ path: String, _ flags: Int32, _ permissions: mode_t = 0) -> Int32 {
  open(path, flags | O_CLOEXEC, permissions)
}

private func systemRead(_ descriptor: Int32, _ buffer: UnsafeMutableRawBufferPointer) -> Int {
  read(descriptor, buffer.baseAddress, buffer.count)
}

private func systemWrite(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
  write(descriptor, bytes.baseAddress, bytes.count)
}

/// Which file it is, and in which state: by this, two looks at one name tell if they met the same file.
///
/// It is the same file when device and file number are, and an unchanged one when size and time of modification are, too. A
/// renamed file stays the same.
package struct FileIdentity: Hashable, Sendable {
  private let device: UInt64
  private let number: UInt64
  /// Its size in bytes.
  package let byteCount: Int64
  private let modifiedSeconds: Int64
  private let modifiedNanoseconds: Int64

  init(_ status: stat) {
    device = UInt64(truncatingIfNeeded: status.st_dev)
    number = UInt64(truncatingIfNeeded: status.st_ino)
    byteCount = Int64(status.st_size)
    #if canImport(Darwin)
      let modified = status.st_mtimespec
    #else
      let modified = status.st_mtim
    #endif
    modifiedSeconds = Int64(modified.tv_sec)
    modifiedNanoseconds = Int64(modified.tv_nsec)
  }

  /// All of it as text, to be kept: equal for equal states of one file.
  package var text: String {
    "\(file)." + [byteCount, modifiedSeconds, modifiedNanoseconds].map { String($0, radix: 36) }.joined(separator: ".")
  }

  /// When it was written last, in milliseconds since 1970.
  package var modifiedMilliseconds: Int64 { modifiedSeconds * 1_000 + modifiedNanoseconds / 1_000_000 }

  /// The file itself as text, whatever is in it and whatever its name.
  package var file: String { [device, number].map { String($0, radix: 36) }.joined(separator: ".") }

  /// What has a name now; links are not followed.
  ///
  /// - Returns: nil where nothing has the name.
  /// - Throws: `ByteStreamError` when the system does not tell: then there may well be something.
  package static func current(at path: String) throws(ByteStreamError) -> FileIdentity? {
    var status = stat()
    if lstat(path, &status) == 0 { return FileIdentity(status) }
    let number = errno
    if number == ENOENT { return nil }
    throw ByteStreamError("it cannot be examined", errno: number, path: path, otherwise: .unreadable)
  }

  /// The file that a path leads to, through links, too.
  ///
  /// - Returns: nil where it leads to no file, or the system does not tell.
  package static func ofFile(at path: String) -> FileIdentity? {
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    return FileIdentity(status)
  }
}
