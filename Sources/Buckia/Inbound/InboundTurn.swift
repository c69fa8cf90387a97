import BuckiaDiffFiles
import BuckiaEngine
import BuckiaKSUID
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The turn of one file: it is applied or refused inside the transaction of its group, and what became of it is noted.
struct InboundTurn {
  /// A file that failed after it had begun to write: its group has to be taken again.
  struct Unsettled: Error {
    let cause: any Error

    /// Whether the file is to blame, not the database or the machine.
    var isFaultOfFile: Bool {
      do {
        _ = try InboundTurn.refusal(for: cause)
        return true
      } catch {
        return false
      }
    }
  }

  /// A refusal: what the ledger and the report say.
  private struct Refusal: Error {
    let state: DiffState
    let code: String
    let reason: String
    var isRecorded = true
  }

  private let opened: OpenedItem
  private let settings: ApplySettings
  private let trust: TrustMode
  /// Whether the file gets a savepoint of its own, so that the others of its group stay whatever happens to it.
  private let isCareful: Bool
  private let session: ApplySession
  /// A file that is refused before its signature is verified has no sender, whatever it claims.
  private var sender = ""
  private var outcome: DiffOutcome

  private var item: InboundItem { opened.item }

  init(of opened: OpenedItem, _ round: InboundRound, isCareful: Bool, _ session: ApplySession) {
    self.opened = opened
    settings = round.settings
    trust = round.trust
    self.isCareful = isCareful
    self.session = session
    outcome = DiffOutcome(
      id: opened.item.id, path: opened.item.path, sender: Ledger.shown(sender: ""), state: .rejected)
  }

  /// Takes the file.
  ///
  /// - Parameters:
  ///   - joint: Those files of the group that are applied together; nil where each has to be applied by itself.
  ///   - transaction: That of the group.
  /// - Returns: What became of it; nil when there is nothing to say.
  /// - Throws: `Unsettled`, `JointApply.Disturbance`; what is not the file's fault.
  mutating func take(
    with joint: inout JointApply?, in transaction: borrowing SQLiteTransaction,
    on connection: borrowing SQLiteConnection
  ) throws -> DiffOutcome? {
    do {
      switch opened.content {
      case .failure(let error): throw error
      case .encrypted:
        throw Refusal(
          state: .rejected, code: BuckiaError.Code.encrypted.rawValue, reason: BuckiaError.encryptedReason)
      case .arriving(let diff): try take(arriving: diff, with: &joint, in: transaction, on: connection)
      case .diff(let box): try take(box.value, with: &joint, in: transaction, on: connection)
      case .changeset(let box):
        let digest = box.value.digest
        try apply(
          IncomingChanges(box.value, file: item.path), with: &joint, fileDigest: { digest }, in: transaction,
          on: connection)
      }
    } catch let error as Unsettled {
      throw error
    } catch let error as JointApply.Disturbance {
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
      outcome.reason = EscapedText.line(refusal.reason)
      if refusal.isRecorded { try record(on: connection) }
    }
    return outcome
  }

  private mutating func take(
    _ diff: borrowing DiffFile, with joint: inout JointApply?, in transaction: borrowing SQLiteTransaction,
    on connection: borrowing SQLiteConnection
  ) throws {
    note(diff.manifest, diff.signature)
    try Self.requireWhatWeCanDo(diff.manifest, diff.schema)
    noteAttachments(diff.attachments.count)
    let digest = diff.fileDigest
    try apply(
      IncomingChanges(diff, file: item.path), with: &joint, fileDigest: { digest }, in: transaction, on: connection)
  }

  /// Applies a file while the rest of it is being verified, if it is to be applied at all.
  private mutating func take(
    arriving diff: StreamedDiffFile, with joint: inout JointApply?, in transaction: borrowing SQLiteTransaction,
    on connection: borrowing SQLiteConnection
  ) throws {
    guard !isCareful, try mayApply(IncomingChanges(diff, file: item.path), on: connection) else {
      return try take(try diff.file().file, with: &joint, in: transaction, on: connection)
    }
    note(diff.manifest, diff.signature)
    do {
      try Self.requireWhatWeCanDo(diff.manifest, diff.schema)
      try apply(
        IncomingChanges(diff, file: item.path), with: &joint, fileDigest: { try diff.file().file.fileDigest },
        in: transaction, on: connection)
    } catch let error as Unsettled {
      throw error
    } catch let error as JointApply.Disturbance {
      throw error
    } catch {
      // Of a file that is damaged it is said that it is damaged, whatever else is wrong with it.
      _ = try diff.file()
      throw error
    }
    noteAttachments(try diff.file().file.attachments.count)
  }

