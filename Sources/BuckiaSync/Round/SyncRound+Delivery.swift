import BuckiaBytes
import BuckiaFormat
import BuckiaStorage
import Crypto

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension SyncRound {
  /// Delivers diffs to the inbound folders of others. A file is removed here when its delivery is confirmed.
  mutating func deliver() async throws {
    for (delivery, storage) in zip(configuration.deliveries, deliveries) {
      let target = try RemotePath(delivery.userID).appending(folders.structure.inbound)
      let files: [StoredObject]
      do {
        guard try await runBlocking({ FileManager.default.fileExists(atPath: delivery.folder) }) else {
          throw StorageError(
            .notFound, "there is no such folder to deliver from; correct the setting, or make the folder")
        }
        files = try await LocalFolder(delivery.folder).listAll(nil).objects.filter {
          $0.path.folder == nil && DiffFileName.id($0.path.name) != nil
        }
      } catch let error as StorageError {
        note(error, in: .delivering, about: delivery.folder)
        continue
      }
      let paths = try files.map { try target.appending($0.path.name) }
      let transfers = zip(paths, files).map { path, file in
        SyncResult.Transfer(path: path, byteCount: file.byteCount, storage: storage.name)
      }
      if options.isDryRun {
        result.delivered += transfers
        continue
      }
      try await deliver(
        zip(files.map { "\(delivery.folder)/\($0.path.name)" }, transfers).map { $0 }, to: target, in: storage)
    }
  }

  /// Delivers files in the order of their ids, by which a diff arrives after its predecessor; then confirms that they
  /// arrived, and removes them here.
  private mutating func deliver(
    _ files: [(file: String, transfer: SyncResult.Transfer)], to folder: RemotePath, in storage: any StorageProvider
  ) async throws {
    // If each lookup of an object lists its folder, one listing before and one afterwards are enough.
    let listsOnce = storage.capabilities.looksUpInListings && files.count > 1
    var sent: [(file: String, transfer: SyncResult.Transfer, contents: StorageContents)] = []
    do {
      let known = listsOnce ? try await storage.objects(in: folder) : nil
      for (file, transfer) in files {
        try Task.checkCancellation()
        do {
          let contents = try await runBlocking { try StorageContents(file: file) }
          try await Self.bring(contents, to: transfer.path, in: storage, knowing: known)
          sent.append((file, transfer, contents))
        } catch let error as StorageError {
          note(error, in: .delivering, about: transfer.path.name)
          if error.stopsRound { break }
        }
      }
    } catch let error as StorageError { return note(error, in: .delivering, about: folder.text) }
    guard !sent.isEmpty else { return }
    do {
      let found = listsOnce ? try await storage.objects(in: folder) : nil
      for (file, transfer, contents) in sent {
        do {
          let object =
            if let found { found[transfer.path] } else { try await storage.lookUp(contents, at: transfer.path) }
          try await storage.confirm(object, is: contents, at: transfer.path, readsBack: true)
          try await LocalStep.take { try await Self.remove(file, deliveredTo: transfer.path) }
          result.delivered.append(transfer)
        } catch let error as StorageError {
          note(error, in: .delivering, about: transfer.path.name)
          if error.stopsRound { break }
        }
      }
    } catch let error as StorageError { note(error, in: .delivering, about: folder.text) }
  }

  /// Delivers a file if its object is missing, or is a beginning of it.
  ///
  /// - Parameter known: The listing of the folder; nil to look objects up.
  private static func bring(
    _ contents: StorageContents, to path: RemotePath, in storage: any StorageProvider,
    knowing known: [RemotePath: StoredObject]?
  ) async throws {
    do {
      if let known {
        try PutCondition.ifAbsent.require(of: known[path], at: path)
        try await storage.put(contents, to: path, .none)
      } else {
        try await storage.putChecked(contents, to: path, .ifAbsent)
      }
    } catch let error as StorageError where error.code == .alreadyExists {
      // A stopped round has delivered the file, or a part of it; or another file is there.
      guard let found = try await contents.objectWithBeginning(at: path, in: storage) else {
        throw StorageError(
          .alreadyExists, "another file has the name of this diff in the recipient's folder; it was left alone",
          path: path)
      }
      if found.byteCount < contents.byteCount {
        // Not every server has the same version for what is read and for what is looked up, which conditions are about.
        let version = if let known { known[path]?.version } else { try await storage.stat(path)?.version }
        try await storage.putChecked(contents, to: path, version.map { .ifVersion($0) } ?? .none)
      }
    }
  }

  private static func remove(_ file: String, deliveredTo path: RemotePath) async throws {
    try await runBlocking {
      do { try FileManager.default.removeItem(atPath: file) } catch {
        throw StorageError(
          .unwritable, "\(file) was delivered and cannot be removed: \(error); remove it yourself", path: path,
          cause: error)
      }
    }
  }
}

extension StorageProvider {
  /// The objects of a folder, by their paths.
  fileprivate func objects(in folder: RemotePath) async throws -> [RemotePath: StoredObject] {
    Dictionary(try await listAll(folder).objects.map { ($0.path, $0) }) { $1 }
  }
}

extension StorageError {
  /// True if all other objects would fail, too: the storage cannot be reached or refuses the credentials, or this
  /// device has no room. All other errors concern one object.
  var stopsRound: Bool {
    [
      .unreachable, .interrupted, .timedOut, .tooManyRequests, .unavailable, .untrustedServer, .unauthorized,
      .clockSkew,
      .fullDisk, .unwritable,
    ].contains(code)
  }
}
