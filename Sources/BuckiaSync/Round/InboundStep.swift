import Buckia
import BuckiaStorage

/// Received diffs: downloads and applies them, and removes them from the storage when they are safe.
///
/// The present ledger of the database decides about an object. The index has the digests by which the ledger knew it
/// when it was applied; as long as the ledger has these, the object is settled, and can be removed from the storage
/// after a backup. Any other object is downloaded, unless it is in the local folder already: cleared folders, other
/// folders and restored databases therefore lose nothing.
struct InboundStep {
  /// The mark for objects that the ledger does not know by their id: an accepted answer to an invitation, and a
  /// changeset that was applied under another name.
  private static let taken: Set<String> = ["taken"]

  private let storage: any StorageProvider
  private let folder: String
  private let round: SyncRound
  /// The objects that are diff files, changesets or answers by their names.
  private let objects: [StoredObject]
  private let otherCount: Int
  /// The diffs that this device has sent to the person's own devices, which it need not apply.
  private let own: Set<RemotePath>
  /// The marks of the person's devices; nil for a single device.
  private let marks: DeviceMarks?

  init(_ listing: ListPage, from storage: any StorageProvider, of round: SyncRound) async throws {
    self.storage = storage
    self.round = round
    folder = round.folders.inbound
    let inbound = try round.remote.appending(round.folders.structure.inbound)
    let objects = listing.objects.filter { $0.path.folder == inbound && DiffFileName.id($0.path.name) != nil }
    self.objects = objects
    otherCount = listing.objects.count - objects.count + listing.unusableNames
    let database = round.configuration.database
    let made = objects.isEmpty ? [] : try await runBlocking { try database.outgoingIDs() }
    own = Set(objects.map(\.path).filter { path in DiffFileName.id(path.name).map { made.contains($0) } ?? false })
    marks =
      if round.configuration.hasSeveralDevices, !round.options.isDryRun {
        try DeviceMarks(of: round.device, in: round.remote, storage, round.index)
      } else { nil }
    if !round.options.isDryRun {
      try await round.index.forgetDownloads(except: objects.map(\.path), from: storage.name)
    }
  }

  private func isHere(_ object: StoredObject) async throws -> Bool {
    let file = "\(folder)/\(object.path.name)"
    return try await runBlocking { try FileIdentity.current(at: file) != nil }
  }

  /// Registers this device, before anything is downloaded.
  ///
  /// - Returns: True if downloading is allowed.
  func takePart(_ result: inout SyncResult) async throws -> Bool {
    guard let marks else { return true }
    do {
      try await marks.takePart(
        at: WallClock.unixMilliseconds, inbound: objects.map(\.path.name),
        settled: Set(try await settled().map(\.path.name)))
      return true
    } catch let error as StorageError {
      result.failures.append(SyncResult.Failure(step: .listing, subject: storage.name, error: error))
      return false
    }
  }

  /// The objects that the present ledger has.
  func settled() async throws -> [StoredObject] {
    var noted: [(object: StoredObject, digests: Set<String>)] = []
    for object in objects where !own.contains(object.path) {
      let digests = try await round.index.download(of: object, from: storage.name) ?? []
      if !digests.isEmpty { noted.append((object, digests)) }
    }
    let known = try await digests(of: noted.map(\.object.path.name))
    let settled = noted.filter { object, digests in
      digests == Self.taken || digests.isSubset(of: known[object.path.name] ?? [])
    }
    // A file that the only device has sent to itself is a mistake, and may be the only copy.
    let sent = marks == nil ? [] : objects.filter { own.contains($0.path) }
    return sent + settled.map(\.object)
  }

  /// By which digests the ledger knows files that are in the database, by their names.
  private func digests(of names: [String]) async throws -> [String: Set<String>] {
    let ids = names.compactMap { name in DiffFileName.id(name).map { (name, $0) } }
    let database = round.configuration.database
    let known = try await runBlocking { try database.settledDigests(of: ids.map(\.1)) }
    return Dictionary(ids.compactMap { name, id in known[id].map { (name, $0) } }) { first, _ in first }
  }

