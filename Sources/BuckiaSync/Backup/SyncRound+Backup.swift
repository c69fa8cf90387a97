import Buckia
import BuckiaByteStreams
import BuckiaJSON
import BuckiaKSUID
import BuckiaRemoteStorage
import BuckiaStorage
import Crypto

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension SyncRound {
  /// Copies the database and uploads the copy, to the storage and its mirrors: whole, or what has changed in it since the last time.
  ///
  /// - Returns: Whether the storage has the database as it is now.
  /// - Throws: `BuckiaError` when the database cannot be copied; `CancellationError`.
  mutating func backUp(to storage: any StorageProvider) async throws -> Bool {
    // Looked at before it is copied: what changes meanwhile shows the next time.
    let state = try Self.state(of: configuration.database.path)
    var behind: [any StorageProvider] = []
    for target in [storage] + mirrors {
      let known = try await known(in: target)
      if options.looksThroughStorage || known?.databaseState != state { behind.append(target) }
    }
    guard !behind.isEmpty else { return true }
    if options.isDryRun {
      result.backedUp = true
      return false
    }
    let copy = BackupCopies(in: folders)
    try await configuration.database.backUp(to: copy.newer)
    let digest: [UInt8]
    do { digest = try PageDelta.digest(of: copy.newer) } catch { throw StorageError(error) }
    var isSafe = !behind.contains { $0.name == storage.name }
    for target in behind {
      do {
        try await backUp(copy, digest, state, to: target)
        if target.name == storage.name { isSafe = true }
      } catch let error as StorageError {
        note(error, in: .backingUp, about: target.name)
      }
    }
    try copy.keep()
    return isSafe
  }

  /// In which state a database is, as the file system tells of its file and of the log beside it.
  private static func state(of path: String) throws -> String {
    do {
      return try ["", "-wal"].map { try FileIdentity.current(at: path + $0)?.text ?? "-" }.joined(separator: " ")
    } catch let error as ByteStreamError { throw StorageError(error) }
  }

  private func known(in storage: any StorageProvider) async throws -> BackupState? {
    try await index.setting("backup \(storage.name)").flatMap { BackupState($0) }
  }

  private func remember(_ state: BackupState, in storage: any StorageProvider) async throws {
    try await index.set("backup \(storage.name)", to: state.text)
  }

  private mutating func backUp(
    _ copy: BackupCopies, _ digest: [UInt8], _ databaseState: String, to storage: any StorageProvider
  ) async throws {
    let newest = HexText.lowercase(digest)
    var known = try await known(in: storage)
    if options.looksThroughStorage, let state = known, try await !isThere(state, in: storage) { known = nil }
    if var state = known, state.newest == newest {
      state.databaseState = databaseState
      return try await remember(state, in: storage)
    }
    result.backedUp = true
    if let state = known, let next = try await addDelta(to: state, copy, digest, in: storage) {
      var next = next
      next.databaseState = databaseState
      return try await remember(next, in: storage)
    }
    let state = try await putWhole(copy, newest, databaseState, replacing: known, in: storage)
    try await remember(state, in: storage)
  }

  /// Whether a storage still has what was noted.
  private func isThere(_ state: BackupState, in storage: any StorageProvider) async throws -> Bool {
    guard let object = try await storage.stat(state.path), object.byteCount == state.byteCount,
      state.version == nil || object.version == nil || object.version?.text == state.version
    else { return false }
    let place = BackupPlace(folder: remote, name: state.path.name)
    return try await Int64(storage.listAll(place.history).objects.count) >= state.deltas
  }

  /// Uploads the pages that have changed, if the last copy is here and the difference is small enough.
  private mutating func addDelta(
    to known: BackupState, _ copy: BackupCopies, _ digest: [UInt8], in storage: any StorageProvider
  ) async throws -> BackupState? {
    guard let earlier = try copy.digestOfLast(), HexText.lowercase(earlier) == known.newest else { return nil }
    let written = try PageDelta.write(
      from: copy.last, to: copy.newer, digests: (earlier, digest), at: copy.delta)
    guard let bytes = written, known.takes(deltaOf: bytes) else { return nil }
    // Somebody else's copy is no base for it.
    if let object = try await storage.stat(known.path) {
      guard object.byteCount == known.byteCount,
        known.version == nil || object.version == nil || object.version?.text == known.version
      else { return nil }
    } else {
      return nil
    }
    let place = BackupPlace(folder: remote, name: known.path.name)
    let now = Int64(Date().timeIntervalSince1970)
    let id = try configuration.database.home.newIDs(after: [], unixSeconds: now).ids[0]
    let path = try place.history.appending("\(id).pages")
    try await put(copy.delta, to: path, .ifAbsent, in: storage)
    var next = known
    next.newest = HexText.lowercase(digest)
    next.deltas += 1
    next.deltaBytes += bytes
    return next
  }

  /// Uploads the whole copy, and removes the deltas of the one before.
  private mutating func putWhole(
    _ copy: BackupCopies, _ newest: String, _ databaseState: String, replacing known: BackupState?,
    in storage: any StorageProvider, isFirstTry: Bool = true
  ) async throws -> BackupState {
    var place = BackupPlace(folder: remote, name: known?.path.name ?? folders.structure.backup)
    let condition = known.map { $0.version.map { .ifVersion(ObjectVersion($0)) } ?? PutCondition.none } ?? .ifAbsent
    var object: StoredObject
    // A stop behind the upload leaves a copy in the storage of which nothing is noted: by this it is known as one's own.
    let intent = "backup begun \(storage.name)"
    let begun = try await index.setting(intent)
    try await index.set(intent, to: newest)
    do {
      object = try await put(copy.newer, newest, to: place.whole, condition, in: storage)
    } catch let error as StorageError where [.alreadyExists, .changed].contains(error.code) {
      if isFirstTry, let begun, let version = try await version(of: place.whole, in: storage, ifDigestIs: begun) {
        let state = BackupState(
          path: try place.whole, version: version.text, byteCount: 0, newest: begun, databaseState: databaseState)
        return try await putWhole(copy, newest, databaseState, replacing: state, in: storage, isFirstTry: false)
      }
      // Another device's copy, or one of an earlier life of this device: neither is overwritten.
      let replica = try configuration.database.status().replica?.id ?? "device"
      let other = BackupPlace(folder: remote, name: BackupPlace.name(folders.structure.backup, of: replica))
      result.notes.append(
        "\(try place.whole) in \(storage.name) is the backup of another device or of an earlier database, and was left alone; this one is \(try other.whole)"
      )
      place = other
      object = try await put(copy.newer, newest, to: place.whole, .none, in: storage)
    }
    for former in try await storage.listAll(place.history).objects { try await storage.delete(former.path) }
    return BackupState(
      path: try place.whole, version: object.version?.text, byteCount: object.byteCount, newest: newest,
      databaseState: databaseState)
  }

  /// The version of an object, if its contents have a digest.
  private func version(
    of path: RemotePath, in storage: any StorageProvider, ifDigestIs digest: String
  ) async throws -> ObjectVersion? {
    let download = try await storage.get(path, GetRequest())
    var hash = SHA256()
    for try await chunk in download.chunks { hash.update(data: chunk) }
    return HexText.lowercase(hash.finalize()) == digest ? download.object.version : nil
  }

  /// Uploads a file and asks whether it is there.
  ///
  /// - Parameter sha256: The digest of the file, where it is known.
  @discardableResult
  private mutating func put(
    _ file: String, _ sha256: String? = nil, to path: RemotePath, _ condition: PutCondition,
    in storage: any StorageProvider
  ) async throws -> StoredObject {
    var contents = try StorageContents(file: file)
    if let sha256 { contents.sha256 = sha256 } else { contents.sha256 = try await contents.digest(SHA256.self) }
    try await storage.putChecked(contents, to: path, condition)
    guard let object = try await storage.stat(path), object.byteCount == contents.byteCount else {
      throw StorageError(
        .damaged, "the storage has taken it, and does not have it whole; nothing was removed because of it", path: path)
    }
    for checksum in object.checksums {
      let own = try await contents.digest(of: checksum.algorithm)
      guard checksum.hex == own else {
        throw StorageError(
          .damaged, "the storage has other bytes than were sent; nothing was removed because of it", path: path)
      }
    }
    result.uploaded.append(
      SyncResult.Transfer(path: path, byteCount: contents.byteCount, storage: storage.name))
    return object
  }
}

