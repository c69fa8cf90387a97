import Buckia
import BuckiaBackup
import BuckiaStorage

extension SyncRound {
  /// The time between two prunings of a store, in seconds.
  private static let pruningPause: Int64 = 86_400

  /// Backs the database up to the storage and its mirrors.
  ///
  /// - Parameter looks: True to ask the storage for the backup although nothing has changed, since the next step relies on it.
  /// - Returns: True if the storage has the present state of the database.
  /// - Throws: `BuckiaError` when the database is busy; `CancellationError`.
  mutating func backUp(to storage: any StorageProvider, looking looks: Bool) async throws -> Bool {
    var isSafe = false
    do {
      for target in [storage] + mirrors {
        let isMain = target.name == storage.name
        do {
          let isThere = try await makeBackup(in: target, looking: looks && isMain)
          if isMain { isSafe = isThere }
        } catch let error as StorageError {
          note(error, in: .backingUp, about: target.name)
        }
      }
    } catch let error as BuckiaError where !error.isBusy {
      note(error, in: .backingUp)
      return false
    }
    return isSafe
  }

  /// The store of backups in a storage.
  func backups(in storage: any StorageProvider) throws -> BackupStore {
    BackupStore(storage, folder: try remote.appending(folders.structure.backups))
  }

  private mutating func makeBackup(in storage: any StorageProvider, looking looks: Bool) async throws -> Bool {
    let (store, database) = (try backups(in: storage), configuration.database)
    var backup = BackupOptions()
    backup.recipients = options.backupRecipients
    backup.device = device.isEmpty ? nil : device
    backup.signs = try await canSign()
    if options.looksThroughStorage, let fault = try await store.fault(inLastOf: database) {
      backup.isComplete = true
      if !options.isDryRun {
        result.notes.append("the backup in \(storage.name) was damaged, and is made again: \(fault)")
      }
    }
    if !looks, !options.looksThroughStorage || !backup.isComplete,
      try await runBlocking({ [backup] in try store.isCurrent(database, backup) })
    {
      return true
    }
    if options.isDryRun {
      result.backedUp = true
      return false
    }
    let report = try await LocalStep.take { try await store.backUp(database, backup) }
    guard report.isNew else { return true }
    result.backedUp = true
    result.uploaded.append(
      SyncResult.Transfer(path: try store.path(of: report.point), byteCount: report.byteCount, storage: storage.name))
    do {
      try await prune(store, report.point.history, in: storage)
      try await drill(store, report.point)
    } catch let error as StorageError {
      note(error, in: .backingUp, about: storage.name)
    }
    return true
  }

  /// Restores the new point for a check, if the last good check is older than the options allow.
  private mutating func drill(_ store: BackupStore, _ point: BackupPoint) async throws {
    guard let days = options.backupDrillDays else { return }
    let home = configuration.database.home
    let last = try await runBlocking { try store.lastGoodDrill(of: point.history, home: home) }
    if let last, WallClock.unixMilliseconds - last < Int64(days) * 86_400_000 { return }
    let identities = try await canSign() ? runBlocking { try home.secretKeys() } : []
    do {
      if let fault = try await store.drill(.id(point.id), home: home, with: identities).fault {
        throw StorageError(.damaged, "the backup cannot be restored: \(fault)", path: try store.path(of: point))
      }
    } catch let error as ByteStreamError where error.code == .noMatchingIdentity {
      result.notes.append(
        "the backups were not checked by restoring one: they are encrypted, and no key here opens them")
    }
  }

  /// True if the person's identity can sign: it has no passphrase, or that is known.
  private func canSign() async throws -> Bool {
    let home = configuration.database.home
    do { return try await runBlocking { try home.identityIfAny() } != nil } catch let error as BuckiaError
      where error.code == .passphraseNeeded
    { return false }
  }

  /// Removes the points that no rule keeps, once a day.
  private func prune(_ store: BackupStore, _ history: String, in storage: any StorageProvider) async throws {
    guard let policy = options.backupRetention else { return }
    let setting = "pruned \(storage.name)"
    let now = WallClock.unixMilliseconds / 1_000
    let last = try await index.setting(setting).flatMap { Int64($0) }
    if let last, now - last < Self.pruningPause, last <= now { return }
    if last != nil {
      let database = configuration.database
      let identities = try await runBlocking { try database.home.secretKeys() }
      try await store.prune(
        keeping: policy, of: history, home: database.home, with: identities, for: store.recipients(of: database))
    }
    try await index.set(setting, to: "\(now)")
  }
}

extension BuckiaClient {
  /// The backups in the storage, of this database and of the person's other devices.
  ///
  /// - Throws: `StorageError` with `invalidSetting`.
  public var backups: BackupStore { get throws { try allBackups[0] } }

  /// The backups in the storage and in each mirror.
  package var allBackups: [BackupStore] {
    get throws {
      let folder = try RemotePath(configuration.userID).appending(configuration.folders.backups)
      // The fallback gets no backups.
      let mirrors = storages.dropFirst(configuration.fallback == nil ? 1 : 2)
      return ([storages[0]] + mirrors).map { BackupStore($0, folder: folder) }
    }
  }

  /// Restores a backed-up state of the database to a file.
  ///
  /// As ``BackupStore/restore(to:at:of:with:)``. If the person has several devices, this one is registered from now on:
  /// files that arrive before its first round are kept for it.
  ///
  /// - Parameters:
  ///   - path: The file. One of that name is never replaced.
  ///   - selection: The point.
  ///   - history: The history of the point; nil for that of the newest point of all devices. An upload that was cut off
  ///     is no point; ``BackupStore/verify(home:with:)`` names it.
  ///   - identities: The secret keys that open an encrypted backup; nil for those of the person's identity.
  /// - Returns: The point.
  /// - Throws: As ``BackupStore/restore(to:at:of:with:)``.
  @discardableResult
  public func restoreBackup(
    to path: String, at selection: PointSelection = .newest, of history: String? = nil,
    with identities: [AgeIdentity]? = nil
  ) async throws -> BackupPoint {
    let home = configuration.database.home
    let own = try await runBlocking { try home.secretKeys() }
    try await takePart()
    let store = try backups
    var (selection, history) = (selection, history)
    if history == nil {
      if selection == .newest { selection = .id(try await store.newestOfAllHistories().id) }
      if case .time = selection { history = try await store.newestOfAllHistories().history }
    }
    return try await store.restore(to: path, at: selection, of: history, with: identities ?? own)
  }
}
