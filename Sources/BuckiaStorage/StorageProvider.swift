import BuckiaBytes

/// A storage of objects: a folder, a bucket, a WebDAV server.
///
/// It knows nothing of Buckia. Everything else (files, retries of whole transfers, copies where there is no move) is made of these calls, in
/// extensions. ``StorageConformance`` checks a provider of one's own.
///
/// Objects appear whole or not at all: a reader never sees one that is half written. A call that throws may have happened all the same,
/// when the answer was lost; each can be made again.
public protocol StorageProvider: Sendable {
  /// What people call the storage, in errors: an address, without anything secret.
  var name: String { get }

  /// What the storage can do. Where servers lie about it, ``StorageProbe`` finds out.
  var capabilities: StorageCapabilities { get }

  /// Lists objects, those in folders of the folder too, in the order of their names as bytes: one page of them.
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
  /// - Returns: What the storage says of it, and the bytes, which are read while they come. They end early only with an error.
  /// - Throws: `StorageError` with `notFound`, `changed` when it is not the wanted version, or another.
  func get(_ path: RemotePath, _ request: GetRequest) async throws -> StorageDownload

  /// Writes an object, and the folders around it where the storage has folders.
  ///
  /// - Parameters:
  ///   - contents: The bytes. They are read more than once when something has to be repeated.
  ///   - condition: What must be so for it to happen.
  /// - Returns: The object, as far as the storage tells.
  /// - Throws: `StorageError` with `alreadyExists` or `changed` when the condition does not hold, or another.
  @discardableResult
  func put(_ contents: StorageContents, to path: RemotePath, _ condition: PutCondition) async throws -> StoredObject

  /// Deletes an object. One that is not there is deleted already.
  ///
  /// - Throws: `StorageError`.
  func delete(_ path: RemotePath) async throws

  /// Moves an object within the storage, in one step. Called only where ``StorageCapabilities/moves`` says that it can be done.
  ///
  /// - Parameter isReplacing: True if an object that has the new name is replaced.
  /// - Throws: `StorageError` with `notFound`, `alreadyExists`, `unsupported`, or another.
  func move(_ path: RemotePath, to newPath: RemotePath, replacing isReplacing: Bool) async throws
}

extension StorageProvider {
  /// Cannot move anything.
  ///
  /// - Throws: `StorageError` with `unsupported`.
  public func move(_ path: RemotePath, to newPath: RemotePath, replacing isReplacing: Bool) async throws {
    throw StorageError(.unsupported, "\(name) does not move objects", path: path)
  }
}

/// Which objects are to be listed.
public struct ListRequest: Sendable, Equatable {
  /// The folder; nil for everything.
  public var folder: RemotePath?
  /// Only names that come after this one.
  public var after: RemotePath?
  /// How many at most a page has; nil for as many as the storage likes.
  public var limit: Int?
  /// What the page before has said; nil for the first.
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
  /// How many objects were left out because their names are no ``RemotePath``: other programs have put them there.
  public var unusableNames: Int
  /// True if the storage says that there is no such folder, and not only that nothing is in it.
  public var isMissing: Bool

  /// Makes a page.
  public init(
    objects: [StoredObject], continuation: String? = nil, unusableNames: Int = 0, isMissing: Bool = false
  ) {
    self.objects = objects
    self.continuation = continuation
    self.unusableNames = unusableNames
    self.isMissing = isMissing
  }
}

/// Which bytes of an object are wanted.
public struct GetRequest: Sendable, Equatable {
  /// Where they begin, in bytes. Where the storage reads no ranges, the bytes before are read and left out.
  public var offset: Int64
  /// How many at most; nil for all that follow.
  public var count: Int64?
  /// The version that they must be of; nil for any.
  public var version: ObjectVersion?

  /// All bytes, unless it is said otherwise.
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

  /// Makes one.
  public init(object: StoredObject, chunks: ByteChunks) {
    self.object = object
    self.chunks = chunks
  }
}

/// All objects of a folder.
public struct StorageListing: Sendable, Equatable {
  /// The objects, by name, each once.
  public var objects: [StoredObject]
  /// How many more there are whose names are no ``RemotePath``.
  public var unusableNames: Int
  /// True if the storage says that there is no such folder, and not only that nothing is in it.
  public var isMissing = false
}

