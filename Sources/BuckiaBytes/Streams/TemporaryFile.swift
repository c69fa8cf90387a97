/// A new file for writing, called `.buckia-<random>.tmp`. Dropped before it gets another name, it is deleted.
///
/// A process that is killed leaves it behind, and the next one that makes such a file in the same folder deletes it. A lock on the file tells
/// that its process is alive.
package final class TemporaryFile {
  /// Where it is.
  package let path: String
  /// The file.
  package let file: PosixFile
  // A second descriptor: the file is closed before it gets its name, and keeps its lock until then.
  private let lock: PosixFile
  private var hasMoved = false

  private static let prefix = ".buckia-"
  private static let suffix = ".tmp"
  private static let lockSuffix = "-lock"

  /// Makes an empty file, and the first time in a folder deletes those that killed processes have left there.
  ///
  /// - Parameters:
  ///   - folder: Where it is made.
  ///   - shownPath: The name that errors give the file.
  ///   - isPrivate: True if only its owner may read it.
  /// - Throws: `ByteStreamError`.
  package init(in folder: String, shownAs shownPath: String, isPrivate: Bool) throws(ByteStreamError) {
    var attempts = 0
    while true {
      attempts += 1
      let candidate = Self.newPath(in: folder)
      let made: PosixFile
      do throws(ByteStreamError) {
        made = try PosixFile(creating: candidate, shownAs: shownPath, isPrivate: isPrivate)
      } catch {
        guard error.code == .alreadyExists, attempts < 100 else { throw error }
        continue
      }
      if let found = try Self.lock(candidate, shownAs: shownPath) {
        (path, file, lock) = (candidate, made, found)
        break
      }
      guard attempts < 100 else {
        throw ByteStreamError(.unwritable, "its temporary files are deleted by another process", path: shownPath)
      }
    }
    if CleanedFolders.shared.isFirst(folder) { Self.deleteAbandoned(in: folder) }
  }

  deinit { if !hasMoved { unlink(path) } }

  /// Locks a new file.
  ///
  /// - Returns: nil if another process has taken it for one that was left behind, and deletes it.
  private static func lock(_ path: String, shownAs shownPath: String) throws(ByteStreamError) -> PosixFile? {
    do throws(ByteStreamError) {
      let lock = try PosixFile(reading: path)
      guard lock.tryLock() else { return nil }
      return try FileIdentity.current(at: path) == lock.identity ? lock : nil
    } catch {
      if error.isMissingFile { return nil }
      unlink(path)
      var shown = error
      shown.path = shownPath
      throw shown
    }
  }

  /// To be called when the file has been given another name: it is not deleted then.
  package func didMove() { hasMoved = true }

  // MARK: Databases

  /// The path of a new file in a folder.
  package static func newPath(in folder: String) -> String {
    "\(folder)/\(prefix)\(String(UInt64.random(in: 0...UInt64.max), radix: 36))\(suffix)"
  }

  /// The file that is locked in the place of a temporary database, on which SQLite has locks of its own.
  package static func lockPath(ofDatabase path: String) -> String { path + lockSuffix }

  /// Deletes a temporary database, and what lies beside it.
  package static func deleteDatabase(_ path: String) {
    for suffix in ["", "-journal", "-wal", "-shm", lockSuffix] { unlink(path + suffix) }
  }

  /// Deletes the temporary files and databases of processes that have ended. Where the folder cannot be listed, or files cannot be locked,
  /// they stay.
  package static func deleteAbandoned(in folder: String) {
    let names: Set<String>
    do { names = try Set(FolderNames.all(in: folder)) } catch { return }
    for name in names where name.hasPrefix(prefix) {
      let isLock = name.hasSuffix(suffix + lockSuffix)
      guard isLock || name.hasSuffix(suffix) && !names.contains(name + lockSuffix) else { continue }
      let path = "\(folder)/\(name)"
      do {
        let lock = try PosixFile(reading: path)
        guard lock.tryLock(whereUnsupported: false) else { continue }
        if isLock { deleteDatabase(String(path.dropLast(lockSuffix.count))) } else { unlink(path) }
      } catch { continue }
    }
  }
}

/// The folders in which this process has looked for files of killed ones: listing a large folder for each new file takes long.
///
/// `@unchecked Sendable`: the mutex guards the set.
private final class CleanedFolders: @unchecked Sendable {
  static let shared = CleanedFolders()
  // It lives at a fixed address for as long as the process.
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private var folders: Set<String> = []

  private init() { pthread_mutex_init(mutex, nil) }

  /// True if the process has not looked there yet.
  func isFirst(_ folder: String) -> Bool {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return folders.insert(folder).inserted
  }
}