/// The copies of a database in a person's folder: the last one that was uploaded, and the one that is to be.
struct BackupCopies: Sendable {
  private let folder: String
  /// The last one.
  let last: String

  init(in folders: LocalFolders) {
    folder = folders.path
    last = folders.backup
  }

  /// The one that is to be uploaded.
  var newer: String { "\(folder)/.buckia-backup.sqlite" }
  /// What is different.
  var delta: String { "\(folder)/.buckia-backup.pages" }

  /// The SHA-256 of the last copy; nil where there is none.
  func digestOfLast() throws -> [UInt8]? {
    do {
      guard try FileIdentity.current(at: last) != nil else { return nil }
      return try PageDelta.digest(of: last)
    } catch { throw StorageError(error) }
  }

  /// Lets the newer copy take the place of the last one.
  func keep() throws {
    do {
      if FileManager.default.fileExists(atPath: delta) { try FileManager.default.removeItem(atPath: delta) }
      if FileManager.default.fileExists(atPath: last) { try FileManager.default.removeItem(atPath: last) }
      try FileManager.default.moveItem(atPath: newer, toPath: last)
    } catch {
      throw StorageError(.unwritable, "the backup cannot be kept as \(last): \(error)", cause: error)
    }
  }
}

extension StorageContents {
  /// The digest of the bytes in lower-case hexadecimal.
  fileprivate func digest(of algorithm: ContentChecksum.Algorithm) async throws -> String {
    switch algorithm {
    case .md5: try await digest(Insecure.MD5.self)
    case .sha1: try await digest(Insecure.SHA1.self)
    case .sha256: try await digest(SHA256.self)
    }
  }
}

extension DatabaseManager {
  /// Copies the database on a thread of its own.
  fileprivate func backUp(to path: String) async throws {
    _ = try await Task.detached { try self.backupDatabase(to: path) }.value
  }
}