extension StorageListing {
  /// How many objects a listing has at most, and as many pages and folders: what goes on is a server at fault, and not a folder.
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
  ///   - pageSize: How many objects to ask for at once; nil for as many as the storage likes.
  /// - Returns: The objects by name, even if the storage lists them in another order or some of them twice.
  /// - Throws: `StorageError` with `invalidAnswer` when the listing does not come to an end or holds what was not asked for; what the
  ///   storage throws.
  public func listAll(
    _ folder: RemotePath?, after: RemotePath? = nil, pageSize: Int? = nil
  ) async throws -> StorageListing {
    var listing = StorageListing(objects: [], unusableNames: 0)
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
      guard listing.objects.count < StorageListing.limit, seen.count < StorageListing.limit else {
        throw StorageListing.endless(of: name)
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
    // Of an object that was written while it was listed, the later page knows more.
    return objects.reversed().filter { known.insert($0.path).inserted }.sorted { $0.path < $1.path }
  }
}

extension StorageProvider {
  /// True if there is an object of that name.
  ///
  /// - Throws: `StorageError`.
  public func exists(_ path: RemotePath) async throws -> Bool { try await stat(path) != nil }

  /// Writes an object on a condition, also where the storage cannot check it in one step: then the object is looked up first, and of two who
  /// write at the same moment, the later one wins.
  ///
  /// - Parameters:
  ///   - contents: The bytes.
  ///   - condition: What must be so.
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

  /// Moves an object, also where the storage cannot: then it is copied and the original deleted. A stop in between leaves both.
  ///
  /// - Parameter isReplacing: True if an object that has the new name is replaced.
  /// - Throws: `StorageError` with `notFound`, `alreadyExists`, or another.
  public func moveOrCopy(_ path: RemotePath, to newPath: RemotePath, replacing isReplacing: Bool = false) async throws {
    if capabilities.moves {
      do { return try await move(path, to: newPath, replacing: isReplacing) } catch let error as StorageError
        where error.code == .unsupported
      {
        // It moves objects, but not this one: too large, say.
      }
    }
    guard path != newPath else { return }
    let download = try await get(path, GetRequest())
    // A file of this process's own, which is gone with it.
    let folder = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    let temporary: TemporaryFile
    do { temporary = try TemporaryFile(in: folder, shownAs: folder, isPrivate: true) } catch {
      throw StorageError(error)
    }
    var received: Int64 = 0
    for try await chunk in download.chunks {
      do { try temporary.file.write(chunk) } catch { throw StorageError(error) }
      received += Int64(chunk.count)
    }
    guard received == download.object.byteCount else {
      throw StorageError(.truncated, "\(received) of \(download.object.byteCount) bytes came", path: path)
    }
    try await putChecked(StorageContents(file: temporary.path), to: newPath, isReplacing ? .none : .ifAbsent)
    try await delete(path)
  }

  /// Deletes all objects in a folder.
  ///
  /// - Returns: How many.
  /// - Throws: `StorageError`; some are deleted then.
  @discardableResult
  public func deleteAll(in folder: RemotePath) async throws -> Int {
    let objects = try await listAll(folder).objects
    for object in objects { try await delete(object.path) }
    return objects.count
  }
}

extension PutCondition {
  /// Checks whether an object is as the condition wants it.
  ///
  /// - Parameter object: What is there; nil for nothing.
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

  /// The object is another than the one that was expected.
  package static func changed(_ path: RemotePath) -> StorageError {
    StorageError(
      .changed, "somebody has replaced or removed it meanwhile; nothing was written over it", path: path)
  }

  /// There is no such object.
  package static func notFound(_ path: RemotePath) -> StorageError {
    StorageError(.notFound, "there is no such object", path: path)
  }
}

/// What must be true of a download before it gets its name.
public struct DownloadExpectation: Sendable, Equatable {
  /// The version, as a listing has it; nil for any.
  public var version: ObjectVersion?
  /// The size in bytes, as a listing has it; nil for any.
  public var byteCount: Int64?

  /// Expects nothing, unless it is said otherwise.
  public init(version: ObjectVersion? = nil, byteCount: Int64? = nil) {
    self.version = version
    self.byteCount = byteCount
  }

