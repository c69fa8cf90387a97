import Buckia
import BuckiaStorage
import Crypto
import Foundation
import SQLiteConnections

extension SyncRound {
  /// Copies the database and uploads the copy to the storage and its mirrors: whole, or as a delta.
  ///
  /// - Parameter looks: True to ask the storage for the backup although nothing has changed, since the next step relies on it.
  /// - Returns: True if the storage has the present state of the database.
  /// - Throws: `BuckiaError` when the database is busy; `CancellationError`.
  mutating func backUp(to storage: any StorageProvider, looking looks: Bool) async throws -> Bool {
    // Read before the copy is made: later changes show the next time.
    let database = configuration.database.path
    let state = try await runBlocking { try Self.state(of: database) }
    var behind: [any StorageProvider] = []
    for target in [storage] + mirrors {
      let known = try await known(in: target)
      if options.looksThroughStorage || known?.databaseState != state {
        behind.append(target)
      } else if looks, target.name == storage.name, let known {
        do { if try await !isThere(known, in: target) { behind.append(target) } } catch let error as StorageError {
          note(error, in: .backingUp, about: target.name)
          return false
        }
      }
    }
    guard !behind.isEmpty else { return true }
    if options.isDryRun {
      result.backedUp = true
      return false
    }
    let copy = BackupCopies(in: folders)
    let digest: [UInt8]
    do { digest = try await LocalStep.take { try await copy.make(of: configuration.database) } } catch let error
      as BuckiaError where !error.isBusy
    {
      note(error, in: .backingUp, about: configuration.database.path)
      return false
    }
    var isSafe = !behind.contains { $0.name == storage.name }
    for target in behind {
      do {
        try await backUp(copy, digest, state, to: target)
        if target.name == storage.name { isSafe = true }
      } catch let error as StorageError {
        note(error, in: .backingUp, about: target.name)
      }
    }
    try await LocalStep.take { try await copy.keep() }
    return isSafe
  }

  /// The state of a database, by the file system, of its file and of the log beside it.
  private static func state(of path: String) throws -> String {
    try ["", "-wal"].map { try FileIdentity.current(at: path + $0)?.text ?? "-" }.joined(separator: " ")
  }

  func known(in storage: any StorageProvider) async throws -> BackupState? {
    try await index.value("backup \(storage.name)")
  }

  private func remember(_ state: BackupState, in storage: any StorageProvider) async throws {
    try await index.keep(state, as: "backup \(storage.name)")
  }

  private mutating func backUp(
    _ copy: BackupCopies, _ digest: [UInt8], _ databaseState: String, to storage: any StorageProvider
  ) async throws {
    let newest = HexText.lowercase(digest)
    var known = try await known(in: storage)
    if let state = known, try await !isThere(state, in: storage) { known = nil }
    if options.looksThroughStorage, let state = known, try await !isWhole(state, in: storage) { known = nil }
    if var state = known, state.newest == newest {
      state.databaseState = databaseState
      return try await remember(state, in: storage)
    }
    if let state = known, let next = try await addDelta(to: state, copy, digest, in: storage) {
      var next = next
      next.databaseState = databaseState
      try await remember(next, in: storage)
    } else {
      let state = try await putWhole(copy, newest, databaseState, replacing: known, in: storage)
      try await remember(state, in: storage)
    }
    result.backedUp = true
  }

  /// True if a storage lists the backup that was noted.
  private func isThere(_ state: BackupState, in storage: any StorageProvider) async throws -> Bool {
    guard let object = try await storage.stat(state.path), object.byteCount == state.byteCount,
      state.version == nil || object.version == nil || object.version?.text == state.version
    else { return false }
    guard state.deltas > 0 else { return true }
    let place = BackupPlace(folder: remote, name: state.path.name)
    let deltas = try await storage.listAll(place.history).objects
    return Int64(deltas.count) >= state.deltas && deltas.reduce(0) { $0 + $1.byteCount } >= state.deltaBytes
  }

  /// True if the backup in a storage leads to the newest state; it is restored to find out.
  private mutating func isWhole(_ state: BackupState, in storage: any StorageProvider) async throws -> Bool {
    let temporary = "\(folders.path)/.buckia-check"
    var isNewest = false
    var failure: (any Error)?
    do {
      let place = BackupPlace(folder: remote, name: state.path.name)
      let found = try await HexText.lowercase(place.restore(from: storage, in: temporary).digest)
      isNewest = found == state.newest
      if !isNewest {
        result.notes.append("the backup in \(storage.name) did not lead to its newest state, and is made again")
      }
    } catch let error as StorageError where [.damaged, .truncated, .notFound, .changed].contains(error.code) {
      result.notes.append("the backup in \(storage.name) was damaged, and is made again: \(error)")
    } catch { failure = error }
    do { try await BackupPlace.clear(temporary) } catch { note(error, in: .backingUp, about: temporary) }
    if let failure { throw failure }
    return isNewest
  }

