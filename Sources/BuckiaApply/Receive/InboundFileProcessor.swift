import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// Applies or refuses one file inside the transaction of its group.
struct InboundFileProcessor {
  /// The result of processing a file.
  enum Result {
    /// It is applied or refused.
    case done(DiffOutcome)
    /// Another process has taken it.
    case vanished
    /// A file of the batch met a conflict: the group has to be rolled back, and applied file by file.
    case batchConflict
    /// Rows of it refer to rows that are left out: the group has to be rolled back, and applied again with savepoints.
    case refersToRefused
    /// It failed after it had begun to write, or SQLite has rolled back everything: the group has to be applied again.
    case failed(any Error)
  }

  private let file: IncomingFile
  private let gate: ReceiverGate
  private let settings: ApplySettings
  /// True if the file gets a savepoint of its own, which protects the other files of its group.
  private let usesSavepoint: Bool
  private let session: ApplySession
  private var outcome: DiffOutcome
  /// The files before it that cannot be read for now, and itself if it is one.
  private(set) var unread: UnreadFiles

  init(
    _ file: IncomingFile, after unread: UnreadFiles, _ gate: ReceiverGate, _ settings: ApplySettings,
    usesSavepoint: Bool, _ session: ApplySession
  ) {
    self.unread = unread
    self.file = file
    self.gate = gate
    self.settings = settings
    self.usesSavepoint = usesSavepoint
    self.session = session
    outcome = DiffOutcome(
      id: file.id, path: file.path, sender: settings.senders.shown(file.recordedSender), state: .rejected)
    outcome.senderKey = LedgerEntries.verifiedKey(of: file.sender)
  }

  /// Applies the file, or records why not.
  ///
  /// - Parameters:
  ///   - batch: The files of the group that are applied together; nil to apply each by itself.
  ///   - transaction: That of the group.
  /// - Throws: What is not the file's fault.
  mutating func process(
    with batch: inout OptimisticBatch?, in transaction: borrowing SQLiteTransaction
  ) throws -> Result {
    do {
      let changes: IncomingChanges
      switch file.content {
      case .vanished: return .vanished
      case .failed(let error, let finish):
        do { try finish() } catch { return .done(try refuse(error)) }
        return .done(try refuse(error))
      case .verified(let verified): changes = verified
      case .arriving(let arriving, let finish):
        changes = arriving
        // With a savepoint, or if it will not be applied, the whole file is verified first, and also if the sharing
        // participant reads it.
        if try usesSavepoint || concernsStreams(arriving) || !mayApply(admit(arriving)) {
          try finish()
        }
      }
      return try receive(changes, with: &batch, in: transaction)
    } catch {
      guard isUsable(after: error) else { return .failed(error) }
      return .done(try refuse(error))
    }
  }

  /// True if the transaction can go on after rolling back the savepoint of a failed file.
  ///
  /// A trigger or SQLite can have rolled back the whole transaction. In a transaction that has met damage, SQLite also
  /// refuses every further write, even after the savepoint was rolled back.
  private func isUsable(after error: any Error) -> Bool {
    session.connection.isInTransaction && (error as? ReplicationError)?.code != .damagedDatabase
  }

  private func admit(_ changes: IncomingChanges) throws -> ReceiverGate.Admission {
    let admission = try gate.admit(changes, at: settings.time, on: session.connection)
    guard mayApply(admission) else { return admission }
    if let name = unread.name(before: file) { return .refused(.behind(EscapedText.quoted(name))) }
    guard isLimited(changes.key.sender) else { return admission }
    let known = try LedgerSettings.receivedBytes(from: changes.key.sender, at: settings.time, on: session.connection)
    guard Int64(file.byteCount) <= settings.senderBytes - known else {
      return .refused(.tooMuch(Int64(file.byteCount), after: known, limit: settings.senderBytes))
    }
    return admission
  }

  /// True if the daily limit of a sender applies to this file. It does not apply to the owner's own key, on another
  /// device.
  private func isLimited(_ sender: String) -> Bool {
    guard file.isLimited, settings.keepsLedger else { return false }
    if case .own = settings.senders.standing(of: sender) { return false }
    return true
  }

  private func concernsStreams(_ changes: IncomingChanges) throws -> Bool {
    try settings.sharing?.concerns(changes) == true
  }

  private func mayApply(_ admission: ReceiverGate.Admission) -> Bool {
    if case .admitted = admission { true } else { false }
  }

