import Buckia
import BuckiaStorage
import Dispatch
import NIOConcurrencyHelpers

/// Syncs a person's data with a storage: downloads and applies received diffs, backs the database up, and uploads media
/// and diffs.
///
/// ```swift
/// let client = try BuckiaClient(configuration)
/// let result = try await client.sync()
/// for failure in result.failures { print(failure.message) }
/// ```
///
/// Whatever stops a round, nothing is lost and nothing is visible in part: files appear whole, and applied diffs are
/// removed from the storage only when a backup that contains them is there.
public final class BuckiaClient: Sendable {
  /// The configuration.
  public let configuration: BuckiaConfiguration
  let index: SyncIndex
  package let storages: [any StorageProvider]
  private let deliveryStorages: [any StorageProvider]
  private let observers: ProgressObservers
  /// The state of locally edited files at the last round.
  private let lastState = NIOLockedValueBox<String?>(nil)
  /// The interval of the checks for local edits.
  private static let editPause = Duration.seconds(1)

  /// Prepares a client. Nothing is sent yet.
  ///
  /// - Parameters:
  ///   - configuration: The configuration.
  ///   - transport: What brings requests to servers; nil for one of its own for each storage.
  /// - Throws: `StorageError` or `BuckiaError` when a setting is not in order.
  public init(_ configuration: BuckiaConfiguration, transport: (any HTTPTransport)? = nil) throws {
    self.configuration = configuration
    index = try SyncIndex(at: Self.indexPath(of: configuration))
    let accounts = [configuration.storage] + (configuration.fallback.map { [$0] } ?? []) + configuration.mirrors
    let index = index
    func provider(_ account: StorageAccount) throws -> any StorageProvider {
      let provider = try account.provider(transport: transport)
      return switch account.type {
      case .localFolder(let path): MarkedFolder(inner: provider, path: path, index: index)
      case .custom: provider
      case .s3, .webDAV, .webDAVWithToken, .bunny: ProbedStorage(inner: provider, index: index)
      }
    }
    storages = try accounts.map { try provider($0) }
    let main = storages[0]
    deliveryStorages = try configuration.deliveries.map { try $0.storage.map { try provider($0) } ?? main }
    _ = try RemotePath(configuration.userID)
    for delivery in configuration.deliveries { _ = try RemotePath(delivery.userID) }
    observers = ProgressObservers()
  }

  /// The path of the sync index, in the person's home.
  private static func indexPath(of configuration: BuckiaConfiguration) throws -> String {
    try configuration.database.home.syncIndexPath(of: configuration.database.path, userID: configuration.userID)
  }

  /// The progress of the present round, for each caller from now on, until the client is released.
  public var progress: AsyncStream<SyncProgress> { observers.stream() }

  /// The person's folder on this device, found or made.
  ///
  /// - Throws: `StorageError`.
  public func folders() async throws -> LocalFolders {
    let folders = try await foundFolders()
    try await runBlocking { try folders.make() }
    return folders
  }

  /// The person's existing folder. Read-only calls do not create it.
  private func foundFolders() async throws -> LocalFolders {
    let configuration = configuration
    let place = try await index.setting("place").flatMap { FolderStructureConfiguration.Place(rawValue: $0) }
    return try await runBlocking {
      try LocalFolders(finding: configuration.folders, userID: configuration.userID, preferring: place)
    }
  }

  /// Moves the person's folder on this device to its other place, which is remembered in the person's home.
  ///
  /// - Throws: `StorageError`, as ``LocalFolders/move(to:)``.
  @discardableResult
  public func moveFolders(to place: FolderStructureConfiguration.Place) async throws -> LocalFolders {
    let folders = try await folders()
    let moved = try await CancellationFlag.onThreadOfItsOwn { _ in
      var folders = folders
      try folders.move(to: place)
      return folders
    }
    try await index.set("place", to: place.rawValue)
    return moved
  }

