/// Which file it is, and in which state: by this, two looks at one name tell whether they met the same file.
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
