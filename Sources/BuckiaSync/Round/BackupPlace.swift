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
    try await Self.clear(temporary)
    try await runBlocking { try LocalFolders.makeFolder(temporary) }
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
  static func clear(_ folder: String) async throws {
    try await runBlocking {
      if FileManager.default.fileExists(atPath: folder) { try FileManager.default.removeItem(atPath: folder) }
    }
  }
}

/// What a storage has of the backup of a database: a whole copy, and the pages that have changed since, delta after delta.
struct BackupState: Sendable, Equatable {
  /// The object with the whole copy.
  var path: RemotePath
  /// Its version, where the storage tells one.
  var version: String?
  /// Its size in bytes.
  var byteCount: Int64
  /// The SHA-256 of the newest state, in hexadecimal.
  var newest: String
  /// How many deltas follow the whole copy.
  var deltas: Int64 = 0
  /// Their size in bytes.
  var deltaBytes: Int64 = 0
  /// In which state the database was that the newest state was copied from.
  var databaseState: String

  /// How many deltas there are at most: each is one more to be read when the database is restored.
  private static let deltaLimit: Int64 = 50

  /// True if one more delta of this size is worth it.
  func takes(deltaOf bytes: Int64) -> Bool { deltas < Self.deltaLimit && deltaBytes + bytes <= byteCount / 2 }

}

extension BackupState {
  /// The text that is kept of it.
  var text: String {
    JSONValue.object(
      JSONObject([
        .init("path", .string(path.text)), .init("version", .text(version)), .init("bytes", .integer(byteCount)),
        .init("newest", .string(newest)), .init("deltas", .integer(deltas)), .init("deltaBytes", .integer(deltaBytes)),
        .init("databaseState", .string(databaseState)),
      ])
    ).text()
  }

  /// Reads what was kept; nil when it is something else.
  init?(_ text: String) {
    do {
      guard case .object(let members) = try JSONParser.parse(Array(text.utf8)),
        let path = members.text("path"), case .integer(let bytes)? = members["bytes"],
        let newest = members.text("newest"), case .integer(let deltas)? = members["deltas"],
        case .integer(let deltaBytes)? = members["deltaBytes"], let databaseState = members.text("databaseState")
      else { return nil }
      self.init(
        path: try RemotePath(path), version: members.text("version"), byteCount: bytes, newest: newest, deltas: deltas,
        deltaBytes: deltaBytes, databaseState: databaseState)
    } catch {
      // A backup is made again where it is not known what there is.
      return nil
    }
  }
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
          // What a broken upload has left is no backup.
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
      let cause = (error as? ByteStreamError).map { StorageError($0) } ?? error
      do { try await BackupPlace.clear(temporary) } catch let other {
        throw StorageError(
          (cause as? StorageError)?.code ?? .unwritable, "\(cause); and \(temporary) is left behind: \(other)",
          cause: cause)
      }
      throw cause
    }
  }
}
