/// A new file that appears under its name complete and safely on disk, or not at all.
///
/// The bytes go into a file with a temporary name in the same folder; ``publish()`` syncs it, gives it its name and syncs
/// the folder. Dropped before that, it leaves nothing behind. A killed process can leave a ``TemporaryFile``, which no inbound folder reads.
package final class AtomicFileOutput: ByteOutput {
  private let path: String
  private let isReplacing: Bool
  private let folder: String
  private let temporary: TemporaryFile
  private var written: Int64 = 0
  /// Up to where the system has been told to bring the bytes to the disk.
  private var begun: Int64 = 0
  /// How many bytes are brought to the disk at once while others are still coming.
  private static let writebackBytes: Int64 = 8 << 20

  /// Makes the temporary file.
  ///
  /// - Parameters:
  ///   - path: The file as it will be called.
  ///   - replacing: Whether it replaces a file of that name.
  ///   - followsLinks: True if a symbolic link of that name stays, and the file that it leads to is replaced.
  ///   - isPrivate: Whether nobody but its owner may read it.
  /// - Throws: `ByteStreamError` with code `alreadyExists` when something has the name and `replacing` is not set, or one
  ///   of the system's.
  package init(
    at path: String, replacing: Bool, followingLinks followsLinks: Bool = false, isPrivate: Bool = false
  ) throws(ByteStreamError) {
    let path = replacing && followsLinks ? PosixFile.target(ofLink: path) : path
    var status = stat()
    if !replacing, lstat(path, &status) == 0 { throw Self.alreadyExists(path) }
    let slash = path.utf8.lastIndex(of: UInt8(ascii: "/"))
    let folder = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    temporary = try TemporaryFile(in: folder, shownAs: path, isPrivate: isPrivate)
    self.path = path
    self.folder = folder
    isReplacing = replacing
  }

  /// Adds bytes at the end.
  package func write(_ bytes: UnsafeRawBufferPointer) throws(ByteStreamError) {
    try temporary.file.write(bytes)
    written += Int64(bytes.count)
    guard written - begun >= Self.writebackBytes else { return }
    temporary.file.beginWriteback(begun..<written)
    begun = written
  }

  /// Gives the file its name, when all of it is on disk.
  ///
  /// - Throws: `ByteStreamError` with code `alreadyExists` when something took the name meanwhile and may not be
  ///   replaced, or one of the system's; nothing is then left behind.
  package func publish() throws(ByteStreamError) {
    try temporary.file.syncAndClose()
    try moveIntoPlace()
    temporary.didMove()
    let number = PosixFile.syncFolder(folder)
    guard number == 0 else {
      // A new file whose name is not safe goes away again.
      if !isReplacing { unlink(path) }
      throw failure(number)
    }
  }

  private func moveIntoPlace() throws(ByteStreamError) {
    if isReplacing {
      guard rename(temporary.path, path) == 0 else { throw failure(errno) }
      return
    }
    // A second name for the file is made only if the name is free, in one step; rename would replace.
    if link(temporary.path, path) == 0 {
      unlink(temporary.path)
      return
    }
    guard [EPERM, EOPNOTSUPP, ENOTSUP, ENOSYS, EMLINK].contains(errno) else { throw failure(errno) }
    // No hard links here (FAT, some network file systems): take the name with an empty file, then replace that.
    _ = try PosixFile(creating: path)
    guard rename(temporary.path, path) == 0 else {
      let number = errno
      unlink(path)
      throw failure(number)
    }
  }

  private func failure(_ number: Int32) -> ByteStreamError {
    if number == EEXIST { return Self.alreadyExists(path) }
    return ByteStreamError("it cannot be written", errno: number, path: path, otherwise: .unwritable)
  }

  private static func alreadyExists(_ path: String) -> ByteStreamError {
    ByteStreamError(.alreadyExists, "a file of that name is there already", path: path)
  }
}
