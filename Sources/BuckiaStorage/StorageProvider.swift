import BuckiaBytes

/// A storage of objects: a folder, a bucket, a WebDAV server.
///
/// It is independent of Buckia. Everything else (files, retries of whole transfers, copies in place of moves) is built
/// on these calls, in extensions. ``StorageConformance`` checks your own provider.
///
/// Objects appear whole or not at all: a reader never sees one that is half written. A call that throws may have happened all the same,
/// when the answer was lost; each can be made again.
public protocol StorageProvider: Sendable {
  /// The storage's name in errors: an address, without secrets.
  var name: String { get }

  /// The storage's abilities. ``StorageProbe`` tests whether a server really has them.
  var capabilities: StorageCapabilities { get }

  /// Lists one page of objects, also those in inner folders, in the byte order of their names.
  ///
  /// A folder that does not exist is empty.
  ///
  /// - Throws: `StorageError`.
  func list(_ request: ListRequest) async throws -> ListPage

  /// Looks an object up.
  ///
  /// - Returns: The object; nil if there is none.
  /// - Throws: `StorageError`.
  func stat(_ path: RemotePath) async throws -> StoredObject?

  /// Begins to read an object, or a part of it.
  ///
  /// - Returns: The object's facts, and its bytes, which are streamed. They end early only with an error.
  /// - Throws: `StorageError` with `notFound`, `changed` when it is not the wanted version, or another.
  func get(_ path: RemotePath, _ request: GetRequest) async throws -> StorageDownload

  /// Writes an object, and creates its folders if the storage has folders.
  ///
  /// - Parameters:
  ///   - contents: The bytes. They are read more than once when something has to be repeated.
  ///   - condition: The condition for the write.
  /// - Returns: The object, with the facts that the storage returns.
  /// - Throws: `StorageError` with `alreadyExists` or `changed` when the condition does not hold, or another.
  @discardableResult
  func put(_ contents: StorageContents, to path: RemotePath, _ condition: PutCondition) async throws -> StoredObject

  /// Deletes an object. One that is not there is deleted already.
  ///
  /// - Throws: `StorageError`.
  func delete(_ path: RemotePath) async throws

  /// Moves an object within the storage, atomically. Called only if ``StorageCapabilities/moves`` is true.
  ///
  /// - Parameter isReplacing: True if an object that has the new name is replaced.
  /// - Throws: `StorageError` with `notFound`, `alreadyExists`, `unsupported`, or another.
  func move(_ path: RemotePath, to newPath: RemotePath, replacing isReplacing: Bool) async throws
}

extension StorageProvider {
  /// Throws: the default for storages without moves.
  ///
  /// - Throws: `StorageError` with `unsupported`.
  public func move(_ path: RemotePath, to newPath: RemotePath, replacing isReplacing: Bool) async throws {
    throw StorageError(.unsupported, "\(name) does not move objects", path: path)
  }
}

/// A request for a page of objects.
public struct ListRequest: Sendable, Equatable {
  /// The folder; nil for everything.
  public var folder: RemotePath?
  /// Only names that come after this one.
  public var after: RemotePath?
  /// The maximum number of objects of a page; nil for the storage's default.
  public var limit: Int?
  /// The continuation of the previous page; nil for the first.
  public var continuation: String?

  /// Describes a listing.
  public init(
    folder: RemotePath? = nil, after: RemotePath? = nil, limit: Int? = nil, continuation: String? = nil
  ) {
    self.folder = folder
    self.after = after
    self.limit = limit
    self.continuation = continuation
  }
}

/// One page of a listing.
public struct ListPage: Sendable, Equatable {
  /// The objects, by name.
  public var objects: [StoredObject]
  /// What gets the next page; nil on the last one.
  public var continuation: String?
  /// The number of objects of other programs that were left out because their names are no ``RemotePath``.
  public var unusableNames: Int
  /// True if the folder does not exist, as opposed to an empty one.
  public var isMissing: Bool

  /// Creates a page.
  public init(
    objects: [StoredObject], continuation: String? = nil, unusableNames: Int = 0, isMissing: Bool = false
  ) {
    self.objects = objects
    self.continuation = continuation
    self.unusableNames = unusableNames
    self.isMissing = isMissing
  }
}

