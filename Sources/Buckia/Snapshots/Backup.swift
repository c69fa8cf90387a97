import BuckiaBytes
import BuckiaDiff
import SQLiteConnections
import SQLiteFiles

/// What ``DatabaseManager/backupDatabase(to:)`` made.
public struct BackupCopy: Sendable, Equatable {
  /// The file.
  public let path: String
  /// Its size in bytes.
  public let bytes: Int64
  /// True if it replaced an earlier one.
  public let isReplacement: Bool
}

extension DatabaseManager {
  /// Copies the whole database in one transaction to another file, also while others use it, with all tables of Buckia.
  ///
  /// The copy is complete under its name or does not exist, replaces an earlier one atomically, and needs no other
  /// file. A database that is restored from it is another incarnation of its replica, which Buckia notices; see
  /// <doc:Replicas>. The next difference is not made from a backup but from a snapshot, ``snapshot(to:replacing:)``.
  ///
  /// ```swift
  /// try database.backupDatabase(to: "backup.sqlite")
  /// ```
  ///
  /// - Parameter path: The file. Only an SQLite database is replaced, and not one that is in use.
  /// - Returns: The copy.
  /// - Throws: `BuckiaError`: `notReplaceable` when the path is something else than a database, or the database itself; `busy` when the
  ///   database is locked; `misuse` for a borrowed database inside a transaction of the app; what SQLite says when the copy cannot be
  ///   written. An earlier copy then stays as it is.
  @discardableResult
  public func backupDatabase(to path: String) throws -> BackupCopy {
    try withReader { connection in
      try requireOwnTransaction(or: "a backup cannot be made", on: connection)
      if !isBorrowed { try connection.requireContent() }
      let target = DatabaseFileTarget(path, for: "backup")
      let isReplacement = try target.requireReplaceable(by: connection.path)
      let temporary = try target.makeTemporaryFile(like: connection.path)
      try connection.copyState(to: temporary.path, polling: poll)
      try target.publish(temporary)
      return BackupCopy(path: path, bytes: FileSystem.byteCount(of: path), isReplacement: isReplacement)
    }
  }
}

extension DatabaseManager {
  /// Calls `body` with the pages of one read transaction, and a connection in it.
  ///
  /// The pages are read through the connection. If that is not possible, as for a connection that keeps the index of the
  /// log to itself, they are those of a copy.
  ///
  /// - Throws: `BuckiaError`, what `body` throws.
  package func withPages<Result>(
    _ body: (DatabasePages, borrowing SQLiteConnection) throws -> Result
  ) throws -> Result {
    try withReader { connection in
      try requireOwnTransaction(or: "a backup cannot be made", on: connection)
      if !isBorrowed, try connection.integer("PRAGMA main.page_count") == 0 {
        throw BuckiaError(
          .damagedDatabase, "the database is an empty file, and no backup was made; restore a point of the store",
          path: path)
      }
      func read(_ connection: borrowing SQLiteConnection) throws -> Result? {
        let reader = SQLiteConnection(sharing: connection)
        return try DatabaseSnapshot.withPages(of: connection) { try body($0, reader) }
      }
      if let result = try read(connection) { return result }
      let copy = try TemporaryDatabase(in: home.backupFolder(), permissions: 0o600)
      try connection.copyState(to: copy.path, polling: poll)
      guard let result = try read(SQLiteConnection.reading(copy.path, busyTimeout: busyTimeout)) else {
        throw BuckiaError(.busy, "other programs write to the database all the time", path: path)
      }
      return result
    }
  }

  /// Replaces the content of the database by that of another file, for all connections.
  ///
  /// - Parameter file: A database that is not in use.
  /// - Throws: `BuckiaError`: `busy` when the database is locked; what SQLite says. The content is then the former one.
  package func replaceContent(byFile file: String) throws {
    try withWriter { connection in
      try requireOwnTransaction(or: "a backup cannot be restored", on: connection)
      let source = try SQLiteConnection(opening: file, as: .immutable)
      let query = "PRAGMA main.page_size"
      if try source.integer(query) != connection.integer(query) {
        // The pages of a database with a write-ahead log keep their size.
        _ = try connection.text("PRAGMA main.journal_mode = delete")
      }
      try source.copy(to: connection, polling: poll)
    }
  }
}

