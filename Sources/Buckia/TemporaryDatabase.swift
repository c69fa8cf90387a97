import BuckiaBytes

/// A database file in the making, called `.buckia-<random>.tmp`. Dropped before it gets another name, it is deleted.
///
/// A process that is killed leaves it behind, and the next one that makes such a file in the same folder deletes it. A lock on the file
/// `.buckia-<random>.tmp-lock` beside it tells that its process is alive; the database itself has the locks of SQLite.
final class TemporaryDatabase {
  let path: String
  private let lock: PosixFile

  /// Makes an empty file.
  ///
  /// - Parameters:
  ///   - folder: Where it is made.
  ///   - permissions: Who may read and write it.
  /// - Throws: `ByteStreamError`.
  init(in folder: String, permissions: mode_t) throws(ByteStreamError) {
    path = TemporaryFile.newPath(in: folder)
    lock = try PosixFile(creating: TemporaryFile.lockPath(ofDatabase: path), shownAs: folder, isPrivate: true)
    _ = lock.tryLock()
    let file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, permissions)
    guard file >= 0 else {
      let number = errno
      unlink(TemporaryFile.lockPath(ofDatabase: path))
      throw ByteStreamError("it cannot be written", errno: number, path: folder, otherwise: .unwritable)
    }
    close(file)
    TemporaryFile.deleteAbandoned(in: folder)
  }

  deinit { TemporaryFile.deleteDatabase(path) }
}
