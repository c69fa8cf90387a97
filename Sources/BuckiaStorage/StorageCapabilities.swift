/// What a storage can do. Where it cannot do something, whoever uses it has a way around, which is stated here.
public struct StorageCapabilities: Sendable, Equatable, Codable {
  /// Whether ``PutCondition/ifAbsent`` is honoured in one step. Without it, the storage is asked for the object first: of two that write
  /// at the same moment, the later one wins.
  public var putsIfAbsent: Bool
  /// Whether ``PutCondition/ifVersion(_:)`` is honoured in one step. Without it, the version is looked up first.
  public var putsIfVersion: Bool
  /// Whether a condition is checked and the object written in one step, whoever else writes at the same moment. WebDAV does not promise it: Apache looks first.
  public var conditionsAreAtomic: Bool
  /// Whether a part of an object can be had. Without it, an interrupted download begins anew.
  public var readsRanges: Bool
  /// Whether the storage moves objects by itself. Without it, they are copied through this device and deleted.
  public var moves: Bool
  /// Whether a listing begins behind a name. Without it, everything is listed and the rest left out here.
  public var listsFromName: Bool
  /// Whether a large object is sent in parts, several at once. Without it, it goes in one piece.
  public var uploadsInParts: Bool
  /// Whether an upload in parts can be taken up again after an interruption. Without it, it begins anew.
  public var resumesUploads: Bool
  /// The digests that the storage checks when something is put. Without one, only sizes are compared.
  public var checksums: [ContentChecksum.Algorithm]
  /// True if looking up one object lists its folder, since the storage has no other way. Several objects are then looked up by one listing.
  public var looksUpInListings: Bool
  /// How many transfers at once the storage stands.
  public var transferLimit: Int

  /// Describes a storage.
  public init(
    putsIfAbsent: Bool = false, putsIfVersion: Bool = false, conditionsAreAtomic: Bool = true,
    readsRanges: Bool = false, moves: Bool = false,
    listsFromName: Bool = false, uploadsInParts: Bool = false, resumesUploads: Bool = false,
    checksums: [ContentChecksum.Algorithm] = [],
    looksUpInListings: Bool = false, transferLimit: Int = 4
  ) {
    self.putsIfAbsent = putsIfAbsent
    self.putsIfVersion = putsIfVersion
    self.conditionsAreAtomic = conditionsAreAtomic
    self.readsRanges = readsRanges
    self.moves = moves
    self.listsFromName = listsFromName
    self.uploadsInParts = uploadsInParts
    self.resumesUploads = resumesUploads
    self.checksums = checksums
    self.looksUpInListings = looksUpInListings
    self.transferLimit = transferLimit
  }
}

extension StorageCapabilities {
  /// Whether the storage keeps a condition by itself.
  package func keeps(_ condition: PutCondition) -> Bool {
    switch condition {
    case .none: true
    case .ifAbsent: putsIfAbsent
    case .ifVersion: putsIfVersion
    }
  }
}

extension ContentChecksum.Algorithm: Codable {}

/// Tries out what a storage really does, when it is set up: many servers answer a conditional request with 200 and ignore the condition.
public enum StorageProbe {
  /// Tries conditions, ranges and moves with a small object, and removes it again.
  ///
  /// - Parameters:
  ///   - storage: The storage.
  ///   - folder: Where the object goes; nil for the top.
  /// - Returns: What the storage can do: what it says of itself, without what did not work.
  /// - Throws: `StorageError` when it cannot be written, read or deleted at all.
  public static func run(on storage: some StorageProvider, in folder: RemotePath? = nil) async throws
    -> StorageCapabilities
  {
    let name = "buckia-probe-\(String(UInt64.random(in: 0...UInt64.max), radix: 36))"
    let path = try folder?.appending(name) ?? RemotePath(name)
    let moved = try folder?.appending("\(name)-moved") ?? RemotePath("\(name)-moved")
    // What cannot be deleted again is not written.
    try await storage.delete(path)
    do {
      let found = try await capabilities(of: storage, path, moved)
      try await storage.delete(path)
      return found
    } catch {
      do { try await storage.delete(path) } catch let other {
        throw StorageError(
          (error as? StorageError)?.code ?? .unavailable, "\(error); and \(path) is left behind: \(other)", cause: error
        )
      }
      throw error
    }
  }

  private static func capabilities(
    of storage: some StorageProvider, _ path: RemotePath, _ moved: RemotePath
  ) async throws -> StorageCapabilities {
    var found = storage.capabilities
    let bytes = Array("Buckia tries out what this storage can do.".utf8)
    var object = try await storage.put(StorageContents(bytes), to: path, .none)
    if object.version == nil { object = try await storage.stat(path) ?? object }
    if found.putsIfAbsent {
      found.putsIfAbsent = try await isRefused {
        try await storage.put(StorageContents(bytes), to: path, .ifAbsent)
      }
    }
    if found.putsIfVersion {
      found.putsIfVersion = try await isRefused {
        try await storage.put(StorageContents(bytes), to: path, .ifVersion(ObjectVersion("\"buckia-no-such-version\"")))
      }
    }
    if found.readsRanges {
      let part = try await storage.get(path, GetRequest(offset: 7, count: 5)).chunks.bytes(upTo: bytes.count)
      found.readsRanges = part == Array(bytes[7..<12])
    }
    if found.moves {
      do {
        try await storage.move(path, to: moved, replacing: true)
        let isGone = try await storage.stat(path) == nil
        let isThere = try await storage.stat(moved) != nil
        found.moves = isGone && isThere
        try await storage.delete(moved)
      } catch let error as StorageError where !error.isTransient {
        found.moves = false
      }
    }
    return found
  }

  /// Whether a condition that does not hold keeps something from being written.
  private static func isRefused(_ put: () async throws -> Void) async throws -> Bool {
    do {
      try await put()
      return false
    } catch let error as StorageError where [.alreadyExists, .changed].contains(error.code) {
      return true
    } catch let error as StorageError where error.code == .unsupported {
      return false
    }
  }
}
