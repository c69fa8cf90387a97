import Buckia
import BuckiaStorage

/// One round of sync, step by step. Each step leaves what the next one needs; a stop between any two loses nothing.
struct SyncRound {
  let configuration: BuckiaConfiguration
  let options: SyncOptions
  let folders: LocalFolders
  let index: SyncIndex
  private let main: any StorageProvider
  private let fallback: (any StorageProvider)?
  let mirrors: [any StorageProvider]
  let deliveries: [any StorageProvider]
  let report: @Sendable (SyncProgress) -> Void
  var result = SyncResult()
  /// The person's folder in the storage.
  let remote: RemotePath

  init(
    _ configuration: BuckiaConfiguration, _ options: SyncOptions, _ folders: LocalFolders, _ index: SyncIndex,
    main: any StorageProvider, fallback: (any StorageProvider)?, mirrors: [any StorageProvider],
    deliveries: [any StorageProvider], report: @escaping @Sendable (SyncProgress) -> Void
  ) throws {
    self.configuration = configuration
    self.options = options
    self.folders = folders
    self.index = index
    self.main = main
    self.fallback = fallback
    self.mirrors = mirrors
    self.deliveries = deliveries
    self.report = report
    remote = try RemotePath(configuration.userID)
  }

  mutating func run() async throws -> SyncResult {
    let start = ContinuousClock.now
    result.isDryRun = options.isDryRun
    step(.listing)
    let (storage, listing) = try await listInbound()
    result.storage = storage.name
    let inbound = try InboundStep(listing, from: storage, of: self)
    try await inbound.download(&result)
    if !options.isDryRun {
      step(.applying)
      try await inbound.apply(&result)
    }
    if result.isCutShort {
      step(.done)
      result.seconds = (ContinuousClock.now - start) / .seconds(1)
      return result
    }
    let isSafe: Bool
    if options.backsUp {
      step(.backingUp)
      isSafe = try await backUp(to: storage)
    } else {
      isSafe = true
    }
    if isSafe, !options.isDryRun {
      step(.dropping)
      try await inbound.drop(&result)
    }
    try await uploadMedia(to: storage)
    step(.delivering)
    try await deliver()
    step(.done)
    result.seconds = (ContinuousClock.now - start) / .seconds(1)
    return result
  }

  /// Lists the inbound folder: of the storage, or of its fallback where that cannot be reached.
  private mutating func listInbound() async throws -> (any StorageProvider, StorageListing) {
    let folder = try remote.appending(folders.structure.inbound)
    do {
      return (main, try await main.listAll(folder))
    } catch let error as StorageError where error.isTransient || error.code == .untrustedServer {
      guard let fallback else { throw error }
      result.fallbackReason = "\(main.name): \(error)"
      return (fallback, try await fallback.listAll(folder))
    }
  }

  // MARK: For the steps

  func step(_ step: SyncProgress.Step) { report(SyncProgress(step: step)) }

  /// How many files may be under way at once.
  func concurrency(of storage: any StorageProvider) -> Int {
    max(1, min(options.concurrency ?? .max, storage.capabilities.transferLimit))
  }

  mutating func note(_ error: any Error, in step: SyncProgress.Step, about subject: String? = nil) {
    result.failures.append(SyncResult.Failure(step: step, subject: subject, error: error))
  }
}
