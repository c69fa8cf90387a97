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
  /// The folders in which this process has looked for files of killed ones: listing a large folder for each new file takes long.
  private static let cleanedFolders = Guarded<Set<String>>([])

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
    if Self.cleanedFolders.withLock({ $0.insert(folder).inserted }) { Self.deleteAbandoned(in: folder) }
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
  ///   - replacing: True if it replaces a file of that name.
  ///   - followsLinks: True if a symbolic link of that name stays, and the file that it leads to is replaced.
  ///   - isPrivate: True if only its owner may read it.
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

  /// Writes over bytes that have been added.
  package func overwrite(_ bytes: [UInt8], at offset: Int) throws(ByteStreamError) {
    do { try bytes.withUnsafeBytes { try temporary.file.write($0, at: offset) } } catch let error as ByteStreamError {
      throw error
    } catch { throw ByteStreamError(.unwritable, "\(error)") }
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

/// What a folder contains, by name.
package enum FolderNames {
  /// The names in a folder, hidden ones too, in no order.
  ///
  /// - Throws: `ByteStreamError` when the folder cannot be opened, or cannot be read to its end: then no name is returned.
  package static func all(in folder: String) throws(ByteStreamError) -> [String] {
    guard let listing = opendir(folder) else {
      throw ByteStreamError("the folder cannot be read", errno: errno, path: folder, otherwise: .unreadable)
    }
    defer { closedir(listing) }
    var names: [String] = []
    while true {
      // The end and an error look alike but for this. Names that are passed over would be files that are.
      errno = 0
      guard let entry = readdir(listing) else {
        let number = errno
        guard number == 0 else {
          throw ByteStreamError(
            "the folder cannot be read to its end", errno: number, path: folder, otherwise: .unreadable)
        }
        return names
      }
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        // Sound: d_name ends with a NUL inside the entry, which lives until the next readdir.
        pointer.withMemoryRebound(to: CChar.self, capacity: MemoryLayout.size(ofValue: pointer.pointee)) {
          String(cString: $0)
        }
      }
      if name != ".", name != ".." { names.append(name) }
    }
  }
}
