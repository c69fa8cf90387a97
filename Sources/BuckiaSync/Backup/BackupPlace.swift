import Buckia
import BuckiaBytes
import BuckiaStorage

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Where the parts of a backup are.
struct BackupPlace: Sendable {
  /// The person's folder in the storage.
  let folder: RemotePath
  /// The name of the whole copy.
  let name: String

  /// The whole copy.
  var whole: RemotePath { get throws(StorageError) { try folder.appending(name) } }
  /// The folder for what has changed since.
  var history: RemotePath { get throws(StorageError) { try folder.appending("history/\(name)") } }

  /// The name of the copy of a device that has found another one's under the usual name: `backup-7f3a….sqlite`.
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

  /// Makes the newest state of the backup into a file of a folder of this device.
  ///
  /// A round that was stopped behind an upload uploads another delta with the same beginning: the newest of those that begin with a state counts. Those of a
  /// former whole copy begin with none.
  ///
  /// - Parameter temporary: The folder, which becomes empty first.
  /// - Returns: The file, its SHA-256, and how many deltas were put on the whole copy.
  /// - Throws: `StorageError`: `notFound` where there is no backup, `truncated` where a broken upload has left a part of one, `damaged` when it is not
  ///   as it has to be.
  func restore(
    from storage: any StorageProvider, in temporary: String
  ) async throws -> (file: String, digest: [UInt8], deltaCount: Int) {
    try Self.clear(temporary)
    do { try FileManager.default.createDirectory(atPath: temporary, withIntermediateDirectories: true) } catch {
      throw StorageError(.unwritable, "the folder \(temporary) cannot be made: \(error)", cause: error)
    }
    let database = "\(temporary)/database"
    try await storage.download(whole, to: database, isPrivate: true)
    var deltas: [String] = []
    for object in try await storage.listAll(history).objects {
      deltas.append("\(temporary)/\(deltas.count).pages")
      try await storage.download(
        object.path, to: deltas[deltas.count - 1], expecting: DownloadExpectation(object), isPrivate: true)
    }
    let files = deltas
    return try await CancellationFlag.onThreadOfItsOwn { _ in
      do {
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
      } catch let error as ByteStreamError { throw StorageError(error) }
    }
  }

  /// Removes a folder of this device.
  static func clear(_ folder: String) throws {
    if FileManager.default.fileExists(atPath: folder) { try FileManager.default.removeItem(atPath: folder) }
  }
}