  /// Downloads objects that are neither in the database nor in the local folder.
  func download(_ result: inout SyncResult) async throws {
    result.inboundCount = objects.count + otherCount
    let settled = Set(try await settled().map(\.path))
    var wanted: [StoredObject] = []
    // Otherwise any writer to the inbound folder could fill this disk.
    let bytesHere = try await localBytes()
    var bytes = bytesHere
    for object in objects where !settled.contains(object.path) && !own.contains(object.path) {
      if try await round.index.download(of: object, from: storage.name) != nil, try await isHere(object) { continue }
      guard let id = DiffFileName.id(object.path.name), !round.options.allowed.contains(id) else {
        wanted.append(object)
        continue
      }
      guard object.byteCount <= round.options.downloadBytes - bytes else {
        let lies = bytesHere > 0 ? ", and \(bytesHere) bytes of diffs that are not applied lie in \(folder)" : ""
        result.held.append(
          SyncResult.Held(
            id: id, file: object.path.name, byteCount: object.byteCount,
            reason:
              "it has \(object.byteCount) bytes, and was not downloaded: \(round.options.downloadBytes) are allowed at once\(lies)"
          ))
        continue
      }
      bytes += object.byteCount
      wanted.append(object)
    }
    if marks == nil {
      for path in own.sorted() {
        result.notes.append("\(path) was made from this database, and was left alone; move it to where it is to go")
      }
    }
    if !round.options.allowed.isEmpty {
      let names = try await localNames() + objects.map(\.path.name)
      let missing = round.options.allowed.subtracting(names.compactMap { DiffFileName.id($0) }).sorted()
      let database = round.configuration.database
      let known = try await runBlocking { try database.settledDigests(of: missing) }
      for id in missing where known[id] == nil { result.notes.append("there is no diff \(id) to let through") }
    }
    guard !wanted.isEmpty else { return }
    if round.options.isDryRun {
      for object in wanted { result.downloaded.append(SyncResult.Transfer(object, in: storage)) }
      return
    }
    var progress = SyncProgress(step: .downloading)
    progress.fileCount = wanted.count
    progress.byteCount = wanted.reduce(0) { $0 + $1.byteCount }
    round.report(progress)
    let storage = storage
    let folder = folder
    try await forEachConcurrently(wanted, limit: round.concurrency(of: storage)) { object in
      do {
        try await storage.download(
          object.path, to: "\(folder)/\(object.path.name)", expecting: object, isPrivate: true)
        return true
      } catch let error as StorageError where error.code == .notFound || error.code == .changed {
        // Another device has removed the object, or its sender has replaced it, which the next round sees.
        guard let found = try await storage.stat(object.path), found.version == object.version else { return false }
        throw error
      }
    } finish: { object, outcome in
      switch outcome {
      case .success(true):
        try await round.index.noteDownload(object, from: storage.name)
        result.downloaded.append(SyncResult.Transfer(object, in: storage))
      case .success(false):
        result.notes.append("\(object.path): it has been replaced or removed meanwhile")
      case .failure(let error):
        if (error as? StorageError)?.stopsRound == true { result.isCutShort = true }
        result.failures.append(
          SyncResult.Failure(step: .downloading, subject: object.path.text, error: error))
      }
      progress.add(object.path.name, byteCount: object.byteCount)
      round.report(progress)
    }
  }

  /// The size of the diffs in the local folder, in bytes.
  private func localBytes() async throws -> Int64 {
    let (names, folder) = (try await localNames(), folder)
    return try await runBlocking {
      try names.reduce(0) { try $0 + (FileIdentity.current(at: "\(folder)/\($1)")?.byteCount ?? 0) }
    }
  }

  /// The names of the diffs in the local folder.
  private func localNames() async throws -> [String] {
    let folder = folder
    return try await runBlocking { (try LocalFolder.names(in: folder) ?? []).filter { DiffFileName.id($0) != nil } }
  }

  // MARK: Applying

