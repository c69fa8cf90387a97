import BuckiaBytes

/// Copies a file by sharing its blocks, on file systems that can do that (Btrfs, XFS, APFS): at once, whatever its size.
///
/// A database must not be opened by its path beside a connection of this process: closing it would drop the locks that the
/// connection has on it. So the copy is made through the descriptor that SQLite has open anyway.
enum FileClone {
  /// Makes the copy.
  ///
  /// The file must not change meanwhile: a connection to it is in a read transaction, and there is no write-ahead log.
  ///
  /// - Parameters:
  ///   - path: A file that this process has open.
  ///   - target: An empty file.
  /// - Returns: Whether the copy was made. If not, the target is empty still.
  static func make(of path: String, to target: String) -> Bool {
    guard let source = openDescriptor(of: path) else { return false }
    #if os(Linux)
      let file = open(target, O_WRONLY | O_CLOEXEC)
      guard file >= 0 else { return false }
      defer { close(file) }
      // FICLONE of linux/fs.h, a macro that Swift does not import.
      return ioctl(file, 0x4004_9409, source) == 0
    #elseif canImport(Darwin)
      // The system makes the file itself.
      guard unlink(target) == 0 else { return false }
      if fclonefileat(source, AT_FDCWD, target, 0) == 0 { return true }
      let file = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
      if file >= 0 { close(file) }
      return false
    #else
      return false
    #endif
  }

  /// A descriptor of this process through which the file can be read; nil where there is none.
  private static func openDescriptor(of path: String) -> Int32? {
    var wanted = stat()
    guard stat(path, &wanted) == 0 else { return nil }
    for descriptor in 3..<Int32(4_096) {
      var status = stat()
      guard fstat(descriptor, &status) == 0, status.st_ino == wanted.st_ino, status.st_dev == wanted.st_dev,
        fcntl(descriptor, F_GETFL) & O_ACCMODE != O_WRONLY
      else { continue }
      return descriptor
    }
    return nil
  }
}
