import Buckia
import BuckiaByteStreams
import BuckiaStorage

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What others have sent: downloaded, applied, and dropped from the storage when all of it is safe.
///
/// A file is downloaded under its name, complete, and noted in the index. While it lies in the local folder, it is not downloaded again; it goes from there
/// when all it holds is in the database, which is how it is told that it can go from the storage, too.
struct InboundStep {
  /// How large a diff file may be that is downloaded unasked, in bytes: anybody who may write to the folder can fill this disk.
  static let sizeLimit: Int64 = 4 << 30

  private let storage: any StorageProvider
  private let folder: String
  private let round: SyncRound
  /// The objects that are diff files, changesets or answers by their names.
  private let objects: [StoredObject]
  private let otherCount: Int

  init(_ listing: StorageListing, from storage: any StorageProvider, of round: SyncRound) throws {
    self.storage = storage
    self.round = round
    folder = round.folders.inbound
    let inbound = try round.remote.appending(round.folders.structure.inbound)
    objects = listing.objects.filter { $0.path.folder == inbound && InboundFileName.isOne($0.path.name) }
    otherCount = listing.objects.count - objects.count + listing.unusableNames
  }

  private func file(_ object: StoredObject) -> String { "\(folder)/\(object.path.name)" }

  private func isHere(_ object: StoredObject) throws -> Bool {
    do { return try FileIdentity.current(at: file(object)) != nil } catch { throw StorageError(error) }
  }

  /// Downloads what is not here yet.
  func download(_ result: inout SyncResult) async throws {
    result.inboundCount = objects.count + otherCount
    var wanted: [StoredObject] = []
    for object in objects where try await round.index.hasDownloaded(object, from: storage.name) == false {
      guard object.byteCount <= Self.sizeLimit else {
        let error = StorageError(
          .unsupported,
          "it has \(object.byteCount) bytes, and no more than \(Self.sizeLimit) are downloaded unasked; download it yourself if you trust it, and apply it by its path",
          path: object.path)
        result.failures.append(
          SyncResult.Failure(step: .downloading, subject: object.path.text, error: error))
        continue
      }
      wanted.append(object)
    }
    guard !wanted.isEmpty else { return }
    if round.options.isDryRun {
      result.downloaded = wanted.map { transfer($0) }
      return
    }
    var progress = SyncProgress(step: .downloading)
    progress.fileCount = wanted.count
    progress.byteCount = wanted.reduce(0) { $0 + $1.byteCount }
    round.report(progress)
    let storage = storage
    let folder = folder
    try await forEachConcurrently(wanted, limit: round.concurrency(of: storage)) { object in
      try await storage.download(
        object.path, to: "\(folder)/\(object.path.name)", expecting: DownloadExpectation(object))
    } finish: { object, outcome in
      switch outcome {
      case .success:
        try await round.index.noteDownload(object, from: storage.name)
        result.downloaded.append(transfer(object))
      case .failure(let error as StorageError) where error.code == .notFound || error.code == .changed:
        // Another device has taken it, or its sender has replaced it: the next round sees.
        result.notes.append("\(object.path): \(error.message)")
      case .failure(let error):
        result.isCutShort = true
        result.failures.append(
          SyncResult.Failure(step: .downloading, subject: object.path.text, error: error))
      }
      progress.files += 1
      progress.bytes += object.byteCount
      progress.path = object.path.name
      round.report(progress)
    }
  }

  private func transfer(_ object: StoredObject) -> SyncResult.Transfer {
    SyncResult.Transfer(path: object.path, byteCount: object.byteCount, storage: storage.name)
  }

  /// Applies everything in the local folder: what has just come, and what waits there from before.
  func apply(_ result: inout SyncResult) async throws {
    let names: [String]
    do { names = try FileManager.default.contentsOfDirectory(atPath: folder) } catch {
      throw StorageError(.unreadable, "the folder \(folder) cannot be read: \(error)", cause: error)
    }
    guard names.contains(where: { InboundFileName.isOne($0) }) else { return }
    var options = round.options.apply
    options.keepsFiles = false
    options.isDryRun = false
    let report = try await round.configuration.database.processInboundChanges([folder], options: options)
    result.applied = report
    for outgoing in report.outgoingFolders {
      result.notes.append(
        "\(outgoing) holds files that were made from this database, so nothing was removed there; move these to where they are to go"
      )
    }
  }

  /// Drops from the storage what is in the database now, and in those of the person's other devices.
  func drop(_ result: inout SyncResult) async throws {
    try await round.index.forgetDownloads(except: objects.map(\.path), from: storage.name)
    var settled: [StoredObject] = []
    for object in objects where try !isHere(object) {
      if try await round.index.hasDownloaded(object, from: storage.name) { settled.append(object) }
    }
    var marks: [String: [RemotePath]] = [:]
    do {
      if let devices = try deviceMarks() {
        try await devices.takePart()
        marks = try await devices.settle(settled.map(\.path.name))
        settled.removeAll { marks[$0.path.name] == nil }
      }
    } catch let error as StorageError {
      result.failures.append(SyncResult.Failure(step: .dropping, subject: storage.name, error: error))
      return
    }
    guard !settled.isEmpty else { return }
    var progress = SyncProgress(step: .dropping)
    progress.fileCount = settled.count
    let (storage, marksOfFiles) = (storage, marks)
    try await forEachConcurrently(settled, limit: round.concurrency(of: storage)) { object in
      try await storage.delete(object.path)
      for mark in marksOfFiles[object.path.name] ?? [] { try await storage.delete(mark) }
    } finish: { object, outcome in
      switch outcome {
      case .success:
        try await round.index.forgetDownload(object.path, from: storage.name)
        result.dropped.append(object.path)
      case .failure(let error):
        result.failures.append(SyncResult.Failure(step: .dropping, subject: object.path.text, error: error))
      }
      progress.files += 1
      round.report(progress)
    }
  }

  /// What the devices of the person tell each other; nil where there is one device.
  private func deviceMarks() throws -> DeviceMarks? {
    guard round.configuration.hasSeveralDevices else { return nil }
    guard let replica = try round.configuration.database.status().replica?.id else {
      return nil
    }
    return try DeviceMarks(
      of: replica, in: round.remote, storage, round.index, now: Int64(Date().timeIntervalSince1970 * 1000))
  }
}

/// The names of what is taken from an inbound folder: an id, and what the file is.
enum InboundFileName {
  private static let endings = [".bdiff", ".bdiff.age", ".changeset", ".accept"]

  static func isOne(_ name: String) -> Bool {
    endings.contains { ending in name.hasSuffix(ending) && KSUID(String(name.dropLast(ending.count))) != nil }
  }
}
