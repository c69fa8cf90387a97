import Buckia
import BuckiaBytes
import BuckiaFormat
import BuckiaStorage

/// What a pruning has removed, or would remove.
public struct PruneReport: Hashable, Sendable {
  /// The removed points.
  public internal(set) var removed: [BackupPoint] = []
  /// The number of points that stay by a rule.
  public internal(set) var keptCount = 0
  /// The points that stay although no rule keeps them: another point needs their pages, and no key that opens the
  /// encrypted objects was given.
  public internal(set) var needed: [BackupPoint] = []
  /// The id for ``BackupStore/restorePruned(_:)``; nil if nothing was removed.
  public internal(set) var id: KSUID?
}

extension BackupStore {
  /// The age at which an upload is no longer under way, in seconds.
  private static let uploadSeconds: Int64 = 86_400
  /// The time for which pruned objects stay in the store, in seconds.
  private static let graceSeconds: Int64 = 7 * 86_400

  /// Removes the points that no rule keeps. The pages that kept points need of them move into the kept points' objects.
  ///
  /// The removed objects stay in the folder `pruned` of the store for a week, from where ``restorePruned(_:)`` brings them
  /// back. Only one history is pruned: those of other devices stay as they are.
  ///
  /// - Parameters:
  ///   - policy: The rules.
  ///   - isPermanent: True to delete the removed objects at once, and those of earlier prunings, so that the space is free.
  ///   - history: The history; nil if the store has one only.
  ///   - home: The home with the identity that signs the rewritten objects, and the clock of ids.
  ///   - identities: The secret keys, of which one opens an encrypted backup.
  ///   - recipients: The keys that open the rewritten objects of an encrypted backup: all that opened it before.
  ///   - isDryRun: True to remove nothing.
  /// - Returns: What was removed.
  /// - Throws: `StorageError`. All points can then be restored still.
  @discardableResult
  public func prune(
    keeping policy: RetentionPolicy, permanently isPermanent: Bool = false, of history: String? = nil,
    home: BuckiaHome = .standard,
    with identities: [AgeIdentity] = [], for recipients: [AgeRecipient] = [], isDryRun: Bool = false
  ) async throws -> PruneReport {
    let listing = try await list()
    let (all, faults) = try await objects(in: listing)
    if let error = faults.values.first(where: { $0.code != .truncated }) { throw error }
    guard let history = try history ?? onlyHistory(of: all) else { return PruneReport() }
    let objects = all.filter { $0.point.isOf(history) }
    guard !objects.isEmpty else {
      throw StorageError(.notFound, "the store has no history \(history); `buckia history --json` lists them")
    }
    let now = WallClock.unixMilliseconds
    let pruning = try Pruning(objects, policy.kept(of: objects, now: now), isOpen: !identities.isEmpty)
    var report = PruneReport(
      removed: pruning.removed.map(\.point), keptCount: pruning.keptCount, needed: pruning.needed.map(\.point))
    guard !isDryRun else { return report }
    if recipients.isEmpty, pruning.merges.contains(where: \.object.payload.isEncrypted) {
      throw BuckiaError(
        .misuse, "the points are encrypted; name all who can open them, for whom they are written again (--to)")
    }
    let limit = isPermanent ? Int64.max : now / 1_000 - Self.graceSeconds
    for (id, old) in listing.pruned where Int64(id.unixSeconds) < limit {
      for object in old { try await storage.delete(object.path) }
    }
    let cutOff = faults.keys.filter { Int64($0.unixSeconds) < now / 1_000 - Self.uploadSeconds }
    if !pruning.removed.isEmpty || !listing.replaced.isEmpty || !cutOff.isEmpty {
      let id = try home.newIDs(after: [], unixSeconds: now / 1_000).ids[0]
      // The newest first: what stays after a stop needs none that is gone.
      var moved = pruning.removed.reversed().map(\.path) + listing.replaced.map(\.path)
      moved += cutOff.compactMap { listing.objects[$0]?.object.path }
      let writer = MergeWriter(
        store: self, signer: try home.backupSigner(), decryption: try Decryption(identities: identities),
        encryption: try recipients.isEmpty ? nil : Encryption(to: recipients),
        files: try WorkingFiles(besides: home.backupFolder() + "/merge"))
      for (object, former) in pruning.merges {
        let generation = (listing.objects[object.id]?.generation ?? 1) + 1
        try await writer.merge(object, former, into: path("\(object.id)-\(generation)\(Self.suffix)"))
        moved.append(object.path)
      }
      for path in moved {
        if isPermanent {
          try await storage.delete(path)
        } else {
          try await storage.moveOrCopy(path, to: self.path("pruned/\(id)/\(path.name)"), replacing: true)
        }
      }
      report.id = isPermanent ? nil : id
    }
    return report
  }

