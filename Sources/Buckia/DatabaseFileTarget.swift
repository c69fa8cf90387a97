import BuckiaBytes

/// Where a database goes that is made of another one, a snapshot or a merge, and how it gets there in one step.
struct DatabaseFileTarget {
  private let path: String
  private let folder: String
  /// What is made, for messages.
  private let product: String

  /// - Parameter path: Where it goes; where a symbolic link has the path, to where that leads.
  init(_ path: String, for product: String) {
    let path = PosixFile.target(ofLink: path)
    self.path = path
    self.product = product
    let slash = path.utf8.lastIndex(of: UInt8(ascii: "/"))
    folder = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
  }

  /// Makes sure that nothing is lost when the path gets a new file.
  ///
  /// - Returns: Whether there is an earlier copy.
  func requireReplaceable(by database: String) throws(BuckiaError) -> Bool {
    // Who only reads a database with a log can leave an empty one behind.
    for suffix in ["-wal", "-journal"] where FileSystem.byteCount(of: path + suffix) > 0 {
      throw BuckiaError(.busy, "it is in use, or a program ended while it was: \(path + suffix) is there", path: path)
    }
    guard FileSystem.exists(path) else { return false }
    var mine = stat()
    var other = stat()
    if stat(path, &mine) == 0, stat(database, &other) == 0, mine.st_ino == other.st_ino, mine.st_dev == other.st_dev {
      throw BuckiaError(.notReplaceable, "it is the database itself, which a \(product) cannot replace", path: path)
    }
    guard !FileSystem.isFolder(path), [.sqlite, .empty].contains(FileKind(of: path)) else {
      throw BuckiaError(.notReplaceable, "it is no SQLite database, and a \(product) replaces nothing else", path: path)
    }
    return true
  }

  /// Makes an empty file beside the target, with the permissions that all databases have which it is made of, and writable for its owner.
  func makeTemporaryFile(like databases: String...) throws(BuckiaError) -> TemporaryDatabase {
    var permissions: mode_t = 0o777
    for database in databases {
      var status = stat()
      permissions &= stat(database, &status) == 0 ? status.st_mode : 0o600
    }
    permissions |= 0o600
    do throws(ByteStreamError) { return try TemporaryDatabase(in: folder, permissions: permissions) } catch {
      throw BuckiaError(.unwritable, "the \(product) cannot be written: \(error.message)", path: path)
    }
  }

  /// Gives the file its name, when all of it is on disk.
  func publish(_ temporary: TemporaryDatabase) throws(BuckiaError) {
    for suffix in ["-wal", "-shm"] { unlink(path + suffix) }
    guard Self.synchronize(temporary.path, O_RDWR), rename(temporary.path, path) == 0,
      Self.synchronize(folder, O_RDONLY)
    else {
      throw BuckiaError(
        .unwritable, "the \(product) cannot be written: \(String(cString: strerror(errno)))", path: path)
    }
  }

  private static func synchronize(_ path: String, _ flags: Int32) -> Bool {
    let file = open(path, flags | O_CLOEXEC)
    guard file >= 0 else { return false }
    defer { close(file) }
    // Some file systems cannot synchronize folders.
    return fsync(file) == 0 || [EINVAL, ENOTSUP].contains(errno)
  }
}