  /// Uploads the pages that have changed, if the last copy is here and the difference is small enough.
  private mutating func addDelta(
    to known: BackupState, _ copy: BackupCopies, _ digest: [UInt8], in storage: any StorageProvider
  ) async throws -> BackupState? {
    guard let bytes = try await LocalStep.take({ try await copy.writeDelta(from: known.newest, to: digest) }),
      known.takes(deltaOf: bytes)
    else { return nil }
    let place = BackupPlace(folder: remote, name: known.path.name)
    let now = WallClock.unixMilliseconds / 1000
    let home = configuration.database.home
    let id = try await runBlocking { try home.newIDs(after: [], unixSeconds: now).ids[0] }
    let path = try place.history.appending("\(id).pages")
    try await put(copy.delta, to: path, .ifAbsent, in: storage)
    var next = known
    next.newest = HexText.lowercase(digest)
    next.deltas += 1
    next.deltaBytes += bytes
    return next
  }

  /// The number of sent copies whose digests are recorded.
  private static let sentLimit = 100

  /// Uploads the whole copy, and removes the deltas of the one before.
  ///
  /// The copy goes to its last path; otherwise to the usual name, or to this device's own name if the usual one has a
  /// copy of another device or of an earlier incarnation. Neither is overwritten. Copies of this device that are not
  /// recorded because of a stop, or because the storage was restored, are recognized by their digest.
  private mutating func putWhole(
    _ copy: BackupCopies, _ newest: String, _ databaseState: String, replacing known: BackupState?,
    in storage: any StorageProvider
  ) async throws -> BackupState {
    let setting = "backup sent \(storage.name)"
    let sent = try await index.setting(setting)?.split(separator: " ").map(String.init) ?? []
    try await index.set(setting, to: (sent.suffix(Self.sentLimit) + [newest]).joined(separator: " "))
    let usual = folders.structure.backup
    var names = [usual, BackupPlace.name(usual, of: device)]
    if let known, let place = names.firstIndex(of: known.path.name) { names = [names.remove(at: place)] + names }
    for name in names {
      let place = BackupPlace(folder: remote, name: name)
      let whole = try place.whole
      var object: StoredObject?
      do {
        let condition =
          known?.path == whole ? known?.version.map { .ifVersion(ObjectVersion($0)) } ?? PutCondition.none : .ifAbsent
        object = try await put(copy.newer, newest, to: whole, condition, in: storage)
      } catch let error as StorageError where [.alreadyExists, .changed].contains(error.code) {
        if let found = try await version(of: whole, in: storage, ifBrokenOrIn: sent + [newest]) {
          object = try await put(copy.newer, newest, to: whole, found.map { .ifVersion($0) } ?? .none, in: storage)
        }
      }
      guard let object else { continue }
      if name != usual, known?.path != whole {
        result.notes.append(
          "\(usual) in \(storage.name) is the backup of another device or of an earlier database, and was left alone; this one is \(whole)"
        )
      }
      for former in try await storage.listAll(place.history).objects { try await storage.delete(former.path) }
      return BackupState(
        path: whole, version: object.version?.text, byteCount: object.byteCount, newest: newest,
        databaseState: databaseState)
    }
    throw StorageError(.alreadyExists, "another backup has the name of this device's", path: remote)
  }

  /// The version of a whole copy that may be replaced: one whose digest is one of some, or of which a broken upload has left the beginning only.
  /// The version itself may be nil, too.
  private func version(
    of path: RemotePath, in storage: any StorageProvider, ifBrokenOrIn digests: [String]
  ) async throws -> ObjectVersion?? {
    do {
      let download = try await storage.get(path, GetRequest())
      var hash = SHA256()
      var header: [UInt8] = []
      for try await chunk in download.chunks {
        hash.update(data: chunk)
        if header.count < 100 { header += chunk.prefix(100 - header.count) }
      }
      let isOwn = digests.contains(HexText.lowercase(hash.finalize()))
      guard isOwn || PageDelta.isBeginning(header, of: download.object.byteCount) else { return nil }
      // Not every server reports the same version for reading and for a lookup, and conditions refer to the latter.
      return .some(try await storage.stat(path)?.version)
    } catch let error as StorageError where error.code == .notFound {
      return .some(nil)
    }
  }