  private mutating func receive(
    _ changes: IncomingChanges, with batch: inout OptimisticBatch?, in transaction: borrowing SQLiteTransaction
  ) throws -> Result {
    var admitted: AdmittedChanges
    switch try admit(changes) {
    case .admitted(let changes): admitted = changes
    case .alreadyRecorded:
      outcome.state = .alreadyApplied
      return .done(outcome)
    case .contained(let snapshot):
      note(.contained(in: snapshot))
      try RefusedFiles.remove(digest: file.digest(), of: changes.key, on: session.connection)
      try LedgerEntries.record(
        changes.key, placed: changes.place, state: .applied, file: changes.file, reason: outcome.reason,
        at: settings.time, on: session.connection)
      return .done(outcome)
    case .refused(let refusal):
      guard refusal.state == .waiting else {
        // Whose sender is not trusted any more does not wait.
        if refusal.endsWaiting {
          try LedgerEntries.removeWaiting(changes.key, isPlaced: changes.place != nil, on: session.connection)
        }
        throw refusal
      }
      note(refusal)
      if refusal.isRecorded {
        try LedgerEntries.record(
          changes.key, placed: changes.place, state: .waiting, file: changes.file, reason: outcome.reason,
          at: settings.time, on: session.connection)
      }
      return .done(outcome)
    }
    let changes = admitted.changes
    let participant = try concernsStreams(changes) ? settings.sharing : nil
    if let participant {
      // The step reads rows, which requires that earlier files are written.
      if try batch?.write() != nil { return .batchConflict }
      admitted = admitted.replaced(by: try participant.prepare(changes))
    }
    let plan = try plan(admitted)
    outcome.plan = plan.notes
    if participant == nil {
      switch try batch?.add(plan) ?? .notEligible {
      case .conflict: return .batchConflict
      case .added(let result): return .done(try finish(result))
      case .notEligible: break
      }
    }
    // Earlier files are written first.
    if try batch?.write() != nil { return .batchConflict }
    // The batch's knowledge of triggers and foreign keys is no longer valid.
    if plan.adoptsSchema { batch = nil }
    guard usesSavepoint else {
      do {
        guard case .applied(let result) = try diagnosing({ try plan.carryOutOnce() }) else { return .refersToRefused }
        outcome.warnings += try participant?.finish(changes, counting: result.counts) ?? []
        return .done(try finish(result))
      } catch {
        return .failed(error)
      }
    }
    let effects = settings.observer?.mark ?? 0
    do {
      let savepoint = try SQLiteTransaction(on: session.connection)
      let result = try diagnosing { try plan.apply(in: savepoint) }
      var done = try finish(result)
      done.warnings += try participant?.finish(changes, counting: result.counts) ?? []
      try savepoint.commit()
      return .done(done)
    } catch {
      settings.observer?.rewind(to: effects)
      if (error as? ReplicationError)?.code == .conflict { try session.noteCollisions(of: changes) }
      throw error
    }
  }

  /// Determines the cause of a failure before it is rolled back, because afterwards it can no longer be seen.
  private func diagnosing<Done>(_ work: () throws -> Done) throws -> Done {
    do { return try work() } catch { throw FaultDiagnosis.refined(error, on: session.connection) }
  }

  private func plan(_ admitted: AdmittedChanges) throws -> ApplyPlan {
    do {
      return try ApplyPlan(admitted, settings: settings, session: session)
    } catch {
      // A damaged file is reported as damaged, whatever else is wrong with it.
      if case .arriving(_, let finish) = file.content { try finish() }
      throw FaultDiagnosis.refined(error, on: session.connection)
    }
  }

  private mutating func finish(_ result: ApplyResult) throws -> DiffOutcome {
    try RefusedFiles.remove(digest: file.digest(), of: file.changes?.key, on: session.connection)
    if let sender = file.changes?.key.sender, isLimited(sender) {
      try LedgerSettings.addReceived(Int64(file.byteCount), from: sender, at: settings.time, on: session.connection)
    }
    try adoptDataset()
    outcome.warnings += try file.warnings()
    outcome.add(result)
    return outcome
  }

  /// Makes the database a part of the file's dataset, if it belongs to none.
  private mutating func adoptDataset() throws {
    guard settings.adoptsDataset, settings.keepsLedger, let dataset = file.changes?.dataset,
      try LedgerSettings.dataset(on: session.connection) == nil
    else { return }
    try LedgerSettings.setDataset(dataset, on: session.connection)
    outcome.warnings.append(Warning(.datasetAdopted, LedgerSettings.text(ofDataset: dataset)))
  }

  // MARK: Refusing

  /// Writes down that the file was refused.
  ///
  /// - Throws: The error, when it is not the file's fault.
  private mutating func refuse(_ error: any Error) throws -> DiffOutcome {
    guard let refusal = (error as? any FileFault)?.refusal else { throw error }
    note(refusal)
    if refusal.isPassing { unread.note(file) }
    guard refusal.isRecorded else { return outcome }
    do {
      try RefusedFiles.record(
        digest: file.digest(), id: outcome.id, sender: file.recordedSender, state: refusal.state,
        reason: outcome.reason ?? "", file: file.name, at: settings.time, on: session.connection)
    } catch let error as SQLiteError where !error.isTooBig {
      throw error
    } catch let error as ChangesetFeed.Incomplete {
      throw error
    } catch {
      outcome.warnings.append(Warning(.refusalNotRecorded, "\(error)"))
    }
    return outcome
  }

  private mutating func note(_ refusal: Refusal) {
    outcome.state = refusal.state
    outcome.code = refusal.code
    outcome.reason = EscapedText.line(refusal.reason)
  }
}
