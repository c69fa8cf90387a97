import Buckia
import BuckiaStorage

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// One round of sync, step by step. Each step leaves what the next one needs; a stop between any two loses nothing.
struct SyncRound {
  let configuration: BuckiaConfiguration
  let options: SyncOptions
  let folders: LocalFolders
  let index: SyncIndex
  let main: any StorageProvider
  let fallback: (any StorageProvider)?
  let mirrors: [any StorageProvider]
  let deliveries: [any StorageProvider]
  let report: @Sendable (SyncProgress) -> Void
  var result = SyncResult()
  /// The person's folder in the storage.
  let remote: RemotePath
  /// The id of this device; empty in a dry run.
  var device = ""

  mutating func run() async throws -> SyncResult {
    let start = ContinuousClock.now
    result.isDryRun = options.isDryRun
    if !options.isDryRun {
      try await settleDevice()
      try await makeFirstSnapshot()
    }
    step(.listing)
    let (storage, listing) = try await listInbound()
    result.storage = storage.name
    let inbound = try await InboundStep(listing, from: storage, of: self)
    // Other devices must know this device before its backup can be restored on another one.
    let takesPart = try await inbound.takePart(&result)
    if takesPart { try await inbound.download(&result) }
    if !options.isDryRun {
      step(.applying)
      try await inbound.apply(&result)
    }
    result.localState = try await configuration.localState(in: folders)
    if !result.isCutShort {
      // A copy that is made from here on contains the present ledger.
      let settled = options.isDryRun ? [] : try await inbound.settled()
      if takesPart, try await isSafe(in: storage, !settled.isEmpty), !settled.isEmpty {
        step(.dropping)
        try await inbound.drop(settled, &result)
      }
      try await uploadMedia(to: storage)
      step(.delivering)
      try await deliver()
      try await fetchMedia(from: storage)
    }
    result.seconds = (ContinuousClock.now - start) / .seconds(1)
    return result
  }

  /// Determines the incarnation of the database, before anything is sent in its name.
  private mutating func settleDevice() async throws {
    let database = configuration.database
    let (incarnation, warnings) = try await CancellationFlag.onThreadOfItsOwn { _ in
      try database.settleReplica()
    }
    result.notes += warnings.map { "\($0)" }
    device = try await index.device(in: incarnation ?? "-")
  }

  /// Creates a missing snapshot before anything arrives: later edits then count as unsent.
  private mutating func makeFirstSnapshot() async throws {
    guard let path = options.apply.snapshot else { return }
    let database = configuration.database
    let isMade = try await CancellationFlag.onThreadOfItsOwn { _ in
      if FileManager.default.fileExists(atPath: path) { return false }
      _ = try database.snapshot(to: path)
      return true
    }
    guard isMade else { return }
    result.notes.append(
      "the snapshot \(path) was not there and has been made: all that is in the database now counts as known to others. What they do not have yet, send once with `buckia diff`, from a copy that they have"
    )
  }

  /// Backs the database up, unless that is not wanted.
  ///
  /// - Returns: True if the storage has a backup with the present ledger.
  private mutating func isSafe(in storage: any StorageProvider, _ looks: Bool) async throws -> Bool {
    guard options.backsUp else { return true }
    step(.backingUp)
    return try await backUp(to: storage, looking: looks)
  }

  /// Lists the inbound folder of the storage, or of its fallback if that cannot be reached.
  private mutating func listInbound() async throws -> (any StorageProvider, ListPage) {
    let folder = try remote.appending(folders.structure.inbound)
    do {
      let listing = try await main.listAll(folder)
      if listing.isMissing { try await requireKnownPlace(in: main) }
      return (main, listing)
    } catch let error as StorageError where error.isTransient || error.code == .untrustedServer {
      guard let fallback else { throw error }
      result.fallbackReason = "\(main.name): \(error)"
      return (fallback, try await fallback.listAll(folder))
    }
  }

  /// Requires that a storage without the folder is the one of earlier rounds: a server or a proxy may serve another,
  /// empty place at its address now.
  private func requireKnownPlace(in storage: any StorageProvider) async throws {
    guard !options.looksThroughStorage, try await backups(in: storage).isGone(for: configuration.database) else {
      return
    }
    throw StorageError(
      .notFound,
      "\(storage.name) has neither your inbound folder nor your backups any more, which were there: its address, or a proxy before it, leads elsewhere now. Correct the address; or if the storage was emptied on purpose, let all be made again: buckia sync --check",
      path: remote)
  }

  // MARK: For the steps

  func step(_ step: SyncProgress.Step) { report(SyncProgress(step: step)) }

  /// The number of simultaneous transfers.
  func concurrency(of storage: any StorageProvider) -> Int {
    max(1, min(options.concurrency ?? .max, storage.capabilities.transferLimit))
  }

  mutating func note(_ error: any Error, in step: SyncProgress.Step, about subject: String? = nil) {
    result.failures.append(SyncResult.Failure(step: step, subject: subject, error: error))
  }
}

/// Runs work for each of many items, several at once.
///
/// - Parameters:
///   - items: The items.
///   - limit: The number of items at once.
///   - work: The work for each. Its error is kept with the item, and stops no other item; only a cancellation stops
///     all.
///   - finish: Receives the result of each, one at a time, in the order in which they are done. May throw to stop all.
/// - Throws: `CancellationError`, and what `finish` throws.
package func forEachConcurrently<Item: Sendable, Result: Sendable>(
  _ items: [Item], limit: Int, _ work: @escaping @Sendable (Item) async throws -> Result,
  finish: (Item, Swift.Result<Result, any Error>) async throws -> Void
) async throws {
  try await withThrowingTaskGroup(of: (Int, Swift.Result<Result, any Error>).self) { group in
    var next = 0
    func add() {
      guard next < items.count else { return }
      let (number, item) = (next, items[next])
      next += 1
      group.addTask {
        do { return (number, .success(try await work(item))) } catch { return (number, .failure(error)) }
      }
    }
    for _ in 0..<max(1, limit) { add() }
    while let (number, result) = try await group.next() {
      if case .failure(let error) = result, error is CancellationError { throw error }
      try await finish(items[number], result)
      try Task.checkCancellation()
      add()
    }
  }
}
