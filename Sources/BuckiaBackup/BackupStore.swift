import Buckia
import BuckiaBytes
import BuckiaFormat
import BuckiaStorage
import SQLiteFiles

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A folder in a storage with states of databases, from which each can be restored.
///
/// The first backup stores all pages of a database, a later one those that have changed since. A database that has not
/// changed costs one listing.
///
/// ```swift
/// let store = BackupStore(folder: "/media/disk/backups")
/// try await store.backUp(database)
/// for entry in try await store.history().points { print(entry.point.id, entry.point.time) }
/// try await store.restore(to: "restored.sqlite")
/// ```
public struct BackupStore: Sendable {
  let storage: any StorageProvider
  let folder: RemotePath?

  /// A store in a storage.
  ///
  /// - Parameters:
  ///   - storage: The storage.
  ///   - folder: The folder there; nil for all of it.
  public init(_ storage: any StorageProvider, folder: RemotePath? = nil) {
    self.storage = storage
    self.folder = folder
  }

  /// A store in a local folder, which the first backup makes.
  public init(folder path: String) {
    // The same folder has the same name, wherever the program runs.
    self.init(LocalFolder(URL(filePath: path).standardizedFileURL.path(percentEncoded: false)))
  }

  /// The address of the storage, and the folder in it.
  var address: String {
    guard let folder else { return storage.name }
    return storage.name.hasSuffix("/") ? "\(storage.name)\(folder)" : "\(storage.name)/\(folder)"
  }

  /// What the names of objects end with.
  package static let suffix = ".backup"

  func path(_ name: String) throws(StorageError) -> RemotePath {
    guard let folder else { return try RemotePath(name) }
    return try folder.appending(name)
  }

  /// The objects of the store, and those that were pruned, by name.
  ///
  /// - Parameter isNew: True if the store may not exist yet.
  /// - Throws: `StorageError`; `notFound` if the folder does not exist.
  func list(orBegin isNew: Bool = false) async throws -> Listing {
    let page = try await storage.listAll(folder)
    guard isNew || !page.isMissing else { throw StorageError(.notFound, "there is no such store: \(address)") }
    return Listing(page.objects)
  }

  /// The names of the objects of a store.
  ///
  /// An object is called `<id>.backup`, or `<id>-<generation>.backup` if it was written again by pruning. A pruned one is
  /// in the folder `pruned/<id of the pruning>`.
  struct Listing {
    /// The newest generation of each point, by id.
    private(set) var objects: [KSUID: (object: StoredObject, generation: Int)] = [:]
    /// Older generations, which a stop has left.
    private(set) var replaced: [StoredObject] = []
    /// The pruned objects, by the id of the pruning.
    private(set) var pruned: [KSUID: [StoredObject]] = [:]

    init(_ found: [StoredObject]) {
      for object in found {
        let parts = object.path.text.split(separator: "/")
        if parts.count >= 3, parts[parts.count - 3] == "pruned", let id = KSUID(String(parts[parts.count - 2])) {
          pruned[id, default: []].append(object)
        } else if let (id, generation) = Self.name(object.path.name) {
          if let other = objects[id] {
            replaced.append(other.generation < generation ? other.object : object)
            if other.generation > generation { continue }
          }
          objects[id] = (object, generation)
        }
      }
    }

    /// The ids of the pruned points.
    var prunedIDs: Set<KSUID> { Set(pruned.values.joined().compactMap { Self.name($0.path.name)?.id }) }

    /// True if the store has an object as it was stored first.
    func has(_ entry: PageRecord.Entry) -> Bool {
      KSUID(entry.id).flatMap { objects[$0] }.map { $0.generation == 1 && $0.object.byteCount == entry.byteCount }
        ?? false
    }

    private static func name(_ text: String) -> (id: KSUID, generation: Int)? {
      guard text.hasSuffix(BackupStore.suffix) else { return nil }
      let parts = text.dropLast(BackupStore.suffix.count).split(separator: "-", maxSplits: 1)
      guard let id = parts.first.flatMap({ KSUID(String($0)) }) else { return nil }
      guard parts.count == 2 else { return (id, 1) }
      return Int(parts[1]).map { (id, $0) }
    }
  }

  /// The first bytes of an object.
  func header(of path: RemotePath) async throws -> [UInt8] {
    let request = GetRequest(count: Int64(BackupObject.headerByteCount))
    return try await storage.get(path, request).chunks.bytes(upTo: BackupObject.headerByteCount)
  }

