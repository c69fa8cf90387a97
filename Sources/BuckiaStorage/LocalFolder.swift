import BuckiaBytes
import Dispatch

/// A folder of this machine as a storage: a disk, a stick, a network share, or a folder that another program
/// synchronizes with a server.
///
/// Files appear complete and safely on disk. Links are not followed. Conditions are checked under a lock that programs which use Buckia
/// respect; other programs may write at the same moment. What other synchronizing programs have not finished, and hidden files, are not listed (see ``isPartial(_:)``).
public struct LocalFolder: StorageProvider {
  private let root: String

  /// Uses a folder, which is created with its first object.
  public init(_ path: String) { root = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path }

  /// The path of the folder.
  public var name: String { root }

  /// All but resuming uploads, which a folder has no need of.
  public var capabilities: StorageCapabilities {
    StorageCapabilities(
      putsIfAbsent: true, putsIfVersion: true, readsRanges: true, moves: true, listsFromName: true,
      transferLimit: 4)
  }

  private func file(_ path: RemotePath) -> String { "\(root)/\(path)" }

  // MARK: Looking

  /// Lists files, also those in inner folders. Links, hidden and unfinished files are left out.
  public func list(_ request: ListRequest) async throws -> ListPage {
    var page = try await all(in: request.folder).page
    let start = try request.continuation.map { try RemotePath($0) } ?? request.after
    if let start { page.objects.removeAll { $0.path <= start } }
    if let limit = request.limit, limit > 0, page.objects.count > limit {
      page.objects.removeLast(page.objects.count - limit)
      page.continuation = page.objects.last?.path.text
    }
    return page
  }

  /// All files of a folder, and the paths of files that a person could expect among them: links, hidden and unfinished
  /// files, and those with names that no storage accepts. Files of the operating system are not among these.
  package func all(in folder: RemotePath?) async throws -> (page: ListPage, leftOut: [String]) {
    var page = ListPage(objects: [])
    var leftOut: [String] = []
    var folders = [folder]
    while let folder = folders.popLast() {
      try Task.checkCancellation()
      let found = try await runBlocking { [folder] in try entries(of: folder) }
      if found == nil, folder == nil { page.isMissing = true }
      for entry in found ?? [] {
        switch entry {
        case .folder(let path): folders.append(path)
        case .object(let object): page.objects.append(object)
        case .leftOut(let path): leftOut.append(path)
        case .unusable(let path):
          page.unusableNames += 1
          leftOut.append(path)
        }
      }
    }
    page.objects.sort { $0.path < $1.path }
    return (page, leftOut.sorted())
  }

  private enum Entry {
    case folder(RemotePath)
    case object(StoredObject)
    case leftOut(String)
    case unusable(String)
  }

  /// The entries of one folder, unordered; nil if there is none.
  private func entries(of folder: RemotePath?) throws -> [Entry]? {
    let directory = folder.map { file($0) } ?? root
    guard let names = try Self.names(in: directory) else { return nil }
    return names.filter { !Self.isSystems($0) }.compactMap { name -> Entry? in
      let shown = folder.map { "\($0)/\(name)" } ?? name
      if Self.isPartial(name) { return .leftOut(shown) }
      var status = FileStatus()
      // A file that was removed meanwhile is left out.
      guard lstat("\(directory)/\(name)", &status) == 0 else { return nil }
      let isFolder = status.st_mode & S_IFMT == S_IFDIR
      guard isFolder || status.st_mode & S_IFMT == S_IFREG else { return .leftOut(shown) }
      do {
        let path = try folder?.appending(name) ?? RemotePath(name)
        return isFolder ? .folder(path) : .object(StoredObject(path, status))
      } catch { return .unusable(shown) }
    }
  }

  /// The names in a folder; nil if there is none.
  package static func names(in folder: String) throws(StorageError) -> [String]? {
    do throws(ByteStreamError) { return try FolderNames.all(in: folder) } catch {
      if error.errno == ENOENT { return nil }
      throw StorageError(.unreadable, error.description)
    }
  }

  /// Looks a file up. A link or a folder is none.
  public func stat(_ path: RemotePath) async throws -> StoredObject? {
    try await runBlocking { try look(at: path) }
  }

  private func look(at path: RemotePath) throws(StorageError) -> StoredObject? {
    var status = FileStatus()
    guard lstat(file(path), &status) == 0 else {
      let number = errno
      if number == ENOENT || number == ENOTDIR { return nil }
      throw StorageError(.unreadable, String(cString: strerror(number)), path: path)
    }
    return status.st_mode & S_IFMT == S_IFREG ? StoredObject(path, status) : nil
  }

