import BuckiaByteStreams
import BuckiaRemoteStorage
import BuckiaStorage
import Crypto

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension SyncRound {
  /// Brings the diffs for others into their inbound folders. A file that is certainly there is removed here.
  mutating func deliver() async throws {
    for (delivery, storage) in zip(configuration.deliveries, deliveries) {
      let target = try RemotePath(delivery.userID).appending(folders.structure.inbound)
      let files: [StoredObject]
      do {
        guard FileManager.default.fileExists(atPath: delivery.folder) else {
          throw StorageError(
            .notFound, "there is no such folder to deliver from; correct the setting, or make the folder")
        }
        files = try await LocalFolder(delivery.folder).listAll(nil).objects.filter {
          $0.path.folder == nil && InboundFileName.isOne($0.path.name)
        }
      } catch let error as StorageError {
        note(error, in: .delivering, about: delivery.folder)
        continue
      }
      // In the order of their ids, so that nobody gets a diff before the one that it builds on.
      for file in files {
        try Task.checkCancellation()
        let path = try target.appending(file.path.name)
        let transfer = SyncResult.Transfer(path: path, byteCount: file.byteCount, storage: storage.name)
        if options.isDryRun {
          result.delivered.append(transfer)
          continue
        }
        do {
          try await Self.deliver("\(delivery.folder)/\(file.path.name)", to: path, in: storage)
          result.delivered.append(transfer)
        } catch let error as StorageError {
          note(error, in: .delivering, about: file.path.name)
          if error.stopsRound { break }
        }
      }
    }
  }

  private static func deliver(_ file: String, to path: RemotePath, in storage: any StorageProvider) async throws {
    let contents = try StorageContents(file: file)
    do {
      try await storage.putConfirmed(contents, to: path, .ifAbsent, readsBack: true)
    } catch let error as StorageError where error.code == .alreadyExists {
      // A round that was stopped has brought it there before, or a part of it; or another file has its place.
      guard let found = try await contents.objectWithBeginning(at: path, in: storage) else {
        throw StorageError(
          .alreadyExists, "another file has the name of this diff in the recipient's folder; it was left alone",
          path: path)
      }
      if found.byteCount < contents.byteCount {
        try await storage.putConfirmed(
          contents, to: path, found.version.map { .ifVersion($0) } ?? .none, readsBack: true)
      }
    }
    do { try FileManager.default.removeItem(atPath: file) } catch {
      throw StorageError(
        .unwritable, "\(file) was delivered and cannot be removed: \(error); remove it yourself", path: path,
        cause: error)
    }
  }
}

extension StorageProvider {
  /// Writes an object, and confirms that the storage has it: by its size and the digests that the storage tells.
  ///
  /// - Parameter readsBack: True to read it back where the storage tells no digest.
  /// - Returns: The object as the storage has it.
  /// - Throws: `StorageError`: as ``putChecked(_:to:_:)``; `damaged` when the storage has something else.
  @discardableResult
  func putConfirmed(
    _ contents: StorageContents, to path: RemotePath, _ condition: PutCondition, readsBack: Bool = false
  ) async throws -> StoredObject {
    let sent = try await putChecked(contents, to: path, condition)
    let found: StoredObject?
    do { found = try await stat(path) } catch let error as StorageError
      where error.code == .forbidden && capabilities.checksums.contains(.sha256)
    {
      // Who may only write there has to be content that the storage has checked it on arrival.
      return sent
    }
    guard let found, found.byteCount == contents.byteCount else {
      throw StorageError(
        .damaged, "the storage has taken it, and does not have it whole; nothing was removed because of it", path: path)
    }
    var isSame = true
    for checksum in found.checksums where isSame {
      isSame = try await checksum.hex == contents.digest(of: checksum.algorithm)
    }
    if found.checksums.isEmpty, readsBack {
      isSame = try await contents.objectWithBeginning(at: path, in: self)?.byteCount == contents.byteCount
    }
    guard isSame else {
      throw StorageError(
        .damaged, "the storage has other bytes than were sent; nothing was removed because of it", path: path)
    }
    return found
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

extension StorageError {
  /// True if no other object would fare better: the storage is not there or does not know who asks, or this device has no room. Anything else is about
  /// one object.
  var stopsRound: Bool {
    [
      .unreachable, .interrupted, .timedOut, .tooManyRequests, .unavailable, .untrustedServer, .unauthorized,
      .clockSkew,
      .fullDisk, .unwritable,
    ].contains(code)
  }
}