  /// Runs one round: downloads new files of the inbound folder, applies them, backs up, removes applied files, uploads
  /// media, and delivers diffs.
  ///
  /// - Parameters:
  ///   - options: How.
  ///   - state: An object for the progress; nil for none.
  /// - Returns: The result, with failures that did not stop the rest.
  /// - Throws: `StorageError` when neither the storage nor its fallback can be listed; `BuckiaError` when the database cannot be used, or another round for
  ///   it is under way (`busy`); `CancellationError`. What was done until then stays, and the next round goes on from there.
  public func sync(_ options: SyncOptions = SyncOptions(), observing state: SyncState? = nil) async throws -> SyncResult
  {
    await state?.begin()
    // In order, and none after the end of the round.
    let (steps, sender) = AsyncStream.makeStream(of: SyncProgress.self, bufferingPolicy: .bufferingNewest(1))
    let telling = state.map { state in
      Task { @MainActor in
        for await step in steps { state.progress = step }
      }
    }
    func end(_ result: SyncResult?, _ failure: String?) async {
      sender.finish()
      await telling?.value
      await state?.end(result, failure)
    }
    do {
      let result = try await round(options) { sender.yield($0) }
      await end(result, nil)
      return result
    } catch {
      await end(nil, "\(error)")
      throw error
    }
  }

  private func round(
    _ options: SyncOptions, _ report: @escaping @Sendable (SyncProgress) -> Void
  ) async throws -> SyncResult {
    let lock = try await runBlocking { HandedOver(try self.roundLock()) }
    defer { withExtendedLifetime(lock) {} }
    let observers = observers
    @Sendable func tell(_ progress: SyncProgress) {
      observers.send(progress)
      report(progress)
    }
    // A failed round has an end, too, after which nothing is reported.
    defer { tell(SyncProgress(step: .done)) }
    let main = storages[0]
    let fallback = configuration.fallback == nil ? nil : storages[1]
    let mirrors = Array(storages.dropFirst(configuration.fallback == nil ? 1 : 2))
    var round = SyncRound(
      configuration: configuration, options: options,
      folders: try await options.isDryRun ? foundFolders() : folders(), index: index, main: main, fallback: fallback,
      mirrors: mirrors, deliveries: deliveryStorages, report: tell, remote: try RemotePath(configuration.userID))
    let result = try await round.run()
    lastState.withLockedValue { $0 = result.localState }
    return result
  }

  /// Waits until something is edited here since the last round, and rests for a moment then: the database, or files that come into the
  /// folders of media and diffs, but not into folders in these.
  ///
  /// - Parameter seconds: How long to wait at most, in seconds.
  /// - Throws: `StorageError` when the state of a file is unknown; `CancellationError`.
  public func waitForEdits(upTo seconds: Double) async throws {
    let end = ContinuousClock.now + .seconds(seconds)
    let folders = try await foundFolders()
    var last = try await configuration.localState(in: folders)
    let known = lastState.withLockedValue { $0 } ?? last
    while ContinuousClock.now < end {
      try await Task.sleep(for: min(Self.editPause, end - ContinuousClock.now))
      let state = try await configuration.localState(in: folders)
      if state != known, state == last { return }
      last = state
    }
  }

  /// Accepts the present state of local storages, after one was emptied or exchanged on purpose.
  ///
  /// - Throws: `StorageError` when the folder around one does not exist.
  public func adoptFolders() async throws {
    for case let folder as MarkedFolder in storages + deliveryStorages { try await folder.adopt() }
  }

  /// Keeps a second round for the same database and person from beginning.
  private func roundLock() throws -> PosixFile {
    let path = try Self.indexPath(of: configuration) + ".lock"
    do {
      let file = try PosixFile(updating: path)
      guard file.tryLock() else {
        throw BuckiaError(
          .busy, "another round of sync is under way for this database; try again when it is done", path: path)
      }
      return file
    } catch let error as ByteStreamError {
      throw BuckiaError.wrapped(error)
    }
  }
}

extension SyncState {
  fileprivate func begin() {
    isRunning = true
    failure = nil
    result = nil
  }

  fileprivate func end(_ result: SyncResult?, _ failure: String?) {
    isRunning = false
    self.result = result
    self.failure = failure
  }
}

extension BuckiaClient {
  private func marks() async throws -> DeviceMarks {
    try await DeviceMarks(of: index.device(in: nil), in: RemotePath(configuration.userID), storages[0], index)
  }

  /// Registers this as one of the person's devices. Restoring a backup begins with this, because files that arrive
  /// meanwhile must be kept for the device.
  func takePart() async throws {
    if configuration.hasSeveralDevices { try await marks().takePart(at: WallClock.unixMilliseconds) }
  }

  /// Removes another device of the person that no longer exists. Diffs no longer wait for it.
  ///
  /// - Parameter device: Its id, as a round names it.
  /// - Throws: `StorageError`: `notFound` when there is no such device.
  public func forgetDevice(_ device: String) async throws { try await marks().retire(device, whereKnown: true) }
}