  /// Brings back the points that a pruning has removed.
  ///
  /// - Parameter id: The id in the report of the pruning; nil for the last pruning.
  /// - Returns: The points.
  /// - Throws: `StorageError`; `notFound` if no pruning of the last week has the id.
  @discardableResult
  public func restorePruned(_ id: KSUID? = nil) async throws -> [BackupPoint] {
    let listing = try await list()
    guard let id = id ?? listing.pruned.keys.max(), let pruned = listing.pruned[id] else {
      throw StorageError(.notFound, "the store has no pruned points to bring back; they are deleted after a week")
    }
    var points: [BackupPoint] = []
    for stored in pruned {
      let object: BackupObject
      do { object = try await self.object(stored) } catch let error as StorageError where error.code == .truncated {
        continue
      }
      // A merged object has the pages of the one that it replaced.
      guard listing.objects[object.id] == nil else { continue }
      try await storage.moveOrCopy(stored.path, to: path(stored.path.name))
      points.append(object.point)
    }
    return points.sorted { $0.id < $1.id }
  }
}

/// The consequences of a retention policy for one history.
private struct Pruning {
  private(set) var removed: [BackupObject] = []
  private(set) var needed: [BackupObject] = []
  private(set) var keptCount = 0
  /// The kept objects that get pages of removed ones, which are listed with the oldest first.
  private(set) var merges: [(object: BackupObject, former: [BackupObject])] = []

  /// - Parameters:
  ///   - objects: The objects of the history, the oldest first.
  ///   - kept: The points that the rules keep.
  ///   - isOpen: True if encrypted objects can be read.
  /// - Throws: `StorageError` with `damaged` if a kept point needs an object that is missing.
  init(_ objects: [BackupObject], _ kept: Set<KSUID>, isOpen: Bool) throws(StorageError) {
    let byID = Dictionary(objects.map { ($0.id, $0) }) { first, _ in first }
    var staying: Set<KSUID> = []
    for object in objects where kept.contains(object.id) {
      keptCount += 1
      // Two points can have the same base, if a backup was stopped before its record was kept.
      var former: [BackupObject] = []
      var next = object.payload.base
      while let id = next, !kept.contains(id) {
        guard let base = byID[id] else {
          throw StorageError(
            .damaged, "it needs the pages of \(id), which is missing; nothing was removed", path: object.path)
        }
        former.append(base)
        next = base.payload.base
      }
      if isOpen || !former.contains(where: \.payload.isEncrypted) {
        if !former.isEmpty { merges.append((object, former.reversed())) }
      } else {
        staying.formUnion(former.map(\.id))
      }
    }
    removed = objects.filter { !kept.contains($0.id) && !staying.contains($0.id) }
    needed = objects.filter { staying.contains($0.id) }
  }
}

/// Writes an object with the pages of several.
private struct MergeWriter {
  let store: BackupStore
  let signer: ManifestSigner?
  let decryption: Decryption
  let encryption: Encryption?
  let files: WorkingFiles

  /// Writes an object that needs none of the former objects. A newer page replaces an older one.
  func merge(_ object: BackupObject, _ former: [BackupObject], into path: RemotePath) async throws {
    let assembly = try await runBlocking { try HandedOver(PageAssembly(at: files.assembly, object.point)) }
    for source in [object] + former.reversed() {
      try await store.storage.download(source.path, to: files.object, isPrivate: true)
      try await CancellationFlag.onThreadOfItsOwn { _ in
        try assembly.value.add(files.object, source, decryption)
      }
    }
    // The statements have been signed by a key that may have been replaced since.
    let lines = try await BackupObject.lines(store.header(of: object.path), at: object.path)
    try await CancellationFlag.onThreadOfItsOwn { _ in
      let output = try PageOutput(at: files.object, for: object.payload.isEncrypted ? encryption : nil)
      try assembly.value.forEachRun { try output.write($0, from: $1, pageSize: object.point.pageSize) }
      _ = try output.finish(
        base: former[0].payload.base, signer: signer?.identity
      ) { try BackupObject.header(of: object.point, $0, keeping: lines[1...2], signer: signer) }
    }
    try await store.storage.upload(file: files.object, to: path, .ifAbsent)
  }
}
