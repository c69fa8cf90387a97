import BuckiaDiffFiles
import BuckiaEngine
import BuckiaKSUID
import SQLiteChangesets
import SQLiteConnections

/// One round of applying: takes file after file and notes what became of each.
struct InboundRound {
  let options: ApplyOptions
  let resolver: ConflictResolver?
  private(set) var outcomes: [DiffOutcome] = []
  private(set) var trust = TrustMode.any
  private(set) var createdLedger = false
  var failure: (any Error)?

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

  /// Takes one file: verifies, applies, records, removes.
  ///
  /// - Throws: What is not the file's fault: the database locked or damaged, a full disk, the application's wish to stop.
  mutating func take(_ item: InboundItem, on connection: borrowing SQLiteConnection) throws {
    // A file that is refused before its signature is verified has no sender, whatever it claims.
    var sender = ""
    var outcome = DiffOutcome(id: item.id, path: item.path, sender: Ledger.shown(sender: sender), state: .rejected)
    do {
      switch item.kind {
      case .encrypted:
        throw Refusal(
          state: .rejected, code: BuckiaError.Code.encrypted.rawValue,
          reason: BuckiaError.encryptedReason)
      case .diff:
        let diff = try DiffFile.verified(at: item.path, name: item.isFromFolder ? .mustMatch : .ifNamedByID)
        outcome.id = diff.manifest.id
        sender = diff.signature.sender
        outcome.sender = Ledger.shown(sender: sender)
        try Self.requireWhatWeCanDo(diff)
        if !diff.attachments.isEmpty {
          outcome.warnings.append(
            "its \(diff.attachments.count) attached files were not unpacked; `tar --zstd -xf` does it")
        }
        let changes = IncomingChanges(diff, file: item.path)
        try apply(changes, fileDigest: diff.fileDigest, outcome: &outcome, on: connection)
      case .changeset:
        let raw = try RawChangeset.verified(at: item.path)
        let changes = IncomingChanges(raw, file: item.path)
        try apply(changes, fileDigest: raw.digest, outcome: &outcome, on: connection)
      }
    } catch let error as DiffFileError
      where item.isFromFolder && error.code == .unreadable && !FileSystem.exists(item.path)
    {
      // Another process applied and removed it between our listing and now.
      return
    } catch {
      let refusal = try Self.refusal(for: error)
      outcome.state = refusal.state
      outcome.code = refusal.code
      // Engine and SQLite quote the names that stand in the file.
      outcome.reason = ShownText.line(refusal.reason)
      let digest = refusal.isRecorded ? Self.digest(of: item, remarkingOn: &outcome) : nil
      outcomes.append(outcome)
      if let digest { try record(outcome, of: sender, digest, item, on: connection) }
      return
    }
    outcomes.append(outcome)
    let isDone = outcome.state == .applied || outcome.state == .alreadyApplied
    if isDone, !options.isDryRun, item.isFromFolder ? !options.keepsFiles : options.removesNamedFiles {
      do throws(BuckiaError) {
        try FileSystem.remove(item.path)
      } catch {
        outcomes[outcomes.count - 1].warnings.append(error.description)
      }
    }
  }

  /// Refuses what this version can read but not do: half of a diff must not pass for the whole.
  private static func requireWhatWeCanDo(_ diff: borrowing DiffFile) throws {
    if diff.schema == nil, diff.manifest.schema != nil {
      throw Refusal(
        state: .rejected, code: BuckiaError.Code.unknownSchema.rawValue,
        reason: "its table definitions did not travel along, and are not known here; ask for a file that has them")
    }
    if diff.manifest.tables.contains(where: { $0.withdrawn > 0 }) {
      throw Refusal(
        state: .rejected, code: BuckiaError.Code.unsupported.rawValue,
        reason: "it withdraws shared rows, which this version of Buckia cannot do; update Buckia")
    }
  }

  private mutating func apply(
    _ changes: IncomingChanges, fileDigest: ContentDigest, outcome: inout DiffOutcome,
    on connection: borrowing SQLiteConnection
  ) throws {
    let now = WallClock.unixMilliseconds
    let transaction = try SQLiteTransaction(on: connection)
    switch try Ledger.standing(of: changes.key, on: connection) {
    case .recorded(let state) where state != .waiting:
      outcome.state = .alreadyApplied
      transaction.rollback()
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
      _ = try Ledger.open(
        changes.key, state: .waiting, file: changes.file, reason: outcome.reason, at: now, on: connection)
      try transaction.commit()
      return
    }
    let settings = ApplySettings(
      policy: options.conflicts, resolver: resolver, schema: options.schema, firesTriggers: options.triggers, time: now)
    let plan = try ApplyPlan(changes, on: connection, settings: settings)
    let result = try plan.apply(in: transaction, on: connection)
    try Ledger.forgetRefusal(ofFile: fileDigest.bytes, on: connection)
    try transaction.commit()
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
    let transaction = try SQLiteTransaction(on: connection)
    try Ledger.record(
      Ledger.Refusal(
        digest: digest.bytes, id: outcome.id, sender: sender, state: outcome.state, reason: outcome.reason ?? "",
        file: item.name), at: WallClock.unixMilliseconds, on: connection)
    try transaction.commit()
  }
}

extension SQLiteError {
  /// Whether the statement is to blame, not the database or the machine: another diff may well succeed.
  fileprivate var isFaultOfStatement: Bool {
    primaryCode == 1 || isConstraint || isMismatch || isTooBig
  }
}
