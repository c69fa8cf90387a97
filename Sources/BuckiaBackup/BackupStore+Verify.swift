import Buckia
import BuckiaBytes
import BuckiaFormat
import BuckiaStorage
import SQLiteConnections

/// What ``BackupStore/verify(with:)`` has found.
public struct BackupVerification: Hashable, Sendable {
  /// The points, the oldest first.
  public internal(set) var points: [BackupPoint] = []
  /// What is wrong: the path of an object, and a sentence.
  public internal(set) var faults: [Fault] = []
  /// The points that were restored and checked.
  public internal(set) var restored: [BackupPoint] = []
  /// The public keys that have signed points, in hexadecimal.
  public internal(set) var signers: Set<String> = []

  /// Nothing was found yet.
  package init() {}

  /// Adds what was found in another store.
  package mutating func add(_ other: BackupVerification) {
    points += other.points
    faults += other.faults
    restored += other.restored
    signers.formUnion(other.signers)
  }

  /// A fault of the store.
  public struct Fault: Hashable, Sendable {
    /// The path of the object in the storage.
    public let path: String
    /// A sentence for people.
    public let message: String
  }
}

extension BackupStore {
  /// Checks all objects: their bytes, their order and their signatures. This needs no secret key.
  ///
  /// The newest point of each history is also restored to a temporary file and checked by SQLite's `integrity_check`,
  /// if it is not encrypted or a key opens it.
  ///
  /// - Parameters:
  ///   - home: The home that records which points were restored.
  ///   - identities: Secret keys for an encrypted store.
  /// - Returns: What was found. A fault is no error.
  /// - Throws: `StorageError` if the store cannot be read.
  public func verify(
    home: BuckiaHome = .standard, with identities: [AgeIdentity] = []
  ) async throws -> BackupVerification {
    var result = BackupVerification()
    var objects: [BackupObject] = []
    let listing = try await list()
    let known = try await runBlocking { try StoreFiles(of: self, in: home).records().map(\.point.id) }
    for id in known where listing.objects[id] == nil && !listing.prunedIDs.contains(id) {
      result.faults.append(
        .init(path: "\(id)\(Self.suffix)", message: "it is missing, and this device has stored it"))
    }
    for (id, entry) in listing.objects.sorted(by: { $0.key < $1.key }) {
      do {
        let object = try await object(entry.object, of: id)
        objects.append(object)
        try await check(object)
      } catch let error as StorageError where [.damaged, .truncated, .notFound].contains(error.code) {
        result.faults.append(.init(path: entry.object.path.text, message: error.message))
      }
    }
    result.points = objects.map(\.point)
    result.signers = Set(objects.compactMap { $0.point.signer?.description })
    let ids = Set(objects.map(\.id))
    for object in objects {
      if let base = object.payload.base, !ids.contains(base) {
        result.faults.append(.init(path: object.path.text, message: "it needs the pages of \(base), which is missing"))
      }
    }
    for (_, points) in Dictionary(grouping: objects, by: \.point.historyID) {
      let digests = Dictionary(grouping: points, by: \.point.sequence)
      for object in points {
        guard let previous = object.point.previous, let former = digests[object.point.sequence - 1] else { continue }
        if !former.contains(where: { $0.digest == previous }) {
          result.faults.append(
            .init(path: object.path.text, message: "it was not made after the point before it in its history"))
        }
      }
      guard let newest = points.last, !newest.payload.isEncrypted || !identities.isEmpty else { continue }
      do {
        let drill = try await drill(.id(newest.id), home: home, with: identities)
        if let fault = drill.fault {
          result.faults.append(.init(path: newest.path.text, message: fault))
        } else {
          result.restored.append(newest.point)
        }
      } catch let error as ByteStreamError where error.code == .noMatchingIdentity {
        // Without the secret key only the bytes are checked.
      }
    }
    return result
  }

  /// Reads the bytes of an object and compares their digest.
  func check(_ object: BackupObject) async throws {
    var hasher = ContentHasher()
    let request = GetRequest(offset: Int64(BackupObject.headerByteCount))
    for try await chunk in try await storage.get(object.path, request).chunks { hasher.update(chunk) }
    guard hasher.digest == object.payload.digest else {
      throw StorageError(.damaged, "its pages are not those that were stored", path: object.path)
    }
  }

  /// The time of the last check by restoring a point of a history that was in order, in milliseconds since 1970; nil for
  /// none.
  package func lastGoodDrill(of history: String, home: BuckiaHome) throws -> Int64? {
    try StoreFiles(of: self, in: home).drills(of: history).last { $0.fault == nil }?.time
  }

  /// Restores a point to a temporary file, lets SQLite check it, and records the result.
  ///
  /// - Parameters:
  ///   - selection: The point.
  ///   - home: The home with the record.
  ///   - identities: Secret keys for an encrypted store.
  /// - Returns: The result.
  /// - Throws: `StorageError` if there is no such point or the store cannot be read; `BuckiaError` if no key opens it.
  @discardableResult
  public func drill(
    _ selection: PointSelection = .newest, home: BuckiaHome = .standard, with identities: [AgeIdentity] = []
  ) async throws -> DrillResult {
    let point = try await object(selection, in: currentObjects()).point
    let storeFiles = try StoreFiles(of: self, in: home)
    let files = try await runBlocking { try WorkingFiles(besides: storeFiles.drill) }
    var fault: String?
    do {
      _ = try await assemble(.id(point.id), of: nil, with: identities, in: files)
      fault = try await CancellationFlag.onThreadOfItsOwn { _ in
        try SQLiteConnection(opening: files.assembly, as: .immutable).damage(comparingIndexes: true)
      }
    } catch let error as StorageError where [.damaged, .truncated].contains(error.code) {
      fault = error.message
    }
    let result = DrillResult(point: point, time: WallClock.unixMilliseconds, fault: fault)
    try await runBlocking { try storeFiles.note(result) }
    return result
  }
}

/// What came of restoring a point for a check.
public struct DrillResult: Hashable, Sendable {
  /// The point.
  public let point: BackupPoint
  /// The time of the check, in milliseconds since 1970.
  public let time: Int64
  /// What is wrong with it; nil for nothing.
  public let fault: String?
}