  /// Expects the object that a listing has.
  public init(_ object: StoredObject) { self.init(version: object.version, byteCount: object.byteCount) }
}

extension StorageProvider {
  /// Stores a file.
  ///
  /// - Parameters:
  ///   - file: The file.
  ///   - path: The object.
  ///   - condition: What must be so, see ``putChecked(_:to:_:)``.
  /// - Returns: The object.
  /// - Throws: `StorageError`.
  @discardableResult
  public func upload(
    file: String, to path: RemotePath, _ condition: PutCondition = .none
  ) async throws -> StoredObject {
    try await putChecked(StorageContents(file: file), to: path, condition)
  }

  /// Reads an object into a file, which appears complete and safely on disk, or not at all.
  ///
  /// An interrupted transfer goes on where it stopped if the storage reads ranges and names versions; else it begins again.
  ///
  /// - Parameters:
  ///   - path: The object.
  ///   - file: The file; one of that name is replaced.
  ///   - expectation: What must be true of it.
  ///   - isPrivate: True if only its owner may read the file.
  ///   - attempts: How often to try in a row: without a single further byte, or from the beginning.
  ///   - progress: Is told how many bytes have come, whenever some have.
  /// - Returns: The object.
  /// - Throws: `StorageError`: `truncated` when it has another size than the storage says, `changed` when it is not the expected version.
  @discardableResult
  public func download(
    _ path: RemotePath, to file: String, expecting expectation: DownloadExpectation = DownloadExpectation(),
    isPrivate: Bool = false, attempts: Int = 3, progress: (@Sendable (Int64) -> Void)? = nil
  ) async throws -> StoredObject {
    var transfer = FileTransfer(path, to: file, expectation, isPrivate)
    var failures = 0
    while true {
      let before = transfer.received
      do {
        let object = try await transfer.run(on: self, progress: progress)
        return object
      } catch let error as StorageError where error.isTransient {
        let goesOn = transfer.goesOn(with: capabilities)
        // What has to begin again each time would never end.
        failures = goesOn && transfer.received > before ? 0 : failures + 1
        guard failures < attempts else { throw error.about(path) }
        if !goesOn { transfer = FileTransfer(path, to: file, expectation, isPrivate) }
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
  private let expectation: DownloadExpectation
  private let isPrivate: Bool
  private var output: AtomicFileOutput?
  private var object: StoredObject?
  private(set) var received: Int64 = 0

  init(_ path: RemotePath, to file: String, _ expectation: DownloadExpectation, _ isPrivate: Bool) {
    self.isPrivate = isPrivate
    self.path = path
    self.file = file
    self.expectation = expectation
  }

  /// True if a download can be resumed after the received bytes.
  func goesOn(with capabilities: StorageCapabilities) -> Bool {
    received > 0 && capabilities.readsRanges && object?.version?.isStrong == true
  }

  mutating func run(
    on storage: some StorageProvider, progress: (@Sendable (Int64) -> Void)?
  ) async throws -> StoredObject {
    let version = object?.version ?? expectation.version
    let download = try await storage.get(path, GetRequest(offset: received, version: version))
    let found = download.object
    if let wanted = version, let version = found.version, version != wanted { throw StorageError.changed(path) }
    if let wanted = object?.byteCount ?? expectation.byteCount, wanted != found.byteCount {
      throw StorageError.changed(path)
    }
    object = found
    for try await chunk in download.chunks {
      guard received + Int64(chunk.count) <= found.byteCount else {
        throw StorageError(.truncated, "more than the announced \(found.byteCount) bytes came", path: path)
      }
      let (file, isPrivate) = (file, isPrivate)
      nonisolated(unsafe) let known = output
      do {
        output = try await runBlocking {
          let output = try known ?? AtomicFileOutput(at: file, replacing: true, isPrivate: isPrivate)
          try output.write(chunk)
          return HandedOver(output)
        }.value
      } catch let error as ByteStreamError { throw StorageError(error) }
      received += Int64(chunk.count)
      progress?(received)
    }
    guard received == found.byteCount else {
      throw StorageError(.truncated, "only \(received) of \(found.byteCount) bytes came", path: path)
    }
    do {
      let (file, isPrivate) = (file, isPrivate)
      nonisolated(unsafe) let known = output
      try await runBlocking {
        try (known ?? AtomicFileOutput(at: file, replacing: true, isPrivate: isPrivate)).publish()
      }
    } catch let error as ByteStreamError { throw StorageError(error) }
    return found
  }
}
