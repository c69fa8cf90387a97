import Buckia
import BuckiaByteStreams
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
  /// The file appears under its name when all of it is there and has the digest that the last round gave it. As a database it is another incarnation of its
  /// replica, which Buckia notices by itself.
  ///
  /// - Parameters:
  ///   - path: The file. One of that name is never replaced.
  ///   - name: The name of the backup, where a person has several; nil for the usual one.
  /// - Returns: What was made.
  /// - Throws: `StorageError`: `notFound` when there is no backup, `alreadyExists` when there is a file of that name, `damaged` when the backup is not as it has
  ///   to be.
  @discardableResult
  public func restoreBackup(to path: String, named name: String? = nil) async throws -> RestoredBackup {
    let storage = storages[0]
    let place = BackupPlace(
      folder: try RemotePath(configuration.userID), name: name ?? configuration.folders.backup)
    guard !FileManager.default.fileExists(atPath: path) else {
      throw StorageError(
        .alreadyExists, "\(path) is there already, and is not replaced; move it away, or name another file")
    }
    let temporary = "\(path).buckia-restore"
    try Self.clear(temporary)
    try FileManager.default.createDirectory(atPath: temporary, withIntermediateDirectories: true)
    do {
      let database = "\(temporary)/database"
      try await storage.download(place.whole, to: database)
      let deltas = try await deltas(of: place, in: storage, to: temporary)
      let count = try Self.apply(deltas, onto: database)
      try FileManager.default.moveItem(atPath: database, toPath: path)
      try Self.clear(temporary)
      return RestoredBackup(
        path: path, byteCount: try PosixFile(reading: path).initialByteCount, source: try place.whole, deltaCount: count
      )
    } catch {
      let cause = (error as? ByteStreamError).map { StorageError($0) } ?? error
      do { try Self.clear(temporary) } catch let other {
        throw StorageError(
          (cause as? StorageError)?.code ?? .unwritable, "\(cause); and \(temporary) is left behind: \(other)",
          cause: cause)
      }
      throw cause
    }
  }

  private static func clear(_ folder: String) throws {
    if FileManager.default.fileExists(atPath: folder) { try FileManager.default.removeItem(atPath: folder) }
  }

  /// Downloads all deltas of a backup, by their ids.
  private func deltas(
    of place: BackupPlace, in storage: any StorageProvider, to folder: String
  ) async throws -> [String] {
    var files: [String] = []
    for object in try await storage.listAll(place.history).objects {
      files.append("\(folder)/\(files.count).pages")
      try await storage.download(object.path, to: files[files.count - 1], expecting: DownloadExpectation(object))
    }
    return files
  }

  /// Puts deltas on a whole copy.
  ///
  /// A round that was stopped behind an upload uploads another delta with the same beginning: the newest of those that begin with a state counts. Those of a
  /// former whole copy begin with none.
  ///
  /// - Returns: How many were put on it.
  private static func apply(_ deltas: [String], onto database: String) throws -> Int {
    var digest = try PageDelta.digest(of: database)
    let bases = try deltas.map { try PageDelta.base(of: $0) }
    var first = 0
    var count = 0
    while let index = bases.indices.last(where: { $0 >= first && bases[$0] == digest }) {
      guard let next = try PageDelta.apply(deltas[index], onto: database, of: digest) else { break }
      digest = next
      first = index + 1
      count += 1
    }
    return count
  }
}
