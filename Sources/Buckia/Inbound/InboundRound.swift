import BuckiaDiffFiles
import BuckiaEngine
import BuckiaKSUID
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// One round of applying: takes file after file and notes what became of each.
///
/// Many files share one transaction, because a transaction costs more than a small file. What becomes of a file does not
/// depend on its company: when one fails after it has begun to write, all of the group is taken back and taken again,
/// each file behind a savepoint; when the database fails, each in a transaction of its own.
struct InboundRound {
  let options: ApplyOptions
  let resolver: ConflictResolver?
  private(set) var outcomes: [DiffOutcome] = []
  private(set) var trust = TrustMode.any
  private(set) var createdLedger = false
  var failure: (any Error)?

  /// How many files and bytes of changes share one transaction at most, which keeps other writers waiting.
  private static let groupLimit = 1_024
  private static let groupBytes = 64 << 20

  init(options: ApplyOptions, resolver: ConflictResolver?) {
    self.options = options
    self.resolver = resolver
  }

  /// Makes sure of the ledger and learns who is believed.
  mutating func begin(on connection: borrowing SQLiteConnection) throws {
    let transaction = try SQLiteTransaction(on: connection)
    createdLedger = try Ledger.create(on: connection)
    if let trust = options.trust { try Ledger.setTrust(trust, on: connection) }
    trust = try Ledger.trust(on: connection)
    try transaction.commit()
  }

  /// A refusal: what the ledger and the report say.
  private struct Refusal: Error {
    let state: DiffState
    let code: String
    let reason: String
    var isRecorded = true
  }

  /// A file that failed after it had begun to write: its group has to be taken again.
  private struct Unsettled: Error {
    let cause: any Error
  }

  // MARK: Groups

  /// What became of one file, before its group is committed.
  private struct Taken {
    let item: InboundItem
    let outcome: DiffOutcome
  }

  /// A group of files, and how far it came.
  private struct Group {
    var taken: [Taken] = []
    /// The first file behind the group.
    var end: Int
    var bytes = 0
    /// The application's wish to stop, before the file at `end`.
    var stop: (any Error)?
    /// What went wrong with the file at `end`.
    var failure: (any Error)?
  }

  /// Takes all files: verifies, applies, records, removes.
  ///
  /// - Throws: What is not a file's fault: the database locked or damaged, a full disk, the application's wish to stop.
  ///   The files before it are done.
  mutating func take(
    _ items: [InboundItem], on connection: borrowing SQLiteConnection,
    progress: (String, Int, Int) throws -> Void
  ) throws {
    let session = try ApplySession(on: connection, firesTriggers: options.triggers)
    var next = 0
    while next < items.count {
      let reader = InboundReader(items, from: next)
      do {
        next = try takeGroups(items, from: next, reader, session, on: connection, progress: progress)
        reader.stop()
      } catch {
        reader.stop()
        try session.end(on: connection)
        throw error
      }
    }
    try session.end(on: connection)
  }

  /// Takes group after group, until one has to be taken again.
  ///
  /// - Returns: Where a new reader has to begin.
  private mutating func takeGroups(
    _ items: [InboundItem], from start: Int, _ reader: InboundReader, _ session: ApplySession,
    on connection: borrowing SQLiteConnection, progress: (String, Int, Int) throws -> Void
  ) throws -> Int {
    var next = start
    while next < items.count {
      let end = min(items.count, next + Self.groupLimit)
      let group = try takeGroup(
        items, next..<end, isCareful: false, { _ in reader.next() }, session, on: connection, progress: progress)
      if group.failure == nil {
        if let stop = group.stop { throw stop }
        next = group.end
        continue
      }
      let again = next..<min(items.count, group.end + 1)
      let schemas = SchemaCache()
      let open: (InboundItem) -> OpenedItem = { OpenedItem($0, schemas: schemas) }
      if let unsettled = group.failure as? Unsettled, Self.isFault(ofFile: unsettled.cause) {
        let second = try takeGroup(
          items, again, isCareful: true, open, session, on: connection, progress: progress)
        if second.failure == nil {
          if let stop = second.stop { throw stop }
          return again.upperBound
        }
      }
      for index in again {
        let alone = try takeGroup(
          items, index..<(index + 1), isCareful: true, open, session, on: connection, progress: progress)
        if let error = alone.failure ?? alone.stop { throw error }
      }
      return again.upperBound
    }
    return next
  }

