import Buckia
import BuckiaStorage

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The paths of the parts of a backup.
struct BackupPlace: Sendable {
  /// The person's folder in the storage.
  let folder: RemotePath
  /// The name of the whole copy.
  let name: String

  /// The whole copy.
  var whole: RemotePath { get throws(StorageError) { try folder.appending(name) } }
  /// The folder for deltas.
  var history: RemotePath { get throws(StorageError) { try folder.appending("history/\(name)") } }

  /// The name of a device's copy if another device has the usual name: `backup-7f3a….sqlite`.
  static func name(_ usual: String, of device: String) -> String {
    guard let dot = usual.lastIndex(of: ".") else { return "\(usual)-\(device)" }
    return "\(usual[..<dot])-\(device)\(usual[dot...])"
  }

  /// The backups in a folder, by the storage's times: first the one that was written to last.
  static func all(_ usual: String, in folder: RemotePath, of storage: any StorageProvider) async throws -> [BackupPlace]
  {
    let objects = try await storage.listAll(folder).objects
    let parts = name(usual, of: "\0").split(separator: "\0", omittingEmptySubsequences: false)
    var found: [(place: BackupPlace, at: Int64)] = []
    for whole in objects where whole.path.folder == folder {
      let name = whole.path.name
      guard name == usual || name.hasPrefix(parts[0]) && name.hasSuffix(parts[1]) else { continue }
      let place = BackupPlace(folder: folder, name: name)
      let history = try place.history
      let times = objects.filter { $0.path.folder == history }.compactMap(\.modifiedAt) + [whole.modifiedAt ?? 0]
      found.append((place, times.max() ?? 0))
    }
    return found.sorted { $0.at > $1.at || $0.at == $1.at && $0.place.name == usual }.map(\.place)
  }

  /// Restores the newest state of the backup to a file in a local folder.
  ///
  /// A round that was stopped after an upload uploads another delta with the same base: of several with one base, the
  /// newest counts. The deltas of an earlier whole copy have other bases.
  ///
  /// - Parameter temporary: The folder, which becomes empty first.
  /// - Returns: The file, its SHA-256, and how many deltas were put on the whole copy.
  /// - Throws: `StorageError`: `notFound` where there is no backup, `truncated` where a broken upload has left a part of one, `damaged` when it is not
  ///   as it has to be.
  func restore(
    from storage: any StorageProvider, in temporary: String
  ) async throws -> (file: String, digest: [UInt8], deltaCount: Int) {
    try await Self.clear(temporary)
    try await runBlocking { try LocalFolder.makeFolder(temporary) }
    let database = "\(temporary)/database"
    try await storage.download(whole, to: database, isPrivate: true)
    var deltas: [String] = []
    for object in try await storage.listAll(history).objects {
      deltas.append("\(temporary)/\(deltas.count).pages")
      try await storage.download(
        object.path, to: deltas[deltas.count - 1], expecting: object, isPrivate: true)
    }
    let files = deltas
    return try await CancellationFlag.onThreadOfItsOwn { _ in
      try StorageError.wrapping {
        guard try !PageDelta.isBeginning(ofFile: database) else {
          throw StorageError(
            .truncated, "it is the beginning of a backup only: its upload was broken off", path: try whole)
        }
        var digest = try PageDelta.digest(of: database)
        let bases = try files.map { try PageDelta.base(of: $0) }
        var first = 0
        var count = 0
        while let index = bases.indices.last(where: { $0 >= first && bases[$0] == digest }) {
          guard let next = try PageDelta.apply(files[index], onto: database, of: digest) else { break }
          digest = next
          first = index + 1
          count += 1
        }
        return (database, digest, count)
      }
    }
  }

  /// Removes a folder of this device.
  static func clear(_ folder: String) async throws {
    try await runBlocking {
      if FileManager.default.fileExists(atPath: folder) { try FileManager.default.removeItem(atPath: folder) }
    }
  }
}

/// The state of a database's backup in a storage: a whole copy, and deltas with the pages that have changed since.
struct BackupState: Codable, Sendable {
  /// The object with the whole copy.
  var path: RemotePath
  /// Its version, where the storage tells one.
  var version: String?
  /// Its size in bytes.
  var byteCount: Int64
  /// The SHA-256 of the newest state, in hexadecimal.
  var newest: String
  /// The number of deltas after the whole copy.
  var deltas: Int64 = 0
  /// Their size in bytes.
  var deltaBytes: Int64 = 0
  /// In which state the database was that the newest state was copied from.
  var databaseState: String

  /// The most deltas, all of which are read when the database is restored.
  private static let deltaLimit: Int64 = 50

  /// True if one more delta of this size is worth it.
  func takes(deltaOf bytes: Int64) -> Bool { deltas < Self.deltaLimit && deltaBytes + bytes <= byteCount / 2 }
}

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
  /// Restores the newest backed-up state of the database to a file.
  ///
  /// The file appears under its name when it is complete and has the digest from the last round. Only its owner can
  /// read it. The database is another incarnation of its replica, which Buckia notices. If the person has several
  /// devices, this one is registered from now on: files that arrive before its first round are kept for it.
  ///
  /// - Parameters:
  ///   - path: The file. One of that name is never replaced.
  ///   - name: The name of the backup, if a person has several; nil for the last written one that is complete.
  /// - Returns: What was made.
  /// - Throws: `StorageError`: `notFound` when there is no backup, `alreadyExists` when there is a file of that name, `damaged` when the backup is not as it has
  ///   to be.
  @discardableResult
  public func restoreBackup(to path: String, named name: String? = nil) async throws -> RestoredBackup {
    guard try await !runBlocking({ FileManager.default.fileExists(atPath: path) }) else {
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
          // The rest of a broken upload is not a backup.
        }
      }
      let (file, count) = (restored.file, restored.deltaCount)
      try await BackupCopies.require(file, restoringTo: path)
      let bytes = try await LocalStep.take {
        try await runBlocking {
          try FileManager.default.moveItem(atPath: file, toPath: path)
          return try PosixFile(reading: path).initialByteCount
        }
      }
      try await BackupPlace.clear(temporary)
      return RestoredBackup(path: path, byteCount: bytes, source: try place.whole, deltaCount: count)
    } catch {
      do { try await BackupPlace.clear(temporary) } catch let other {
        throw StorageError(
          (error as? StorageError)?.code ?? .unwritable, "\(error); and \(temporary) is left behind: \(other)",
          cause: error)
      }
      throw error
    }
  }
}
