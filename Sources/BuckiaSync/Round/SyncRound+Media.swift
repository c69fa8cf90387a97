import BuckiaBytes
import BuckiaStorage
import Crypto

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension SyncRound {
  /// Uploads the media that are new or have changed, to the storage and its mirrors.
  mutating func uploadMedia(to storage: any StorageProvider) async throws {
    let filter = PathFilter(options.include, except: options.exclude)
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
        try await tell(of: found.leftOut, in: name)
      } catch let error as StorageError {
        // If the folder cannot be read, no file counts as deleted.
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

  // MARK: Fetching

  /// Fetches missing media that match the patterns. Existing files are not replaced.
  mutating func fetchMedia(from storage: any StorageProvider) async throws {
    guard !options.fetches.isEmpty else { return }
    let patterns = options.fetches.map { (text: $0, pattern: PathPattern($0)) }
    var unmatched = Set(options.fetches)
    var wanted: [(object: StoredObject, file: String)] = []
    var others: [String] = []
    do {
      for (folder, name) in [
        (folders.originals, folders.structure.originals), (folders.reworked, folders.structure.reworked),
      ] {
        let target = try remote.appending(name)
        for object in try await storage.listAll(target).objects {
          guard let relative = object.path.relative(to: target) else { continue }
          let matching = patterns.filter { $0.pattern.matches("\(name)/\(relative)") }.map(\.text)
          if matching.isEmpty { continue }
          unmatched.subtract(matching)
          let file = "\(folder)/\(relative)"
          let known = try await index.upload(object.path, in: storage.name)
          if try await runBlocking({ try FileIdentity.current(at: file) }) != nil {
            if let known = known?.version, let version = object.version, version.text != known { others.append(file) }
          } else if LocalFolder.holds(relative), known == nil || options.fetchesRemoved {
            wanted.append((object, file))
          }
        }
      }
    } catch let error as StorageError { return note(error, in: .fetching, about: storage.name) }
    // A setting may be about files that are still to come.
    if options.fetchesRemoved, !unmatched.isEmpty {
      result.notes.append("no media in \(storage.name) match \(unmatched.sorted().joined(separator: ", "))")
    }
    if let first = others.first {
      result.notes.append(
        "\(others.count) files of media are newer in the storage than here, and were left alone, such as \(first); move a file away to get the other"
      )
    }
    if options.isDryRun {
      result.fetched = wanted.map { SyncResult.Transfer($0.object, in: storage) }
      return
    }
    var progress = SyncProgress(step: .fetching)
    progress.fileCount = wanted.count
    progress.byteCount = wanted.reduce(0) { $0 + $1.object.byteCount }
    if !wanted.isEmpty { report(progress) }
    var fetched: [(StoredObject, Swift.Result<SyncIndex.Upload, any Error>)] = []
    try await forEachConcurrently(wanted, limit: concurrency(of: storage)) { object, file in
      try await Self.fetch(object, to: file, from: storage)
    } finish: { item, outcome in
      if case .success(let upload) = outcome { try await index.note(upload, of: item.object.path, in: storage.name) }
      fetched.append((item.object, outcome))
      progress.add(item.object.path.name, byteCount: item.object.byteCount)
      report(progress)
    }
    for (object, outcome) in fetched {
      switch outcome {
      case .success: result.fetched.append(SyncResult.Transfer(object, in: storage))
      case .failure(let error): note(error, in: .fetching, about: object.path.text)
      }
    }
  }

  private static func fetch(
    _ object: StoredObject, to file: String, from storage: any StorageProvider
  ) async throws -> SyncIndex.Upload {
    let slash = file.utf8.lastIndex(of: UInt8(ascii: "/")) ?? file.startIndex
    let folder = String(file[..<slash])
    try await runBlocking { try LocalFolder.makeFolder(folder) }
    let found = try await LocalStep.take {
      try await storage.download(object.path, to: file, expecting: object, isPrivate: true)
    }
    let contents = try await runBlocking { try StorageContents(file: file) }
    for checksum in object.checksums + found.checksums {
      guard try await contents.digest(of: checksum.algorithm) != checksum.hex else { continue }
      try await runBlocking { try FileManager.default.removeItem(atPath: file) }
      throw StorageError(.damaged, "other bytes came than the storage has; nothing was kept", path: object.path)
    }
    let state = try await runBlocking { try FileIdentity.current(at: file)?.text ?? "" }
    return SyncIndex.Upload(
      byteCount: contents.byteCount, version: object.version?.text, sha256: try await contents.digest(SHA256.self),
      fileState: state, isFetched: true)
  }

  // MARK: Files that are left out

  /// The most left-out files that are named.
  private static let namedLimit = 5

  /// Names files that are left out, once: not in the rounds that follow, unless the storage is looked through.
  private mutating func tell(of leftOut: [String], in folder: String) async throws {
    let setting = "left out \(folder)"
    let known = Set(try await index.setting(setting)?.split(separator: "//").map(String.init) ?? [])
    let new = options.looksThroughStorage ? leftOut : leftOut.filter { !known.contains($0) }
    if !options.isDryRun, known != Set(leftOut) {
      try await index.set(setting, to: leftOut.isEmpty ? nil : leftOut.joined(separator: "//"))
    }
    guard !new.isEmpty else { return }
    let rest = new.count > Self.namedLimit ? " and \(new.count - Self.namedLimit) more" : ""
    result.notes.append(
      "not uploaded from \(folder), since they are hidden, unfinished, links, or have names that no storage takes: \(new.prefix(Self.namedLimit).joined(separator: ", "))\(rest); rename what is to be uploaded"
    )
  }

  /// The outcome for one file.
  private enum Outcome: Sendable {
    case unchanged(SyncIndex.Upload)
    case uploaded(SyncIndex.Upload)
    /// The file would be uploaded, in a dry run.
    case wanted
  }

  private mutating func upload(_ files: [MediaFile], to storage: any StorageProvider, isMirror: Bool) async throws {
    var wanted: [(file: MediaFile, known: SyncIndex.Upload?)] = []
    let present: [RemotePath: StoredObject]?
    do { present = options.looksThroughStorage ? try await self.present(in: storage) : nil } catch let error
      as StorageError
    {
      // A failing mirror stops neither the others nor later steps.
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
      case .success(.unchanged(var upload)), .success(.uploaded(var upload)):
        // A file that was fetched from the storage does not belong to this device in a mirror either.
        if isMirror { upload.isFetched = try await index.isFetched(item.file.path) }
        try await index.note(upload, of: item.file.path, in: storage.name)
      default: break
      }
      found.append((item.file, outcome))
      progress.add(item.file.path.name, byteCount: item.file.byteCount)
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
    var contents = try await runBlocking { try StorageContents(file: file.file) }
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
      contents.sha256 == nil ? contents.watched(begin: { sent.begin() }, add: { sent.add($0) }) : contents,
      to: file.path, .none)
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

  /// The objects that a storage has in the folders of media.
  private func present(in storage: any StorageProvider) async throws -> [RemotePath: StoredObject] {
    var found: [RemotePath: StoredObject] = [:]
    for folder in [folders.structure.originals, folders.structure.reworked] {
      for object in try await storage.listAll(remote.appending(folder)).objects { found[object.path] = object }
    }
    return found
  }

  /// Deletes objects that this device has uploaded and whose files it no longer has. Objects of other devices stay.
  private mutating func deleteOrphans(
    of folder: RemotePath, keeping files: [MediaFile], _ filter: PathFilter, in storage: any StorageProvider
  ) async throws {
    let present = Set(files.map(\.path))
    let orphans = try await index.uploads(in: folder, of: storage.name).filter { path in
      !present.contains(path) && path.relative(to: folder).map { filter.takes($0) } ?? false
    }
    // An empty folder in place of many files is more likely an unmounted volume than a wish.
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