  /// Reads the header of an object.
  ///
  /// - Parameter id: The point that its name states; nil to leave that out.
  func object(_ stored: StoredObject, of id: KSUID? = nil) async throws -> BackupObject {
    let object = try await BackupObject(header: header(of: stored.path), of: stored)
    guard id == nil || object.id == id else {
      throw StorageError(.damaged, "it is the object of \(object.id) under another name", path: stored.path)
    }
    return object
  }

  /// The objects of the store. If a pruning moves one meanwhile, the store is listed again.
  func currentObjects() async throws -> (readable: [BackupObject], faults: [KSUID: StorageError]) {
    var attempts = 3
    while true {
      do { return try await objects(in: list()) } catch let error as StorageError
        where error.code == .notFound && error.path?.name.hasSuffix(Self.suffix) == true && attempts > 1
      {
        attempts -= 1
      }
    }
  }

  /// The objects of a listing, in the order of their ids, and the errors of those that cannot be read.
  func objects(in listing: Listing) async throws -> (readable: [BackupObject], faults: [KSUID: StorageError]) {
    var (found, faults) = ([BackupObject](), [KSUID: StorageError]())
    for (id, entry) in listing.objects.sorted(by: { $0.key < $1.key }) {
      do { found.append(try await object(entry.object, of: id)) } catch let error as StorageError
        where [.damaged, .truncated].contains(error.code)
      {
        faults[id] = error
      }
    }
    return (found, faults)
  }

  /// A point in the list of a store.
  public struct Entry: Hashable, Sendable {
    /// The point.
    public internal(set) var point: BackupPoint
    /// The size of its object in bytes.
    public let byteCount: Int64
    /// True if restoring it needs a secret key.
    public let isEncrypted: Bool
    /// True if it has been restored and checked on this device, see ``drill(_:home:with:)``.
    public let isVerified: Bool
    /// True if an object whose pages it needs is missing or cannot be read.
    public let isBroken: Bool
  }

  /// The last backup of a database to a store, as this device knows it.
  public struct Status: Hashable, Sendable {
    /// The address of the store.
    public let store: String
    /// The last point.
    public let point: BackupPoint
    /// The time of the last check by restoring a point that was in order, in milliseconds since 1970; nil for none. See
    /// ``drill(_:home:with:)``. Before it, a backup is only hoped to be good.
    public let verifiedAt: Int64?
    /// What the last check has found; nil for nothing, or without a check.
    public let fault: String?
  }

  /// The last backups of a database, one for each store. No store is asked.
  ///
  /// - Throws: `BuckiaError` if the records cannot be read.
  public static func status(of database: DatabaseManager) throws -> [Status] {
    do {
      return try StoreFiles.all(of: database).compactMap { files in
        guard let record = PageRecord(at: files.record(of: database)) else { return nil }
        let drills = try files.drills(of: record.point.history)
        return Status(
          store: record.document.store, point: record.point, verifiedAt: drills.last { $0.fault == nil }?.time,
          fault: drills.last?.fault)
      }
    } catch { throw BuckiaError.wrapped(error) }
  }

  /// The points of the store, the oldest first, and how many objects cannot be read. ``verify(home:with:)`` names these.
  ///
  /// - Parameters:
  ///   - home: The home with the record of checks.
  ///   - identities: The secret keys that open the notes of an encrypted store.
  /// - Throws: `StorageError` if the store cannot be read.
  public func history(
    home: BuckiaHome = .standard, with identities: [AgeIdentity] = []
  ) async throws -> (points: [Entry], unreadableCount: Int) {
    let drills = try await runBlocking { try StoreFiles(of: self, in: home).drills() }
    let good = drills.reduce(into: [:]) { $0[$1.id] = $1.fault == nil }
    let (objects, faults) = try await currentObjects()
    var whole: Set<KSUID> = []
    let points = try objects.map {
      if $0.payload.base.map(whole.contains) ?? true { whole.insert($0.id) }
      var point = $0.point
      try point.openNote(with: identities)
      return Entry(
        point: point, byteCount: $0.byteCount, isEncrypted: $0.payload.isEncrypted,
        isVerified: good[$0.id] ?? false, isBroken: !whole.contains($0.id))
    }
    return (points, faults.count)
  }
}