  private mutating func note(_ manifest: Manifest, _ signature: DiffFile.Signature) {
    outcome.id = manifest.id
    sender = signature.sender
    outcome.sender = Ledger.shown(sender: sender)
  }

  private mutating func noteAttachments(_ count: Int) {
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

  // MARK: Applying

  /// How many seconds an id lies too far in the future to be believed; nil when it does not.
  private static func lead(of key: LedgerKey, at now: Int64) -> Int64? {
    guard let id = key.id, id.unixSeconds > now / 1_000 + KSUIDClock.tolerance else { return nil }
    return id.unixSeconds - now / 1_000
  }

  /// Whether these changes would be applied now: they are new here, and nothing keeps them waiting.
  private func mayApply(_ changes: IncomingChanges, on connection: borrowing SQLiteConnection) throws -> Bool {
    try trust == .any && Self.lead(of: changes.key, at: settings.time) == nil
      && Ledger.standing(of: changes.key, on: connection) == .unknown
  }

  private mutating func apply(
    _ changes: IncomingChanges, with joint: inout JointApply?, fileDigest: () throws -> ContentDigest,
    in transaction: borrowing SQLiteTransaction, on connection: borrowing SQLiteConnection
  ) throws {
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
    if let seconds = Self.lead(of: changes.key, at: settings.time) {
      outcome.state = .waiting
      outcome.code = BuckiaError.Code.fromTheFuture.rawValue
      outcome.reason = "its id lies \(seconds) seconds in the future; it waits until then (is this clock right?)"
      try Ledger.record(
        changes.key, state: .waiting, file: changes.file, reason: outcome.reason, at: settings.time,
        on: connection)
      return
    }
    let plan = try ApplyPlan(changes, on: connection, settings: settings, session: session)
    outcome.plan = plan.notes
    if let result = try joint?.join(plan, on: connection) {
      try Ledger.forgetRefusal(ofFile: fileDigest().bytes, on: connection)
      return note(result)
    }
    // What came before goes in before.
    try joint?.finish(on: connection)
    note(try carryOut(plan, fileDigest: fileDigest, in: transaction, on: connection))
  }

  private func carryOut(
    _ plan: consuming ApplyPlan, fileDigest: () throws -> ContentDigest, in transaction: borrowing SQLiteTransaction,
    on connection: borrowing SQLiteConnection
  ) throws -> ApplyResult {
    guard isCareful else {
      do {
        let result = try plan.apply(in: transaction, on: connection)
        try Ledger.forgetRefusal(ofFile: fileDigest().bytes, on: connection)
        return result
      } catch {
        throw Unsettled(cause: error)
      }
    }
    let savepoint = try SQLiteTransaction(on: connection)
    let result = try plan.apply(in: savepoint, on: connection)
    try Ledger.forgetRefusal(ofFile: fileDigest().bytes, on: connection)
    try savepoint.commit()
    return result
  }

  private mutating func note(_ result: ApplyResult) {
    outcome.state = result.held.isEmpty ? .applied : .held
    if !result.held.isEmpty { outcome.reason = HeldSummary.reason(result.held) }
    outcome.heldParts = result.held.reduce(0) { $0 + $1.partCount }
    outcome.inserted = result.counts.inserted
    outcome.updated = result.counts.updated
    outcome.deleted = result.counts.deleted
    outcome.conflicts = result.counts.conflicts
    outcome.omitted = result.counts.omitted
    outcome.schemaChanges = result.schemaChanges
    outcome.warnings += result.warnings
    outcome.changedTables = result.changedTables
    for released in result.released {
      outcome.warnings.append("what was kept of \(released.file) has been applied first")
    }
  }

  // MARK: Refusing

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
    case let error as EngineError where error.code != .cancelled && error.code != .transactionLost:
      return Refusal(state: .rejected, code: error.code.rawValue, reason: error.description)
    case let error as ChangesetError:
      return Refusal(state: .rejected, code: error.code.rawValue, reason: error.description)
    case let error as SQLiteError where error.isFaultOfStatement:
      return Refusal(state: .rejected, code: "sqlite-\(error.code)", reason: error.description)
    default: throw error
    }
  }

  /// Writes down that the file was refused.
  private mutating func record(on connection: borrowing SQLiteConnection) throws {
    let digest: ContentDigest
    do {
      digest = try FileDigest.sha256(at: item.path).sha256
    } catch {
      outcome.warnings.append("the refusal is not recorded: \(error)")
      return
    }
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