  /// Takes some files in one transaction.
  ///
  /// - Returns: How far it came; with a failure nothing of it has happened.
  /// - Throws: `SQLiteError` when there is no transaction to be had.
  private mutating func takeGroup(
    _ items: [InboundItem], _ range: Range<Int>, isCareful: Bool, _ open: (InboundItem) -> OpenedItem,
    _ session: ApplySession, on connection: borrowing SQLiteConnection,
    progress: (String, Int, Int) throws -> Void
  ) throws -> Group {
    let transaction = try SQLiteTransaction(on: connection)
    var group = gather(items, range, isCareful: isCareful, open, session, on: connection, progress: progress)
    if group.failure == nil {
      do { try transaction.commit() } catch { group.failure = error }
    } else {
      transaction.rollback()
    }
    guard group.failure == nil else {
      session.forget()
      return group
    }
    for taken in group.taken { outcomes.append(removing(taken)) }
    return group
  }

  private func gather(
    _ items: [InboundItem], _ range: Range<Int>, isCareful: Bool, _ open: (InboundItem) -> OpenedItem,
    _ session: ApplySession, on connection: borrowing SQLiteConnection,
    progress: (String, Int, Int) throws -> Void
  ) -> Group {
    var group = Group(end: range.lowerBound)
    for index in range {
      guard group.bytes < Self.groupBytes else { break }
      do { try progress(items[index].path, index + 1, items.count) } catch {
        group.stop = error
        break
      }
      let opened = open(items[index])
      do {
        if let outcome = try take(opened, isCareful: isCareful, session, on: connection) {
          group.taken.append(Taken(item: opened.item, outcome: outcome))
        }
      } catch {
        opened.abandon()
        group.failure = error
        break
      }
      group.bytes += opened.byteCount
      group.end = index + 1
    }
    return group
  }

  /// Removes a file that is done, where the options say so.
  private func removing(_ taken: Taken) -> DiffOutcome {
    var outcome = taken.outcome
    let isDone = outcome.state == .applied || outcome.state == .alreadyApplied
    if isDone, !options.isDryRun, taken.item.isFromFolder ? !options.keepsFiles : options.removesNamedFiles {
      do throws(BuckiaError) {
        try FileSystem.remove(taken.item.path)
      } catch {
        outcome.warnings.append(error.description)
      }
    }
    return outcome
  }

  // MARK: One file

  /// Takes one file inside the transaction of its group.
  ///
  /// - Returns: What became of it; nil when there is nothing to say.
  private func take(
    _ opened: OpenedItem, isCareful: Bool, _ session: ApplySession, on connection: borrowing SQLiteConnection
  ) throws -> DiffOutcome? {
    let item = opened.item
    // A file that is refused before its signature is verified has no sender, whatever it claims.
    var sender = ""
    var outcome = DiffOutcome(id: item.id, path: item.path, sender: Ledger.shown(sender: sender), state: .rejected)
    do {
      switch opened.content {
      case .failure(let error): throw error
      case .encrypted:
        throw Refusal(
          state: .rejected, code: BuckiaError.Code.encrypted.rawValue, reason: BuckiaError.encryptedReason)
      case .arriving(let diff):
        // It is applied while the rest of it is being verified, if it is to be applied at all.
        if !isCareful, try mayApply(IncomingChanges(diff, file: item.path), on: connection) {
          try takeArriving(diff, item, &sender, &outcome, session, on: connection)
        } else {
          try take(try diff.file().file, item, isCareful: isCareful, &sender, &outcome, session, on: connection)
        }
      case .diff(let box):
        try take(box.value, item, isCareful: isCareful, &sender, &outcome, session, on: connection)
      case .changeset(let box):
        try apply(
          IncomingChanges(box.value, file: item.path), fileDigest: { box.value.digest }, isCareful: isCareful,
          outcome: &outcome, session, on: connection)
      }
    } catch let error as Unsettled {
      throw error
    } catch let error as DiffFileError
      where item.isFromFolder && error.code == .unreadable && !FileSystem.exists(item.path)
    {
      // Another process applied and removed it between our listing and now.
      return nil
    } catch {
      let refusal = try Self.refusal(for: error)
      outcome.state = refusal.state
      outcome.code = refusal.code
      // Engine and SQLite quote the names that stand in the file.
      outcome.reason = ShownText.line(refusal.reason)
      if refusal.isRecorded, let digest = Self.digest(of: item, remarkingOn: &outcome) {
        try record(outcome, of: sender, digest, item, on: connection)
      }
    }
    return outcome
  }

