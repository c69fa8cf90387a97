import BuckiaRemoteStorage
import BuckiaStorage
import Crypto

extension SyncRound {
  /// Uploads the media that are new or have changed, to the storage and its mirrors.
  mutating func uploadMedia(to storage: any StorageProvider) async throws {
    let filter = PathFilter(options)
    let parts = [
      (folders.originals, folders.structure.originals, options.uploadsOriginals),
      (folders.reworked, folders.structure.reworked, options.uploadsReworked),
    ]
    for (folder, name, isWanted) in parts where isWanted {
      let target = try remote.appending(name)
      let files: [MediaFile]
      do {
        let found = try await MediaFile.all(in: folder, to: target, filter)
        files = found.files
        for file in found.unusable {
          note(
            StorageError(.invalidName, "no storage takes this name; rename it: \(file)"), in: .uploading, about: file)
        }
      } catch let error as StorageError {
        // Where the folder cannot be read, nothing is known to be gone.
        note(error, in: .uploading, about: folder)
        continue
      }
      for target in [storage] + mirrors {
        try await upload(files, to: target, isMirror: target.name != storage.name)
      }
      guard options.deletesOrphanedFiles else { continue }
      for place in [storage] + mirrors { try await deleteOrphans(of: target, keeping: files, filter, in: place) }
    }
  }

  /// What became of one file.
  private enum Outcome: Sendable {
    case unchanged(SyncIndex.Upload)
    case uploaded(SyncIndex.Upload)
    /// What would be uploaded, in a dry run.
    case wanted
  }

  private mutating func upload(_ files: [MediaFile], to storage: any StorageProvider, isMirror: Bool) async throws {
    var wanted: [(file: MediaFile, known: SyncIndex.Upload?)] = []
    let present: [RemotePath: StoredObject]?
    do { present = options.looksThroughStorage ? try await self.present(in: storage) : nil } catch let error
      as StorageError
    {
      // A mirror that is down stops neither the others nor what comes behind.
      return note(error, in: .uploading, about: storage.name)
    }
    for file in files {
      var known = try await index.upload(file.path, in: storage.name)
      if let present, present[file.path]?.byteCount != known?.byteCount { known = nil }
      if let known, known.fileState == file.state {
        if !isMirror { result.unchangedCount += 1 }
      } else {
        wanted.append((file, known))
      }
    }
    guard !wanted.isEmpty else { return }
    var progress = SyncProgress(step: .uploading)
    progress.fileCount = wanted.count
    progress.byteCount = wanted.reduce(0) { $0 + $1.file.byteCount }
    report(progress)
    let isDryRun = options.isDryRun
    var found: [(MediaFile, Swift.Result<Outcome, any Error>)] = []
    try await forEachConcurrently(wanted, limit: concurrency(of: storage)) { file, known in
      try await Self.upload(file, known, to: storage, isDryRun: isDryRun)
    } finish: { item, outcome in
      switch outcome {
      case .success(.unchanged(let upload)), .success(.uploaded(let upload)):
        try await index.note(upload, of: item.file.path, in: storage.name)
      default: break
      }
      found.append((item.file, outcome))
      progress.files += 1
      progress.bytes += item.file.byteCount
      progress.path = item.file.path.name
      report(progress)
    }
    for (file, outcome) in found {
      switch outcome {
      case .success(.unchanged): if !isMirror { result.unchangedCount += 1 }
      case .success(.uploaded), .success(.wanted):
        result.uploaded.append(
          SyncResult.Transfer(path: file.path, byteCount: file.byteCount, storage: storage.name))
      case .failure(let error): note(error, in: .uploading, about: file.file)
      }
    }
  }

  private static func upload(
    _ file: MediaFile, _ known: SyncIndex.Upload?, to storage: any StorageProvider, isDryRun: Bool
  ) async throws -> Outcome {
    var contents = try StorageContents(file: file.file)
    let mayBeUnchanged = known?.byteCount == contents.byteCount
    if mayBeUnchanged || !isDryRun && storage.capabilities.checksums.contains(.sha256) {
      contents.sha256 = try await contents.digest(SHA256.self)
    }
    // Copied, restored or touched files have other times and the same contents.
    if mayBeUnchanged, var known, known.sha256 == contents.sha256 {
      known.fileState = file.state
      return .unchanged(known)
    }
    if isDryRun { return .wanted }
    // A digest that is not needed before is computed while the bytes are sent.
    let sent = SentDigest()
    let object = try await storage.put(
      contents.sha256 == nil ? contents.watched(by: sent) : contents, to: file.path, .none)
    guard object.byteCount == contents.byteCount else {
      throw StorageError(
        .truncated, "the storage has \(object.byteCount) bytes of it instead of \(contents.byteCount)", path: file.path)
    }
    let digest: String
    if let known = contents.sha256 ?? sent.sha256(ofAll: contents.byteCount) {
      digest = known
    } else {
      // The storage has not read them from beginning to end.
      digest = try await contents.digest(SHA256.self)
    }
    return .uploaded(
      SyncIndex.Upload(
        byteCount: contents.byteCount, version: object.version?.text, sha256: digest, fileState: file.state))
  }

  /// What a storage really has of the folders that files go to.
  private func present(in storage: any StorageProvider) async throws -> [RemotePath: StoredObject] {
    var found: [RemotePath: StoredObject] = [:]
    for folder in [folders.structure.originals, folders.structure.reworked] {
      for object in try await storage.listAll(remote.appending(folder)).objects { found[object.path] = object }
    }
    return found
  }

  /// Deletes what this device has uploaded and does not have any more. What other devices have uploaded is not its business.
  private mutating func deleteOrphans(
    of folder: RemotePath, keeping files: [MediaFile], _ filter: PathFilter, in storage: any StorageProvider
  ) async throws {
    let present = Set(files.map(\.path))
    let orphans = try await index.uploads(in: folder, of: storage.name).filter { path in
      !present.contains(path) && path.relative(to: folder).map { filter.takes($0) } ?? false
    }
    // An empty folder where there were many files is a volume that is not there, rather than a wish.
    if files.isEmpty, !orphans.isEmpty {
      let text =
        "all \(orphans.count) files of \(folder.name) are gone here, so none was deleted from the storage; if that is meant, delete them there"
      if !result.notes.contains(text) { result.notes.append(text) }
      return
    }
    var deleted = Set(result.deleted)
    for path in orphans {
      if !options.isDryRun {
        do {
          try await storage.delete(path)
          try await index.forgetUpload(path, in: storage.name)
        } catch let error as StorageError {
          note(error, in: .uploading, about: path.text)
          continue
        }
      }
      if deleted.insert(path).inserted { result.deleted.append(path) }
    }
  }
}
