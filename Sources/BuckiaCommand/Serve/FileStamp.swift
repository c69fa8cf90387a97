#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// When a file was last written, and how long it is: enough to see that it is another one now.
struct FileStamp: Hashable {
  /// Its size in bytes.
  let byteCount: Int
  private let seconds: Int
  private let nanoseconds: Int

  /// - Returns: nil where there is no file, or none that the system tells of.
  init?(of path: String) {
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    byteCount = Int(status.st_size)
    #if canImport(Darwin)
      let time = status.st_mtimespec
    #else
      let time = status.st_mtim
    #endif
    (seconds, nanoseconds) = (Int(time.tv_sec), Int(time.tv_nsec))
  }
}