/// A request for bytes of an object.
public struct GetRequest: Sendable, Equatable {
  /// The offset of the first byte. If the storage has no ranges, the earlier bytes are read and skipped.
  public var offset: Int64
  /// The maximum number of bytes; nil for all that follow.
  public var count: Int64?
  /// The version that they must be of; nil for any.
  public var version: ObjectVersion?

  /// Creates a request, for all bytes by default.
  public init(offset: Int64 = 0, count: Int64? = nil, version: ObjectVersion? = nil) {
    self.offset = offset
    self.count = count
    self.version = version
  }
}

/// An object that is being read.
public struct StorageDownload: Sendable {
  /// The object. Its size is that of the whole object.
  public let object: StoredObject
  /// The bytes that were asked for.
  public let chunks: ByteChunks

  /// Creates a download.
  public init(object: StoredObject, chunks: ByteChunks) {
    self.object = object
    self.chunks = chunks
  }
}

extension ListPage {
  /// The maximum number of objects of a listing, and of pages and folders: a longer one is an error of the server.
  package static let limit = 500_000

  /// The error of a listing that does not end.
  package static func endless(of storage: String) -> StorageError {
    StorageError(
      .invalidAnswer,
      "\(storage) lists more than \(limit) objects or folders and does not end; nothing was done with it. Check the address, or keep fewer files there"
    )
  }
}

extension StorageProvider {
  /// Lists all objects of a folder, page by page.
  ///
  /// - Parameters:
  ///   - folder: The folder; nil for everything.
  ///   - after: Only names that come after this one.
  ///   - pageSize: The number of objects of a page; nil for the storage's default.
  /// - Returns: The objects in order of their names, each once, even if the storage lists them differently.
  /// - Throws: `StorageError` with `invalidAnswer` when the listing does not come to an end or holds what was not asked for; what the
  ///   storage throws.
  public func listAll(
    _ folder: RemotePath?, after: RemotePath? = nil, pageSize: Int? = nil
  ) async throws -> ListPage {
    var listing = ListPage(objects: [])
    var request = ListRequest(folder: folder, after: after, limit: pageSize)
    var seen: Set<String> = []
    var isSorted = true
    while true {
      let page = try await list(request)
      listing.unusableNames += page.unusableNames
      listing.isMissing = listing.isMissing || page.isMissing
      for object in page.objects {
        if let folder, !object.path.isIn(folder) {
          throw StorageError(.invalidAnswer, "\(name) lists \(object.path), which is not in \(folder)")
        }
        if let after, object.path <= after { continue }
        if let last = listing.objects.last, object.path <= last.path { isSorted = false }
        listing.objects.append(object)
      }
      guard let continuation = page.continuation else { break }
      guard listing.objects.count < ListPage.limit, seen.count < ListPage.limit else {
        throw ListPage.endless(of: name)
      }
      guard seen.insert(continuation).inserted else {
        throw StorageError(.invalidAnswer, "\(name) lists the same page again and again; nothing was done with it")
      }
      request.continuation = continuation
    }
    if !isSorted { listing.objects = Self.sorted(listing.objects) }
    return listing
  }

  /// The objects by name, each once.
  private static func sorted(_ objects: [StoredObject]) -> [StoredObject] {
    var known: Set<RemotePath> = []
    // Of an object that was written during the listing, the later page is more recent.
    return objects.reversed().filter { known.insert($0.path).inserted }.sorted { $0.path < $1.path }
  }
}

extension StorageProvider {
  /// True if there is an object of that name.
  ///
  /// - Throws: `StorageError`.
  public func exists(_ path: RemotePath) async throws -> Bool { try await stat(path) != nil }

  /// Writes an object on a condition, also if the storage cannot check it atomically: then the object is read first,
  /// and of two simultaneous writers the later one wins.
  ///
  /// - Parameters:
  ///   - contents: The bytes.
  ///   - condition: The condition for the write.
  /// - Throws: `StorageError` with `alreadyExists` or `changed` when the condition does not hold.
  @discardableResult
  public func putChecked(
    _ contents: StorageContents, to path: RemotePath, _ condition: PutCondition
  ) async throws -> StoredObject {
    if capabilities.keeps(condition) { return try await put(contents, to: path, condition) }
    return try await putLookingFirst(contents, to: path, condition)
  }

