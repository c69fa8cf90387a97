import BuckiaByteStreams

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#elseif canImport(Darwin)
  import Darwin
#endif

/// A database file in the making, called `.buckia-<random>.tmp`. Dropped before it gets another name, it is deleted.
///
/// A process that is killed leaves it behind, and the next one that makes such a file in the same folder deletes it. A lock on the file
/// `.buckia-<random>.tmp-lock` beside it tells that its process is alive; the database itself has the locks of SQLite.
final class TemporaryDatabase {
  let path: String
  private let lock: PosixFile

  private static let prefix = ".buckia-"
  private static let suffix = ".tmp"
  private static let lockSuffix = "-lock"

  /// Makes an empty file.
  ///
  /// - Parameters:
  ///   - folder: Where it is made.
  ///   - permissions: Who may read and write it.
  /// - Throws: `ByteStreamError`.
  init(in folder: String, permissions: mode_t) throws(ByteStreamError) {
    let name = "\(Self.prefix)\(String(UInt64.random(in: 0...UInt64.max), radix: 36))\(Self.suffix)"
    path = FileSystem.path(of: name, in: folder)
    lock = try PosixFile(creating: path + Self.lockSuffix, shownAs: folder, isPrivate: true)
    _ = lock.tryLock()
    let file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, permissions)
    guard file >= 0 else {
      let number = errno
      unlink(path + Self.lockSuffix)
      throw ByteStreamError("it cannot be written", errno: number, path: folder, otherwise: .unwritable)
    }
    close(file)
    Self.deleteAbandoned(in: folder)
  }

  deinit { Self.delete(path) }

  private static func delete(_ path: String) {
    for suffix in ["", "-journal", "-wal", "-shm", lockSuffix] { unlink(path + suffix) }
  }

  /// Deletes the files of processes that have ended. Where the folder cannot be listed, or files cannot be locked, they stay.
  private static func deleteAbandoned(in folder: String) {
    let names: [String]
    do { names = try FolderNames.all(in: folder) } catch { return }
    for name in names where name.hasPrefix(prefix) && name.hasSuffix(suffix + lockSuffix) {
      let lockPath = FileSystem.path(of: name, in: folder)
      do {
        let lock = try PosixFile(reading: lockPath)
        guard lock.tryLock(whereUnsupported: false) else { continue }
        delete(String(lockPath.dropLast(lockSuffix.count)))
      } catch { continue }
    }
  }
}
