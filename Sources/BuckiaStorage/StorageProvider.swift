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
  /// - Returns: The object; nil when there is none.
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
  /// - Parameter isReplacing: Whether an object that has the new name is replaced.
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

/// What must be so for an object to be written.
public enum PutCondition: Sendable, Equatable {
  /// Nothing: whatever has the name is replaced.
  case none
  /// No object has the name.
  case ifAbsent
  /// The object is this one.
  case ifVersion(ObjectVersion)
}