  /// Writes an object on a condition that the storage does not keep: the object is looked up first.
  package func putLookingFirst(
    _ contents: StorageContents, to path: RemotePath, _ condition: PutCondition
  ) async throws -> StoredObject {
    try condition.require(of: await stat(path), at: path)
    return try await put(contents, to: path, .none)
  }

  /// Moves an object, also if the storage cannot: then it is copied and the original deleted. An interruption leaves
  /// both.
  ///
  /// - Parameter isReplacing: True if an object that has the new name is replaced.
  /// - Throws: `StorageError` with `notFound`, `alreadyExists`, or another.
  public func moveOrCopy(_ path: RemotePath, to newPath: RemotePath, replacing isReplacing: Bool = false) async throws {
    if capabilities.moves {
      do { return try await move(path, to: newPath, replacing: isReplacing) } catch let error as StorageError
        where error.code == .unsupported
      {
        // The storage moves objects, but not this one, for instance because of its size.
      }
    }
    guard path != newPath else { return }
    let download = try await get(path, GetRequest())
    // A file of this process, which is deleted when the process ends.
    let folder = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    let made = try await runBlocking {
      HandedOver(try TemporaryFile(in: folder, shownAs: folder, isPrivate: true))
    }
    // One thread after the other uses it.
    nonisolated(unsafe) let temporary = made.value
    var received: Int64 = 0
    for try await chunk in download.chunks {
      try await runBlocking { try temporary.file.write(chunk) }
      received += Int64(chunk.count)
    }
    guard received == download.object.byteCount else {
      throw StorageError(.truncated, "\(received) of \(download.object.byteCount) bytes came", path: path)
    }
    let file = temporary.path
    try await putChecked(runBlocking { try StorageContents(file: file) }, to: newPath, isReplacing ? .none : .ifAbsent)
    try await delete(path)
  }

  /// Deletes all objects in a folder.
  ///
  /// - Returns: The number.
  /// - Throws: `StorageError`; some are deleted then.
  @discardableResult
  public func deleteAll(in folder: RemotePath) async throws -> Int {
    let objects = try await listAll(folder).objects
    for object in objects { try await delete(object.path) }
    return objects.count
  }
}

extension PutCondition {
  /// Throws unless an object fulfills the condition.
  ///
  /// - Parameter object: The present object; nil for none.
  /// - Throws: `StorageError` with `alreadyExists` or `changed`.
  public func require(of object: StoredObject?, at path: RemotePath) throws(StorageError) {
    switch self {
    case .none: return
    case .ifAbsent:
      if object != nil { throw .alreadyExists(path) }
    case .ifVersion(let version):
      if object?.version != version { throw .changed(path) }
    }
  }
}

extension StorageError {
  /// There is an object of that name.
  package static func alreadyExists(_ path: RemotePath) -> StorageError {
    StorageError(.alreadyExists, "an object of that name is there already, and was not replaced", path: path)
  }

  /// The object is not the expected one.
  package static func changed(_ path: RemotePath) -> StorageError {
    StorageError(
      .changed, "somebody has replaced or removed it meanwhile; nothing was written over it", path: path)
  }

  /// There is no such object.
  package static func notFound(_ path: RemotePath) -> StorageError {
    StorageError(.notFound, "there is no such object", path: path)
  }
}

extension StorageProvider {
  /// Stores a file.
  ///
  /// - Parameters:
  ///   - file: The file.
  ///   - path: The object.
  ///   - condition: The condition for the write, see ``putChecked(_:to:_:)``.
  /// - Returns: The object.
  /// - Throws: `StorageError`.
  @discardableResult
  public func upload(
    file: String, to path: RemotePath, _ condition: PutCondition = .none
  ) async throws -> StoredObject {
    try await putChecked(runBlocking { try StorageContents(file: file) }, to: path, condition)
  }