  /// Uploads a file and confirms that it is there.
  ///
  /// - Parameter sha256: The digest of the file, if it is known.
  @discardableResult
  private mutating func put(
    _ file: String, _ sha256: String? = nil, to path: RemotePath, _ condition: PutCondition,
    in storage: any StorageProvider
  ) async throws -> StoredObject {
    var contents = try await runBlocking { try StorageContents(file: file) }
    contents.sha256 = sha256
    contents.sha256 = try await contents.knownSHA256()
    let object = try await storage.putConfirmed(contents, to: path, condition)
    result.uploaded.append(
      SyncResult.Transfer(path: path, byteCount: contents.byteCount, storage: storage.name))
    return object
  }
}

/// The copies of a database in a person's folder: the last one that was uploaded, and the one that is to be. All of it takes long for a large
/// database, and is done on threads of its own.
struct BackupCopies: Sendable {
  private let folder: String
  /// The last one.
  private let last: String

  init(in folders: LocalFolders) {
    folder = folders.path
    last = folders.backup
  }

  /// The one that is to be uploaded.
  var newer: String { "\(folder)/.buckia-backup.sqlite" }
  /// The file with the changed pages.
  var delta: String { "\(folder)/.buckia-backup.pages" }

  /// Makes the newer copy, if a delta is worth it.
  ///
  /// - Returns: Its SHA-256.
  /// - Throws: `BuckiaError`: `damaged` for a database that is empty or damaged; as ``DatabaseManager/backupDatabase(to:)``.
  func make(of database: DatabaseManager) async throws -> [UInt8] {
    let (newer, last) = (newer, last)
    return try await CancellationFlag.onThreadOfItsOwn { _ in
      do {
        guard try PosixFile(reading: database.path).initialByteCount > 0 else {
          throw BuckiaError(
            .damagedDatabase,
            "the database is an empty file, and no backup is made of that; put the newest backup in its place, which the storage has, or remove it to begin with another database",
            path: database.path)
        }
        try database.backupDatabase(to: newer)
        let digest = try PageDelta.digest(of: newer)
        if try FileIdentity.current(at: last) != nil, try PageDelta.digest(of: last) == digest { return digest }
        if let fault = try Self.fault(in: newer) {
          throw BuckiaError(
            .damagedDatabase,
            "the database is damaged, and no backup is made of it (\(fault)); put the newest backup in its place, which the storage has, or repair it with `.recover` in the sqlite3 shell",
            path: database.path)
        }
        return digest
      } catch { throw BuckiaError.wrapped(error) }
    }
  }

  /// The damage that SQLite finds in a copy that is not in use; nil for none.
  private static func fault(in copy: String) throws -> String? {
    try SQLiteConnection(opening: copy, as: .immutable).damage()
  }

  /// Requires that the restored file is a usable database.
  ///
  /// - Throws: `StorageError` with `damaged`.
  static func require(_ file: String, restoringTo path: String) async throws {
    let found: String? = try await CancellationFlag.onThreadOfItsOwn { _ in
      do { return try fault(in: file) } catch { return "\(error)" }
    }
    if let fault = found {
      throw StorageError(.damaged, "the backup leads to a damaged database (\(fault)), so \(path) was not made")
    }
  }

  /// Writes how the newer copy differs from the last one.
  ///
  /// - Parameters:
  ///   - base: The SHA-256 that the last one has to have, in hexadecimal.
  ///   - digest: That of the newer one.
  /// - Returns: The size in bytes; nil if the last copy is missing, or cannot be compared.
  func writeDelta(from base: String, to digest: [UInt8]) async throws -> Int64? {
    let (last, newer, delta) = (last, newer, delta)
    return try await CancellationFlag.onThreadOfItsOwn { _ in
      try StorageError.wrapping {
        guard try FileIdentity.current(at: last) != nil else { return nil }
        let earlier = try PageDelta.digest(of: last)
        guard HexText.lowercase(earlier) == base else { return nil }
        return try PageDelta.write(from: last, to: newer, digests: (earlier, digest), at: delta)
      }
    }
  }

  /// Lets the newer copy take the place of the last one.
  func keep() async throws {
    let (newer, last, delta) = (newer, last, delta)
    try await runBlocking {
      guard rename(newer, last) == 0 else {
        throw StorageError(.unwritable, "the backup cannot be kept as \(last): \(String(cString: strerror(errno)))")
      }
    }
    try LocalStep.pass()
    do { try await BackupPlace.clear(delta) } catch {
      throw StorageError(.unwritable, "\(delta) cannot be removed: \(error)", cause: error)
    }
  }
}