  private func take(
    _ diff: borrowing DiffFile, _ item: InboundItem, isCareful: Bool, _ sender: inout String,
    _ outcome: inout DiffOutcome, _ session: ApplySession, on connection: borrowing SQLiteConnection
  ) throws {
    describe(diff.manifest, diff.signature, &sender, &outcome)
    try Self.requireWhatWeCanDo(diff.manifest, diff.schema)
    Self.remarkOnAttachments(diff.attachments.count, &outcome)
    let digest = diff.fileDigest
    try apply(
      IncomingChanges(diff, file: item.path), fileDigest: { digest }, isCareful: isCareful, outcome: &outcome, session,
      on: connection)
  }

  private func takeArriving(
    _ diff: ArrivingDiff, _ item: InboundItem, _ sender: inout String, _ outcome: inout DiffOutcome,
    _ session: ApplySession, on connection: borrowing SQLiteConnection
  ) throws {
    describe(diff.manifest, diff.signature, &sender, &outcome)
    do {
      try Self.requireWhatWeCanDo(diff.manifest, diff.schema)
      try apply(
        IncomingChanges(diff, file: item.path), fileDigest: { try diff.file().file.fileDigest }, isCareful: false,
        outcome: &outcome, session, on: connection)
    } catch let error as Unsettled {
      throw error
    } catch {
      // Of a file that is damaged it is said that it is damaged, whatever else is wrong with it.
      _ = try diff.file()
      throw error
    }
    Self.remarkOnAttachments(try diff.file().file.attachments.count, &outcome)
  }

  private func describe(
    _ manifest: Manifest, _ signature: DiffFile.Signature, _ sender: inout String, _ outcome: inout DiffOutcome
  ) {
    outcome.id = manifest.id
    sender = signature.sender
    outcome.sender = Ledger.shown(sender: sender)
  }

  private static func remarkOnAttachments(_ count: Int, _ outcome: inout DiffOutcome) {
    guard count > 0 else { return }
    outcome.warnings.append("its \(count) attached files were not unpacked; `tar --zstd -xf` does it")
  }

  /// Refuses what this version can read but not do: half of a diff must not pass for the whole.
  private static func requireWhatWeCanDo(_ manifest: Manifest, _ schema: [TableDefinition]?) throws {
    if schema == nil, manifest.schema != nil {
      throw Refusal(
        state: .rejected, code: BuckiaError.Code.unknownSchema.rawValue,
        reason: "its table definitions did not travel along, and are not known here; ask for a file that has them")
    }
    if manifest.tables.contains(where: { $0.withdrawn > 0 }) {
      throw Refusal(
        state: .rejected, code: BuckiaError.Code.unsupported.rawValue,
        reason: "it withdraws shared rows, which this version of Buckia cannot do; update Buckia")
    }
  }

  /// Whether these changes would be applied now: they are new here, and nothing keeps them waiting.
  private func mayApply(_ changes: IncomingChanges, on connection: borrowing SQLiteConnection) throws -> Bool {
    let now = WallClock.unixMilliseconds
    let isEarly = changes.key.id.map { $0.unixSeconds > now / 1_000 + KSUIDClock.tolerance } ?? false
    return try trust == .any && !isEarly && Ledger.standing(of: changes.key, on: connection) == .unknown
  }