  // MARK: Reading

  /// Opens a file. What changes while it is read ends with an error.
  public func get(_ path: RemotePath, _ request: GetRequest) async throws -> StorageDownload {
    let (object, contents) = try await runBlocking { () -> (StoredObject, StorageContents) in
      guard let object = try look(at: path) else { throw StorageError.notFound(path) }
      if let version = request.version, version != object.version { throw StorageError.changed(path) }
      do throws(StorageError) { return (object, try StorageContents(file: file(path))) } catch {
        throw error.about(path)
      }
    }
    guard contents.byteCount == object.byteCount else { throw StorageError.changed(path) }
    let start = min(max(0, request.offset), object.byteCount)
    let end = request.count.map { min(start + max(0, $0), object.byteCount) } ?? object.byteCount
    return StorageDownload(object: object, chunks: contents.chunks(in: start..<end))
  }

  // MARK: Writing

  /// Writes a file beside its place, brings it to the disk, and gives it its name.
  @discardableResult
  public func put(
    _ contents: StorageContents, to path: RemotePath, _ condition: PutCondition
  ) async throws -> StoredObject {
    do {
      let opened = try await runBlocking { () -> HandedOver<AtomicFileOutput> in
        try makeFolders(around: path)
        return HandedOver(
          try AtomicFileOutput(at: file(path), replacing: true, isPrivate: contents.isPrivate))
      }
      // One thread after the other uses it.
      nonisolated(unsafe) let output = opened.value
      var written: Int64 = 0
      for try await chunk in contents.chunks() {
        try await runBlocking { try output.write(chunk) }
        written += Int64(chunk.count)
      }
      guard written == contents.byteCount else {
        throw StorageError(.sourceChanged, "\(written) of \(contents.byteCount) bytes could be read", path: path)
      }
      let count = written
      return try await runBlocking {
        try whileLocked(condition != .none) {
          try condition.require(of: look(at: path), at: path)
          try output.publish()
          return try look(at: path) ?? StoredObject(path: path, byteCount: count)
        }
      }
    } catch let error as StorageError {
      throw error.about(path)
    }
  }

  /// Removes a file. Folders that are empty then stay.
  public func delete(_ path: RemotePath) async throws {
    try await runBlocking {
      guard unlink(file(path)) != 0 else { return }
      let number = errno
      guard number != ENOENT, number != ENOTDIR else { return }
      throw StorageError(.unwritable, "it cannot be deleted: \(String(cString: strerror(number)))", path: path)
    }
  }

  /// Renames a file.
  public func move(_ path: RemotePath, to newPath: RemotePath, replacing isReplacing: Bool) async throws {
    try await runBlocking {
      try makeFolders(around: newPath)
      try whileLocked(!isReplacing) {
        guard try look(at: path) != nil else { throw StorageError.notFound(path) }
        if !isReplacing, path != newPath, try look(at: newPath) != nil { throw StorageError.alreadyExists(newPath) }
        guard rename(file(path), file(newPath)) == 0 else {
          throw StorageError(
            .unwritable, "it cannot be moved to \(newPath): \(String(cString: strerror(errno)))", path: path)
        }
      }
    }
  }

  /// True if a folder lists a file of that path: no part of it is the name of a hidden or unfinished file.
  package static func holds(_ path: String) -> Bool {
    !path.utf8.split(separator: UInt8(ascii: "/")).contains { Self.isPartial(String(Substring($0))) }
  }

  private func makeFolders(around path: RemotePath) throws(StorageError) {
    if !Self.holds(path.text) {
      throw StorageError(
        .invalidName, "hidden and unfinished files have such names, so it would not be seen in a folder", path: path)
    }
    try Self.makeFolder(path.folder.map { file($0) } ?? root)
  }

  /// Creates a folder and its parents.
  package static func makeFolder(_ folder: String) throws(StorageError) {
    guard !folder.isEmpty, mkdir(folder, 0o777) != 0, errno != EEXIST else { return }
    guard errno == ENOENT, let slash = folder.utf8.lastIndex(of: UInt8(ascii: "/")), slash > folder.startIndex else {
      throw StorageError(.unwritable, "the folder \(folder) cannot be made: \(String(cString: strerror(errno)))")
    }
    try makeFolder(String(folder[..<slash]))
    guard mkdir(folder, 0o777) != 0, errno != EEXIST else { return }
    throw StorageError(.unwritable, "the folder \(folder) cannot be made: \(String(cString: strerror(errno)))")
  }

