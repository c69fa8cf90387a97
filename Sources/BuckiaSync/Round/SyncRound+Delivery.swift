import BuckiaByteStreams
import BuckiaStorage

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension SyncRound {
  /// Brings the diffs for others into their inbound folders. A file that is there is removed here.
  mutating func deliver() async throws {
    for (delivery, storage) in zip(configuration.deliveries, deliveries) {
      let target = try RemotePath(delivery.userID).appending(folders.structure.inbound)
      let files: [StoredObject]
      do {
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
          // What follows would only wait for it there.
          break
        }
      }
    }
  }

  private static func deliver(_ file: String, to path: RemotePath, in storage: any StorageProvider) async throws {
    let contents = try StorageContents(file: file)
    do {
      try await storage.putChecked(contents, to: path, .ifAbsent)
    } catch let error as StorageError where error.code == .alreadyExists {
      // A round that was stopped has brought it there before; or somebody has put another file in its place.
      guard try await contents.isEqual(to: path, in: storage) else {
        throw StorageError(
          .alreadyExists, "another file has the name of this diff in the recipient's folder; it was left alone",
          path: path)
      }
    }
    do { try FileManager.default.removeItem(atPath: file) } catch {
      throw StorageError(
        .unwritable, "\(file) was delivered and cannot be removed: \(error); remove it yourself", path: path,
        cause: error)
    }
  }
}
