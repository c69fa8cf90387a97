import Buckia
import BuckiaBytes
import BuckiaStorage

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What ``BuckiaClient/restoreBackup(to:named:)`` made.
public struct RestoredBackup: Sendable, Equatable {
  /// The file.
  public let path: String
  /// Its size in bytes.
  public let byteCount: Int64
  /// The object that the whole copy was.
  public let source: RemotePath
  /// How many lists of changed pages were put on it.
  public let deltaCount: Int
}

extension BuckiaClient {
  /// Makes the newest backed-up state of the database into a file: the whole copy, and what has changed since.
  ///
  /// The file appears under its name when all of it is there and has the digest that the last round gave it. Only its owner can read it. As a database it is
  /// another incarnation of its replica, which Buckia notices by itself. Where the person has several devices, this one takes part from now on: what
  /// arrives before its first round is kept for it.
  ///
  /// - Parameters:
  ///   - path: The file. One of that name is never replaced.
  ///   - name: The name of the backup, where a person has several; nil for the one that was written to last, and is whole.
  /// - Returns: What was made.
  /// - Throws: `StorageError`: `notFound` when there is no backup, `alreadyExists` when there is a file of that name, `damaged` when the backup is not as it has
  ///   to be.
  @discardableResult
  public func restoreBackup(to path: String, named name: String? = nil) async throws -> RestoredBackup {
    guard !FileManager.default.fileExists(atPath: path) else {
      throw StorageError(
        .alreadyExists, "\(path) is there already, and is not replaced; move it away, or name another file")
    }
    try await takePart()
    let storage = storages[0]
    let folder = try RemotePath(configuration.userID)
    let usual = BackupPlace(folder: folder, name: configuration.folders.backup)
    var places = [BackupPlace(folder: folder, name: name ?? usual.name)]
    if name == nil {
      let all = try await BackupPlace.all(usual.name, in: folder, of: storage)
      if !all.isEmpty { places = all }
    }
    let temporary = "\(path).buckia-restore"
    do {
      var (place, restored) = (places[0], (file: "", digest: [UInt8](), deltaCount: 0))
      for (number, candidate) in places.enumerated() {
        do {
          (place, restored) = (candidate, try await candidate.restore(from: storage, in: temporary))
          break
        } catch let error as StorageError where error.code == .truncated && number < places.count - 1 {
          // What a broken upload has left is no backup.
        }
      }
      let (file, count) = (restored.file, restored.deltaCount)
      try await BackupCopies.require(file, restoringTo: path)
      try await LocalStep.take {
        try await BlockingWork.run { try FileManager.default.moveItem(atPath: file, toPath: path) }
      }
      try BackupPlace.clear(temporary)
      return RestoredBackup(
        path: path, byteCount: try PosixFile(reading: path).initialByteCount, source: try place.whole, deltaCount: count
      )
    } catch {
      let cause = (error as? ByteStreamError).map { StorageError($0) } ?? error
      do { try BackupPlace.clear(temporary) } catch let other {
        throw StorageError(
          (cause as? StorageError)?.code ?? .unwritable, "\(cause); and \(temporary) is left behind: \(other)",
          cause: cause)
      }
      throw cause
    }
  }
}