  /// Applies all files in the local folder: new ones, and those that wait there.
  func apply(_ result: inout SyncResult) async throws {
    if try await localNames().isEmpty { return }
    var report: ApplyReport?
    if result.downloaded.isEmpty {
      // Refused and waiting files are tried in a dry run, and nothing is written if their state is unchanged.
      let rehearsal = try await apply(isDryRun: true)
      if try await isKnown(rehearsal) { report = rehearsal }
    }
    if report == nil {
      let applied = try await LocalStep.take { try await apply(isDryRun: false) }
      report = applied
      try await note(applied)
    }
    result.applied = report
    for diff in report?.diffs ?? [] where diff.code == .overLimit {
      let name = String(diff.path.split(separator: "/").last ?? "")
      guard let id = DiffFileName.id(name) else { continue }
      let bytes = try await runBlocking { try FileIdentity.current(at: diff.path)?.byteCount ?? 0 }
      result.held.append(SyncResult.Held(id: id, file: name, byteCount: bytes, reason: diff.reason ?? ""))
    }
    for outgoing in report?.outgoingFolders ?? [] {
      result.notes.append(
        "\(outgoing) holds files that were made from this database, so nothing was removed there; move these to where they are to go"
      )
    }
  }

  private func apply(isDryRun: Bool) async throws -> ApplyReport {
    var options = round.options.apply
    options.keepsFiles = false
    options.isDryRun = isDryRun
    options.limits.allowed.formUnion(round.options.allowed)
    return try await round.configuration.database.processInboundChanges(
      [folder], options: options)
  }

  /// True if all files are refused or wait, and the ledger says so already.
  private func isKnown(_ report: ApplyReport) async throws -> Bool {
    let files =
      report.diffs.map { (path: $0.path, state: $0.state, reason: $0.reason) }
      + report.answers.filter { $0.state != .notOurs }.map { answer in
        (path: answer.path, state: answer.state == .refused ? .rejected : .applied, reason: answer.reason)
      }
    let names = files.map { String($0.path.split(separator: "/").last ?? "") }
    let named = names.compactMap { name in DiffFileName.id(name).map { (name: name, id: $0) } }
    let database = round.configuration.database
    let entries = try await runBlocking { try database.lastLogEntries(ofFiles: named) }
    return zip(files, names).allSatisfy { file, name in
      guard let entry = entries[name] else { return false }
      return ![.applied, .alreadyApplied, .held].contains(file.state) && entry.state == file.state
        && entry.reason == file.reason
    }
  }

  /// Records the ledger's digests of applied files.
  private func note(_ report: ApplyReport) async throws {
    let inbound = try round.remote.appending(round.folders.structure.inbound)
    let names = report.diffs.filter { [.applied, .alreadyApplied, .held].contains($0.state) }
      .map { String($0.path.split(separator: "/").last ?? "") }
    let known = try await digests(of: names)
    for name in names where DiffFileName.id(name) != nil {
      try await round.index.note(known[name] ?? Self.taken, of: inbound.appending(name), from: storage.name)
    }
    for answer in report.answers where [.accepted, .alreadyAccepted].contains(answer.state) {
      let name = String(answer.path.split(separator: "/").last ?? "")
      try await round.index.note(Self.taken, of: inbound.appending(name), from: storage.name)
    }
  }

  // MARK: Dropping

  /// Removes from the storage the objects that this database and those of the person's other devices have.
  func drop(_ settled: [StoredObject], _ result: inout SyncResult) async throws {
    var settled = settled
    var marksOfFiles: [String: [RemotePath]] = [:]
    do {
      if let marks {
        let settlement = try await marks.settle(settled.map(\.path.name))
        marksOfFiles = settlement.free
        settled.removeAll { marksOfFiles[$0.path.name] == nil }
        for (device, days) in settlement.silent {
          let heard =
            days.map { "was last heard of \($0) days before the others" } ?? "the storage has nothing of any more"
          result.notes.append(
            "diffs wait for the device \(device), which \(heard); if it is gone for good, let it be forgotten: buckia sync --forget-device \(device)"
          )
        }
      }
    } catch let error as StorageError {
      result.failures.append(SyncResult.Failure(step: .dropping, subject: storage.name, error: error))
      return
    }
    guard !settled.isEmpty else { return }
    var progress = SyncProgress(step: .dropping)
    progress.fileCount = settled.count
    let (storage, marks) = (storage, marksOfFiles)
    try await forEachConcurrently(settled, limit: round.concurrency(of: storage)) { object in
      try await storage.delete(object.path)
      for mark in marks[object.path.name] ?? [] { try await storage.delete(mark) }
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
}