/// The path of a derived database, a snapshot or a merge, which is replaced atomically.
struct DatabaseFileTarget {
  private let path: String
  private let folder: String
  /// The name of the product, for messages.
  private let product: String

  /// - Parameter path: The path. A symbolic link is followed.
  init(_ path: String, for product: String) {
    let path = PosixFile.target(ofLink: path)
    self.path = path
    self.product = product
    folder = FileSystem.folder(of: path)
  }

  /// Requires that replacing the file loses nothing.
  ///
  /// - Returns: True if there is an earlier copy.
  func requireReplaceable(by database: String) throws(BuckiaError) -> Bool {
    // A reader of a database with a log can leave an empty log.
    for suffix in ["-wal", "-journal"] where FileSystem.byteCount(of: path + suffix) > 0 {
      throw BuckiaError(.busy, "it is in use, or a program ended while it was: \(path + suffix) is there", path: path)
    }
    guard FileSystem.exists(path) else { return false }
    if FileSystem.isOneFile(path, database) {
      throw BuckiaError(.notReplaceable, "it is the database itself, which a \(product) cannot replace", path: path)
    }
    guard !FileSystem.isFolder(path), [.sqlite, .empty].contains(FileKind(of: path)) else {
      throw BuckiaError(.notReplaceable, "it is no SQLite database, and a \(product) replaces nothing else", path: path)
    }
    return true
  }

  /// Creates an empty file beside the target, with the permissions that all source databases have, and writable for its
  /// owner.
  func makeTemporaryFile(like databases: String...) throws(BuckiaError) -> TemporaryDatabase {
    var permissions: mode_t = 0o777
    for database in databases {
      var status = stat()
      permissions &= stat(database, &status) == 0 ? status.st_mode : 0o600
    }
    permissions |= 0o600
    do throws(ByteStreamError) { return try TemporaryDatabase(in: folder, permissions: permissions) } catch {
      throw BuckiaError(.unwritable, "no \(product) is made: \(error.message)", path: path)
    }
  }

  /// Renames the file to its name when it is completely on disk.
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

/// A database file in the making, named `.buckia-<random>.tmp`. It is deleted unless it gets another name.
///
/// A killed process leaves it, and the next process that makes such a file in the same folder deletes it. A lock on the
/// file `.buckia-<random>.tmp-lock` beside it shows that its process is alive; the database itself has the locks of
/// SQLite.
package final class TemporaryDatabase {
  package let path: String
  private let lock: PosixFile

  /// Creates an empty file.
  ///
  /// - Parameters:
  ///   - folder: The folder.
  ///   - permissions: The permissions.
  /// - Throws: `ByteStreamError`.
  package init(in folder: String, permissions: mode_t) throws(ByteStreamError) {
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

extension SQLiteConnection {
  /// Copies one state of the database into an empty file, by sharing its blocks where the file system can do that.
  ///
  /// - Parameters:
  ///   - path: The empty file.
  ///   - poll: Called from time to time; may throw to stop.
  /// - Throws: `SQLiteError` when the database is locked, or either file cannot be read or written.
  func copyState(to path: String, polling poll: @escaping () throws -> Void) throws {
    // In a read transaction no connection writes to the file, unless there is a log beside it.
    let transaction = isInTransaction ? nil : try SQLiteTransaction(.deferred, on: self)
    _ = try integer("SELECT count(*) FROM main.sqlite_schema")
    let hasLog = try text("PRAGMA main.journal_mode") == "wal"
    if hasLog || self.path.isEmpty || !FileClone.make(of: self.path, to: path) { try copy(to: path, polling: poll) }
    transaction?.rollback()
  }
}

/// Copies a file by sharing its blocks, on file systems that can do that (Btrfs, XFS, APFS): at once, whatever its size.
///
/// A database must not be opened by its path beside a connection of this process: closing it would drop the locks that the
/// connection has on it. So the copy is made through the descriptor that SQLite has open anyway.
enum FileClone {
  /// Clones the file.
  ///
  /// The file must not change meanwhile: a connection to it is in a read transaction, and there is no write-ahead log.
  ///
  /// - Parameters:
  ///   - path: A file that this process has open.
  ///   - target: An empty file.
  /// - Returns: True if the copy was made. If not, the target is empty still.
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

  /// A descriptor of this process through which the file can be read; nil for none.
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