  /// Reads an object into a file, which appears complete and safely on disk, or not at all.
  ///
  /// An interrupted transfer resumes if the storage has ranges and versions; otherwise it begins again.
  ///
  /// - Parameters:
  ///   - path: The object.
  ///   - file: The file; one of that name is replaced.
  ///   - expected: The object in a listing: its size, and its version where it has one, have to be the same.
  ///   - isPrivate: True if only its owner may read the file.
  ///   - attempts: How often to try in a row: without a single further byte, or from the beginning.
  ///   - progress: Called with the number of received bytes after each piece.
  /// - Returns: The object.
  /// - Throws: `StorageError`: `truncated` when it has another size than the storage says, `changed` when it is not the expected version.
  @discardableResult
  public func download(
    _ path: RemotePath, to file: String, expecting expected: StoredObject? = nil,
    isPrivate: Bool = false, attempts: Int = 3, progress: (@Sendable (Int64) -> Void)? = nil
  ) async throws -> StoredObject {
    var transfer = FileTransfer(path, to: file, expected, isPrivate)
    var failures = 0
    while true {
      let before = transfer.received
      do {
        let object = try await transfer.run(on: self, progress: progress)
        return object
      } catch let error as StorageError where error.isTransient {
        let goesOn = transfer.goesOn(with: capabilities)
        // A transfer that begins again each time counts as failed each time, or it would never end.
        failures = goesOn && transfer.received > before ? 0 : failures + 1
        guard failures < attempts else { throw error.about(path) }
        if !goesOn { transfer = FileTransfer(path, to: file, expected, isPrivate) }
        try await Task.sleep(for: .milliseconds(100 << failures))
      } catch let error as StorageError {
        throw error.about(path)
      }
    }
  }
}

/// A file on its way from one thread to the next, one of which uses it at a time.
package struct HandedOver<File>: @unchecked Sendable {
  package let value: File
  package init(_ value: File) { self.value = value }
}

/// One object on its way into a file.
private struct FileTransfer {
  private let path: RemotePath
  private let file: String
  private let expected: StoredObject?
  private let isPrivate: Bool
  private var output: AtomicFileOutput?
  private var object: StoredObject?
  private(set) var received: Int64 = 0

  init(_ path: RemotePath, to file: String, _ expected: StoredObject?, _ isPrivate: Bool) {
    self.isPrivate = isPrivate
    self.path = path
    self.file = file
    self.expected = expected
  }

  /// True if a download can be resumed after the received bytes.
  func goesOn(with capabilities: StorageCapabilities) -> Bool {
    received > 0 && capabilities.readsRanges && object?.version?.isStrong == true
  }

  mutating func run(
    on storage: some StorageProvider, progress: (@Sendable (Int64) -> Void)?
  ) async throws -> StoredObject {
    let version = object?.version ?? expected?.version
    let download = try await storage.get(path, GetRequest(offset: received, version: version))
    let found = download.object
    if let wanted = version, let version = found.version, version != wanted { throw StorageError.changed(path) }
    if let wanted = object?.byteCount ?? expected?.byteCount, wanted != found.byteCount {
      throw StorageError.changed(path)
    }
    object = found
    for try await chunk in download.chunks {
      guard received + Int64(chunk.count) <= found.byteCount else {
        throw StorageError(.truncated, "more than the announced \(found.byteCount) bytes came", path: path)
      }
      let (file, isPrivate) = (file, isPrivate)
      nonisolated(unsafe) let known = output
      output = try await runBlocking {
        let output = try known ?? AtomicFileOutput(at: file, replacing: true, isPrivate: isPrivate)
        try output.write(chunk)
        return HandedOver(output)
      }.value
      received += Int64(chunk.count)
      progress?(received)
    }
    guard received == found.byteCount else {
      throw StorageError(.truncated, "only \(received) of \(found.byteCount) bytes came", path: path)
    }
    let (file, isPrivate) = (file, isPrivate)
    nonisolated(unsafe) let known = output
    try await runBlocking {
      try (known ?? AtomicFileOutput(at: file, replacing: true, isPrivate: isPrivate)).publish()
    }
    return found
  }
}