  private func apply(
    _ changes: IncomingChanges, fileDigest: () throws -> ContentDigest, isCareful: Bool, outcome: inout DiffOutcome,
    _ session: ApplySession, on connection: borrowing SQLiteConnection
  ) throws {
    let now = WallClock.unixMilliseconds
    switch try Ledger.standing(of: changes.key, on: connection) {
    case .recorded(let state) where state != .waiting:
      outcome.state = .alreadyApplied
      return
    case .equivocation:
      throw Refusal(
        state: .rejected, code: BuckiaError.Code.equivocation.rawValue,
        reason: "another file with the same sender and id was applied before; its sender made two of them")
    case .recorded, .unknown: break
    }
    guard trust == .any else {
      throw Refusal(
        state: .quarantined, code: BuckiaError.Code.untrusted.rawValue,
        reason: "this database believes known senders only, and this file is from a stranger")
    }
    if let id = changes.key.id, id.unixSeconds > now / 1_000 + KSUIDClock.tolerance {
      outcome.state = .waiting
      outcome.code = BuckiaError.Code.fromTheFuture.rawValue
      outcome.reason =
        "its id lies \(id.unixSeconds - now / 1_000) seconds in the future; it waits until then (is this clock right?)"
      try Ledger.record(
        changes.key, state: .waiting, file: changes.file, reason: outcome.reason, at: now, on: connection)
      return
    }
    let settings = ApplySettings(
      policy: options.conflicts, resolver: resolver, schema: options.schema, firesTriggers: options.triggers, time: now)
    let plan = try ApplyPlan(changes, on: connection, settings: settings, session: session)
    let result = try carryOut(plan, fileDigest: fileDigest, isCareful: isCareful, on: connection)
    outcome.state = .applied
    outcome.inserted = result.counts.inserted
    outcome.updated = result.counts.updated
    outcome.deleted = result.counts.deleted
    outcome.conflicts = result.counts.conflicts
    outcome.omitted = result.counts.omitted
    outcome.schemaChanges = result.schemaChanges
    outcome.warnings += result.warnings
    outcome.changedTables = result.changedTables
  }

  private func carryOut(
    _ plan: consuming ApplyPlan, fileDigest: () throws -> ContentDigest, isCareful: Bool,
    on connection: borrowing SQLiteConnection
  ) throws -> ApplyResult {
    guard isCareful else {
      do {
        let result = try plan.apply(on: connection)
        try Ledger.forgetRefusal(ofFile: fileDigest().bytes, on: connection)
        return result
      } catch {
        throw Unsettled(cause: error)
      }
    }
    let savepoint = try SQLiteTransaction(on: connection)
    let result = try plan.apply(on: connection)
    try Ledger.forgetRefusal(ofFile: fileDigest().bytes, on: connection)
    try savepoint.commit()
    return result
  }

  /// What to say of a file that failed; errors that are not the file's fault are thrown on.
  private static func refusal(for error: any Error) throws -> Refusal {
    switch error {
    case let refusal as Refusal: return refusal
    case let error as DiffFileError:
      // A file may ask for more room than there is here, again with every try. That is no fault to write down, but must
      // not keep the others waiting either.
      return Refusal(
        state: .rejected, code: error.code.rawValue, reason: error.description,
        isRecorded: !error.isTransient && error.code != .notRegularFile)
    case let error as EngineError where error.code != .cancelled:
      return Refusal(state: .rejected, code: error.code.rawValue, reason: error.description)
    case let error as ChangesetError:
      return Refusal(state: .rejected, code: error.code.rawValue, reason: error.description)
    case let error as SQLiteError where error.isFaultOfStatement:
      return Refusal(state: .rejected, code: "sqlite-\(error.code)", reason: error.description)
    default: throw error
    }
  }

  /// Whether a file is to blame for an error, not the database or the machine.
  private static func isFault(ofFile error: any Error) -> Bool {
    do {
      _ = try refusal(for: error)
      return true
    } catch {
      return false
    }
  }

  /// What identifies a refused file; nil, with a remark, when it cannot be read any more.
  private static func digest(of item: InboundItem, remarkingOn outcome: inout DiffOutcome) -> ContentDigest? {
    do {
      return try FileDigest.sha256(at: item.path).sha256
    } catch {
      outcome.warnings.append("the refusal is not recorded: \(error)")
      return nil
    }
  }

  private func record(
    _ outcome: DiffOutcome, of sender: String, _ digest: ContentDigest, _ item: InboundItem,
    on connection: borrowing SQLiteConnection
  ) throws {
    try Ledger.record(
      Ledger.Refusal(
        digest: digest.bytes, id: outcome.id, sender: sender, state: outcome.state, reason: outcome.reason ?? "",
        file: item.name), at: WallClock.unixMilliseconds, on: connection)
  }
}

extension SQLiteError {
  /// Whether the statement is to blame, not the database or the machine: another diff may well succeed.
  fileprivate var isFaultOfStatement: Bool {
    primaryCode == 1 || isConstraint || isMismatch || isTooBig
  }
}