  /// Checks and acts while no other program that uses Buckia does.
  private func whileLocked<Result>(_ isLocked: Bool, _ body: () throws -> Result) throws -> Result {
    guard isLocked else { return try body() }
    let lock = try PosixFile(updating: "\(root)/\(Self.lockName)")
    // If files cannot be locked, another program can write between check and act.
    _ = lock.lock()
    return try withExtendedLifetime(lock) { try body() }
  }
}

/// The system's `stat`, whose name the provider's own call hides.
private typealias FileStatus = stat

extension StoredObject {
  fileprivate init(_ path: RemotePath, _ status: FileStatus) {
    #if canImport(Darwin)
      let modified = status.st_mtimespec
    #else
      let modified = status.st_mtim
    #endif
    let parts = [
      UInt64(status.st_ino), UInt64(status.st_size), UInt64(modified.tv_sec), UInt64(modified.tv_nsec),
    ]
    self.init(
      path: path, byteCount: Int64(status.st_size),
      version: ObjectVersion("\"\(parts.map { String($0, radix: 36) }.joined(separator: "-"))\""),
      modifiedAt: Int64(modified.tv_sec) * 1000 + Int64(modified.tv_nsec) / 1_000_000)
  }
}

// Temporary files of other programs, which are no objects: unfinished downloads and uploads of synchronizing programs,
// locks, and files of the operating system.
//
// The names are from the programs' documentation: Syncthing (`.syncthing.…`, `~syncthing~…`), Nextcloud and ownCloud
// (`….part`, `.~…`), browsers (`….crdownload`, `….download`), Dropbox and rclone (`.dropbox…`, `….partial`), iCloud
// (`.….icloud`), and Buckia's own `.buckia-…`.
extension LocalFolder {
  /// The file that is locked while a condition is checked.
  private static let lockName = ".buckia-lock"

  private static let endings = [".part", ".partial", ".crdownload", ".download", ".tmp", ".!sync", ".filepart"]

  /// True if a file of that name is no object.
  static func isPartial(_ name: String) -> Bool {
    if name.hasPrefix(".") || name.hasPrefix("~syncthing~") || name.hasPrefix("~$") { return true }
    let lowered = name.lowercased()
    return endings.contains { lowered.hasSuffix($0) } || isSystems(name)
  }

  private static let systems = ["desktop.ini", "thumbs.db", ".ds_store", ".localized", ".stfolder", ".stignore"]

  /// True if a program or a system keeps a file of that name for itself, and no person misses it elsewhere.
  private static func isSystems(_ name: String) -> Bool {
    name.hasPrefix(".buckia-") || name.hasPrefix("._") || systems.contains(name.lowercased())
  }
}

/// Runs blocking work outside the cooperative thread pool, whose few threads must not wait for a disk.
///
/// - Throws: What the work throws; for a file that cannot be read or written, `StorageError`.
package func runBlocking<Result: Sendable>(_ work: @escaping @Sendable () throws -> Result) async throws -> Result {
  try await withCheckedThrowingContinuation { continuation in
    DispatchQueue.global().async { continuation.resume(with: Swift.Result { try StorageError.wrapping(work) }) }
  }
}

/// Waits for asynchronous work, for callers that are synchronous: the command line, and C.
///
/// - Parameters:
///   - work: The work.
///   - tick: Called ten times a second meanwhile, on the waiting thread. If it throws, the work is cancelled.
/// - Throws: What the work throws; when it was cancelled, what `tick` has thrown.
package func waitForTask<Value: Sendable>(
  _ work: @escaping @Sendable () async throws -> Value, meanwhile tick: () throws -> Void = {}
) throws -> Value {
  nonisolated(unsafe) var outcome: Result<Value, any Error>?
  let isDone = DispatchSemaphore(value: 0)
  let task = Task.detached {
    do { outcome = .success(try await work()) } catch { outcome = .failure(error) }
    isDone.signal()
  }
  while isDone.wait(timeout: .now() + .milliseconds(100)) == .timedOut {
    do { try tick() } catch {
      task.cancel()
      isDone.wait()
      throw error
    }
  }
  guard let outcome else { throw CancellationError() }
  return try outcome.get()
}

/// Runs an actor that waits for the disk on a queue of its own, and not on threads of the cooperative pool.
package final class BlockingExecutor: SerialExecutor {
  private let queue = DispatchQueue(label: "buckia.actor")

  package init() {}

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
  }
}
