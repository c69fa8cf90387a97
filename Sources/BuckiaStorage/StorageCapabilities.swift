/// The abilities of a storage. For each missing one the caller has a substitute, which is stated here.
public struct StorageCapabilities: Sendable, Equatable, Codable {
  /// True if ``PutCondition/ifAbsent`` is honoured in one step. Without it, the storage is asked for the object first: of two that write
  /// at the same moment, the later one wins.
  public var putsIfAbsent: Bool
  /// True if ``PutCondition/ifVersion(_:)`` is honoured in one step. Without it, the version is looked up first.
  public var putsIfVersion: Bool
  /// True if the check of a condition and the write are one atomic step, also with other writers at the same moment.
  /// WebDAV does not promise it: Apache checks first.
  public var conditionsAreAtomic: Bool
  /// True if a part of an object can be had. Without it, an interrupted download begins again.
  public var readsRanges: Bool
  /// True if the storage moves objects by itself. Without it, they are copied through this device and deleted.
  public var moves: Bool
  /// True if a listing can begin after a name. Otherwise everything is listed and filtered here.
  public var listsFromName: Bool
  /// True if a large object is sent in parts, several at once. Otherwise it is sent in one piece.
  public var uploadsInParts: Bool
  /// True if an upload in parts can be taken up again after an interruption. Without it, it begins again.
  public var resumesUploads: Bool
  /// The digests that the storage checks when something is put. Without one, only sizes are compared.
  public var checksums: [ContentChecksum.Algorithm]
  /// True if looking up one object lists its folder, since the storage has no other way. Several objects are then looked up by one listing.
  public var looksUpInListings: Bool
  /// The maximum number of simultaneous transfers.
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
  /// True if the storage keeps a condition by itself.
  package func keeps(_ condition: PutCondition) -> Bool {
    switch condition {
    case .none: true
    case .ifAbsent: putsIfAbsent
    case .ifVersion: putsIfVersion
    }
  }
}

extension ContentChecksum.Algorithm: Codable {}
